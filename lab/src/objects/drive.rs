//! The load generator: clients in a closed loop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rangehold_testkit::server::Server;

use super::operation::{Clients, Operation, Turn};

/// What one run of an operation showed.
pub(super) struct Driven {
    /// How long each operation took, ascending.
    took: Vec<Duration>,
    /// Processor time of the server's process.
    processor: Duration,
}

impl Driven {
    pub(super) fn micros_each(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.took.len().max(1) as f64
    }

    pub(super) fn percentile_ms(&self, percent: usize) -> f64 {
        let at = (self.took.len() * percent / 100).min(self.took.len().saturating_sub(1));
        self.took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3)
    }
}

/// Runs an operation for so long. `size` is how many names were loaded, and the number of the round.
pub(super) fn drive(
    server: &Server,
    operation: Operation,
    size: (u64, usize),
    time: Duration,
) -> Result<Driven> {
    let next = AtomicU64::new(0);
    let client = |number: usize| -> Result<Vec<Duration>> {
        let mut clients = Clients::connect(server)?;
        let mut rng = StdRng::seed_from_u64((size.1 * 1_000 + number) as u64);
        let mut took = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < time {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let turn = Turn { names: size.0, round: size.1, number };
            let sent = Instant::now();
            operation.carry_out(&mut clients, &turn, &mut rng)?;
            took.push(sent.elapsed());
        }
        Ok(took)
    };
    let client = |number| client(number).with_context(|| operation.label());
    let before = server.processor_time()?;
    let took: Result<Vec<Vec<Duration>>> = thread::scope(|scope| {
        let running: Vec<_> =
            (0..operation.clients()).map(|number| scope.spawn(move || client(number))).collect();
        running.into_iter().map(|client| client.join().expect("clients do not panic")).collect()
    });
    let processor = server.processor_time()? - before;
    let mut took = took?.concat();
    took.sort_unstable();
    Ok(Driven { took, processor })
}

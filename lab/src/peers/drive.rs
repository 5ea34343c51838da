//! The load generator: clients in a closed loop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rangehold_testkit::client::{Client, Credential};

use super::peer::Peer;
use super::workload::{Turn, Workload};

/// What one run of a workload showed.
#[derive(Clone, Debug)]
pub(super) struct Driven {
    /// How long each operation took, ascending.
    took: Vec<Duration>,
    /// From the first request to the last answer.
    time: Duration,
    /// Processor time of the server's process.
    processor: Duration,
}

impl Driven {
    pub(super) fn micros_each(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.took.len().max(1) as f64
    }

    pub(super) fn each_second(&self) -> f64 {
        self.took.len() as f64 / self.time.as_secs_f64()
    }

    pub(super) fn percentile_ms(&self, percent: usize) -> f64 {
        let at = (self.took.len() * percent / 100).min(self.took.len().saturating_sub(1));
        self.took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3)
    }
}

/// Runs a workload for so long. `size` is how many entities were loaded, and the number of the round.
pub(super) fn drive(
    peer: &Peer,
    workload: Workload,
    clients: usize,
    time: Duration,
    size: (u64, usize),
) -> Result<Driven> {
    let next = AtomicU64::new(0);
    let client = |number: usize| -> Result<Vec<Duration>> {
        let mut client = Client::new(peer.address, Credential::SharedKey);
        let mut rng = StdRng::seed_from_u64((size.1 * 1_000 + number) as u64);
        let mut took = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < time {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let turn =
                Turn { entities: size.0, round: size.1 as u64, number, is_checked: peer.is_table_service() };
            let sent = Instant::now();
            workload.operate(&mut client, &turn, &mut rng)?;
            took.push(sent.elapsed());
        }
        Ok(took)
    };
    let client =
        |number| client(number).with_context(|| format!("{} at {}", workload.label(), peer.kind.label()));
    let before = peer.processor_time()?;
    let begun = Instant::now();
    let took: Result<Vec<Vec<Duration>>> = thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        running.into_iter().map(|client| client.join().expect("clients do not panic")).collect()
    });
    let (time, processor) = (begun.elapsed(), peer.processor_time()? - before);
    let mut took = took?.concat();
    took.sort_unstable();
    Ok(Driven { took, time, processor })
}

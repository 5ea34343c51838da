//! The load generator of `bench` and `objects`: clients in a closed loop, and what a run of them showed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Servers are at rest if they used at most [`REST_PROCESSOR_MAX`] of processor time within this time.
const REST_TIME: Duration = Duration::from_millis(300);
const REST_PROCESSOR_MAX: Duration = Duration::from_millis(30);
/// A run waits at most so long for them.
const REST_WAIT_MAX: Duration = Duration::from_secs(60);

/// What one run of an operation showed.
#[derive(Clone, Debug)]
pub(crate) struct Driven {
    /// How long each operation took, ascending.
    took: Vec<Duration>,
    /// From the first request to the last answer.
    time: Duration,
    /// Processor time of the server's process.
    processor: Duration,
}

impl Driven {
    pub(crate) fn micros_each(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.took.len().max(1) as f64
    }

    pub(crate) fn each_second(&self) -> f64 {
        self.took.len() as f64 / self.time.as_secs_f64()
    }

    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        percentile_ms(&self.took, percent)
    }
}

/// A percentile of times in ascending order, in milliseconds; 0 if there is none.
pub(crate) fn percentile_ms(ascending: &[Duration], percent: usize) -> f64 {
    let at = (ascending.len() * percent / 100).min(ascending.len().saturating_sub(1));
    ascending.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3)
}

/// The clients of a run.
pub(crate) struct Loop {
    /// How many work at once.
    pub(crate) clients: usize,
    /// For so long.
    pub(crate) time: Duration,
    /// The number of the round, which seeds their choices.
    pub(crate) round: usize,
    /// How often an operation of each is due, whose time counts from then; `None` if one follows the other at once.
    pub(crate) every: Option<Duration>,
}

impl Loop {
    /// Runs the clients. Each has what `connect` makes, and calls `operate` again and again with the number of the operation
    /// in the run. `processor_time` is that of the server. It includes what the server does by itself meanwhile, so
    /// [wait](wait_for_rest) before.
    pub(crate) fn run<C>(
        &self,
        processor_time: impl Fn() -> Result<Duration>,
        connect: impl Fn() -> Result<C> + Sync,
        operate: impl Fn(&mut C, u64, &mut StdRng) -> Result<()> + Sync,
    ) -> Result<Driven> {
        let next = AtomicU64::new(0);
        let client = |number: usize| -> Result<Vec<Duration>> {
            let mut client = connect()?;
            let mut rng = StdRng::seed_from_u64((self.round * 1_000 + number) as u64);
            let mut took = Vec::new();
            let begun = Instant::now();
            let mut due = self.every.map(|every| begun + every.mul_f64(rng.random()));
            loop {
                let from = due.unwrap_or_else(Instant::now);
                if from >= begun + self.time {
                    break;
                }
                thread::sleep(from.saturating_duration_since(Instant::now()));
                operate(&mut client, next.fetch_add(1, Ordering::Relaxed), &mut rng)?;
                took.push(from.elapsed());
                due = due.zip(self.every).map(|(due, every)| due + every);
            }
            Ok(took)
        };
        let client = &client;
        let before = processor_time()?;
        let begun = Instant::now();
        let took: Result<Vec<Vec<Duration>>> = thread::scope(|scope| {
            let running: Vec<_> =
                (0..self.clients).map(|number| scope.spawn(move || client(number))).collect();
            running.into_iter().map(|client| client.join().expect("clients do not panic")).collect()
        });
        let (time, processor) = (begun.elapsed(), processor_time()? - before);
        let mut took = took?.concat();
        took.sort_unstable();
        Ok(Driven { took, time, processor })
    }
}

/// Waits until the servers do little by themselves. Otherwise a compaction after earlier writes would be charged to the reads that
/// follow, and would slow the server whose turn is next. `processor_time` is that of all servers that are compared.
pub(crate) fn wait_for_rest(processor_time: impl Fn() -> Result<Duration>) -> Result<()> {
    let begun = Instant::now();
    let mut spent = processor_time()?;
    loop {
        thread::sleep(REST_TIME);
        let now = processor_time()?;
        if now - spent <= REST_PROCESSOR_MAX {
            return Ok(());
        }
        if begun.elapsed() >= REST_WAIT_MAX {
            println!("a server is not at rest; the run begins all the same");
            return Ok(());
        }
        spent = now;
    }
}

/// The median of a figure of several runs; `None` if there is no run.
pub(crate) fn median(runs: &[Driven], figure: impl Fn(&Driven) -> f64) -> Option<f64> {
    let mut figures: Vec<f64> = runs.iter().map(figure).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

//! A load that knows what must be true afterwards.
//!
//! Eight writers change entities at once: inserts, replaces, merges, upserts, deletes, batches, tables made and
//! deleted, and one entity, the tally, that all of them count up by compare-and-swap. Each writer owns its row keys
//! and has one request under way at a time. So it is simple to say what the service must hold after a crash: the state
//! after all of the writer's acknowledged operations, or that state plus its one unanswered operation, whole.
//! Partitions are shared, so writers do meet in the server.
//!
//! Other numbers of writers, in partitions of their own, are for experiments with changes of ranges. There a [`Ledger`]
//! tells what a listing has to show while they write.
//!
//! - `op`: the operations and the state they lead to; draws the next operation.
//! - `writer`: carries them out and keeps what was acknowledged.
//! - `ledger`: which entities are there for certain while writers are at work;
//! - `observe`: reads everything that the service holds.
//! - `judge`: compares the two; the pure heart of every crash test.

mod judge;
mod ledger;
mod observe;
mod op;
mod writer;

pub use judge::{Finding, Kind, judge, judge_tally};
pub use ledger::{Ledger, Moment, Stayed};
pub use observe::{Observed, observe};
pub use op::{Key, Row, Shape, State};
pub use writer::{Entry, Refused, Timed, What, Writer, properties};

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::client::{self, Client, Credential, Step};

/// Writers at once.
pub const WRITERS: usize = 8;
/// The table that all writers share.
pub const TABLE: &str = "load";
/// PartitionKey and RowKey of the tally.
pub const TALLY: (&str, &str) = ("tally", "tally");

/// What is known of the tally, over all writers.
#[derive(Debug, Default)]
pub struct Tally {
    /// Increments that were acknowledged, and those found to have happened.
    pub acknowledged: AtomicU64,
    /// Increments without an answer.
    pub unknown: AtomicU64,
    /// The largest value that any answer showed: a read must not show a value that a crash can undo.
    pub seen: AtomicU64,
}

impl Tally {
    /// Compares with the value found; afterwards that value is the known one.
    pub fn settle(&self, found: Option<u64>) -> Option<Finding> {
        let low = self.acknowledged.load(Ordering::SeqCst).max(self.seen.load(Ordering::SeqCst));
        let high = self.acknowledged.load(Ordering::SeqCst) + self.unknown.load(Ordering::SeqCst);
        let finding = judge::judge_tally(found, low, high);
        let value = found.unwrap_or(0);
        self.acknowledged.store(value, Ordering::SeqCst);
        self.seen.store(value, Ordering::SeqCst);
        self.unknown.store(0, Ordering::SeqCst);
        finding
    }
}

/// Writers and the tally, from one seed.
pub struct Load {
    /// The writers, in the order of their numbers.
    pub writers: Vec<Writer>,
    /// The entity that all of them count up.
    pub tally: Tally,
    /// How all requests are signed.
    pub credential: Credential,
    /// How long a writer rests after each operation.
    pub pace: Duration,
}

impl Load {
    /// A load that has done nothing yet. `keep_log` keeps every acknowledged operation in order.
    pub fn new(seed: u64, keep_log: bool) -> Self {
        Self::of((0..WRITERS).map(|index| Writer::new(index, seed, Shape::default(), keep_log)).collect())
    }

    /// A load of these writers, which sign with a SharedKey and do not rest.
    pub fn of(writers: Vec<Writer>) -> Self {
        Self { writers, tally: Tally::default(), credential: Credential::SharedKey, pace: Duration::ZERO }
    }

    /// Makes the shared table and the tally.
    pub fn prepare(&self, address: SocketAddr) -> Result<()> {
        let mut client = Client::new(address, self.credential);
        let zero = client::row([("n", 0.into())]);
        for request in [client::create_table(TABLE), client::change(Step::Insert, TABLE, TALLY, &zero, "*")] {
            let answer = client.send(request, "prepare")?;
            if answer.status != 204 {
                bail!("preparing the load was answered {}: {}", answer.status, answer.body);
            }
        }
        Ok(())
    }

    /// Runs all writers until each did `operations` or the server is gone.
    pub fn run(&mut self, address: SocketAddr, operations: u64) {
        self.run_until(address, operations, &AtomicBool::new(false));
    }

    /// Runs all writers while `work` does something else, until it ends. Returns its result.
    pub fn run_while<T>(&mut self, address: SocketAddr, work: impl FnOnce() -> T) -> T {
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers = scope.spawn(|| self.run_until(address, u64::MAX, stop));
            let result = work();
            stop.store(true, Ordering::Relaxed);
            writers.join().expect("writers do not panic");
            result
        })
    }

    fn run_until(&mut self, address: SocketAddr, operations: u64, stop: &AtomicBool) {
        let (credential, pace, tally) = (self.credential, self.pace, &self.tally);
        std::thread::scope(|scope| {
            for writer in &mut self.writers {
                scope.spawn(move || writer.run(address, credential, stop, (operations, pace), tally));
            }
        });
    }

    /// Reads everything that the service holds.
    pub fn observe(&self, address: SocketAddr) -> Result<Observed> {
        observe(address, self.credential, self.writers.len())
    }

    /// Reads everything that the service holds, and [settles](Self::settle) it.
    pub fn check(&mut self, address: SocketAddr) -> Result<Vec<Finding>> {
        Ok(self.settle(&self.observe(address)?))
    }

    /// Compares everything the service holds with what was acknowledged, and notes which of the operations without an
    /// answer were applied.
    pub fn settle(&mut self, observed: &Observed) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.tally.settle(observed.tally).into_iter().collect();
        for writer in &mut self.writers {
            findings.extend(writer.settle(&observed.writers[writer.index]));
        }
        findings.extend(observed.strangers.iter().map(|what| Finding::new(Kind::Phantom, what.clone())));
        findings
    }

    /// Sums over all writers.
    pub fn counts(&self) -> Counts {
        self.writers.iter().fold(Counts::default(), |sum, writer| sum.plus(&writer.counts))
    }
}

/// What writers did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Changes of single entities that were acknowledged, and increments of the tally.
    pub changes: u64,
    /// Deletes among them.
    pub deletes: u64,
    /// Batches that were acknowledged.
    pub batches: u64,
    /// Reads of single entities that were answered rightly.
    pub reads: u64,
    /// Tables made and deleted.
    pub tables: u64,
    /// Answers 503: refused before anything was done.
    pub busy: u64,
    /// Answers 500: outcome unknown.
    pub failed: u64,
    /// Requests without an answer, because the connection broke or could not be made.
    pub broken: u64,
    /// Operations whose outcome was unknown and that turned out to be applied.
    pub unknown_applied: u64,
    /// ... and that turned out not to be.
    pub unknown_dropped: u64,
}

impl Counts {
    /// The sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        self.changes += other.changes;
        self.deletes += other.deletes;
        self.batches += other.batches;
        self.reads += other.reads;
        self.tables += other.tables;
        self.busy += other.busy;
        self.failed += other.failed;
        self.broken += other.broken;
        self.unknown_applied += other.unknown_applied;
        self.unknown_dropped += other.unknown_dropped;
        self
    }

    /// Everything that was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.changes + self.batches + self.tables
    }
}

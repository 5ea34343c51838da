//! Changes and writers at once, and the accounts afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::changes::{self, Changed};
use super::world::World;
use super::writers::{self, Outcome, Written};

/// How many writers.
pub const WRITERS: i32 = 8;

/// What a trial found.
#[derive(Debug)]
pub struct Report {
    pub changed: Changed,
    pub written: Written,
    /// What is wrong: nothing, or the fence or the manager has a fault.
    pub wrong: Vec<String>,
}

/// Runs a trial. `mutant` replaces functions of the fence.
pub async fn run(seed: u64, changes: usize, mutant: &str) -> Report {
    let world = Arc::new(World::start(mutant).await);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| tokio::spawn(writers::run(world.clone(), number, seed, stop.clone())))
        .collect();
    let mut changed = changes::run(&world, seed, changes).await;
    stop.store(true, Ordering::Relaxed);
    let mut written = Written::default();
    for writer in writers {
        let one = writer.await.expect("a writer ends");
        one.counts.into_iter().for_each(|(what, count)| *written.counts.entry(what).or_default() += count);
        written.attempts.extend(one.attempts);
        written.wrong.extend(one.wrong);
    }
    let mut wrong = std::mem::take(&mut changed.wrong);
    wrong.append(&mut written.wrong);
    wrong.extend(accounts(&world, &written).await);
    Report { changed, written, wrong }
}

/// Every attempt that was answered with success is there once and whole; of those that were refused nothing;
/// of those whose end nobody knows, all or nothing.
async fn accounts(world: &World, written: &Written) -> Vec<String> {
    let mut found: BTreeMap<i64, i64> = BTreeMap::new();
    for shard in &world.shards {
        let (client, _) = shard.connect().await.expect("all servers run again");
        let sql =
            "SELECT n, count(*) FROM (SELECT n FROM events UNION ALL SELECT n FROM guarded) r GROUP BY n";
        for row in client.query(sql, &[]).await.expect("the rows") {
            *found.entry(row.get(0)).or_default() += row.get::<_, i64>(1);
        }
    }
    let mut wrong = Vec::new();
    for (n, &(outcome, rows)) in &written.attempts {
        let there = found.remove(n).unwrap_or(0);
        let right = match outcome {
            Outcome::Written => there == rows,
            Outcome::Refused => there == 0,
            Outcome::Unknown => there == 0 || there == rows,
        };
        if !right {
            wrong.push(format!("attempt {n} of {rows} rows was {outcome:?}, and {there} rows are there"));
        }
    }
    wrong.extend(found.into_iter().map(|(n, rows)| format!("{rows} rows of attempt {n}, which nobody made")));
    wrong
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let changed = &self.changed;
        writeln!(
            f,
            "changes: {} done, {} failed and undone, {} managers killed, {} outages; {} comparisons",
            changed.done, changed.failed, changed.managers_killed, changed.outages, changed.comparisons
        )?;
        for (what, count) in &self.written.counts {
            writeln!(f, "{count:>8}  {what}")?;
        }
        for wrong in self.wrong.iter().take(20) {
            writeln!(f, "WRONG: {wrong}")?;
        }
        write!(f, "{} wrong", self.wrong.len())
    }
}

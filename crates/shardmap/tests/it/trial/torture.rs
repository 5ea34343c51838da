//! Changes and writers at once, and the accounts afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::attempt::{Attempt, Outcome};
use super::changes::{self, Changed};
use super::process::{NO_MORE, Writing};
use super::stalls::{Spell, longest};
use super::stuck;
use super::world::{LEASE, World};
use crate::support::roles::OWNER;

/// How many processes write. Each has some writers.
const PROCESSES: i32 = 2;
/// How long a statement may wait while keys go offline whose holder is ended: eight times the grace.
const WAIT_FOR_DRAIN_MAX: Duration = Duration::from_secs(2);
/// How long a statement may wait while a manager stands still: the server ends its session after 2 s or its lease,
/// whichever is longer, and another manager then brings its operation to an end.
const WAIT_FOR_STOPPED_MAX: Duration = LEASE.saturating_add(Duration::from_secs(5));

/// What a statement waits for, and how long at most.
const WAITS: [(Duration, &str); 2] = [
    (WAIT_FOR_DRAIN_MAX, "while keys went offline whose holder was ended"),
    (WAIT_FOR_STOPPED_MAX, "while a manager stood still"),
];

/// What a trial found.
#[derive(Debug)]
pub struct Report {
    pub changed: Changed,
    /// The attempts of the writers, by door and outcome, and their errors.
    pub counts: BTreeMap<String, u64>,
    /// The longest time that an attempt waited while keys went offline whose holder was ended, and while a manager stood
    /// still, in microseconds.
    pub stalled: [i64; 2],
    /// What is wrong: nothing, or the fence or the manager has a fault.
    pub wrong: Vec<String>,
}

/// Runs a trial. `mutant` replaces functions of the fence. Then nothing happens beside changes, since each shard that goes
/// to another place gets the functions as they should be.
pub async fn run(seed: u64, changes: usize, mutant: &str, poolers: bool) -> Report {
    let world = Arc::new(World::start(mutant, poolers).await);
    let (tells, told) = mpsc::unbounded_channel();
    let asking = tokio::spawn(stuck::ask(world.clone(), told));
    let start =
        |number| Writing::start(world.reach.global(), number, seed, world.hot.subscribe(), tells.clone());
    let writing: Vec<Writing> = (0..PROCESSES).map(start).collect();
    drop(tells);
    let mut changed = changes::run(&world, seed, changes, mutant.is_empty()).await;
    world.hot.send_replace(NO_MORE);
    let mut attempts = Vec::new();
    for one in writing {
        attempts.extend(one.ended().await);
    }
    let outages: Vec<Spell> = world.shards.iter().flat_map(|shard| shard.outages()).collect();
    let (mut wrong, mut counts) = (std::mem::take(&mut changed.wrong), BTreeMap::new());
    for one in &attempts {
        *counts.entry(format!("{}: {:?}", one.door, one.outcome)).or_default() += 1;
        if !one.what.is_empty() {
            *counts.entry(format!("  {}", one.what)).or_default() += 1;
        }
        let excused = one.was_ended() || outages.iter().any(|outage| outage.touches(one));
        if one.outcome == Outcome::Unknown && !excused {
            wrong.push(format!("{} of tenant {}: {}", one.door, one.tenant, one.what));
        }
    }
    wrong.extend(asking.await.expect("the servers are asked"));
    wrong.extend(accounts(&world, &changed, &attempts).await);
    let stalled = [&changed.drains, &changed.faults.stops].map(|spells| longest(&attempts, spells, &outages));
    Report { changed, counts, stalled, wrong }
}

impl Report {
    /// Adds to what is wrong if a statement waited longer than there is a reason for. Only for runs on a machine that has
    /// little else to do.
    pub fn judge_waits(&mut self) {
        for (waited, (limit, when)) in self.stalled.into_iter().zip(WAITS) {
            let waited = micros(waited);
            if waited > limit {
                self.wrong
                    .push(format!("a statement waited {waited:.1?} {when}, and {limit:.1?} is the limit"));
            }
        }
    }
}

/// Every attempt that was answered with success is there once and whole; of those that were refused nothing;
/// of those whose end nobody knows, all or nothing.
async fn accounts(world: &World, changed: &Changed, attempts: &[Attempt]) -> Vec<String> {
    let mut found: BTreeMap<i64, i64> = BTreeMap::new();
    for shard in &world.shards {
        let client = shard.connect(OWNER).await.expect("all servers run again");
        let sql =
            "SELECT n, count(*) FROM (SELECT n FROM events UNION ALL SELECT n FROM guarded) r GROUP BY n";
        for row in client.query(sql, &[]).await.expect("the rows") {
            *found.entry(row.get(0)).or_default() += row.get::<_, i64>(1);
        }
    }
    let (left, mut wrong) = changed.faults.places.look(world).await.expect("all servers run again");
    for n in left {
        *found.entry(n).or_default() += 1;
    }
    for Attempt { n, rows, outcome, .. } in attempts {
        let there = found.remove(n).unwrap_or(0);
        let right = match outcome {
            Outcome::Written => there == *rows,
            Outcome::Refused => there == 0,
            Outcome::Unknown => there == 0 || there == *rows,
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
        let faults: Vec<String> =
            changed.faults.counts.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        writeln!(f, "beside them: {}", faults.join(", "))?;
        let times = [changed.drains.len(), changed.faults.stops.len()];
        for ((waited, times), (limit, when)) in self.stalled.into_iter().zip(times).zip(WAITS) {
            let waited = micros(waited);
            let met = if waited > limit { "missed" } else { "met" };
            writeln!(
                f,
                "longest wait of a statement {when} ({times} times): {:.2} s; aim: {met} (at most {:.1} s)",
                waited.as_secs_f64(),
                limit.as_secs_f64()
            )?;
        }
        for (what, count) in &self.counts {
            writeln!(f, "{count:>8}  {what}")?;
        }
        for wrong in self.wrong.iter().take(20) {
            writeln!(f, "WRONG: {wrong}")?;
        }
        write!(f, "{} wrong", self.wrong.len())
    }
}

fn micros(count: i64) -> Duration {
    Duration::from_micros(count.try_into().unwrap_or_default())
}

//! Writers to one table, and what happens to its ranges meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::jobs::{self, Answers};
use rangehold_testkit::client::{Admin, create_table, must};
use rangehold_testkit::server::Server;

/// The table.
pub(super) const TABLE: &str = "measurements";
/// Its writers.
const WRITERS: u64 = 4;
/// How often the ranges are looked at.
const POLL: Duration = Duration::from_secs(5);

/// How each writer writes.
pub(super) struct Writing {
    /// Entities of a batch, which is a partition of its own.
    pub(super) batch: u64,
    /// From the beginning of one batch to the next.
    pub(super) pace: Duration,
}

/// What the ranges say at one moment.
pub(super) struct Seen {
    /// Since the first request.
    pub(super) after: Duration,
    /// Entities that were written, and requests that were refused, until then.
    pub(super) entities: u64,
    busy: u64,
    /// Servers with a part of the table, and how many ranges these are.
    pub(super) servers: BTreeSet<String>,
    pub(super) pieces: usize,
    /// What is said of a range that is hot and is not split.
    pub(super) not_split: Option<String>,
    /// What is said of a range that is to be split.
    pub(super) to_be_split: Option<String>,
}

impl Seen {
    /// Entities a second, so far.
    pub(super) fn rate(&self) -> f64 {
        self.entities as f64 / self.after.as_secs_f64()
    }
}

/// Has the table written to, each batch under a PartitionKey that `key` makes, until `is_enough` says so about what is
/// seen, or fails. Returns what was seen last.
pub(super) fn observe(
    server: &Server,
    writing: &Writing,
    key: &(impl Fn(&mut StdRng) -> String + Sync),
    is_enough: impl FnMut(&Seen) -> Result<bool>,
) -> Result<Seen> {
    must(&mut server.client(), create_table(TABLE), 204)?;
    let admin = server.admin_client()?;
    let (stop, answers) = (&AtomicBool::new(false), &Answers::default());
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(writer);
                    let next = |_| jobs::inserts(TABLE, &key(&mut random), 0..writing.batch);
                    jobs::write(server.address, (writing.batch, writing.pace), answers, stop, next)
                })
            })
            .collect();
        let gave_up = || writers.iter().any(|writer| writer.is_finished());
        let seen = watch(&admin, answers, gave_up, is_enough);
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().try_for_each(|writer| writer.join().expect("writers do not panic"))?;
        seen
    })
}

/// Looks again and again, until it is enough, or a writer gave up.
fn watch(
    admin: &Admin,
    answers: &Answers,
    gave_up: impl Fn() -> bool,
    mut is_enough: impl FnMut(&Seen) -> Result<bool>,
) -> Result<Seen> {
    let (begin, mut pieces) = (Instant::now(), 0);
    loop {
        thread::sleep(POLL);
        let seen = look(&admin.ranges()?, answers, begin.elapsed())?;
        let enough = is_enough(&seen);
        let is_over = gave_up() || !matches!(enough, Ok(false));
        if seen.pieces != pieces || is_over {
            pieces = seen.pieces;
            print(&seen);
        }
        enough?;
        if is_over {
            return Ok(seen);
        }
    }
}

fn print(seen: &Seen) {
    println!(
        "{:5.0} s  {} ranges on {} servers; {:.0} entities a second so far, {} refusals",
        seen.after.as_secs_f64(),
        seen.pieces,
        seen.servers.len(),
        seen.rate(),
        seen.busy
    );
}

fn look(answer: &Value, answers: &Answers, after: Duration) -> Result<Seen> {
    let ranges = answer["ranges"].as_array().context("an answer without ranges")?;
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut seen = Seen {
        after,
        entities: count(&answers.entities),
        busy: count(&answers.busy),
        servers: BTreeSet::new(),
        pieces: 0,
        not_split: None,
        to_be_split: None,
    };
    for (index, range) in ranges.iter().enumerate() {
        let is_in = |low: &Value| low.as_str().is_some_and(|low| low.starts_with(&format!("{TABLE}/")));
        // The range in which the table begins has the end of what is before it, too.
        let begins_here = ranges.get(index + 1).is_none_or(|next| is_in(&next["low"]));
        if is_in(&range["low"]) || begins_here {
            seen.pieces += 1;
            seen.servers.extend(range["server"].as_str().map(str::to_owned));
        }
        let sentence = range["load"]["verdict"]["sentence"].as_str();
        let begins = |words: &str| sentence.filter(|sentence| sentence.starts_with(words)).map(str::to_owned);
        seen.not_split = seen.not_split.or(begins("not split"));
        seen.to_be_split = seen.to_be_split.or(begins("to be split"));
    }
    Ok(seen)
}

//! A table with GUIDs spreads over all servers; one whose keys only grow does not, and is told why.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::SERVERS;
use super::jobs::{self, Answers};
use crate::client::{Admin, Client, Credential, create_table, must};
use crate::server::{Server, Setup};

/// The table.
const TABLE: &str = "measurements";
/// Its writers, and entities of one batch: a partition of its own.
const WRITERS: u64 = 4;
const BATCH: u64 = 10;
/// What each writer pauses from batch to batch: with GUIDs the table gets about 5,000 entities a second, so
/// that halves of its halves are too hot as well; the other one a little more than one range should bear.
const GUIDS_PACE: Duration = Duration::from_millis(8);
const GROWING_PACE: Duration = Duration::from_millis(20);
/// How often the ranges are looked at.
const POLL: Duration = Duration::from_secs(5);

/// A table whose PartitionKeys are GUIDs must come to lie on all servers.
pub(super) fn guids(server: &Server, setup: &Setup, within: Duration) -> Result<()> {
    let key = |random: &mut StdRng| format!("{:032x}", random.random::<u128>());
    let spread = observe(server, setup, (GUIDS_PACE, &key), within, |seen| seen.servers.len() == SERVERS)?;
    if spread.servers.len() < SERVERS {
        bail!("spreading: after {within:?} GUIDs are on {} of {SERVERS} servers", spread.servers.len());
    }
    Ok(())
}

/// A table whose PartitionKeys only grow must not be cut, and it must be told why.
pub(super) fn growing(server: &Server, setup: &Setup, within: Duration) -> Result<()> {
    let next = AtomicU64::new(0);
    let key = |_: &mut StdRng| format!("{:012}", next.fetch_add(1, Ordering::Relaxed));
    let names_cause = |seen: &Seen| seen.sentence.as_ref().is_some_and(|text| text.contains("append"));
    let seen = observe(server, setup, (GROWING_PACE, &key), within, names_cause)?;
    let sentence =
        seen.sentence.with_context(|| format!("append: after {within:?} nothing is said of it"))?;
    println!("{sentence}");
    if !sentence.contains("append") || !sentence.contains(TABLE) {
        bail!("append: the sentence does not name cause and table");
    }
    if seen.pieces > 1 {
        bail!("append: a table whose keys only grow was cut into {} ranges", seen.pieces);
    }
    Ok(())
}

/// Has the table written to until `enough` is seen, or `within` is over; what was seen at last.
fn observe(
    server: &Server,
    setup: &Setup,
    (pace, key): (Duration, &(impl Fn(&mut StdRng) -> String + Sync)),
    within: Duration,
    enough: impl Fn(&Seen) -> bool,
) -> Result<Seen> {
    must(&mut Client::new(server.address, Credential::SharedKey), create_table(TABLE), 204)?;
    let admin = Admin::new(server.admin, &setup.data)?;
    let (stop, answers) = (&AtomicBool::new(false), &Answers::default());
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(writer);
                    let next = |_| jobs::inserts(TABLE, &key(&mut random), 0..BATCH);
                    jobs::write(server.address, (BATCH, pace), answers, stop, next)
                })
            })
            .collect();
        let begin = Instant::now();
        let watch = || {
            let mut pieces = 0;
            loop {
                thread::sleep(POLL);
                let (seen, took) = (look(&admin.ranges()?)?, begin.elapsed());
                let is_over =
                    enough(&seen) || took > within || writers.iter().any(|writer| writer.is_finished());
                if seen.pieces != pieces || is_over {
                    pieces = seen.pieces;
                    print(&seen, answers, took);
                }
                if is_over {
                    return Ok(seen);
                }
            }
        };
        let seen = watch();
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().try_for_each(|writer| writer.join().expect("writers do not panic"))?;
        seen
    })
}

fn print(seen: &Seen, answers: &Answers, took: Duration) {
    let rate = answers.entities.load(Ordering::Relaxed) as f64 / took.as_secs_f64();
    println!(
        "{:5.0} s  {} ranges on {} servers; {rate:.0} entities a second so far, {} refusals",
        took.as_secs_f64(),
        seen.pieces,
        seen.servers.len(),
        answers.busy.load(Ordering::Relaxed)
    );
}

/// What the ranges say at one moment.
struct Seen {
    /// Servers with a part of the table, and how many ranges these are.
    servers: BTreeSet<String>,
    pieces: usize,
    /// What is said of a range that is hot and is not split.
    sentence: Option<String>,
}

fn look(answer: &Value) -> Result<Seen> {
    let ranges = answer["ranges"].as_array().context("an answer without ranges")?;
    let mut seen = Seen { servers: BTreeSet::new(), pieces: 0, sentence: None };
    for (index, range) in ranges.iter().enumerate() {
        let is_in = |low: &Value| low.as_str().is_some_and(|low| low.starts_with(&format!("{TABLE}/")));
        // The range in which the table begins has the end of what is before it, too.
        let begins_here = ranges.get(index + 1).is_none_or(|next| is_in(&next["low"]));
        if is_in(&range["low"]) || begins_here {
            seen.pieces += 1;
            seen.servers.extend(range["server"].as_str().map(str::to_owned));
        }
        let sentence = range["load"]["verdict"]["sentence"].as_str();
        seen.sentence =
            seen.sentence.or(sentence.filter(|text| text.starts_with("not split")).map(str::to_owned));
    }
    Ok(seen)
}

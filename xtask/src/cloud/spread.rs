//! A table with GUIDs spreads over all servers; one whose keys only grow does not, and is told why.

use std::collections::BTreeSet;
use std::sync::Mutex;
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

const GUIDS: &str = "guids";
const GROWING: &str = "growing";
/// Writers of each table, and entities of one batch: a partition of its own.
const WRITERS: u64 = 4;
const BATCH: u64 = 10;
/// What each writer pauses from batch to batch: the table with GUIDs gets about 5,000 entities a second, so
/// that halves of its halves are too hot as well; the other one a little more than one range should bear.
const GUIDS_PACE: Duration = Duration::from_millis(8);
const GROWING_PACE: Duration = Duration::from_millis(20);
/// How often the ranges are looked at.
const POLL: Duration = Duration::from_secs(5);

pub(super) fn run(server: &Server, setup: &Setup, minutes: u64) -> Result<()> {
    let mut client = Client::new(server.address, Credential::SharedKey);
    for table in [GUIDS, GROWING] {
        must(&mut client, create_table(table), 204)?;
    }
    let admin = Admin::new(server.admin, &setup.data)?;
    let (stop, guids, growing) = (AtomicBool::new(false), Answers::default(), Answers::default());
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            let (stop, guids, growing, counter) = (&stop, &guids, &growing, &counter);
            let random = Mutex::new(StdRng::seed_from_u64(writer));
            writers.push(scope.spawn(move || {
                jobs::write(server.address, (BATCH, GUIDS_PACE), guids, stop, |_| {
                    let guid: u128 = random.lock().expect("one writer").random();
                    jobs::inserts(GUIDS, &format!("{guid:032x}"), 0..BATCH)
                })
            }));
            writers.push(scope.spawn(move || {
                jobs::write(server.address, (BATCH, GROWING_PACE), growing, stop, |_| {
                    let number = counter.fetch_add(1, Ordering::Relaxed);
                    jobs::inserts(GROWING, &format!("{number:012}"), 0..BATCH)
                })
            }));
        }
        let all_write = || writers.iter().all(|writer| !writer.is_finished());
        let seen = watch(&admin, Duration::from_secs(minutes * 60), (&guids, &growing), all_write);
        stop.store(true, Ordering::Relaxed);
        let written = writers.into_iter().try_for_each(|writer| writer.join().expect("writers do not panic"));
        // Without the writers there is nothing to be seen.
        written.and(seen)
    })
}

/// What the ranges say at one moment.
struct Seen {
    /// Servers with a part of the table with GUIDs, and how many ranges these are.
    servers: BTreeSet<String>,
    pieces: usize,
    /// Cuts inside the growing table, and what is said of the range where it grows.
    cuts: usize,
    sentence: Option<String>,
}

fn watch(
    admin: &Admin,
    within: Duration,
    (guids, growing): (&Answers, &Answers),
    all_write: impl Fn() -> bool,
) -> Result<()> {
    let begin = Instant::now();
    let mut printed = String::new();
    loop {
        thread::sleep(POLL);
        let seen = look(&admin.ranges()?)?;
        let line = format!("{} ranges of {GUIDS} on {} servers", seen.pieces, seen.servers.len());
        if line != printed {
            println!("{:5.0} s  {line}", begin.elapsed().as_secs_f64());
            printed = line;
        }
        let took = begin.elapsed().as_secs_f64();
        let rate = |answers: &Answers| answers.entities.load(Ordering::Relaxed) as f64 / took;
        let spread = seen.servers.len() == SERVERS;
        let told = seen.sentence.as_deref().is_some_and(|sentence| sentence.contains("append"));
        if spread && told {
            println!(
                "{took:5.0} s  {GUIDS}: on all {SERVERS} servers; {:.0} entities a second, {} refusals",
                rate(guids),
                guids.busy.load(Ordering::Relaxed)
            );
            println!(
                "         {GROWING}: {} cuts; {:.0} entities a second, {} refusals; it is told: {}",
                seen.cuts,
                rate(growing),
                growing.busy.load(Ordering::Relaxed),
                seen.sentence.unwrap_or_default()
            );
            if seen.cuts > 0 {
                bail!("spreading: a table whose keys only grow was cut {} times", seen.cuts);
            }
            return Ok(());
        }
        if !all_write() {
            bail!("spreading: a writer gave up");
        }
        if begin.elapsed() > within {
            bail!(
                "spreading: after {within:?} {GUIDS} (by {:.0} entities a second) is on {} servers, and of {GROWING} \
                 (by {:.0}) is said: {:?}",
                rate(guids),
                seen.servers.len(),
                rate(growing),
                seen.sentence
            );
        }
    }
}

fn look(answer: &Value) -> Result<Seen> {
    let ranges = answer["ranges"].as_array().context("an answer without ranges")?;
    let mut seen = Seen { servers: BTreeSet::new(), pieces: 0, cuts: 0, sentence: None };
    for (index, range) in ranges.iter().enumerate() {
        let low = range["low"].as_str().unwrap_or_default();
        let is_in = |table: &str| low.starts_with(&format!("{table}/"));
        seen.cuts += usize::from(is_in(GROWING));
        // The range in which the table begins has the end of what is before it, too.
        let next = ranges.get(index + 1).and_then(|next| next["low"].as_str()).unwrap_or_default();
        if is_in(GUIDS) || next.starts_with(&format!("{GUIDS}/")) {
            seen.pieces += 1;
            seen.servers.extend(range["server"].as_str().map(str::to_owned));
        }
        if let Some(sentence) = range["load"]["verdict"]["sentence"].as_str()
            && sentence.contains(GROWING)
        {
            seen.sentence = Some(sentence.to_owned());
        }
    }
    Ok(seen)
}

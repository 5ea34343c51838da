//! A hot partition at its target, and somebody quiet beside it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Map;

use super::jobs::{self, Answers};
use crate::client::{self, Client, Credential, Step, create_table, entity_path, must};
use crate::server::Server;

const HOT: &str = "hot";
const QUIET: &str = "quiet";
/// Writers of the hot partition, and entities of a batch.
const WRITERS: u64 = 8;
const BATCH: u64 = 100;
/// What a partition gets, in entities a second, and how far off the mean may be.
const TARGET: f64 = 2_000.0;
const OFF_MAX: f64 = 0.1;
/// The quiet client sends one request in this time.
const QUIET_PACE: Duration = Duration::from_millis(50);
/// Longest time until the hot partition's credit is spent.
const CREDIT_SPENT_WITHIN: Duration = Duration::from_secs(600);

pub(super) fn run(server: &Server, seconds: u64) -> Result<()> {
    let mut client = Client::new(server.address, Credential::SharedKey);
    for table in [HOT, QUIET] {
        must(&mut client, create_table(table), 204)?;
    }
    let within = Duration::from_secs(seconds);
    let alone = quiet(server.address, within)?;
    let (answers, stop) = (Answers::default(), AtomicBool::new(false));
    let (beside, hot) = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (answers, stop) = (&answers, &stop);
                let next = move |number: u64| {
                    let first = (number * WRITERS + writer) * BATCH;
                    jobs::inserts(HOT, "p", first..first + BATCH)
                };
                scope.spawn(move || jobs::write(server.address, (BATCH, Duration::ZERO), answers, stop, next))
            })
            .collect();
        let measured = spend_credit(&answers).and_then(|()| {
            let before = (answers.entities.load(Ordering::Relaxed), answers.busy.load(Ordering::Relaxed));
            let begin = Instant::now();
            let beside = quiet(server.address, within)?;
            let took = begin.elapsed().as_secs_f64();
            let entities = answers.entities.load(Ordering::Relaxed) - before.0;
            let busy = answers.busy.load(Ordering::Relaxed) - before.1;
            Ok((beside, (entities as f64 / took, busy as f64 / took)))
        });
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().try_for_each(|writer| writer.join().expect("writers do not panic"))?;
        measured
    })?;
    report(&alone, &beside, hot)
}

/// Waits until the hot partition is refused: what it had not used before is spent.
fn spend_credit(answers: &Answers) -> Result<()> {
    let begin = Instant::now();
    while answers.busy.load(Ordering::Relaxed) == 0 {
        if begin.elapsed() > CREDIT_SPENT_WITHIN {
            let written = answers.entities.load(Ordering::Relaxed);
            bail!("targets: {written} entities in {CREDIT_SPENT_WITHIN:?}, and no 503");
        }
        thread::sleep(Duration::from_millis(100));
    }
    let written = answers.entities.load(Ordering::Relaxed);
    println!(
        "credit: {written} entities before the first 503, {:.0} s after the first",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Writes and reads single entities at a slow pace; returns how long each request took, sorted.
fn quiet(address: SocketAddr, within: Duration) -> Result<Vec<Duration>> {
    let mut client = Client::new(address, Credential::SharedKey);
    let row = Map::from_iter([("s".to_owned(), "x".into())]);
    let (begin, mut took) = (Instant::now(), Vec::new());
    while begin.elapsed() < within {
        let key = format!("{:06}", took.len() / 2);
        let write = took.len().is_multiple_of(2);
        let request = if write {
            client::change(Step::Upsert, QUIET, ("p", &key), &row, "*")
        } else {
            client::get(entity_path(QUIET, "p", &key))
        };
        let asked = Instant::now();
        must(&mut client, request, if write { 204 } else { 200 })?;
        took.push(asked.elapsed());
        thread::sleep(QUIET_PACE.saturating_sub(asked.elapsed()));
    }
    took.sort_unstable();
    Ok(took)
}

fn report(alone: &[Duration], beside: &[Duration], (rate, busy): (f64, f64)) -> Result<()> {
    let at = |took: &[Duration], part: usize| took[(took.len() - 1) * part / 100].as_secs_f64() * 1e3;
    for (name, took) in [("quiet alone", alone), ("quiet beside hot", beside)] {
        println!(
            "{name:<17} {} requests, none refused: p50 {:.2} ms, p99 {:.2} ms",
            took.len(),
            at(took, 50),
            at(took, 99)
        );
    }
    println!("hot: {rate:.0} entities a second of a target of {TARGET}, {busy:.1} requests a second refused");
    if (rate - TARGET).abs() > TARGET * OFF_MAX || busy == 0.0 {
        bail!("targets: the hot partition got {rate:.0} entities a second, and {busy:.1} refusals");
    }
    Ok(())
}

//! `cargo xtask crash --power`: the power fails, at hundreds of moments of one recorded run.
//!
//! `kill -9` leaves the kernel's cache, so it cannot show a missing fsync. This test can:
//!
//! 1. [`record`]: a server runs under load, and strace writes down every file operation and every
//!    answer, in one order.
//! 2. [`replay`]: the operations are carried out again on a [model of a disk](disk) that knows what
//!    was synced and what was only in the cache.
//! 3. [`image`]: at random moments, and at those where an answer was just leaving, the directory is
//!    written as it could be found after a power loss: unsynced writes gone, reordered or torn.
//! 4. A server is started on it. It must open, and hold for each writer all that was acknowledged
//!    before that moment, and of what was not, at most the writer's next operation, whole.
//!
//! The control: with a server that does not sync, the test must find losses, or it proves nothing.

mod disk;
mod image;
mod record;
mod replay;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::image::Fashion;
use self::record::Record;
use self::replay::{Event, Replay};
use crate::client::Credential;
use crate::load::{
    Entry, Finding, Kind, Observed, Op, State, TABLE, WRITERS, What, judge, judge_tally, observe,
};
use crate::server::{self, Server, Setup};
use crate::workspace;

/// Problems that are printed in full.
const PROBLEMS_PRINTED_MAX: usize = 10;

/// Records, and tries `points` moments. Without `sync` it succeeds only if it finds losses.
pub(crate) fn run(seed: u64, points: u32, sync: bool) -> Result<()> {
    let program = workspace::program()?;
    let directory = workspace::scratch(if sync { "power" } else { "power-no-fsync" })?;
    let record = record::record(&program, &directory, seed, sync)?;
    let events = survey(&record, &directory)?;
    let chosen = choose(&events, points, seed);
    println!(
        "power: recorded {} file operations and {} answers; {} moments are tried",
        events.iter().filter(|(_, event)| *event == Event::Disk).count(),
        events.iter().filter(|(_, event)| *event != Event::Disk).count(),
        chosen.len()
    );
    let tally = Trial::run_all(&program, &directory, &record, &chosen, seed)?;
    println!(
        "power: {} of {} rebuilt directories opened; {}",
        tally.opened,
        chosen.len(),
        Kind::ALL
            .map(|kind| format!("{} {}", tally.broken.get(&kind).unwrap_or(&0), kind.label()))
            .join(", ")
    );
    let broken = tally.broken.values().sum::<u64>();
    let unopened = chosen.len() as u64 - tally.opened;
    match (sync, broken + unopened) {
        (true, 0) => Ok(()),
        (true, _) => bail!("power: {broken} promises were broken, {unopened} directories did not open"),
        (false, 0) => {
            bail!("power: the control found nothing although nothing was synced: the test is blind")
        }
        (false, _) => {
            println!("power: as it must be without fsync");
            Ok(())
        }
    }
}

/// Walks the record; the events that matter, each with the number of its moment.
///
/// A model that missed an operation would make a test that misses losses. So at the end the model must
/// hold exactly what the real directory holds, and every promise must have been seen.
fn survey(record: &Record, directory: &Path) -> Result<Vec<(u64, Event)>> {
    let mut events = Vec::new();
    let replay = walk(record, |moment, _, event| {
        if event != Event::Other {
            events.push((moment, event));
        }
        Ok(())
    })?;
    let model = directory.join("model");
    image::write(
        &replay.disk,
        Fashion::Everything,
        &mut StdRng::seed_from_u64(0),
        &model,
    )?;
    workspace::same_tree(&model, &record.data).context("the model of the disk misses something")?;
    let answered: HashMap<&str, u64> = events
        .iter()
        .filter_map(|(moment, event)| match event {
            Event::Answer(id) => Some((id.as_str(), *moment)),
            _ => None,
        })
        .collect();
    for writer in &record.load.writers {
        for entry in writer.log.iter().flatten() {
            if !answered.contains_key(entry.id.as_str()) {
                bail!(
                    "the answer to {} is not in the record: does the server repeat request ids?",
                    entry.id
                );
            }
        }
    }
    Ok(events)
}

/// Replays the record, and calls `see` after each moment with its number.
fn walk(record: &Record, mut see: impl FnMut(u64, &Replay, Event) -> Result<()>) -> Result<Replay> {
    let mut replay = Replay::new(&record.data);
    let mut moment_number = 0;
    for path in &record.traces {
        let file = File::open(path).with_context(|| format!("no record at {}", path.display()))?;
        trace::read(BufReader::with_capacity(1 << 20, file), |moment| {
            let event = replay.take(&moment)?;
            moment_number += 1;
            see(moment_number, &replay, event)
        })?;
        replay.restart();
    }
    Ok(replay)
}

/// Half of the moments are those where an answer begins, the most telling ones; half are any.
fn choose(events: &[(u64, Event)], points: u32, seed: u64) -> BTreeMap<u64, Fashion> {
    let mut rng = StdRng::seed_from_u64(seed);
    let answers: Vec<u64> = events
        .iter()
        .filter(|(_, event)| *event != Event::Disk)
        .map(|(moment, _)| *moment)
        .collect();
    let mut chosen = BTreeMap::new();
    let possible = events.len().min(points as usize);
    while chosen.len() < possible {
        let moment = if chosen.len() % 2 == 0 && !answers.is_empty() && chosen.len() / 2 < answers.len() / 2 {
            answers[rng.random_range(0..answers.len())]
        } else {
            events[rng.random_range(0..events.len())].0
        };
        let fashion = Fashion::ALL[rng.random_range(0..Fashion::ALL.len())];
        chosen.entry(moment).or_insert(fashion);
    }
    chosen
}

/// What the trials came to.
#[derive(Default)]
struct Sums {
    opened: u64,
    broken: BTreeMap<Kind, u64>,
    printed: usize,
}

/// What is promised up to the moment that the walk has reached.
struct Trial<'a> {
    /// Where each answer's promise stands: writer and index in its log.
    promises: HashMap<&'a str, (usize, usize)>,
    logs: Vec<&'a [Entry]>,
    /// Promises that count, for each writer.
    answered: Vec<usize>,
    states: Vec<State>,
    tally: Option<u64>,
    increments: u64,
    /// Answers so far to requests that are in no log: those that prepared the load.
    prepared: u32,
}

impl<'a> Trial<'a> {
    fn new(record: &'a Record) -> Self {
        let logs: Vec<&[Entry]> = record
            .load
            .writers
            .iter()
            .map(|writer| writer.log.as_deref().unwrap_or_default())
            .collect();
        let promises = logs
            .iter()
            .enumerate()
            .flat_map(|(writer, log)| {
                log.iter()
                    .enumerate()
                    .map(move |(index, entry)| (entry.id.as_str(), (writer, index)))
            })
            .collect();
        Self {
            promises,
            answered: vec![0; logs.len()],
            logs,
            states: vec![State::default(); WRITERS],
            tally: None,
            increments: 0,
            prepared: 0,
        }
    }

    /// Tries all chosen moments in one walk over the record.
    fn run_all(
        program: &Path,
        directory: &Path,
        record: &'a Record,
        chosen: &BTreeMap<u64, Fashion>,
        seed: u64,
    ) -> Result<Sums> {
        let mut trial = Self::new(record);
        let mut sums = Sums::default();
        walk(record, |moment, replay, event| {
            if let Event::Answer(id) = event {
                trial.promise(&id);
            }
            let Some(fashion) = chosen.get(&moment) else {
                return Ok(());
            };
            let place = directory.join(format!("moment-{moment}"));
            // Seeded by the moment, so that one moment can be looked at without the others.
            let mut rng = StdRng::seed_from_u64(seed ^ moment);
            image::write(&replay.disk, *fashion, &mut rng, &place)?;
            let problems = trial.judge(program, &place, &mut sums)?;
            if problems.is_empty() {
                std::fs::remove_dir_all(&place)?;
            }
            for problem in problems {
                sums.printed += 1;
                if sums.printed <= PROBLEMS_PRINTED_MAX {
                    println!("  FOUND at moment {moment}, {fashion:?} kept: {problem}");
                    println!("    kept in {}", place.display());
                }
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// Takes an answer into account.
    fn promise(&mut self, id: &str) {
        let Some(&(writer, index)) = self.promises.get(id) else {
            if id == "prepare" {
                self.prepared += 1;
                self.tally = (self.prepared == 2).then_some(0);
            }
            return;
        };
        self.answered[writer] = index + 1;
        match &self.logs[writer][index].what {
            What::Done(op) => self.states[writer].apply(op),
            What::Tally(value) => {
                self.tally = self.tally.max(Some(*value));
                self.increments = self.increments.max(*value);
            }
        }
    }

    /// Starts a server on a rebuilt directory and compares; what is wrong, in words.
    fn judge(&self, program: &Path, place: &Path, sums: &mut Sums) -> Result<Vec<String>> {
        let log = place.with_extension("log");
        let server = match Server::start(&Setup::new(program, place, &log)) {
            Ok(server) => server,
            Err(_) => return Ok(vec![format!("does not open: {}", server::tail(&log))]),
        };
        let observed = match observe(server.address, Credential::SharedKey) {
            Ok(observed) => observed,
            Err(error) => return Ok(vec![format!("opens, and then: {error:#}")]),
        };
        server.kill()?;
        std::fs::remove_file(&log)?;
        sums.opened += 1;
        let findings = self.compare(&observed);
        for finding in &findings {
            *sums.broken.entry(finding.kind).or_default() += 1;
        }
        Ok(findings.iter().map(ToString::to_string).collect())
    }

    fn compare(&self, observed: &Observed) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (writer, found) in observed.writers.iter().enumerate() {
            let next = self.logs[writer][self.answered[writer]..]
                .iter()
                .find_map(|entry| match &entry.what {
                    What::Done(op) => Some(op),
                    What::Tally(_) => None,
                });
            // Between two operations the writer may have been counting the tally; then the next
            // operation was not sent yet, and finding it not applied is what the comparison allows.
            let next: Option<&Op> = next;
            findings.extend(judge(&self.states[writer], next, found).1);
        }
        if self.prepared >= 1 && !observed.prepared {
            findings.push(Finding::new(Kind::Lost, format!("table {TABLE}")));
        }
        if let Some(low) = self.tally {
            findings.extend(judge_tally(observed.tally, low, self.increments + WRITERS as u64));
        }
        findings.extend(
            observed
                .strangers
                .iter()
                .map(|what| Finding::new(Kind::Phantom, what.clone())),
        );
        findings
    }
}

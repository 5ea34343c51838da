//! Starting servers on rebuilt directories, and comparing what they hold with what was promised.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::image::{self, Fashion};
use super::promises::Promises;
use super::record::Record;
use super::replay::{Event, Heeded};
use super::walk;
use rangehold_testkit::client::Credential;
use rangehold_testkit::load::{
    Entry, Finding, Kind, Load, Observed, State, TABLE, WRITERS, What, judge, judge_tally, observe,
};
use rangehold_testkit::server::{self, Server, Setup};

/// Number of moments whose problems are printed, and number of problems of each.
const MOMENTS_PRINTED_MAX: usize = 5;
const PROBLEMS_PRINTED_MAX: usize = 5;

/// The results of the trials.
#[derive(Default)]
pub(super) struct Sums {
    /// Moments tried.
    pub(super) tried: u64,
    /// Directories on which a server started and could be read.
    pub(super) opened: u64,
    pub(super) broken: BTreeMap<Kind, u64>,
    /// Moments whose problems were printed.
    printed: usize,
}

impl Sums {
    /// Everything that a correct server would not have caused.
    pub(super) fn problems(&self) -> u64 {
        self.broken.values().sum::<u64>() + self.tried - self.opened
    }
}

/// Which moments are tried, and how.
pub(super) struct Plan {
    /// The moments, and what is kept at each of the changes that were not synced.
    pub(super) moments: BTreeMap<u64, Fashion>,
    pub(super) seed: u64,
    pub(super) heeded: Heeded,
    /// Whether problems are the expected result: then they are counted, and not printed.
    pub(super) control: bool,
}

/// Tries all moments of the plan in one walk over the record.
pub(super) fn run(
    program: &Path,
    directory: &Path,
    record: &Record,
    plan: &Plan,
    promises: &mut dyn Promises,
) -> Result<Sums> {
    let arguments = record.written.arguments();
    let mut sums = Sums::default();
    walk(record, plan.heeded, |moment, replay, event| {
        if let Event::Answer(id) = event {
            promises.promise(&id);
        }
        let Some(fashion) = plan.moments.get(&moment) else {
            return Ok(());
        };
        let place = directory.join(format!("moment-{moment}"));
        // Seeded by the moment, so that one moment can be looked at without the others.
        let mut rng = StdRng::seed_from_u64(plan.seed ^ moment);
        image::write(&replay.disk, *fashion, &mut rng, &place)?;
        server::keep_lock_file(&record.data, &place)?;
        let mut setup = Setup::new(program, &place, &place.with_extension("log"));
        setup.arguments.extend(arguments.iter().cloned());
        let problems = tried(promises, &setup, &mut sums)?;
        sums.tried += 1;
        if problems.is_empty() || plan.control {
            std::fs::remove_dir_all(&place)?;
        } else if sums.printed < MOMENTS_PRINTED_MAX {
            sums.printed += 1;
            println!("  FOUND at moment {moment}, {fashion:?} kept; the directory is {}", place.display());
            problems.iter().take(PROBLEMS_PRINTED_MAX).for_each(|problem| println!("    {problem}"));
        }
        Ok(())
    })?;
    Ok(sums)
}

/// Starts a server on a rebuilt directory and compares; what is wrong, in words.
fn tried(promises: &dyn Promises, setup: &Setup, sums: &mut Sums) -> Result<Vec<String>> {
    let server = match Server::start(setup) {
        Ok(server) => server,
        Err(_) => return Ok(vec![format!("does not open: {}", server::tail(&setup.log))]),
    };
    let findings = match promises.compare(&server, &setup.data) {
        Ok(findings) => findings,
        Err(error) => return Ok(vec![format!("opens, and then: {error:#}")]),
    };
    server.kill()?;
    std::fs::remove_file(&setup.log)?;
    sums.opened += 1;
    for finding in &findings {
        *sums.broken.entry(finding.kind).or_default() += 1;
    }
    Ok(findings.iter().map(ToString::to_string).collect())
}

/// What is promised of tables.
pub(super) struct OfTables<'a> {
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

impl<'a> OfTables<'a> {
    pub(super) fn new(load: &'a Load) -> Self {
        let logs: Vec<&[Entry]> =
            load.writers.iter().map(|writer| writer.log.as_deref().unwrap_or_default()).collect();
        let promises = logs
            .iter()
            .enumerate()
            .flat_map(|(writer, log)| {
                log.iter().enumerate().map(move |(index, entry)| (entry.id.as_str(), (writer, index)))
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

    fn judged(&self, observed: &Observed) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (writer, found) in observed.writers.iter().enumerate() {
            let next =
                self.logs[writer][self.answered[writer]..].iter().find_map(|entry| match &entry.what {
                    What::Done(op) => Some(op),
                    What::Tally(_) => None,
                });
            // If the writer was counting the tally at that moment, the operation was not sent yet; it
            // is not applied then, which is one of the two outcomes that are fine.
            findings.extend(judge(&self.states[writer], next, found).1);
        }
        if self.prepared >= 1 && !observed.prepared {
            findings.push(Finding::new(Kind::Lost, format!("table {TABLE}")));
        }
        if let Some(low) = self.tally {
            findings.extend(judge_tally(observed.tally, low, self.increments + WRITERS as u64));
        }
        findings.extend(observed.strangers.iter().map(|what| Finding::new(Kind::Phantom, what.clone())));
        findings
    }
}

impl Promises for OfTables<'_> {
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

    fn compare(&self, server: &Server, _: &Path) -> Result<Vec<Finding>> {
        Ok(self.judged(&observe(server.address, Credential::SharedKey, WRITERS)?))
    }
}

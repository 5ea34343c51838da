//! The process ends between any two steps of a split, a merge or a move.
//!
//! One trial: a server with four partition servers, ranges that fit the change, and load. The change is asked for by
//! the admin API, and the process ends after one of its steps. The next start finishes or undoes the change, and in
//! some trials ends in the middle of that too. The start after it must serve: the map breaks no rule, and the service
//! holds what it acknowledged.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

use super::{compare, conclude};
use rangehold_testkit::client::{Admin, AdminEntry, Change};
use rangehold_testkit::load::{Finding, Load};
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::Profile;

/// Variable that names the step after which the server ends.
const CRASH_VARIABLE: &str = "RANGEHOLD_CRASH_AFTER_STEP";
/// Time under load before the change, in milliseconds.
const LOAD_MILLIS: std::ops::Range<u64> = 30..200;
/// Partition servers.
const SERVERS: u64 = 4;
/// Where ranges are cut: `load`'s partitions are p0 to p3, and its tables come one after the other.
const CUTS: [&str; 4] = ["load/*", "load/p1", "load/p2", "load/p3"];

/// Steps of a split and of a merge, up to the commit point and after it.
const BEFORE_COMMIT: [&str; 4] = ["begun", "frozen", "retired", "cloned"];
const AFTER_COMMIT: [&str; 5] = ["recorded", "heirs-open", "served", "inherited", "published"];
/// Steps of a move.
const OF_MOVE: [&str; 7] = ["begun", "frozen", "saved", "taken", "let-go", "served", "published"];
/// Steps of the next start that undoes a split or a merge, and of one that finishes it.
const OF_UNDOING: [&str; 3] = ["undo-decided", "restored", "undo-published"];
const OF_FINISHING: [&str; 2] = ["inherited", "published"];

/// A kind of change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    Split,
    /// Of two ranges of the same server.
    Merge,
    /// Of ranges of two servers: the right one moves first, by the same steps.
    MergeApart,
    Move,
}

impl What {
    pub(super) const ALL: [Self; 4] = [Self::Split, Self::Merge, Self::MergeApart, Self::Move];
}

/// One trial.
struct Trial {
    what: What,
    /// After which step the server ends.
    step: String,
    /// After which step of its recovery the next one ends.
    then: Option<&'static str>,
}

/// Every step, and every step of the recovery that follows.
fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |whats: &[What], steps: &[&str], then| {
        for step in steps {
            trials.extend(whats.iter().map(|&what| Trial { what, step: (*step).to_owned(), then }));
        }
    };
    let heirs = [What::Split, What::Merge];
    for (before, after) in BEFORE_COMMIT.into_iter().zip(AFTER_COMMIT) {
        for what in heirs {
            add(&[what], &[before, after], None);
        }
    }
    OF_UNDOING.into_iter().for_each(|then| add(&heirs, &["cloned"], Some(then)));
    OF_FINISHING.into_iter().for_each(|then| add(&heirs, &["recorded"], Some(then)));
    add(&[What::Move, What::MergeApart], &OF_MOVE, None);
    add(&[What::Split, What::Merge, What::Move], &["begun"], Some("undo-published"));
    // The merge that follows the move.
    add(&[What::MergeApart], &["begun:2", "frozen:2", "served:2"], None);
    trials
}

/// A server that splits, merges and moves ranges only when it is asked to.
pub(super) fn unmanaged(name: &str) -> Result<Setup> {
    Setup::fresh(Profile::Dev, name, &["--servers", &SERVERS.to_string(), "--manager", "off"])
}

/// Runs all trials on one data directory.
pub(super) fn run(seed: u64) -> Result<()> {
    let setup = unmanaged("crash-changes")?;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut load = Load::new(seed, false);
    let mut findings: Vec<Finding> = Vec::new();
    let trials = trials();
    let (mut done, mut undone) = (0, 0);
    let mut server = Server::start(&setup)?;
    let mut slowest = server.start_time;
    load.prepare(server.address)?;
    for trial in &trials {
        let name = format!("{:?} ends after {}, then {:?}", trial.what, trial.step, trial.then);
        let admin = server.admin_client()?;
        let change = prepare(&admin, trial.what, &mut rng).with_context(|| name.clone())?;
        let before = admin.map()?;
        server.kill()?;

        let ending = Server::start(&crashing(&setup, &trial.step)).with_context(|| name.clone())?;
        let lead = Duration::from_millis(rng.random_range(LOAD_MILLIS));
        crash(&mut load, ending, &change, lead).with_context(|| name.clone())?;
        if let Some(then) = trial.then {
            Server::start_to_end(&crashing(&setup, then), Signal::KILL).with_context(|| name.clone())?;
        }

        server = Server::start(&setup).with_context(|| format!("after: {name}"))?;
        slowest = slowest.max(server.start_time);
        let named = |finding: Finding| Finding::new(finding.kind, format!("{name}: {}", finding.what));
        findings.extend(compare(&mut load, &server)?.into_iter().map(named));
        match placed(&before) == placed(&server.admin_client()?.map()?) {
            true => undone += 1,
            false => done += 1,
        }
    }
    server.stop()?;
    println!(
        "{} trials: {done} changes came to their end, {undone} were undone; the slowest start took {} ms",
        trials.len(),
        slowest.as_millis()
    );
    conclude("changes", &load.counts(), &findings)
}

fn crashing(setup: &Setup, step: &str) -> Setup {
    let mut setup = setup.clone();
    setup.environment.push((CRASH_VARIABLE.to_owned(), step.into()));
    setup
}

/// Brings the map into a state for this kind of change, and says which change.
pub(super) fn prepare(admin: &Admin, what: What, rng: &mut StdRng) -> Result<Change> {
    match what {
        What::Split => {
            let map = admin.map()?;
            let free: Vec<&str> =
                CUTS.into_iter().filter(|cut| map.iter().all(|entry| entry.low != *cut)).collect();
            if free.is_empty() {
                let (left, right) = neighbours(&map, rng)?;
                admin.change_patiently(&Change::Merge { left, right })?;
                return prepare(admin, what, rng);
            }
            Ok(Change::Split { at: free[rng.random_range(0..free.len())].to_owned() })
        }
        What::Merge | What::MergeApart => {
            if admin.map()?.len() < 2 {
                admin.change_patiently(&Change::Split { at: CUTS[1].to_owned() })?;
            }
            let map = admin.map()?;
            let (left, right) = neighbours(&map, rng)?;
            let server =
                |range: &str| map.iter().find(|entry| entry.range == range).map(|entry| &entry.server);
            let together = server(&left) == server(&right);
            if together != (what == What::Merge) {
                let to = match what {
                    What::Merge => server(&left).context("a range that is not in the map")?.clone(),
                    _ => other_server(server(&left).context("a range that is not in the map")?, rng)?,
                };
                admin.change_patiently(&Change::Move { range: right.clone(), to })?;
            }
            Ok(Change::Merge { left, right })
        }
        What::Move => {
            let map = admin.map()?;
            let entry = &map[rng.random_range(0..map.len())];
            Ok(Change::Move { range: entry.range.clone(), to: other_server(&entry.server, rng)? })
        }
    }
}

fn neighbours(map: &[AdminEntry], rng: &mut StdRng) -> Result<(String, String)> {
    if map.len() < 2 {
        bail!("there are no two ranges to merge");
    }
    let at = rng.random_range(1..map.len());
    Ok((map[at - 1].range.clone(), map[at].range.clone()))
}

fn other_server(server: &str, rng: &mut StdRng) -> Result<String> {
    let number: u64 = server.trim_start_matches('s').parse().context("a server is named s1")?;
    Ok(format!("s{}", (number - 1 + rng.random_range(1..SERVERS)) % SERVERS + 1))
}

/// Asks for the change under load; the server must end because of it.
fn crash(load: &mut Load, server: Server, change: &Change, lead: Duration) -> Result<()> {
    let admin = server.admin_client()?;
    load.run_while(server.address, || {
        thread::sleep(lead);
        match admin.change_patiently(change) {
            Ok(_) => Err(anyhow::anyhow!("the change was done, and the server lives")),
            Err(answer) => server.wait_end(Signal::KILL).context(answer),
        }
    })
}

/// Where each key is.
fn placed(map: &[AdminEntry]) -> Vec<(&str, &str, &str)> {
    map.iter().map(|entry| (entry.low.as_str(), entry.server.as_str(), entry.database.as_str())).collect()
}

//! `cargo xtask sim`: whole clusters from one seed, many of them.
//!
//! Each seed is a run of the program `rangehold-sim`: processes of the real code over a store with
//! faults, clients that watch, and checkers (see the crate `sim`). Here they are shared out to as many
//! processes as there are cores, and what they print is added up. Without failures the last line says
//! `N passed, 0 failed`.
//!
//! With `--mutants` the program is built with one mistake after the other ([`mutants`]), and seeds are run until one
//! fails. A mistake that is not found in time fails the command.

mod mutants;
mod workers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::workers::{Run, Seeds, Workers};
use rangehold_testkit::workspace::{self, Profile};

/// Requests of clients that each seed has at least.
const REQUESTS_MIN: u64 = 200;
/// The least simulated time of each seed.
const SIMULATED_MS_MIN: u64 = 60_000;
/// Each switch is on in at least this part of the seeds, and strikes. This is checked only if there are enough seeds.
const SWITCHED_ON_MIN: f64 = 0.1;
/// At most this part of the histories of keys is too complex to be decided. This is checked only if there are enough
/// seeds.
const UNDECIDED_MAX: f64 = 0.01;
/// From this number of seeds on, these two are checked.
const SEEDS_TO_JUDGE_ALL: u64 = 500;
/// Progress is printed each time this many seeds are done.
const TOLD_EVERY: u64 = 1_000;

/// Runs the simulation.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000, conflicts_with = "mutants")]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many of them are run twice; their logs must be the same.
    #[arg(long, default_value_t = 50, conflicts_with = "mutants")]
    twice: u64,
    /// Processes side by side; as many as there are cores if not given.
    #[arg(long)]
    jobs: Option<u64>,
    /// Run each seed for ten simulated minutes instead of one: the space of old databases is then collected too.
    #[arg(long, conflicts_with = "mutants")]
    long: bool,
    /// Run this seed only, and print its log.
    #[arg(long, conflicts_with = "mutants")]
    seed: Option<u64>,
    /// Look for each of the mistakes in `sim/mutants`, in as many seeds as its file says.
    #[arg(long)]
    mutants: bool,
    /// Only mistakes whose name contains this.
    #[arg(long, requires = "mutants")]
    only: Option<String>,
}

/// The results of many seeds.
#[derive(Debug, Default)]
struct Sum {
    runs: u64,
    failed: u64,
    twice: u64,
    requests: u64,
    requests_min: Option<u64>,
    simulated_ms: u64,
    undecided: u64,
    changes: u64,
    planned: [u64; 3],
    /// For each switch in how many seeds it was on, and how often it struck.
    faults: BTreeMap<String, (u64, u64)>,
}

/// Runs what was asked for; an error says how much of it failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let jobs = arguments.jobs.unwrap_or(cores).max(1);
    if arguments.mutants {
        return mutants::find(arguments, jobs);
    }
    let program = build("sim", &[])?;
    if let Some(seed) = arguments.seed {
        let seed = seed.to_string();
        let long = arguments.long.then_some("--long");
        return workspace::run(Command::new(program).args(["--log", "--from", &seed]).args(long));
    }
    pass(arguments, &program, jobs)
}

/// Builds the program and copies it to a place of its own: the next build puts its program in the same place.
fn build(place: &str, more: &[&str]) -> Result<PathBuf> {
    let built = workspace::build(Profile::Dev, "rangehold-sim", ["--bin", "rangehold-sim"], more)?;
    let own = workspace::scratch(place)?.join("rangehold-sim");
    std::fs::copy(&built, &own).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(own)
}

/// All seeds must pass.
fn pass(arguments: &Arguments, program: &Path, jobs: u64) -> Result<()> {
    let began = Instant::now();
    let twice_below = arguments.from + arguments.twice;
    let seeds = Seeds { first: arguments.from, count: arguments.seeds, long: arguments.long };
    let workers = Workers::start(program, jobs, seeds, &["--twice-below", &twice_below.to_string()]);
    let mut sum = Sum::of(names(program, "--list-faults")?);
    let mut missing = arguments.seeds;
    while let Some(run) = workers.next()? {
        missing = missing.saturating_sub(1);
        let faults = sum.add(&run);
        for fault in &faults {
            println!("seed {} FAILED: {fault}", run.seed);
        }
        if !faults.is_empty() {
            println!("    to see it: cargo xtask sim --seed {}", run.seed);
        }
        if missing > 0 && sum.runs.is_multiple_of(TOLD_EVERY) {
            println!("{} of {} seeds, {} failed", sum.runs, arguments.seeds, sum.failed);
        }
    }
    if missing > 0 {
        bail!("{missing} seeds were not run: a process ended early");
    }
    let took = began.elapsed();
    sum.print(took, jobs);
    let weak = sum.weaknesses(arguments);
    weak.iter().for_each(|weakness| println!("{weakness}"));
    println!("{} passed, {} failed", sum.runs - sum.failed, sum.failed);
    if sum.failed > 0 || !weak.is_empty() {
        bail!("the simulation failed");
    }
    Ok(())
}

/// What the program lists, one name on each line.
fn names(program: &Path, flag: &str) -> Result<Vec<String>> {
    let listed = Command::new(program).arg(flag).output()?;
    Ok(String::from_utf8(listed.stdout)?.lines().map(str::to_owned).collect())
}

impl Sum {
    /// A sum of no runs yet, of a simulation with these switches.
    fn of(faults: Vec<String>) -> Self {
        Self { faults: faults.into_iter().map(|name| (name, (0, 0))).collect(), ..Self::default() }
    }

    /// Adds a run, and returns what was wrong with it.
    fn add(&mut self, run: &Run) -> Vec<String> {
        let mut wrong = run.findings.clone();
        if run.requests < REQUESTS_MIN {
            wrong.push(format!("it had {} requests only", run.requests));
        }
        if run.simulated_ms < SIMULATED_MS_MIN {
            wrong.push(format!("it was over after {} simulated ms", run.simulated_ms));
        }
        self.runs += 1;
        self.failed += u64::from(!wrong.is_empty());
        self.twice += u64::from(run.twice);
        self.requests += run.requests;
        self.requests_min = Some(self.requests_min.map_or(run.requests, |least| least.min(run.requests)));
        self.simulated_ms += run.simulated_ms;
        self.undecided += run.undecided;
        self.changes += run.changes;
        self.planned.iter_mut().zip(run.planned).for_each(|(sum, count)| *sum += count);
        for (name, struck) in &run.faults {
            let (on, times) = self.faults.entry(name.clone()).or_default();
            *on += 1;
            *times += struck;
        }
        wrong
    }

    /// What the seeds together do not reach of what this command claims, even if each of them passed.
    fn weaknesses(&self, arguments: &Arguments) -> Vec<String> {
        let mut weak = Vec::new();
        if self.twice < arguments.twice.min(arguments.seeds) {
            weak.push(format!("{} seeds were run twice, of {}", self.twice, arguments.twice));
        }
        if self.runs < SEEDS_TO_JUDGE_ALL {
            return weak;
        }
        let runs = self.runs as f64;
        for (name, (on, struck)) in &self.faults {
            if (*on as f64) < runs * SWITCHED_ON_MIN || *struck == 0 {
                let least = SWITCHED_ON_MIN * 100.0;
                weak.push(format!(
                    "{name} was on in {on} seeds, and struck {struck} times: {least:.0} % are wanted"
                ));
            }
        }
        if self.undecided as f64 > runs * UNDECIDED_MAX {
            weak.push(format!(
                "{} histories were not decided: clients are to meet less often",
                self.undecided
            ));
        }
        weak
    }

    fn print(&self, took: Duration, jobs: u64) {
        println!("{:<20} {:>8} {:>7} {:>9}", "fault", "on", "", "struck");
        for (name, (on, struck)) in &self.faults {
            let share = *on as f64 / self.runs as f64;
            println!("{name:<20} {on:>8} {:>6.1}% {struck:>9}", share * 100.0);
        }
        let [splits, merges, moves] = self.planned;
        let minutes = took.as_secs_f64() / 60.0;
        println!(
            "{} seeds, {} of them twice, in {minutes:.1} min by {jobs} processes: {} requests (at least {} in \
             a seed), {} changes of ranges at random, {splits} splits, {merges} merges and {moves} moves by the \
             manager, {:.0} simulated hours; {} histories too entangled to be decided",
            self.runs,
            self.twice,
            self.requests,
            self.requests_min.unwrap_or(0),
            self.changes,
            self.simulated_ms as f64 / 3_600_000.0,
            self.undecided,
        );
    }
}

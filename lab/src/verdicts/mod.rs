//! `cargo xtask verdicts`: is every range split that should be split, and no other range?
//!
//! Synthetic workloads run against the real finder on a virtual clock, many seeds each: those that its
//! numbers were made with ([`experiment`]) and others that they were not ([`ours`]). The truth is told by
//! the traffic of five to seven minutes after the decision ([`truth`]). A run fails if
//!
//! * a split was *useless*: minutes later more than three quarters of the load were on one side, or requests
//!   touched both sides;
//! * a range was *missed*: it was not split although one cut was good before and minutes later;
//! * a verdict was *wrong*: it names a cause that the workload does not have;
//! * a verdict was *unsaid*: its sentence for the user does not tell that cause, or not where ([`words`]).

mod cost;
mod experiment;
mod held_out;
mod keys;
mod ours;
mod stream;
mod trial;
mod truth;
mod words;
mod workload;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, bail};
use rangehold_map::load::{LoadPolicy, Verdict};

use crate::cores::on_all_cores;
use trial::{Miss, Outcome, Setting};
use workload::Workload;

/// Title of the workloads that no finder can tell in the time it has, and that are not counted.
const LIMITS_TITLE: &str = "beyond what can be seen (not counted)";

/// Judges synthetic workloads and compares with what happened to them.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Trials of each workload.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Requests per second; what a range may bear goes with it.
    #[arg(long, default_value_t = trial::USUAL_RATE)]
    rate: f64,
    /// Which numbers are used: `fast` or `cloud`.
    #[arg(long, default_value = "fast", value_parser = ["fast", "cloud"])]
    profile: String,
    /// Only workloads whose name, or the title of their list, contains this.
    #[arg(long)]
    only: Option<String>,
    /// Go on for this many minutes after a verdict against a split: nothing may be split later either.
    #[arg(long, default_value_t = 0)]
    minutes: u32,
    /// Print a sentence of each cause that a workload got.
    #[arg(long)]
    sentences: bool,
    /// Measure what recording a request costs instead.
    #[arg(long)]
    cost: bool,
}

/// Runs all workloads and prints a line for each; an error says how many trials missed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.cost {
        cost::print();
        return Ok(());
    }
    let policy = if arguments.profile == "cloud" { LoadPolicy::cloud() } else { LoadPolicy::fast() };
    let setting = Setting { policy: &policy, rate: arguments.rate, until: arguments.minutes * 60 };
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let seeds: Vec<u64> = (arguments.first_seed..).take(arguments.seeds as usize).collect();
    let began = Instant::now();
    let mut missed = Vec::new();
    for (title, workloads) in [
        ("workloads of the experiment", experiment::WORKLOADS.as_slice()),
        ("other workloads", ours::FIRST.as_slice()),
        ("workloads that came last", ours::SECOND.as_slice()),
        ("few partitions", ours::FEW.as_slice()),
        ("other keys and rates", held_out::WORKLOADS.as_slice()),
        (LIMITS_TITLE, ours::LIMITS.as_slice()),
    ] {
        println!(
            "{title:<42} {:>6} {:>8} {:>7} {:>7} {:>7} {:>6} {:>10} {:>10}  verdicts",
            "split", "useless", "missed", "wrong", "unsaid", "after", "imbalance", "splittable"
        );
        for workload in workloads.iter().filter(|workload| wanted(workload.name) || wanted(title)) {
            let outcomes = on_all_cores(&seeds, |seed| trial::run(workload, &setting, *seed));
            if print_line(workload, &outcomes) > 0 && title != LIMITS_TITLE {
                missed.push(workload.name);
            }
            if arguments.sentences {
                print_sentences(&outcomes);
            }
        }
    }
    println!(
        "{:.0} s, {} seeds, profile {}",
        began.elapsed().as_secs_f64(),
        arguments.seeds,
        arguments.profile
    );
    if missed.is_empty() { Ok(()) } else { bail!("verdicts: misses in {}", missed.join("; ")) }
}

/// Prints the results of a workload; returns the number of misses.
fn print_line(workload: &Workload, outcomes: &[Outcome]) -> usize {
    let misses = |miss: Miss| outcomes.iter().filter(|outcome| outcome.miss(workload) == Some(miss)).count();
    let splits: Vec<f64> =
        outcomes.iter().filter_map(|outcome| outcome.effect.map(|effect| effect.imbalance)).collect();
    let imbalance = match splits.iter().copied().reduce(f64::max) {
        Some(greatest) => format!("{:.2}-{greatest:.2}", splits.iter().copied().fold(1.0, f64::min)),
        None => "-".to_owned(),
    };
    let mut seconds: Vec<u32> = outcomes.iter().map(|outcome| outcome.seconds).collect();
    seconds.sort_unstable();
    let splittable = outcomes.iter().filter(|outcome| outcome.is_splittable).count();
    let mut names = BTreeMap::new();
    for outcome in outcomes {
        *names.entry(outcome.name()).or_insert(0) += 1;
    }
    let names: Vec<String> = names.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let (useless, missed) = (misses(Miss::Useless), misses(Miss::Missed));
    let (wrong, unsaid) = (misses(Miss::Wrong), misses(Miss::Unsaid));
    println!(
        "{:<42} {:>6} {useless:>8} {missed:>7} {wrong:>7} {unsaid:>7} {:>4} s {imbalance:>10} {splittable:>10}  {}",
        workload.name,
        splits.len(),
        seconds[seconds.len() / 2],
        names.join(", ")
    );
    useless + missed + wrong + unsaid
}

fn print_sentences(outcomes: &[Outcome]) {
    let verdicts = outcomes.iter().filter_map(|outcome| outcome.verdict.as_ref());
    let by_name: BTreeMap<&str, &Verdict> = verdicts.map(|verdict| (verdict.cause.name(), verdict)).collect();
    for verdict in by_name.values() {
        println!("    {}", words::sentence(verdict));
    }
}

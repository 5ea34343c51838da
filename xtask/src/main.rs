//! `cargo xtask`: the tasks of this repository, each one command.
//!
//! - `test`, `soak`: sets up and runs everything that must hold, or what takes long ([`mod@test`]);
//! - `crash`: breaks a running server in many ways and looks for lost writes ([`crash`], [`power`]);
//! - `fuzz`: feeds the parsers what no honest client would send ([`fuzz`]);
//! - `shards`: tries shard maps on PostgreSQL servers, and measures them ([`shards`]);
//! - `sim`: runs whole clusters from seeds, with faults ([`sim`]);
//! - `measure`: runs a measurement and puts its figures on the page `docs/measurements.md` ([`measure`]).
//!
//! Any other name is an experiment of the crate `lab`, which is built when it is asked for.
//!
//! The program under test is a process of its own. A client that shares no code with it talks to it over
//! HTTP ([`rangehold_testkit::client`]).

#![expect(
    clippy::disallowed_methods,
    reason = "xtask drives real processes from outside and lives in real time"
)]

mod crash;
mod fuzz;
mod itself;
mod measure;
mod power;
mod shards;
mod sim;
mod test;

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use rangehold_testkit::workspace::{self, Profile};

/// The tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", after_help = EXPERIMENTS)]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

const EXPERIMENTS: &str = "\
Experiments (--help after a name tells more):
  handoff     What splits, merges and moves cost the clients that are served meanwhile
  space       How soon splits and merges give their space back
  ranges      What a thousand ranges in one process cost
  cloud       Whether the profile `cloud` keeps its targets
  scale       Compares a large service with a small one
  bench       What each sort of request costs, beside a bare HTTP server and Azurite
  objects     What requests about objects cost; with --rates, how buckets bear load that doubles
  neighbours  What greedy clients cost a quiet one
  client      What the client does: tables and files moved by killed commands, sequences, stress tests of four designs
  balance     Runs the planner through simulated hours of a large service
  verdicts    Judges synthetic workloads and compares with what happened to them";

#[derive(Subcommand)]
enum Task {
    Test(test::Arguments),
    Soak(test::SoakArguments),
    Crash(crash::Arguments),
    Fuzz(fuzz::Arguments),
    Shards(shards::Arguments),
    Sim(sim::Arguments),
    Measure(measure::Arguments),
    #[command(external_subcommand)]
    Experiment(Vec<OsString>),
}

fn main() -> ExitCode {
    itself::keep();
    let result = match CommandLine::parse().task {
        Task::Test(arguments) => test::run(&arguments),
        Task::Soak(arguments) => test::soak(&arguments),
        Task::Crash(arguments) => crash::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Shards(arguments) => shards::run_trials(&arguments),
        Task::Sim(arguments) => sim::run(&arguments),
        Task::Measure(arguments) => measure::run(&arguments),
        Task::Experiment(words) => experiment(&words),
    };
    workspace::exit(result)
}

/// Builds the lab and runs one of its experiments; it knows the names and says so when one is wrong.
fn experiment(words: &[OsString]) -> Result<()> {
    // The simulated hours of `balance` would take a day without the compiler's optimisations, and the bare server
    // with which `bench` compares is a part of the lab.
    let is_heavy = words.first().is_some_and(|word| word == "balance" || word == "bench");
    let profile = if is_heavy { Profile::Release } else { Profile::Dev };
    let program = workspace::build(profile, "rangehold-lab", ["--bin", "rangehold-lab"], &[])?;
    workspace::run(Command::new(program).args(words).current_dir(workspace::root()))
}

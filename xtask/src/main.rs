//! `cargo xtask`: the tasks of this repository, each one command.
//!
//! - `test`: sets up and runs everything that must hold ([`mod@test`]);
//! - `crash`: breaks a running server in many ways and looks for lost writes ([`crash`], [`power`]);
//! - `handoff`: what splits, merges and moves cost those who are served meanwhile ([`handoff`]);
//! - `space`: how soon splits and merges give their space back ([`space`]);
//! - `ranges`: what a thousand ranges in one process cost ([`ranges`]);
//! - `cloud`: whether the profile `cloud` behaves as the cloud's documents say ([`cloud`]);
//! - `scale`: compares a large service with a small one ([`scale`]);
//! - `fuzz`: feeds the parsers what nobody would send ([`fuzz`]);
//! - `shards`: tries shard maps on PostgreSQL servers, and measures them ([`shards`]);
//! - `sim`: runs whole clusters from seeds, with faults ([`sim`]);
//! - `balance`: runs the planner through simulated hours of a large service ([`balance`]);
//! - `verdicts`: judges synthetic workloads and compares with what became of them ([`verdicts`]);
//! - `measure`: runs one of these and puts its figures on the page `docs/measurements.md` ([`measure`]).
//!
//! The program under test is a process of its own, spoken to over HTTP by a [client] that
//! shares no code with it.

#![expect(
    clippy::disallowed_methods,
    reason = "xtask drives real processes from outside and lives in real time"
)]

mod balance;
mod client;
mod cloud;
mod crash;
mod fuzz;
mod handoff;
mod load;
mod measure;
mod power;
mod ranges;
mod scale;
mod server;
mod shards;
mod sim;
mod space;
mod test;
mod verdicts;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Test(test::Arguments),
    Crash(crash::Arguments),
    Handoff(handoff::Arguments),
    Space(space::Arguments),
    Ranges(ranges::Arguments),
    Cloud(cloud::Arguments),
    Scale(scale::Arguments),
    Fuzz(fuzz::Arguments),
    Shards(shards::Arguments),
    Sim(sim::Arguments),
    Verdicts(verdicts::Arguments),
    Balance(balance::Arguments),
    Measure(measure::Arguments),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().task {
        Task::Test(arguments) => test::run(&arguments),
        Task::Crash(arguments) => crash::run(&arguments),
        Task::Handoff(arguments) => handoff::run(&arguments),
        Task::Space(arguments) => space::run(&arguments),
        Task::Ranges(arguments) => ranges::run(&arguments),
        Task::Cloud(arguments) => cloud::run(&arguments),
        Task::Scale(arguments) => scale::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Shards(arguments) => shards::run_trials(&arguments),
        Task::Sim(arguments) => sim::run(&arguments),
        Task::Verdicts(arguments) => verdicts::run(&arguments),
        Task::Balance(arguments) => balance::run(&arguments),
        Task::Measure(arguments) => measure::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

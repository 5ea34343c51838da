//! Experiments and measurements, each one command: `cargo xtask NAME` builds and starts this program.
//!
//! - `handoff`: what splits, merges and moves cost the clients that are served meanwhile ([`handoff`]);
//! - `space`: how soon splits and merges give their space back ([`space`]);
//! - `ranges`: what a thousand ranges in one process cost ([`ranges`]);
//! - `cloud`: whether the profile `cloud` behaves as the cloud's documents say ([`cloud`]);
//! - `scale`: compares a large service with a small one ([`scale`]);
//! - `bench`: what each sort of request costs here, in a bare HTTP server and in Azurite ([`peers`]);
//! - `neighbours`: what greedy clients cost a quiet one ([`neighbours`]);
//! - `objects`: what requests about objects cost beside those about tables ([`mod@objects`]); with `--rates`, how buckets
//!   bear load that doubles ([`rates`]);
//! - `client`: whether a table and files come back equal after their commands were killed, how fast sequences are, and what stress
//!   tests say of four designs ([`client`]);
//! - `balance`: runs the planner through simulated hours of a large service ([`balance`]);
//! - `verdicts`: judges synthetic workloads and compares with what happened to them ([`verdicts`]).
//!
//! All but the last two drive the real program from outside, and share [`mod@bench`]; the last two need only the pure crate
//! `map`.

#![expect(
    clippy::disallowed_methods,
    reason = "the lab drives real processes from outside and lives in real time"
)]

mod balance;
mod bench;
mod client;
mod cloud;
mod cores;
mod disk;
mod drive;
mod handoff;
mod neighbours;
mod objects;
mod peers;
mod ranges;
mod rates;
mod scale;
mod space;
mod verdicts;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rangehold_testkit::workspace;

/// Experiments and measurements.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct CommandLine {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    Handoff(handoff::Arguments),
    Space(space::Arguments),
    Ranges(ranges::Arguments),
    Cloud(cloud::Arguments),
    Scale(scale::Arguments),
    Bench(peers::Arguments),
    /// The bare HTTP server that `bench` compares with.
    #[command(hide = true)]
    Floor,
    Neighbours(neighbours::Arguments),
    Objects(objects::Arguments),
    Client(client::Arguments),
    /// One process of many that take numbers, for `client`.
    #[command(hide = true)]
    SequenceWorker(client::Worker),
    Balance(balance::Arguments),
    Verdicts(verdicts::Arguments),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().experiment {
        Experiment::Handoff(arguments) => handoff::run(&arguments),
        Experiment::Space(arguments) => space::run(&arguments),
        Experiment::Ranges(arguments) => ranges::run(&arguments),
        Experiment::Cloud(arguments) => cloud::run(&arguments),
        Experiment::Scale(arguments) => scale::run(&arguments),
        Experiment::Bench(arguments) => peers::run(&arguments),
        Experiment::Floor => peers::floor(),
        Experiment::Neighbours(arguments) => neighbours::run(&arguments),
        Experiment::Objects(arguments) => objects::run(&arguments),
        Experiment::Client(arguments) => client::run(&arguments),
        Experiment::SequenceWorker(worker) => worker.run(),
        Experiment::Balance(arguments) => balance::run(&arguments),
        Experiment::Verdicts(arguments) => verdicts::run(&arguments),
    };
    workspace::exit(result)
}

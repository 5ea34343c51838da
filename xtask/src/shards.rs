//! `cargo xtask shards`: tries the fence of shard maps under load and failures, and measures what it costs.
//!
//! A global map and three PostgreSQL servers as shards. Two processes with four writers each work at three isolation
//! levels, through our connection, through the guard, and by COPY. No role is a superuser. The map is changed at
//! random; every fourth change is given up half-way, as if the manager were killed, and servers lose power now and
//! then. In between, a second name of a shard and a restored copy of one are added and attached, shards go to another
//! database, with their keys online or offline, while clients remember the old one, and managers are stopped by SIGSTOP
//! inside the transaction of each step. No statement may run on a shard that has lost its key, no acknowledged row may
//! be missing or twice, and after each error it must be right to try again. The report has the longest wait of a
//! statement while keys went offline whose holder was ended, and while a manager stood still. With `--waits` a longer
//! wait than there is a reason for is wrong too. The same follows with pgbouncer before the first shard's server. Then
//! round trips, CPU and routing from a warm cache are measured.
//!
//! With `--mutants` two known mistakes are put into the fence, and each must be found.
//!
//! The work is done by an example of the crate `rangehold-shardmap`, which shares the servers with its tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use rangehold_testkit::workspace::{self, Profile, run};

/// Tries shard maps on real servers.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many changes of the map; with `--mutants`, at most this many for each mistake.
    #[arg(long, default_value_t = 500)]
    changes: u32,
    /// The seed of the choices of changes and writers. It does not decide what servers and the network do.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Put known mistakes into the fence, and expect to find them.
    #[arg(long)]
    mutants: bool,
    /// Fail, too, if a statement waits longer than its limit; for a machine that has little else to do.
    #[arg(long, conflicts_with_all = ["mutants", "measure"])]
    waits: bool,
    /// Only measure.
    #[arg(long, conflicts_with = "mutants")]
    measure: bool,
    /// Build and use the release profile, which takes minutes to build.
    #[arg(long)]
    release: bool,
}

/// Runs what the arguments say.
pub(crate) fn run_trials(arguments: &Arguments) -> Result<()> {
    let program = program(if arguments.release { Profile::Release } else { Profile::Dev })?;
    let (changes, seed) = (arguments.changes.to_string(), arguments.seed.to_string());
    if arguments.mutants {
        return run(Command::new(&program).args(["mutants", &changes, &seed]));
    }
    if !arguments.measure {
        for trial in ["torture", "pooled"] {
            println!("{trial}: {changes} changes");
            let waits = arguments.waits.then_some("waits");
            run(Command::new(&program).args([trial, &changes, &seed]).args(waits))?;
        }
    }
    run(Command::new(&program).arg("measure"))
}

/// Runs the Python program of `tests/python-shards`, by a Python that has psycopg.
pub(crate) fn python(python: &Path) -> Result<()> {
    run(Command::new(program(Profile::Dev)?).arg("python").arg(python))
}

/// Builds the program of the trials.
fn program(profile: Profile) -> Result<PathBuf> {
    workspace::build(profile, "rangehold-shardmap", ["--example", "shards-trial"], &[])
}

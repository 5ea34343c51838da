//! Numbers for many callers.
//!
//! | | where | what |
//! |---|---|---|
//! | loop | Azurite, Rangehold | 64 clients that read, add one and merge with `If-Match`, and begin again after 412: the loop that programs write |
//! | strict | Azurite, Rangehold | 64 callers of one process, each number with a claim |
//! | processes | Rangehold | 64 processes with one caller each |
//! | blocks | Rangehold | the same, with blocks of 100 numbers |
//!
//! No number may be given out twice, and every caller must get some.

mod callers;
mod worker;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rangehold_client::Service;
use rangehold_testkit::azurite::Azurite;
use rangehold_testkit::server::Server;
use rangehold_testkit::workspace::{root, run as run_command};

use super::Arguments;
use super::command::connection;
use crate::bench::Missed;
pub(crate) use worker::Worker;

/// Callers, or processes.
const CALLERS: usize = 64;
/// Numbers of a block.
const BLOCK: u32 = 100;

/// What one caller got.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Taken {
    /// Its numbers.
    numbers: Vec<i64>,
    /// How long each took, in microseconds.
    micros: Vec<u64>,
    /// Calls that failed.
    failed: u64,
}

/// Runs all measurements and prints a table.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let time = Duration::from_secs(arguments.seconds);
    let directory = root().join("tests/azurite");
    if !directory.join("node_modules").is_dir() {
        let mut install = std::process::Command::new("npm");
        run_command(install.args(["ci", "--silent"]).current_dir(&directory))?;
    }
    let azurite = Azurite::start(&directory)?;
    let setup = arguments.build.setup("client-sequence", &[])?;
    let server = Server::start(&setup)?;
    let ours = connection(&server);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut missed = Missed::default();
    println!(
        "{:<42} {:>9} {:>10} {:>10} {:>10} {:>7}",
        "", "numbers/s", "p50 ms", "p99 ms", "least each", "failed"
    );
    for (place, text) in [("Azurite", &azurite.connection), ("Rangehold", &ours)] {
        let service = Service::from_connection_string(text).context("a service")?;
        let looped = runtime.block_on(callers::looping(&service, CALLERS, time))?;
        report(&format!("{place}: loop, {CALLERS} clients"), &looped, time, &mut missed, false)?;
        let strict = runtime.block_on(callers::strict(&service, CALLERS, time))?;
        report(&format!("{place}: strict, {CALLERS} callers, a process"), &strict, time, &mut missed, true)?;
    }
    for block in [1, BLOCK] {
        let taken = worker::processes(&ours, CALLERS, block, time)?;
        report(
            &format!("Rangehold: {CALLERS} processes, blocks of {block}"),
            &taken,
            time,
            &mut missed,
            true,
        )?;
    }
    server.stop()?;
    missed.conclude("sequence")
}

/// Prints a line. A caller without a number is a miss if all must get some.
fn report(what: &str, all: &[Taken], time: Duration, missed: &mut Missed, all_get_some: bool) -> Result<()> {
    let numbers: Vec<i64> = all.iter().flat_map(|taken| taken.numbers.iter().copied()).collect();
    let distinct: BTreeSet<i64> = numbers.iter().copied().collect();
    ensure!(distinct.len() == numbers.len(), "{what}: {} numbers came twice", numbers.len() - distinct.len());
    let mut micros: Vec<u64> = all.iter().flat_map(|taken| taken.micros.iter().copied()).collect();
    micros.sort_unstable();
    let at = |percent: usize| {
        let at = micros.len().saturating_sub(1) * percent / 100;
        micros.get(at).map_or(f64::NAN, |micros| *micros as f64 / 1e3)
    };
    let least = all.iter().map(|taken| taken.numbers.len()).min().unwrap_or_default();
    let failed: u64 = all.iter().map(|taken| taken.failed).sum();
    println!(
        "{what:<42} {:>9.0} {:>10.1} {:>10.1} {least:>10} {failed:>7}",
        numbers.len() as f64 / time.as_secs_f64(),
        at(50),
        at(99)
    );
    missed.note(all_get_some && least == 0, || format!("{what}: a caller got no number"));
    Ok(())
}

//! Numbers for many callers.
//!
//! | | where | what |
//! |---|---|---|
//! | loop | Azurite, Rangehold | 64 clients that read, add one and merge with `If-Match`, and begin again after 412: the loop that programs write |
//! | strict | Azurite, Rangehold | 64 callers of one process, each number with a claim |
//! | processes | Rangehold | 64 processes with one caller each |
//! | blocks | Rangehold | the same, with blocks of 100 numbers |
//! | killed | Rangehold | processes with and without claims, which are killed, as the server is |
//!
//! No number may be given out twice, and every caller must get some. How fast it must be is asked for by ratios, which depend
//! little on the machine: to the loop on Azurite in the same run, and to a [durable file](crate::disk), which is made again and
//! again while the processes work.

mod callers;
mod killed;
mod worker;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rangehold_client::Service;
use rangehold_testkit::azurite::Azurite;
use rangehold_testkit::server::Server;
use rangehold_testkit::workspace::{root, run as run_command};

use super::Arguments;
use super::command::connection;
use crate::bench::{Missed, median};
use crate::disk;
pub(crate) use worker::Worker;

/// Callers, or processes.
const CALLERS: usize = 64;
/// Numbers of a block.
const BLOCK: u32 = 100;
/// How many times as fast as the loop on Azurite the strict sequence must be.
const OVER_LOOP_MIN: f64 = 50.0;
/// Numbers of all processes in the time of a durable file, at least: one by one, and in blocks.
const IN_A_FILE_MIN: f64 = 0.5;
const IN_A_FILE_BY_BLOCKS_MIN: f64 = 50.0;

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
    let (mut looped, mut strict) = (Vec::new(), Vec::new());
    for (place, text) in [("Azurite", &azurite.connection), ("Rangehold", &ours)] {
        let service = Service::from_connection_string(text).context("a service")?;
        let taken = runtime.block_on(callers::looping(&service, CALLERS, time))?;
        looped.push(report(&format!("{place}: loop, {CALLERS} clients"), &taken, time, &mut missed, false)?);
        let taken = runtime.block_on(callers::strict(&service, CALLERS, time))?;
        let what = format!("{place}: strict, {CALLERS} callers, a process");
        strict.push(report(&what, &taken, time, &mut missed, true)?);
    }
    let mut in_a_file = Vec::new();
    for block in [1, BLOCK] {
        let files = setup.beside(&format!("files-{block}"));
        let (taken, file) = beside_files(&files, || worker::processes(&ours, CALLERS, block, time))?;
        let what = format!("Rangehold: {CALLERS} processes, blocks of {block}");
        let rate = report(&what, &taken, time, &mut missed, true)?;
        println!("{:<42} {:.2} ms, the median beside that", "a durable file", file.as_secs_f64() * 1e3);
        in_a_file.push(rate * file.as_secs_f64());
    }
    server.stop()?;
    println!("{:<72} {:>10} {:>10}", "", "seen", "asked");
    println!("{:<72} {:>10.1}", "strict on Azurite / loop on Azurite", strict[0] / looped[0]);
    for (what, seen, asked) in [
        ("strict on Rangehold / loop on Azurite", strict[1] / looped[0], OVER_LOOP_MIN),
        ("numbers of all processes in the time of a durable file", in_a_file[0], IN_A_FILE_MIN),
        ("the same, in blocks", in_a_file[1], IN_A_FILE_BY_BLOCKS_MIN),
    ] {
        let passes = seen >= asked;
        println!(
            "{what:<72} {seen:>10.2} {:>10} {}",
            format!(">= {asked}"),
            if passes { "pass" } else { "MISS" }
        );
        missed.note(!passes, || format!("{what}: {seen:.2}, asked for is {asked}"));
    }
    killed::run(arguments)?;
    missed.conclude("sequence")
}

/// Works while files are made in `directory`. Returns also the median time of a file.
fn beside_files<T>(directory: &Path, work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let files = scope.spawn(|| disk::creates(directory, &stop, usize::MAX));
        let worked = work();
        stop.store(true, Ordering::Relaxed);
        let files = files.join().expect("the measurement does not panic")?;
        let worked = worked?;
        ensure!(!files.is_empty(), "no file was made meanwhile");
        Ok((worked, median(files)))
    })
}

/// Prints a line; returns the numbers in a second. A caller without a number is a miss if all must get some.
fn report(what: &str, all: &[Taken], time: Duration, missed: &mut Missed, all_get_some: bool) -> Result<f64> {
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
    let rate = numbers.len() as f64 / time.as_secs_f64();
    println!("{what:<42} {rate:>9.0} {:>10.1} {:>10.1} {least:>10} {failed:>7}", at(50), at(99));
    missed.note(all_get_some && least == 0, || format!("{what}: a caller got no number"));
    Ok(rate)
}

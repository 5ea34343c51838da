//! Records a server's file operations while it is under load.
//!
//! strace stands between the server and the kernel and records each call. It sees every way to write a file, even
//! those that do not use the C library. The load has three parts, called legs. The first ends with a stop and the
//! second with `kill -9`. So the record holds the making of a directory, a load, a shutdown, openings after both kinds
//! of end, and more load.
//!
//! This takes a few seconds, and nothing is collected as garbage in that time, since nothing young is garbage. A
//! *long* record spreads the same load over minutes, so that compaction and its removals are in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::trace;
use rangehold_testkit::load::Load;
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace;

/// Servers that write one after the other.
const LEGS: usize = 3;
/// The leg that `kill -9` ends.
const KILLED_LEG: usize = 1;
/// Operations of each writer in each leg.
const OPERATIONS: u64 = 60;
/// Longest string that is recorded: above the largest write of the engine.
const STRING_MAX: &str = "268435456";

/// A finished record.
pub(super) struct Record {
    /// The directory as the server knew it.
    pub(super) data: PathBuf,
    /// One file for each leg.
    pub(super) traces: Vec<PathBuf>,
    /// What was acknowledged, in order, for each writer.
    pub(super) load: Load,
}

/// Runs the load under record, each leg for at least `length`. `sync` is off for the control.
pub(super) fn record(
    program: &Path,
    directory: &Path,
    seed: u64,
    sync: bool,
    length: Duration,
) -> Result<Record> {
    if !workspace::on_path("strace") {
        bail!("the power test records system calls with strace: install the package strace");
    }
    let data = directory.join("data");
    std::fs::create_dir(&data)?;
    let mut load = Load { pace: length / OPERATIONS as u32, ..Load::new(seed, true) };
    let mut traces = Vec::new();
    for leg in 0..LEGS {
        let trace = directory.join(format!("trace-{leg}"));
        let mut setup = Setup::new(program, &data, &directory.join("server.log"));
        setup.wrapper = strace(&trace);
        if !sync {
            setup.arguments.push("--unsafe-no-fsync".into());
        }
        let server = Server::start(&setup)?;
        if leg == 0 {
            load.prepare(server.address)?;
        }
        load.run(server.address, OPERATIONS);
        if let Some(finding) = load.check(server.address)?.first() {
            bail!("before any power loss: {finding}");
        }
        // All writers have their answers, so a kill leaves no outcome unknown.
        if leg == KILLED_LEG {
            server.kill()?
        } else {
            server.stop()?
        }
        traces.push(trace);
    }
    Ok(Record { data, traces, load })
}

fn strace(trace: &Path) -> Vec<OsString> {
    let calls = format!("trace={}", trace::CALLS.replace(char::is_whitespace, ""));
    let mut words: Vec<OsString> =
        ["strace", "-f", "--seccomp-bpf", "-qq", "-s", STRING_MAX, "-e", &calls, "-e", "signal=none", "-o"]
            .map(OsString::from)
            .into();
    words.push(trace.into());
    words
}

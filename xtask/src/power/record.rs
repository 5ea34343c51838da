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

use super::replay::Found;
use super::trace;
use rangehold_testkit::load::Load;
use rangehold_testkit::object_load::ObjectLoad;
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace;

/// Servers that write one after the other.
const LEGS: usize = 3;
/// The leg that `kill -9` ends.
const KILLED_LEG: usize = 1;
/// Operations of each writer in each leg.
const OPERATIONS: u64 = 60;
/// Writers of objects, and the operations of each in each leg. An upload by a session is one operation.
const OBJECT_WRITERS: usize = 4;
const OBJECT_OPERATIONS: u64 = 25;
/// The time between two audits of blobs, and between two walks over the buckets, of a server with objects.
const TIDIED_EVERY_MILLIS: &str = "150";
/// Longest string that is recorded: above the largest write of the engine.
const STRING_MAX: &str = "268435456";

/// What is written under record.
pub(super) enum Written {
    Tables(Load),
    Objects(ObjectLoad),
}

impl Written {
    /// A load of tables whose operations are spread over at least `length`.
    pub(super) fn tables(seed: u64, length: Duration) -> Self {
        Self::Tables(Load { pace: length / OPERATIONS as u32, ..Load::new(seed, true) })
    }

    pub(super) fn objects(seed: u64) -> Self {
        let mut load = ObjectLoad::new(OBJECT_WRITERS, seed);
        load.keep_journal();
        Self::Objects(load)
    }

    /// The ids of all answers that promise something.
    pub(super) fn ids(&self) -> Vec<&str> {
        match self {
            Self::Tables(load) => load
                .writers
                .iter()
                .flat_map(|writer| writer.log.iter().flatten())
                .map(|entry| entry.id.as_str())
                .collect(),
            Self::Objects(load) => load.answers().into_keys().map(|(id, _)| id).collect(),
        }
    }

    /// Arguments of a server that this is written to.
    pub(super) fn arguments(&self) -> Vec<String> {
        match self {
            Self::Tables(_) => Vec::new(),
            Self::Objects(_) => ["--tidy-objects-every", TIDIED_EVERY_MILLIS].map(str::to_owned).into(),
        }
    }

    /// Runs one leg, and compares what the server holds.
    fn leg(&mut self, server: &Server, is_first: bool) -> Result<()> {
        let findings = match self {
            Self::Tables(load) => {
                if is_first {
                    load.prepare(server.address)?;
                }
                load.run(server.address, OPERATIONS);
                load.check(server.address)?
            }
            Self::Objects(load) => {
                if is_first {
                    load.prepare(server.objects)?;
                }
                load.run(server.objects, OBJECT_OPERATIONS);
                load.check(server.objects)?
            }
        };
        match findings.first() {
            Some(finding) => bail!("before any power loss: {finding}"),
            None => Ok(()),
        }
    }
}

/// A finished record.
pub(super) struct Record {
    /// The directory as the server knew it.
    pub(super) data: PathBuf,
    /// The record of each leg, and what the directory held at its end.
    pub(super) legs: Vec<(PathBuf, Found)>,
    /// What was acknowledged, in order, for each writer.
    pub(super) written: Written,
}

/// Runs the load under record. `sync` is off for the control.
pub(super) fn record(program: &Path, directory: &Path, mut written: Written, sync: bool) -> Result<Record> {
    if !workspace::on_path("strace") {
        bail!("the power test records system calls with strace: install the package strace");
    }
    let data = directory.join("data");
    std::fs::create_dir(&data)?;
    let mut legs = Vec::new();
    for leg in 0..LEGS {
        let trace = directory.join(format!("trace-{leg}"));
        let mut setup = Setup::new(program, &data, &directory.join("server.log"));
        setup.wrapper = strace(&trace);
        setup.arguments.extend(written.arguments());
        if !sync {
            setup.arguments.push("--unsafe-no-fsync".into());
        }
        let server = Server::start(&setup)?;
        written.leg(&server, leg == 0)?;
        // All writers have their answers, so a kill leaves no outcome unknown.
        if leg == KILLED_LEG {
            server.kill()?
        } else {
            server.stop()?
        }
        legs.push((trace, Found::of(&data)?));
    }
    Ok(Record { data, legs, written })
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

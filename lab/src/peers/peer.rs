//! The servers that are compared, as processes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rangehold_testkit::azurite::Azurite;
use rangehold_testkit::server::{self, Server};
use rangehold_testkit::workspace::root;
use rustix::process::Pid;

use crate::bench::Build;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum PeerKind {
    /// The bare HTTP server.
    Floor,
    /// Our server.
    Ours,
    /// Azurite, with its tables in memory.
    Azurite,
}

impl PeerKind {
    pub(super) const ALL: [Self; 3] = [Self::Floor, Self::Ours, Self::Azurite];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Floor => "bare",
            Self::Ours => "ours",
            Self::Azurite => "azurite",
        }
    }
}

/// A running server.
pub(super) struct Peer {
    pub(super) kind: PeerKind,
    pub(super) address: SocketAddr,
    process: Pid,
    _running: Running,
}

/// What ends the process when it is dropped.
enum Running {
    Floor(#[expect(dead_code, reason = "kept to be dropped")] Bare),
    Ours(#[expect(dead_code, reason = "kept to be dropped")] Server),
    Azurite(#[expect(dead_code, reason = "kept to be dropped")] Azurite),
}

struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

impl Peer {
    /// Starts a server.
    pub(super) fn start(kind: PeerKind, build: &Build) -> Result<Self> {
        let (address, process, running) = match kind {
            PeerKind::Floor => bare()?,
            PeerKind::Ours => {
                let server = Server::start(&build.setup("bench", &[])?)?;
                println!("ours     ready after {:.0?}", server.start_time);
                (server.address, server.process(), Running::Ours(server))
            }
            PeerKind::Azurite => {
                let directory = root().join("tests/azurite");
                if !directory.join("node_modules").exists() {
                    bail!("Azurite is not installed: run `npm ci` in {}", directory.display());
                }
                let azurite = Azurite::start(&directory)?;
                (azurite.address, azurite.process(), Running::Azurite(azurite))
            }
        };
        Ok(Self { kind, address, process, _running: running })
    }

    /// Whether its answers have entities in them.
    pub(super) fn is_table_service(&self) -> bool {
        self.kind != PeerKind::Floor
    }

    pub(super) fn processor_time(&self) -> Result<Duration> {
        server::processor_time(self.process)
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        server::resident_bytes(self.process)
    }
}

fn bare() -> Result<(SocketAddr, Pid, Running)> {
    let child = Command::new(std::env::current_exe()?).arg("floor").stdout(Stdio::piped()).spawn()?;
    let mut bare = Bare(child);
    let mut line = String::new();
    BufReader::new(bare.0.stdout.take().context("its output is piped")?).read_line(&mut line)?;
    let address = line.trim().parse().with_context(|| format!("the bare server printed {line:?}"))?;
    let process = Pid::from_child(&bare.0);
    Ok((address, process, Running::Floor(bare)))
}

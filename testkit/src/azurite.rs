//! Azurite, the emulator that the cloud's vendor ships, as a process of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::http::Connection;
use crate::ports::free_port;
use crate::sign::{ACCOUNT, KEY};

/// Longest wait for Azurite to accept connections.
const READY_WAIT: Duration = Duration::from_secs(60);

/// A running table service. Dropping it ends the process.
pub struct Azurite {
    process: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// How a client reaches it.
    pub connection: String,
}

impl Azurite {
    /// Starts the Azurite that is installed in `directory`, with its tables in memory.
    pub fn start(directory: &Path) -> Result<Self> {
        // Azurite does not say which port it took, so it is told one.
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let process = Command::new("node")
            .arg("node_modules/azurite/dist/src/table/main.js")
            .args(["--tableHost", "127.0.0.1", "--tablePort", &address.port().to_string()])
            .args(["--inMemoryPersistence", "--silent", "--disableTelemetry"])
            .current_dir(directory)
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start Azurite")?;
        let connection =
            format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT}");
        let azurite = Self { process, address, connection };
        let begin = Instant::now();
        while Connection::open(address).is_err() {
            if begin.elapsed() > READY_WAIT {
                bail!("Azurite does not listen at {address} after {READY_WAIT:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(azurite)
    }

    /// Its process.
    pub fn process(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

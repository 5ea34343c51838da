//! What experiments on a real server share: how the server is built, how it is started again, and how a run is judged.

use std::time::Duration;

use anyhow::{Result, bail};
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::Profile;

/// Partition servers of a process, where an experiment needs several.
pub(crate) const SERVERS: usize = 4;
/// Memory beyond `--memory` that a process may hold, in MiB.
const MEMORY_SLACK_MIB: u64 = 150;

/// Which build of the program is measured.
#[derive(clap::Args, Debug)]
pub(crate) struct Build {
    /// Build and measure the release profile, which takes minutes to build.
    #[arg(long)]
    release: bool,
    /// More arguments for our server, for example `--memory=2GiB`.
    #[arg(long, allow_hyphen_values = true)]
    with: Vec<String>,
}

impl Build {
    /// Builds the program, and sets up a server with these arguments on an empty directory.
    pub(crate) fn setup(&self, experiment: &str, arguments: &[&str]) -> Result<Setup> {
        let profile = if self.release { Profile::Release } else { Profile::Dev };
        let more = self.with.iter().map(String::as_str);
        Setup::fresh(profile, experiment, &arguments.iter().copied().chain(more).collect::<Vec<_>>())
    }

    /// The same with [`SERVERS`] partition servers, whose ranges change only when that is asked for.
    pub(crate) fn unmanaged(&self, experiment: &str) -> Result<Setup> {
        self.setup(experiment, &["--servers", &SERVERS.to_string(), "--manager", "off"])
    }
}

/// What a run missed, in words.
#[derive(Default)]
pub(crate) struct Missed(Vec<String>);

impl Missed {
    /// Notes a miss if it is one.
    pub(crate) fn note(&mut self, is_missed: bool, what: impl FnOnce() -> String) {
        self.0.extend(is_missed.then(what));
    }

    /// Notes a process that held more memory than it was allowed with `--memory`.
    pub(crate) fn memory(&mut self, held_mib: u64, allowed_mib: u64) {
        let is_missed = held_mib > allowed_mib + MEMORY_SLACK_MIB;
        self.note(is_missed, || format!("memory above --memory and {MEMORY_SLACK_MIB} MiB"));
    }

    /// Prints how soon the server was ready after a stop and after a kill, and notes if either took too long.
    pub(crate) fn starts(&mut self, after_stop: Duration, after_kill: Duration, most: Duration) {
        println!("ready after a stop {after_stop:.1?}, after kill -9 {after_kill:.1?}");
        let longest = after_stop.max(after_kill);
        self.note(longest > most, || format!("ready only after {longest:.1?}"));
    }

    /// An error that names everything that was missed, if anything was.
    pub(crate) fn conclude(self, experiment: &str) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { bail!("{experiment}: {}", self.0.join("; ")) }
    }
}

/// Ends the server as an operator does, and starts it again.
pub(crate) fn stop_and_start(server: Server, setup: &Setup) -> Result<Server> {
    server.stop()?;
    Server::start(setup)
}

/// Ends the server by `kill -9`, and starts it again.
pub(crate) fn kill_and_start(server: Server, setup: &Setup) -> Result<Server> {
    server.kill()?;
    Server::start(setup)
}

/// Raises the limit of open files of this process, which opens thousands of connections.
pub(crate) fn allow_many_connections() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let given = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: given.maximum, maximum: given.maximum })?;
    Ok(())
}

/// Whole mebibytes.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// The median of some times, of which there is at least one.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

//! `cargo xtask cloud`: does `--profile cloud` behave as the cloud's documents say?
//!
//! Three runs, each on a server of its own with four partition servers:
//!
//! 1. **Targets.** Writers put batches into one partition as fast as the server lets them. At the same time, on the
//!    same partition server, a quiet client reads and writes single entities. Once the burst credit is spent, the hot
//!    partition must get its target of 2,000 entities a second and be answered 503 `ServerBusy` for the rest. The
//!    quiet client must be served as if nothing was wrong: not refused, and hardly slower.
//! 2. **Spreading.** A table gets entities under GUIDs, more than a range is meant to bear: it must come to lie on
//!    all servers, in the time that follows from the profile's numbers ([`within`]).
//! 3. **Append.** A table gets entities under keys that only grow, more than a range is meant to bear: its verdict
//!    must say why it is not split, and it must not be, then or when it has been judged again.

mod append;
mod jobs;
mod observe;
mod spreading;
mod targets;
mod within;

use std::time::Duration;

use anyhow::Result;
use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use crate::bench::{Build, SERVERS};
use rangehold_testkit::server::Server;

/// Measures the cloud profile.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Seconds in which the quiet client is measured, first alone and then next to the hot one.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Minutes for which the append goes on after its verdict; by default, until it has been judged again if
    /// the verdict falls. The verdict ends by itself after half an hour.
    #[arg(long)]
    minutes_after: Option<u64>,
    /// Only the run whose name contains this: `targets`, `spreading` or `append`.
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    build: Build,
}

/// Runs them one after the other; an error names what was not as it must be.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let on_a_server = |name: &str, trial: &dyn Fn(&Server) -> Result<()>| {
        if !wanted(name) {
            return Ok(());
        }
        let servers = SERVERS.to_string();
        let words = ["--profile", "cloud", "--servers", &servers];
        let setup = arguments.build.setup(&format!("cloud-{name}"), &words)?;
        let server = Server::start(&setup)?;
        trial(&server)?;
        server.stop()
    };
    let (load, plan) = (LoadPolicy::cloud(), Policy::cloud());
    let minutes = |minutes| Duration::from_secs(minutes * 60);
    let after = arguments.minutes_after.map_or_else(|| within::judged_again(&load, &plan), minutes);
    let within = within::spread(&load, &plan, SERVERS);
    on_a_server("targets", &|server| targets::run(server, arguments.seconds))?;
    on_a_server("spreading", &|server| spreading::run(server, &load, within))?;
    on_a_server("append", &|server| append::run(server, &load, after))
}

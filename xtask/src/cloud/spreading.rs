//! A table with GUIDs spreads over all servers.

use std::time::Duration;

use anyhow::{Result, bail};
use rand::RngExt;
use rand::rngs::StdRng;

use super::SERVERS;
use super::observe::observe;
use crate::server::{Server, Setup};

/// What each writer pauses from batch to batch: the table gets about 5,000 entities a second, so that halves of
/// its halves are too hot as well.
const PACE: Duration = Duration::from_millis(8);

/// A table whose PartitionKeys are GUIDs must come to lie on all servers in time.
pub(super) fn run(server: &Server, setup: &Setup, within: Duration) -> Result<()> {
    let key = |random: &mut StdRng| format!("{:032x}", random.random::<u128>());
    let seen = observe(server, setup, (PACE, &key), |seen| {
        if seen.servers.len() < SERVERS && seen.after > within {
            bail!("spreading: after {within:?} GUIDs are on {} of {SERVERS} servers", seen.servers.len());
        }
        Ok(seen.servers.len() == SERVERS)
    })?;
    println!("GUIDs are on all {SERVERS} servers after {:.0} s of {within:?}", seen.after.as_secs_f64());
    Ok(())
}

//! A table with GUIDs spreads over all servers.

use std::time::Duration;

use anyhow::{Result, bail};
use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_map::load::LoadPolicy;

use super::observe::{Writing, observe};
use crate::bench::SERVERS;
use rangehold_testkit::server::Server;

/// The table gets about 5,000 entities a second, so that its halves are too hot as well; in few requests, which a
/// busy machine bears too.
const WRITING: Writing = Writing { batch: 25, pace: Duration::from_millis(20) };

/// A table whose PartitionKeys are GUIDs must come to lie on all servers in time.
pub(super) fn run(server: &Server, load: &LoadPolicy, within: Duration) -> Result<()> {
    let key = |random: &mut StdRng| format!("{:032x}", random.random::<u128>());
    let seen = observe(server, &WRITING, &key, |seen| {
        let servers = seen.servers.len();
        if servers < SERVERS && seen.after > within {
            // Below that the halves are not hot, and are not split.
            let least = load.cap * load.hot_share * SERVERS as f64 / 2.0;
            bail!(
                "spreading: after {within:?} GUIDs are on {servers} of {SERVERS} servers, at {:.0} entities a \
                 second; it takes more than {least:.0} to need all",
                seen.rate()
            );
        }
        Ok(servers == SERVERS)
    })?;
    println!("GUIDs are on all {SERVERS} servers after {:.0} s of {within:?}", seen.after.as_secs_f64());
    Ok(())
}

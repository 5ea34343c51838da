//! `cargo xtask crash`: breaks the service in every way that it promises to survive.
//!
//! Each test starts a real server process, loads it with eight writers (see [`rangehold_testkit::load`]), breaks
//! something, and compares what the service then holds with what it had acknowledged.
//!
//! - [`kill`]: `kill -9` at random moments.
//! - [`objects`]: the same with uploads, copies, compositions and deletions of objects.
//! - [`changes`]: the process ends between any two steps of a split, a merge or a move.
//! - [`power`]: the power fails; what was not synced is lost, reordered or torn.
//! - [`damage`]: a synced file goes bad.
//! - [`disk_full`]: the disk fills up, and has room again.
//! - [`clock`]: the wall clock steps back by an hour.
//! - [`hour`]: an hour of kills, stops, changes, walks and backups at once.

mod changes;
mod clock;
mod damage;
mod disk_full;
mod hour;
mod kill;
mod objects;

use std::time::Duration;

use anyhow::{Result, bail};

use crate::power;
use rangehold_testkit::load::{Counts, Finding, Kind, Load};
use rangehold_testkit::server::Server;

/// Findings that are printed in full; the rest is counted.
const FINDINGS_PRINTED_MAX: usize = 20;

/// Kills the server under load and checks that nothing it acknowledged is lost.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How often the server is killed.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Seed of all choices; the same seed makes the same operations and the same choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kill the server while objects are written.
    #[arg(long, group = "kind")]
    objects: bool,
    /// End the server after each step of a split, a merge and a move of ranges.
    #[arg(long, group = "kind")]
    changes: bool,
    /// Record the server's file operations, and rebuild the disk as power losses would leave it.
    #[arg(long, group = "kind")]
    power: bool,
    /// The same, with a server to which objects are written.
    #[arg(long, group = "kind")]
    power_objects: bool,
    /// With --power and --power-objects: how many moments are tried.
    #[arg(long, default_value_t = 200)]
    points: u32,
    /// With --power: how long each of the three recorded servers writes at least, in seconds. From 150 on
    /// compaction and garbage collection are in the record.
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// With --power and --power-objects: the server does not sync, and the test must find losses, or it fails.
    #[arg(long)]
    no_fsync: bool,
    /// Flip bits in files of a stopped server: it must refuse by name, or answer rightly.
    #[arg(long, group = "kind")]
    damage: bool,
    /// Fill a small disk under the server. Mounts a tmpfs, so it needs root.
    #[arg(long, group = "kind")]
    disk_full: bool,
    /// Step the server's wall clock back by an hour. Needs libfaketime.
    #[arg(long, group = "kind")]
    clock: bool,
    /// Everything at once: kills, stops of the process, changes of ranges, listings and backups under load.
    #[arg(long, group = "kind")]
    hour: bool,
    /// With --hour: how long it takes. Of everything there is as much as the time allows. Growth is judged from 20
    /// minutes on.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
}

/// Runs the test that the arguments name.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let &Arguments { rounds, seed, points, no_fsync, .. } = arguments;
    if arguments.power {
        power::run(seed, points, !no_fsync, Duration::from_secs(arguments.seconds))
    } else if arguments.power_objects {
        power::run_objects(seed, points, !no_fsync)
    } else if arguments.objects {
        objects::run(rounds, seed)
    } else if arguments.changes {
        changes::run(seed)
    } else if arguments.damage {
        damage::run(seed)
    } else if arguments.disk_full {
        disk_full::run(seed)
    } else if arguments.clock {
        clock::run(seed)
    } else if arguments.hour {
        hour::run(arguments.minutes, seed)
    } else {
        kill::run(rounds, seed)
    }
}

/// Compares what the service holds with what it acknowledged, and looks for rules that its map breaks.
fn compare(load: &mut Load, server: &Server) -> Result<Vec<Finding>> {
    let broken = server.admin_client()?.check()?.into_iter().map(|what| Finding::new(Kind::Wrong, what));
    Ok(load.check(server.address)?.into_iter().chain(broken).collect())
}

/// Prints the first findings.
fn print_findings(findings: &[Finding]) {
    for finding in findings.iter().take(FINDINGS_PRINTED_MAX) {
        println!("  FOUND {finding}");
    }
}

/// Prints findings and their counts; an error when there are any.
pub(crate) fn conclude(what: &str, counts: &Counts, findings: &[Finding]) -> Result<()> {
    println!(
        "{what}: acknowledged {} ({} changes of one entity, {} of them deletes; {} batches; {} tables made or deleted)",
        counts.acknowledged(),
        counts.changes,
        counts.deletes,
        counts.batches,
        counts.tables,
    );
    println!(
        "  unanswered: {} turned out applied, {} not; answered 503: {}, 500: {}",
        counts.unknown_applied, counts.unknown_dropped, counts.busy, counts.failed
    );
    print_findings(findings);
    let numbers: Vec<String> = Kind::ALL
        .iter()
        .map(|kind| {
            format!("{} {}", findings.iter().filter(|finding| finding.kind == *kind).count(), kind.label())
        })
        .collect();
    println!("  {}", numbers.join(", "));
    if findings.is_empty() { Ok(()) } else { bail!("{what}: {} promises were broken", findings.len()) }
}

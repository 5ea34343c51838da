//! `cargo xtask neighbours`: what greedy clients cost a quiet one.
//!
//! One server with two accounts. A quiet client of one account reads and writes, first alone and then beside each
//! attacker of the other account, and at the end beside all of them. No request of the quiet client may be refused,
//! and its 99th percentile may be five times that of the quiet client alone, or 20 ms if that is more. The
//! memory of the process may be `--memory` and 100 MiB. Then clients send large batches alone: 64 of them must get at
//! least 0.8 of what 24 get.

mod attackers;
mod quiet;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use rangehold_testkit::client::Client;
use rangehold_testkit::server::Server;
use rangehold_testkit::sign::{ACCOUNT, KEY};

use self::attackers::{Answers, Attacker};
use self::quiet::{Kind, Met};
use crate::bench::{Build, allow_many_connections};

/// How much slower the quiet client may become.
const SLOWER_MAX: f64 = 5.0;
/// A time that is always allowed.
const ALLOWED: Duration = Duration::from_millis(20);
/// Memory beyond `--memory` that the process may hold, in MiB.
const MEMORY_SLACK_MIB: u64 = 100;
/// Clients that send large batches: a few, and many.
const BATCH_CLIENTS: [usize; 2] = [24, 64];
/// The part of what the few get that the many must get at least.
const MANY_OF_FEW_MIN: f64 = 0.8;
/// The time for an attacker to get hold of what it can, before the quiet client is measured.
const BEGIN: Duration = Duration::from_secs(3);

/// Measures a quiet client beside greedy ones.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Seconds for which the quiet client is measured beside each attacker.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// What the server gets as --memory, in MiB.
    #[arg(long, default_value_t = 512)]
    memory_mib: u64,
    /// Only the attacker whose name contains this.
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    build: Build,
}

/// Measures, and prints a table; an error names what is beyond its limit.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    allow_many_connections()?;
    let memory = format!("{}MiB", arguments.memory_mib);
    let accounts = format!("{ACCOUNT}:{KEY};{}:{}", attackers::ACCOUNT, attackers::KEY);
    let words = ["--memory", &memory, "--accounts", &accounts];
    let server = Server::start(&arguments.build.setup("neighbours", &words)?)?;
    let mut quiet = server.client();
    quiet::prepare(&mut quiet)?;
    attackers::prepare(server.address)?;

    println!(
        "{:<40} {:<12} {:>8} {:>8} {:>9} {:>8}",
        "beside", "request", "p50", "p99", "requests", "refused"
    );
    let time = Duration::from_secs(arguments.seconds);
    let alone = quiet::measure(&mut quiet, time)?;
    show("nobody", &alone);
    let mut beyond = Vec::new();
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let each = Attacker::ALL.map(|attacker| (attacker.name(), vec![attacker]));
    for (name, attackers) in each.into_iter().chain([("all of them", Attacker::ALL.to_vec())]) {
        if !wanted(name) {
            continue;
        }
        let met = beside(&server, &attackers, &mut quiet, time)?;
        show(name, &met);
        beyond.extend(Kind::ALL.into_iter().filter_map(|kind| judge(name, kind, &alone, &met)));
    }
    if wanted("large batches") {
        beyond.extend(large_batches(server.address, time));
    }
    let peak = server.peak_bytes()? >> 20;
    println!("peak memory {peak} MiB, with --memory {}MiB", arguments.memory_mib);
    if peak > arguments.memory_mib + MEMORY_SLACK_MIB {
        beyond.push(format!("{peak} MiB of memory with --memory {}MiB", arguments.memory_mib));
    }
    server.stop()?;
    if beyond.is_empty() { Ok(()) } else { bail!("neighbours: {}", beyond.join("; ")) }
}

/// Measures the quiet client while attackers do what they do.
fn beside(server: &Server, attackers: &[Attacker], quiet: &mut Client, time: Duration) -> Result<Met> {
    let (stop, address) = (AtomicBool::new(false), server.address);
    thread::scope(|scope| {
        let stop = &stop;
        for attacker in attackers {
            scope.spawn(move || attacker.attack(address, stop));
        }
        thread::sleep(BEGIN);
        let met = quiet::measure(quiet, time);
        stop.store(true, Ordering::Relaxed);
        met
    })
}

/// Whether more clients get less: what is wrong, in words.
fn large_batches(address: SocketAddr, time: Duration) -> Option<String> {
    let [few, many] = BATCH_CLIENTS.map(|clients| {
        let Answers { done, refused } = attackers::batches(address, clients, time);
        let rate = done as f64 / time.as_secs_f64();
        println!("{clients} clients with large batches: {rate:.1} batches/s, {refused} refused");
        rate
    });
    (many < few * MANY_OF_FEW_MIN)
        .then(|| format!("{many:.1} large batches/s, and {few:.1} with fewer clients"))
}

fn show(beside: &str, met: &Met) {
    for kind in Kind::ALL {
        let (p50, p99) = (met.percentile(kind, 50), met.percentile(kind, 99));
        let (answered, refused, kind) = (met.answered(kind), met.refused(kind), kind.label());
        println!("{beside:<40} {kind:<12} {p50:>8.1?} {p99:>8.1?} {answered:>9} {refused:>8}");
    }
}

/// What is wrong with the requests of one kind beside an attacker.
fn judge(beside: &str, kind: Kind, alone: &Met, met: &Met) -> Option<String> {
    let (p99, limit) =
        (met.percentile(kind, 99), alone.percentile(kind, 99).mul_f64(SLOWER_MAX).max(ALLOWED));
    let (refused, label) = (met.refused(kind), kind.label());
    if refused > 0 {
        Some(format!("{refused} refusals of a {label} beside {beside}"))
    } else if p99 > limit {
        Some(format!("{p99:.1?} for a {label} beside {beside}"))
    } else {
        None
    }
}

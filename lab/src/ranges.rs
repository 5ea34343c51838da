//! `cargo xtask ranges`: what a thousand ranges in one process cost.
//!
//! A table is cut by the admin API while it is empty; then each range gets rows. Three things are measured: the most
//! memory that a process ever holds; the processor time that it uses while there are no requests, without its manager
//! and with it; and how soon it is ready again, after an orderly stop and after `kill -9`.
//!
//! The manager would merge many cold ranges into one, but only after it has seen them for ten minutes. The measurement
//! ends before that, and all ranges must still be there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rangehold_map::load::LoadPolicy;
use serde_json::Map;

use rangehold_testkit::client::{self, Admin, Change, Client, Step, in_parallel, must};
use rangehold_testkit::load::TABLE;
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::{self, Profile};

/// Partition servers.
const SERVERS: u64 = 4;
/// Changes at once while ranges are made: as many as the server takes.
const CHANGERS: u64 = 16;
/// Clients that write.
const WRITERS: u64 = 8;
/// Bytes of text in a row.
const TEXT_BYTES: usize = 300;
/// Memory beyond `--memory` that the process may hold, in MiB.
const MEMORY_SLACK_MIB: u64 = 150;
/// Part of a core that the idle process may use.
const IDLE_MAX: f64 = 0.01;
/// Longest time until it is ready.
const READY_MAX: Duration = Duration::from_secs(5);

/// Makes and writes many ranges; measures memory, idle processor time, and starts.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Ranges with rows.
    #[arg(long, default_value_t = 1_000)]
    ranges: u64,
    /// Rows of each, written as one batch.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    rows: u64,
    /// What the server gets as --memory, in MiB.
    #[arg(long, default_value_t = 512)]
    memory_mib: u64,
    /// Seconds after the writes that are left to housekeeping, before idle time is measured. It begins after two
    /// minutes, and takes the ranges one after the other.
    #[arg(long, default_value_t = 600)]
    settle: u64,
    /// Seconds after the next start that are left to housekeeping, before idle time is measured with the manager.
    #[arg(long, default_value_t = 300)]
    rest: u64,
    /// Seconds over which idle time is measured.
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// Build and measure the release profile, which takes minutes to build.
    #[arg(long)]
    release: bool,
}

/// What was measured.
struct Seen {
    /// The most memory that each process held at any time: the one that made the ranges, the one that was killed,
    /// and the one that came after it.
    peaks: [u64; 3],
    /// Memory held while there were no requests, and the part of a core that was used then, without the manager and
    /// with it.
    settled: u64,
    idle: [f64; 2],
    /// Ranges when all had rows, and after the manager was at work.
    ranges: [usize; 2],
    after_stop: Duration,
    after_kill: Duration,
}

/// Makes the ranges and measures; an error names what is beyond its limit.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Until a range's peak is known nothing is merged.
    let merges_after = LoadPolicy::fast().peak_for.as_secs();
    if arguments.rest + arguments.idle >= merges_after {
        bail!("--rest and --idle are {merges_after} s or more, after which the manager merges cold ranges");
    }
    let program = workspace::program(if arguments.release { Profile::Release } else { Profile::Dev })?;
    let directory = workspace::scratch("ranges")?;
    let mut setup = Setup::new(&program, &directory.join("data"), &directory.join("server.log"));
    let memory = format!("{}MiB", arguments.memory_mib);
    let words = ["--servers", &SERVERS.to_string(), "--memory", &memory];
    setup.arguments = words.map(str::to_owned).to_vec();
    conclude(&measure(arguments, &setup)?, arguments)
}

fn measure(arguments: &Arguments, setup: &Setup) -> Result<Seen> {
    let idle_time = Duration::from_secs(arguments.idle);
    // While ranges are made, and until housekeeping is done with them, they must not be merged.
    let mut unmanaged = setup.clone();
    unmanaged.arguments.extend(["--manager", "off"].map(str::to_owned));
    let server = Server::start(&unmanaged)?;
    let made = make(&server, setup, arguments.ranges)?;
    let begin = Instant::now();
    write(&server, arguments)?;
    println!("{} ranges written in {:.0} s", arguments.ranges, begin.elapsed().as_secs_f64());
    thread::sleep(Duration::from_secs(arguments.settle));
    let idle_unmanaged = idle(&server, idle_time)?;
    let (settled, peak_made) = (server.resident_bytes()?, server.peak_bytes()?);
    server.stop()?;
    let server = Server::start(setup)?;
    let after_stop = server.start_time;
    thread::sleep(Duration::from_secs(arguments.rest));
    let idle_managed = idle(&server, idle_time)?;
    let left = Admin::new(server.admin, &setup.data)?.map()?.len();
    // This puts something into the log of every range.
    write(&server, arguments)?;
    let peak_killed = server.peak_bytes()?;
    server.kill()?;
    let server = Server::start(setup)?;
    let after_kill = server.start_time;
    let peak_recovered = server.peak_bytes()?;
    server.stop()?;
    Ok(Seen {
        peaks: [peak_made, peak_killed, peak_recovered],
        settled,
        idle: [idle_unmanaged, idle_managed],
        ranges: [made, left],
        after_stop,
        after_kill,
    })
}

/// Prints the figures; an error names what is beyond its limit.
fn conclude(seen: &Seen, arguments: &Arguments) -> Result<()> {
    let mib = |bytes: u64| bytes >> 20;
    let [made, killed, recovered] = seen.peaks.map(mib);
    println!(
        "most memory ever held, with --memory {} MiB: {made} MiB by the process that made the ranges ({} when idle), \
         {killed} by the one that was killed, {recovered} by the one after it",
        arguments.memory_mib,
        mib(seen.settled)
    );
    let idle = seen.idle.map(|share| format!("{:.2} %", share * 100.0));
    println!(
        "idle, over {} s: {} of a core without the manager, {} with it",
        arguments.idle, idle[0], idle[1]
    );
    println!("ready after a stop {:.1?}, after kill -9 {:.1?}", seen.after_stop, seen.after_kill);
    println!("{} ranges, and {} when idle time with the manager was over", seen.ranges[0], seen.ranges[1]);
    let mut beyond = Vec::new();
    if made.max(killed).max(recovered) > arguments.memory_mib + MEMORY_SLACK_MIB {
        beyond.push(format!("memory above --memory and {MEMORY_SLACK_MIB} MiB"));
    }
    for (share, words) in seen.idle.iter().zip(&idle) {
        if *share > IDLE_MAX {
            beyond.push(format!("idle with {words} of a core"));
        }
    }
    if seen.after_stop.max(seen.after_kill) > READY_MAX {
        beyond.push(format!("ready only after {:.1?}", seen.after_stop.max(seen.after_kill)));
    }
    if seen.ranges.iter().any(|ranges| (*ranges as u64) < arguments.ranges)
        || seen.ranges[0] != seen.ranges[1]
    {
        beyond.push(format!("{} ranges, not the {} that were made", seen.ranges[1], seen.ranges[0]));
    }
    if beyond.is_empty() { Ok(()) } else { bail!("ranges: {}", beyond.join("; ")) }
}

/// The partition that is a range of its own.
fn partition(number: u64) -> String {
    format!("p{number:06}")
}

/// Cuts the empty table, and gives each server a part of it. Returns how many ranges there are then.
fn make(server: &Server, setup: &Setup, ranges: u64) -> Result<usize> {
    let begin = Instant::now();
    let mut client = Client::new(server.address, client::Credential::SharedKey);
    must(&mut client, client::create_table(TABLE), 204)?;
    let admin = Admin::new(server.admin, &setup.data)?;
    // First a range for each changer, on the servers in turn: what is cut off stays where it is.
    let block = ranges.div_ceil(CHANGERS);
    for changer in 0..CHANGERS.min(ranges.div_ceil(block)) {
        let halves = admin
            .change_patiently(&Change::Split { at: format!("{TABLE}/{}", partition(changer * block)) })?;
        let to = format!("s{}", changer % SERVERS + 1);
        let range = halves.ranges.last().context("a split without ranges")?.clone();
        let entry = admin.map()?.into_iter().find(|entry| entry.range == range);
        if entry.is_some_and(|entry| entry.server != to) {
            admin.change_patiently(&Change::Move { range, to })?;
        }
    }
    thread::scope(|scope| {
        let working: Vec<_> = (0..CHANGERS)
            .map(|changer| {
                scope.spawn(move || {
                    let admin = Admin::new(server.admin, &setup.data)?;
                    let end = ranges.min((changer + 1) * block);
                    (changer * block + 1..end).try_for_each(|number| {
                        let at = format!("{TABLE}/{}", partition(number));
                        admin.change_patiently(&Change::Split { at }).map(drop)
                    })
                })
            })
            .collect();
        working.into_iter().try_for_each(|work| work.join().expect("changers do not panic"))
    })?;
    let made = admin.map()?.len();
    println!("{made} ranges made in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(made)
}

/// Writes rows into every range.
fn write(server: &Server, arguments: &Arguments) -> Result<()> {
    let next = AtomicU64::new(0);
    in_parallel(WRITERS, server.address, |client| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.ranges {
                return Ok(());
            }
            let partition = partition(number);
            let rows: Vec<_> = (0..arguments.rows)
                .map(|index| {
                    let row = Map::from_iter([("s".to_owned(), "x".repeat(TEXT_BYTES).into())]);
                    client::change(Step::Upsert, TABLE, (&partition, &format!("{index:06}")), &row, "*")
                })
                .collect();
            must(client, client::batch(&rows), 202)?;
        }
    })
}

/// The part of a core that the process uses.
fn idle(server: &Server, within: Duration) -> Result<f64> {
    let before = server.processor_time()?;
    thread::sleep(within);
    Ok((server.processor_time()? - before).as_secs_f64() / within.as_secs_f64())
}

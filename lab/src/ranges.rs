//! `cargo xtask ranges`: what a thousand ranges in one process cost.
//!
//! A table is cut by the admin API while it is empty; then each range gets rows. Three things are measured: the most
//! memory that a process ever holds; the processor time that it uses while there are no requests, without its manager
//! and with it; and how soon it is ready again, after an orderly stop and after `kill -9`.
//!
//! The manager would merge many cold ranges into one, but only after it has seen them for ten minutes. The measurement
//! ends before that, and all ranges must still be there.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rangehold_map::load::LoadPolicy;

use crate::bench::{Build, Missed, SERVERS, kill_and_start, mib, stop_and_start};
use rangehold_testkit::client::{self, Change, Step, must, send_all};
use rangehold_testkit::load::TABLE;
use rangehold_testkit::server::{Server, Setup};

/// Changes at once while ranges are made: as many as the server takes.
const CHANGERS: u64 = 16;
/// Clients that write.
const WRITERS: usize = 8;
/// Bytes of text in a row.
const TEXT_BYTES: usize = 300;
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
    #[command(flatten)]
    build: Build,
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
    let memory = format!("{}MiB", arguments.memory_mib);
    let setup = arguments.build.setup("ranges", &["--servers", &SERVERS.to_string(), "--memory", &memory])?;
    conclude(&measure(arguments, &setup)?, arguments)
}

fn measure(arguments: &Arguments, setup: &Setup) -> Result<Seen> {
    let idle_time = Duration::from_secs(arguments.idle);
    // While ranges are made, and until housekeeping is done with them, they must not be merged.
    let mut unmanaged = setup.clone();
    unmanaged.arguments.extend(["--manager", "off"].map(str::to_owned));
    let server = Server::start(&unmanaged)?;
    let made = make(&server, arguments.ranges)?;
    let begin = Instant::now();
    write(&server, arguments)?;
    println!("{} ranges written in {:.0} s", arguments.ranges, begin.elapsed().as_secs_f64());
    thread::sleep(Duration::from_secs(arguments.settle));
    let idle_unmanaged = idle(&server, idle_time)?;
    let (settled, peak_made) = (server.resident_bytes()?, server.peak_bytes()?);
    let server = stop_and_start(server, setup)?;
    let after_stop = server.start_time;
    thread::sleep(Duration::from_secs(arguments.rest));
    let idle_managed = idle(&server, idle_time)?;
    let left = server.admin_client()?.map()?.len();
    // This puts something into the log of every range.
    write(&server, arguments)?;
    let peak_killed = server.peak_bytes()?;
    let server = kill_and_start(server, setup)?;
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
    let mut missed = Missed::default();
    missed.memory(made.max(killed).max(recovered), arguments.memory_mib);
    for (share, words) in seen.idle.iter().zip(&idle) {
        missed.note(*share > IDLE_MAX, || format!("idle with {words} of a core"));
    }
    missed.starts(seen.after_stop, seen.after_kill, READY_MAX);
    println!("{} ranges, and {} when idle time with the manager was over", seen.ranges[0], seen.ranges[1]);
    let [made, left] = seen.ranges;
    let is_missed = (made.min(left) as u64) < arguments.ranges || made != left;
    missed.note(is_missed, || format!("{left} ranges, not the {made} that were made"));
    missed.conclude("ranges")
}

/// The partition that is a range of its own.
fn partition(number: u64) -> String {
    format!("p{number:06}")
}

/// Cuts the empty table, and gives each server a part of it. Returns how many ranges there are then.
fn make(server: &Server, ranges: u64) -> Result<usize> {
    let begin = Instant::now();
    must(&mut server.client(), client::create_table(TABLE), 204)?;
    let admin = server.admin_client()?;
    // First a range for each changer, on the servers in turn: what is cut off stays where it is.
    let block = ranges.div_ceil(CHANGERS);
    for changer in 0..CHANGERS.min(ranges.div_ceil(block)) {
        let halves = admin
            .change_patiently(&Change::Split { at: format!("{TABLE}/{}", partition(changer * block)) })?;
        let to = format!("s{}", changer % SERVERS as u64 + 1);
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
                    let admin = server.admin_client()?;
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
    let row = client::row([("s", "x".repeat(TEXT_BYTES).into())]);
    let batch = |number| {
        let partition = partition(number);
        let rows = (0..arguments.rows).map(|index| {
            client::change(Step::Upsert, TABLE, (&partition, &format!("{index:06}")), &row, "*")
        });
        client::batch(&rows.collect::<Vec<_>>())
    };
    send_all(WRITERS, server.address, (0..arguments.ranges).map(batch), 202)
}

/// The part of a core that the process uses.
fn idle(server: &Server, within: Duration) -> Result<f64> {
    let before = server.processor_time()?;
    thread::sleep(within);
    Ok((server.processor_time()? - before).as_secs_f64() / within.as_secs_f64())
}

//! `cargo xtask space`: do splits and merges give their space back?
//!
//! A split copies nothing: both halves read the parent's files, which can go only when both have files of their own.
//! Here ranges with data are split, merged and moved while writers are at work. Then there are no more requests, and
//! the data directory must shrink: to at most 1.3 times the *live data*, without a directory or a change record of a
//! range that is gone, and with few versions of the map. Live data is the size of the same rows in a store that
//! `rangehold copy` has just made of them: written once, in order. Both are counted in blocks of the disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bench::Build;
use crate::handoff::changes::Changer;
use crate::handoff::slot::{self, SLOTS};
use rangehold_testkit::client::{self, Admin, Step, send_all};
use rangehold_testkit::load::{Load, Shape, TABLE, Writer};
use rangehold_testkit::server::Server;
use rangehold_testkit::workspace;

/// What the directory may take, in parts of the live data.
const RATIO_MAX: f64 = 1.3;
/// How long it may take to get there.
const WITHIN: Duration = Duration::from_secs(600);
/// How often it is looked at.
const POLL: Duration = Duration::from_secs(5);
/// After so many looks, what was seen is printed.
const PRINTED_EVERY: u32 = 6;
/// Versions of the map that may be left.
const MAPS_MAX: usize = 64;
/// Entities of one batch, and bytes of text in one entity.
const BATCH: usize = 100;
const TEXT_BYTES: usize = 400;
/// Rest of a writer between two operations; so short that every change meets writes.
const PACE: Duration = Duration::from_millis(5);

/// Splits, merges and moves ranges, and waits until the space that this took is given back.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Rounds; each is a split, a merge and a move.
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// Batches of 100 entities in each of the table's 64 partitions.
    #[arg(long, default_value_t = 5)]
    batches: usize,
    /// Seed of all choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    build: Build,
}

/// What lies in the data directory.
struct Found {
    bytes: u64,
    /// Directories of ranges that the map does not name.
    dead: usize,
    /// Change records of ranges that the map does not name.
    records: usize,
    maps: usize,
}

/// Makes the changes and waits; an error when the space did not come back in time.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.build.unmanaged("space")?;
    let server = Server::start(&setup)?;
    let writers = (0..SLOTS).map(|slot| writer(slot, arguments.seed)).collect();
    let mut load = Load { pace: PACE, ..Load::of(writers) };
    load.prepare(server.address)?;
    fill(&server, arguments)?;
    let mut changer = Changer::new(server.admin_client()?, arguments.seed);
    changer.prepare()?;
    change(&mut load, &mut changer, &server, arguments.rounds)?;
    let begin = Instant::now();
    let mut observed = load.observe(server.address)?;
    observed.strangers.retain(|stranger| !stranger.contains(", bulk-"));
    if let Some(finding) = load.settle(&observed).first() {
        bail!("after the changes: {finding}");
    }
    let copy = setup.beside("copy");
    workspace::run(
        Command::new(&setup.program).arg("copy").arg("--from").arg(&setup.data).arg("--to").arg(&copy),
    )?;
    let live = workspace::bytes_on_disk(&copy)?;
    fs::remove_dir_all(&copy)?;
    let admin = server.admin_client()?;
    shrink(&admin, &setup.data, live, begin)?;
    server.stop()
}

fn writer(slot: usize, seed: u64) -> Writer {
    let shape = Shape { partitions: slot::partitions(slot), tables: false, ..Shape::default() };
    Writer::new(slot, seed, shape, false)
}

/// Inserts text that no compression shrinks to nothing.
fn fill(server: &Server, arguments: &Arguments) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(arguments.seed);
    let partitions = (0..SLOTS).flat_map(slot::partitions);
    let places = partitions
        .flat_map(|partition| (0..arguments.batches).map(move |batch| (partition.clone(), batch * BATCH)));
    let batches = places.map(|(partition, first)| {
        let inserts = (first..first + BATCH).map(|index| {
            let text: String = (0..TEXT_BYTES).map(|_| rng.random_range(b'!'..=b'~') as char).collect();
            let row = client::row([("s", text.into())]);
            client::change(Step::Insert, TABLE, (&partition, &format!("bulk-{index:06}")), &row, "*")
        });
        client::batch(&inserts.collect::<Vec<_>>())
    });
    send_all(1, server.address, batches, 202)
}

/// All rounds, while the writers are at work.
fn change(load: &mut Load, changer: &mut Changer, server: &Server, rounds: u32) -> Result<()> {
    let begin = Instant::now();
    load.run_while(server.address, || {
        (0..rounds).try_for_each(|round| changer.round(round as usize % SLOTS, round / SLOTS as u32))
    })?;
    println!("{} changes in {:.0} s", changer.made.len(), begin.elapsed().as_secs_f64());
    Ok(())
}

/// Waits until all is as it must be.
fn shrink(admin: &Admin, data: &Path, live: u64, begin: Instant) -> Result<()> {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut polls = 0;
    loop {
        let found = look(admin, data)?;
        let ratio = found.bytes as f64 / live as f64;
        let after = begin.elapsed().as_secs();
        let well = ratio <= RATIO_MAX && found.dead == 0 && found.records == 0 && found.maps <= MAPS_MAX;
        if well || polls % PRINTED_EVERY == 0 || begin.elapsed() > WITHIN {
            println!(
                "after {after:>4} s: {:.1} MiB, {ratio:.2} times the {:.1} MiB of live data; of ranges that are \
                 gone {} directories and the change records of {}; {} versions of the map",
                mib(found.bytes),
                mib(live),
                found.dead,
                found.records,
                found.maps
            );
        }
        if well {
            println!("the space was back after {after} s");
            return Ok(());
        }
        if begin.elapsed() > WITHIN {
            bail!("space: not back after {} s", WITHIN.as_secs());
        }
        polls += 1;
        thread::sleep(POLL);
    }
}

fn look(admin: &Admin, data: &Path) -> Result<Found> {
    let databases = names(&data.join("ranges"))?;
    let recorded = names(&data.join("changes"))?;
    let map = admin.map()?;
    let living: BTreeSet<&str> = map.iter().map(|entry| entry.database.as_str()).collect();
    let ranges: BTreeSet<&str> = map.iter().map(|entry| entry.range.trim_start_matches('r')).collect();
    Ok(Found {
        bytes: workspace::bytes_on_disk(data)?,
        dead: databases.iter().filter(|name| !living.contains(name.as_str())).count(),
        records: recorded.iter().filter(|name| !ranges.contains(name.as_str())).count(),
        maps: names(&data.join("cluster/map"))?.len(),
    })
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

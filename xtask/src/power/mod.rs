//! `cargo xtask crash --power`: the power fails, at hundreds of moments of one recorded run. With `--power-objects` the
//! run writes objects and not tables.
//!
//! `kill -9` leaves the kernel's cache, so it cannot show a missing fsync. This test can:
//!
//! 1. [`record`]: a server runs under load, and strace writes down every file operation and every
//!    answer, in one order.
//! 2. [`replay`]: the operations are carried out again on a [model of a disk](disk) that knows what
//!    was synced and what was only in the cache.
//! 3. [`image`]: at random moments, and at those where an answer was just leaving, the directory is
//!    written as it could be found after a power loss: unsynced writes gone, reordered or torn.
//! 4. A server is started on it. It must open, and hold for each writer all that was acknowledged before that moment.
//!    It may also hold the writer's next operation, whole, but nothing else.
//!
//! The controls: with a server that does not sync, the test must find losses, or it proves nothing. It must find
//! losses too with a model that ignores the syncs of files, or those of directories.

mod disk;
mod image;
mod objects;
mod promises;
mod record;
mod replay;
mod trace;
mod trial;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::image::Fashion;
use self::objects::OfObjects;
use self::promises::Promises;
use self::record::{Record, Written};
use self::replay::{Event, Heeded, Replay};
use self::trial::{OfTables, Plan, Sums};
use rangehold_testkit::load::Kind;
use rangehold_testkit::workspace::{self, Profile};

/// Moments that each control tries.
const CONTROL_POINTS: u32 = 12;

/// Records a load of tables for at least `length`, and tries `points` moments. Without `sync` it succeeds only if it finds
/// losses.
pub(crate) fn run(seed: u64, points: u32, sync: bool, length: Duration) -> Result<()> {
    let place = if sync { "power" } else { "power-no-fsync" };
    try_all(place, Written::tables(seed, length), seed, points, sync)
}

/// Records a load of objects, and tries `points` moments.
pub(crate) fn run_objects(seed: u64, points: u32, sync: bool) -> Result<()> {
    let place = if sync { "power-objects" } else { "power-objects-no-fsync" };
    try_all(place, Written::objects(seed), seed, points, sync)
}

fn try_all(place: &str, written: Written, seed: u64, points: u32, sync: bool) -> Result<()> {
    let program = workspace::program(Profile::Dev)?;
    let directory = workspace::scratch(place)?;
    let record = record::record(&program, &directory, written, sync)?;
    let events = survey(&record, &directory)?;
    println!(
        "power: recorded {} file operations and {} answers",
        events.iter().filter(|(_, event)| *event == Event::Disk).count(),
        events.iter().filter(|(_, event)| *event != Event::Disk).count(),
    );
    let try_points = |points: u32, heeded: Heeded, control: bool| {
        let plan = Plan { moments: choose(&events, points, seed), seed, heeded, control };
        let mut promises: Box<dyn Promises + '_> = match &record.written {
            Written::Tables(load) => Box::new(OfTables::new(load)),
            Written::Objects(load) => Box::new(OfObjects::new(load)),
        };
        trial::run(&program, &directory, &record, &plan, promises.as_mut())
    };
    if !sync {
        return must_find("a server that does not sync", &try_points(points, Heeded::All, true)?);
    }
    let sums = try_points(points, Heeded::All, false)?;
    print("power", &sums);
    if sums.problems() > 0 {
        bail!("power: {} problems", sums.problems());
    }
    let points = CONTROL_POINTS.min(points);
    must_find("file syncs ignored", &try_points(points, Heeded::DirectoriesOnly, true)?)?;
    must_find("directory syncs ignored", &try_points(points, Heeded::FilesOnly, true)?)
}

/// A control: it fails if it finds nothing.
fn must_find(what: &str, sums: &Sums) -> Result<()> {
    print(&format!("power, control, {what}"), sums);
    if sums.problems() == 0 {
        bail!("power: the control found nothing: the test is blind");
    }
    println!("  as it must be");
    Ok(())
}

fn print(what: &str, sums: &Sums) {
    let counts = Kind::ALL.map(|kind| format!("{} {}", sums.broken.get(&kind).unwrap_or(&0), kind.label()));
    println!("{what}: {} of {} rebuilt directories opened; {}", sums.opened, sums.tried, counts.join(", "));
}

/// Walks the record; the events that matter, each with the number of its moment.
///
/// A model that missed an operation would make a test that misses losses. So at the end the model must
/// hold exactly what the real directory holds, and every promise must have been seen.
fn survey(record: &Record, directory: &Path) -> Result<Vec<(u64, Event)>> {
    let mut events = Vec::new();
    let replay = walk(record, Heeded::All, |moment, _, event| {
        if event != Event::Other {
            events.push((moment, event));
        }
        Ok(())
    })?;
    let model = directory.join("model");
    image::write(&replay.disk, Fashion::Everything, &mut StdRng::seed_from_u64(0), &model)?;
    workspace::same_tree(&model, &record.data).context("the model of the disk misses something")?;
    let answered: HashSet<&str> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Answer(id) => Some(id.as_str()),
            _ => None,
        })
        .collect();
    if let Some(id) = record.written.ids().into_iter().find(|id| !answered.contains(id)) {
        bail!("the answer {id} is not in the record: does the server tell the ids of requests?");
    }
    Ok(events)
}

/// Replays the record, and calls `see` after each moment with its number.
fn walk(
    record: &Record,
    heeded: Heeded,
    mut see: impl FnMut(u64, &Replay, Event) -> Result<()>,
) -> Result<Replay> {
    let mut replay = Replay::new(&record.data, heeded);
    let mut moment_number = 0;
    for (path, found) in &record.legs {
        let file = File::open(path).with_context(|| format!("no record at {}", path.display()))?;
        trace::read(BufReader::with_capacity(1 << 20, file), |moment| {
            let event = replay.take(&moment)?;
            moment_number += 1;
            see(moment_number, &replay, event)
        })?;
        replay.restart(found)?;
    }
    Ok(replay)
}

/// Half of the moments are those where an answer begins, which show most; the other half are any moments.
fn choose(events: &[(u64, Event)], points: u32, seed: u64) -> BTreeMap<u64, Fashion> {
    let mut rng = StdRng::seed_from_u64(seed);
    let answers: Vec<u64> =
        events.iter().filter(|(_, event)| *event != Event::Disk).map(|(moment, _)| *moment).collect();
    let mut chosen = BTreeMap::new();
    let possible = events.len().min(points as usize);
    while chosen.len() < possible {
        let moment = if chosen.len() % 2 == 0 && !answers.is_empty() && chosen.len() / 2 < answers.len() / 2 {
            answers[rng.random_range(0..answers.len())]
        } else {
            events[rng.random_range(0..events.len())].0
        };
        let fashion = Fashion::ALL[rng.random_range(0..Fashion::ALL.len())];
        chosen.entry(moment).or_insert(fashion);
    }
    chosen
}

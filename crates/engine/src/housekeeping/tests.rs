//! Tests with a directory of databases that are split and merged. They check what is left in the end.

mod marks;
mod world;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use proptest::prelude::*;
use slatedb::config::CheckpointOptions;
use tokio::time::sleep;

use world::{Range, World, files, key, place, value};

use super::limits::UNUSED_BEFORE_BURIAL;
use crate::database::{self, Borrowed};
use crate::limits::BORROWED_FROM_MAX;
use crate::map_store::MapError;

#[tokio::test(start_paused = true)]
async fn after_twenty_splits_and_merges_all_space_comes_back() {
    const ROWS: u32 = 4_000;
    let mut world = World::new().await;
    let mut owed = 0;
    for round in 0..10 {
        for number in (round..ROWS).step_by(10) {
            world.put(key(number), value(number)).await;
        }
        world.flush_all().await;
        world.split(key(ROWS / 11 * (round + 1)), round % 3 == 0).await;
        owed = owed.max(world.borrowed().iter().map(|borrowed| borrowed.bytes).sum());
        for number in (0..ROWS).step_by(97) {
            world.put(key(number), value(number + round)).await;
        }
        if round % 2 == 1 {
            world.merge(&key(ROWS / 11 * round)).await;
        }
        world.pass(if round == 5 { 60 } else { 5 }).await;
        world.check().await;
    }
    assert!(world.databases_made > 20 && world.ranges.len() > 4);
    assert!(owed > 100_000, "at most {owed} bytes were ever borrowed");

    world.pass(600).await;
    world.check().await;
    assert_eq!(world.directories(), world.living());
    assert_eq!(world.borrowed(), vec![Borrowed::default(); world.ranges.len()]);
    let live: usize = world.rows.iter().map(|(key, value)| key.len() + value.len()).sum();
    let (live, on_disk) = (live as u64, world.bytes_on_disk());
    assert!(on_disk * 10 <= live * 13, "{on_disk} bytes on disk for {live}");
}

/// One thing that happens to a world.
#[derive(Debug, Clone)]
enum Step {
    /// Some rows are written. With `flush`, the ranges make files of them.
    Put {
        from: u32,
        count: u32,
        flush: bool,
    },
    Split {
        at: u32,
        lost: bool,
    },
    Merge {
        at: u32,
    },
    Pass {
        seconds: u64,
    },
}

const KEYS: u32 = 200;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..KEYS, 1..60u32, any::<bool>()).prop_map(|(from, count, flush)| Step::Put { from, count, flush }),
        3 => (1..KEYS, any::<bool>()).prop_map(|(at, lost)| Step::Split { at, lost }),
        3 => (0..KEYS).prop_map(|at| Step::Merge { at }),
        2 => (1u64..200).prop_map(|seconds| Step::Pass { seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Whatever happens and in whatever order, no row is missing at any time, and in the end no dead
    /// directory is left.
    #[test]
    fn nothing_that_is_needed_goes_and_nothing_else_stays(steps in prop::collection::vec(step(), 1..20)) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Put { from, count, flush } => {
                        for at in from..(from + count).min(KEYS) {
                            world.put(key(at), value(number as u32 * KEYS + at)).await;
                        }
                        if flush {
                            world.flush_all().await;
                        }
                    }
                    Step::Split { at, lost } => world.split(key(at), lost).await,
                    Step::Merge { at } => world.merge(&key(at)).await,
                    Step::Pass { seconds } => world.pass(seconds).await,
                }
                world.check().await;
            }
            world.pass(600).await;
            world.check().await;
            assert_eq!(world.directories(), world.living());
        });
    }
}

/// As long as a client of the files, such as a backup, holds a checkpoint in a dead database, the database
/// stays.
#[tokio::test(start_paused = true)]
async fn a_held_database_stays_until_it_is_let_go() {
    let mut world = World::new().await;
    for number in 0..200 {
        world.put(key(number), value(number)).await;
    }
    world.flush_all().await;
    let parent = world.ranges[0].path.clone();
    let held = world.databases.admin(&parent);
    let checkpoint = held.create_detached_checkpoint(&CheckpointOptions::default()).await.unwrap();
    world.split(key(100), false).await;
    world.pass(600).await;
    assert!(world.directories().contains(&parent));
    held.delete_checkpoint(checkpoint.id).await.unwrap();
    world.pass(60).await;
    assert_eq!(world.directories(), world.living());
    world.check().await;
}

/// A directory lists its files in any order. So a deletion that was broken off may leave an older manifest,
/// with a pin that was released since.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_broken_off_is_finished_whatever_it_left() {
    let mut world = World::new().await;
    for number in 0..200 {
        world.put(key(number), value(number)).await;
    }
    world.flush_all().await;
    let parent = world.ranges[0].path.clone();
    world.split(key(100), false).await;
    for range in &world.ranges {
        world.databases.housekeeper.rewrite(&range.path).await.unwrap();
    }
    let held = world.databases.admin(&parent);
    held.create_detached_checkpoint(&CheckpointOptions::default()).await.unwrap();
    // It is not buried while this checkpoint is held. Afterwards only that manifest and the mark are left
    // of its files.
    world.pass(600).await;
    let directory = world.directory.path().join(&parent);
    let mut manifests = files(&directory.join("manifest"));
    manifests.sort();
    let newest = manifests.pop().unwrap();
    for file in files(&directory).into_iter().filter(|file| *file != newest) {
        fs::remove_file(file).unwrap();
    }
    let mark = Path::from(format!("{parent}/.deleting"));
    world.databases.objects.put(&mark, Bytes::new().into()).await.unwrap();
    world.pass(60).await;
    assert_eq!(world.directories(), world.living());
    world.check().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_database_and_what_is_being_made_is_left_alone() {
    let mut world = World::new().await;
    let ranges = world.directory.path().join("ranges");
    for name in ["notes", "8-1", "900-1-1", "901-1-1"] {
        fs::create_dir_all(ranges.join(name).join("wal")).unwrap();
    }
    fs::write(ranges.join("901-1-1/wal/00000000000000000001.sst#0"), "unfinished").unwrap();
    // The process that deleted these records got no further.
    let forgotten = world.directory.path().join("changes/901");
    fs::create_dir_all(&forgotten).unwrap();
    let (mut living, databases) = (world.living(), world.databases.clone());
    living.insert("ranges/900-1-1".to_owned());
    let unknown = || async { Err(MapError::None) };
    for _ in 0..4 {
        sleep(UNUSED_BEFORE_BURIAL).await;
        assert!(world.burial.look(&databases, &world.store, unknown).await.is_err());
    }
    assert!(world.directories().contains("ranges/901-1-1"));
    let mut buried = Vec::new();
    for _ in 0..4 {
        sleep(UNUSED_BEFORE_BURIAL / 2).await;
        let living = || async { Ok(living.clone()) };
        buried.extend(world.burial.look(&databases, &world.store, living).await.unwrap());
    }
    assert_eq!(buried, ["ranges/901-1-1"]);
    let left: Vec<String> = world.directories().into_iter().collect();
    assert_eq!(left, ["ranges/1-1-1", "ranges/8-1", "ranges/900-1-1", "ranges/notes"]);
    assert!(!forgotten.exists());
}

/// The housekeeper rewrites a child by itself; a caller that cannot wait orders it.
#[tokio::test(start_paused = true)]
async fn a_range_that_borrows_too_much_may_split_again_once_it_is_rewritten() {
    let mut world = World::new().await;
    let stuck = |world: &World| (0..world.ranges.len()).any(|index| !world.may_change(index));
    for round in 0..20 {
        if stuck(&world) {
            break;
        }
        for number in 0..50 {
            world.put(key(number), value(number + round)).await;
        }
        world.split(key(25), false).await;
        world.merge(&key(0)).await;
    }
    assert!(world.borrowed().iter().any(|borrowed| borrowed.databases > BORROWED_FROM_MAX));
    for range in &world.ranges {
        world.databases.housekeeper.rewrite(&range.path).await.unwrap();
    }
    assert_eq!(world.borrowed(), vec![Borrowed::default(); world.ranges.len()]);
    assert!(!stuck(&world));
    world.check().await;
}

/// After `leave` the housekeeper writes nothing to a database: its files stay as they are.
#[tokio::test(start_paused = true)]
async fn a_database_that_was_left_is_not_touched() {
    let mut world = World::new().await;
    for round in 0..8 {
        for number in 0..50 {
            world.put(key(number), value(number + round)).await;
        }
        world.flush_all().await;
    }
    // A compaction is under way, or about to be.
    world.databases.housekeeper.leave(&world.ranges[0].path).await;
    let before = files(world.directory.path());
    sleep(Duration::from_secs(900)).await;
    assert_eq!(files(world.directory.path()), before);
    assert!(world.databases.housekeeper.rewrite(&world.ranges[0].path).await.is_err());
}

/// The audit of blobs and the end of an object may delete the same files.
#[tokio::test(start_paused = true)]
async fn files_that_two_delete_at_once_are_gone_and_neither_fails() {
    let world = World::new().await;
    for round in 0..20 {
        let directory = format!("blobs/{round}");
        for number in 0..20 {
            let path = Path::from(format!("{directory}/{number}.chunk"));
            world.databases.objects.put(&path, Bytes::from_static(b"bytes").into()).await.unwrap();
        }
        let (one, other) = tokio::join!(
            world.databases.delete_objects(&directory),
            world.databases.delete_objects(&directory)
        );
        assert_eq!((one.is_ok(), other.is_ok()), (true, true), "{one:?} {other:?}");
    }
    assert_eq!(files(&world.directory.path().join("blobs")), Vec::<PathBuf>::new());
}

/// A range whose manifest is damaged is restored into another database. The damaged one still pins the files of the
/// range that was split, and another database was left beside it.
#[tokio::test(start_paused = true)]
async fn a_dead_database_with_a_damaged_manifest_is_buried_and_keeps_no_other() {
    let mut world = World::new().await;
    for number in 0..200 {
        world.put(key(number), value(number)).await;
    }
    world.flush_all().await;
    world.split(key(100), true).await;
    let lost = world.ranges.remove(0);
    world.databases.housekeeper.leave(&lost.path).await;
    lost.db.close().await.unwrap();
    let mut manifests = files(&world.directory.path().join(&lost.path).join("manifest"));
    manifests.sort();
    let newest = manifests.pop().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).unwrap();
    let path = world.next_path();
    let db = database::create(&world.databases, &place(&path)).await.unwrap();
    world.ranges.insert(0, Range { path, low: Vec::new(), db });
    for number in 0..100 {
        world.put(key(number), value(number)).await;
    }
    world.pass(900).await;
    assert_eq!(world.directories(), world.living());
    world.check().await;
}

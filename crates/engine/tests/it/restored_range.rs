//! One range is restored from a backup: what it shows, what the others show, and what a crash leaves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_engine::copy::{CopyError, CopyReport, ObjectRows, OneRange, RangeRestored};
use rangehold_engine::store::{Store, StoreError, StoreOptions};
use rangehold_engine::{Clock, Node, Options, ReadError, Step, StepHook};
use rangehold_map::{Change, RangeEntry, RangeId, Timestamp};
use tokio::time::sleep;

use crate::copy::{copy_quietly, location};
use crate::damaged_range::{flip, newest, open};
use crate::support::{
    ACCOUNT, Gate, MEMORY, Passage, TABLE, get, memory, note_in_catalogue, options, partition, put, soon,
};

const NO_OBJECTS: ObjectRows =
    ObjectRows { uses: |_, _| Ok(Vec::new()), counted_on: |_, _| Ok(None), folder_count: |_, _| Ok(None) };

async fn restore(from: &Path, to: &Path, range: RangeId) -> Result<RangeRestored, CopyError> {
    restore_with(NO_OBJECTS, from, to, range).await
}

/// Restores as soon as the node that served the directory has given it up.
async fn restore_with(
    objects: ObjectRows,
    from: &Path,
    to: &Path,
    range: RangeId,
) -> Result<RangeRestored, CopyError> {
    loop {
        match restore_now(objects, from, to, range).await {
            Err(CopyError::Store(StoreError::Locked { .. })) => sleep(Duration::from_millis(50)).await,
            restored => return restored,
        }
    }
}

async fn restore_now(
    objects: ObjectRows,
    from: &Path,
    to: &Path,
    range: RangeId,
) -> Result<RangeRestored, CopyError> {
    let clock = Clock::system();
    let one = OneRange { range, objects, clock: &clock, seed: 9 };
    one.restore(&location(from), &location(to), StoreOptions::default(), &mut |_| {}).await
}

async fn split(node: &Node, at: &[u8]) {
    let entry = node.executor().maps().current().lookup(at).unwrap().clone();
    let split = Change::Split { range: entry.id, generation: entry.generation, at: at.to_vec() };
    node.executor().carry_out(&split).await.unwrap();
}

/// Cuts the keys into three ranges: with the catalogue and the partition "1", with "5", and with "9".
async fn cut(node: &Node, at: &[&str]) {
    for key in at {
        split(node, partition(key).as_bytes()).await;
    }
}

async fn put_all(node: &Node, value: &str) -> Timestamp {
    for key in ["1", "9"] {
        put(node, key, "row", value).await.unwrap();
    }
    put(node, "5", "row", value).await.unwrap()
}

fn entry(node: &Node, key: &str) -> RangeEntry {
    node.executor().maps().current().lookup(partition(key).as_bytes()).unwrap().clone()
}

fn database(directory: &Path, entry: &RangeEntry) -> PathBuf {
    directory.join(format!("ranges/{}", entry.place.database))
}

async fn check(node: &Node, five: &str, others: &str) {
    for (key, value) in [("1", others), ("5", five), ("9", others)] {
        assert_eq!(get(node, key, "row").await.unwrap().unwrap(), value, "{key}");
    }
    assert_eq!(node.statistics().troubles, []);
}

/// A directory whose rows are newer than those of its backup. The manifest of the range with "5" is damaged.
struct World {
    _above: tempfile::TempDir,
    directory: PathBuf,
    backup: PathBuf,
    damaged: RangeEntry,
    /// The last timestamp that the range has given.
    given: Timestamp,
}

impl World {
    async fn new() -> Self {
        let above = tempfile::tempdir().unwrap();
        let (directory, backup) = (above.path().join("data"), above.path().join("backup"));
        let node = open(&directory).await.unwrap();
        cut(&node, &["3", "7"]).await;
        put_all(&node, "old").await;
        copy_quietly(&directory, &backup).await.unwrap();
        let given = put_all(&node, "new").await;
        let damaged = entry(&node, "5");
        node.close().await;
        flip(&newest(&database(&directory, &damaged).join("manifest")));
        Self { _above: above, directory, backup, damaged, given }
    }

    async fn restore(&self) -> RangeRestored {
        restore(&self.backup, &self.directory, self.damaged.id).await.unwrap()
    }

    async fn check(&self) {
        let node = open(&self.directory).await.unwrap();
        check(&node, "old", "new").await;
        assert!(put(&node, "5", "row", "newest").await.unwrap() > self.given, "a timestamp came again");
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_range_shows_the_rows_of_the_backup_and_the_others_keep_theirs() {
    let world = World::new().await;
    let node = open(&world.directory).await.unwrap();
    assert!(matches!(get(&node, "5", "row").await, Err(ReadError::Damaged(_))));
    let served =
        restore_now(NO_OBJECTS, &world.backup, &world.directory, world.damaged.id).await.unwrap_err();
    assert!(matches!(served, CopyError::Store(StoreError::Locked { .. })), "{served}");
    node.close().await;

    let first = world.restore().await;
    assert_eq!(
        (first.keys.clone(), first.replaced),
        (world.damaged.keys.clone(), world.damaged.place.database)
    );
    assert_eq!((first.copied.rows, first.copied.ranges, first.copied.ranges_total), (1, 1, 1));
    let second = world.restore().await;
    assert_eq!(second.replaced, first.database);
    assert!(second.database.generation > first.database.generation && second.map_version > first.map_version);
    world.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backup_may_be_cut_otherwise() {
    let world = World::new().await;
    let backup = open(&world.backup).await.unwrap();
    put(&backup, "4", "row", "old").await.unwrap();
    let merge = |map: &rangehold_map::RangeMap| Change::Merge {
        left: map.entries()[0].id,
        left_generation: map.entries()[0].generation,
        right: map.entries()[1].id,
        right_generation: map.entries()[1].generation,
    };
    // One range from the catalogue up to 4, and three with the other keys.
    cut(&backup, &["45", "6"]).await;
    let map = backup.executor().maps().current();
    assert_eq!(map.entries().len(), 5);
    backup.executor().carry_out(&merge(&map)).await.unwrap();
    backup.close().await;
    let restored = world.restore().await;
    assert_eq!((restored.copied.rows, restored.copied.ranges), (2, 3));
    let node = open(&world.directory).await.unwrap();
    assert_eq!(get(&node, "4", "row").await.unwrap().unwrap(), "old");
    node.close().await;
    world.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_without_rows_of_the_range_leaves_it_empty() {
    let world = World::new().await;
    let before = world.backup.with_extension("before");
    open(&before).await.unwrap().close().await;
    let restored = restore(&before, &world.directory, world.damaged.id).await.unwrap();
    assert_eq!(restored.copied.rows, 0);
    let node = open(&world.directory).await.unwrap();
    assert_eq!(get(&node, "5", "row").await.unwrap(), None);
    put_all(&node, "newest").await;
    check(&node, "newest", "newest").await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_restored_is_told_and_nothing_is_changed() {
    let world = World::new().await;
    let told = async |from: &Path, to: &Path, range| restore(from, to, range).await.unwrap_err().to_string();
    let (backup, directory) = (&world.backup, &world.directory);
    let unknown = told(backup, directory, RangeId(77)).await;
    assert!(
        unknown.contains("has no range r77") && unknown.contains(&world.damaged.id.to_string()),
        "{unknown}"
    );
    let missing = directory.with_extension("missing");
    assert!(told(backup, &missing, world.damaged.id).await.contains("no directory"));
    assert!(told(&missing, directory, world.damaged.id).await.contains("no directory"));
    assert!(!missing.exists());
    assert!(told(directory, directory, world.damaged.id).await.contains("separate directories"));
    let node = open(directory).await.unwrap();
    assert!(matches!(get(&node, "5", "row").await, Err(ReadError::Damaged(_))));
    assert_eq!(entry(&node, "5").place.database, world.damaged.place.database);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_with_the_catalogue_is_restored_too() {
    let world = World::new().await;
    world.restore().await;
    let node = open(&world.directory).await.unwrap();
    let catalogue = entry(&node, "1");
    node.close().await;
    flip(&newest(&database(&world.directory, &catalogue).join("manifest")));
    assert!(open(&world.directory).await.is_err());
    restore(&world.backup, &world.directory, catalogue.id).await.unwrap();
    let node = open(&world.directory).await.unwrap();
    assert_eq!(get(&node, "1", "row").await.unwrap().unwrap(), "old");
    assert_eq!(get(&node, "9", "row").await.unwrap().unwrap(), "new");
    node.close().await;
}

/// The notes of tables that were dropped before the backup come from it. Tables that were dropped later are in the
/// catalogue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_table_stays_dropped() {
    for is_dropped_before in [true, false] {
        let above = tempfile::tempdir().unwrap();
        let (directory, backup) = (above.path().join("data"), above.path().join("backup"));
        let node = open(&directory).await.unwrap();
        cut(&node, &["3", "7"]).await;
        put_all(&node, "old").await;
        if is_dropped_before {
            node.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();
        }
        copy_quietly(&directory, &backup).await.unwrap();
        if !is_dropped_before {
            note_in_catalogue(&node, TABLE).await;
            node.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();
        }
        let damaged = entry(&node, "5");
        node.close().await;
        flip(&newest(&database(&directory, &damaged).join("manifest")));
        restore(&backup, &directory, damaged.id).await.unwrap();
        let node = open(&directory).await.unwrap();
        let read = get(&node, "5", "row").await;
        assert!(matches!(read, Err(ReadError::TableDropped)), "{is_dropped_before}: {read:?}");
        node.close().await;
    }
}

/// A clock that was ahead may have given timestamps that lie in the future now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_timestamp_is_given_again_wherever_the_clock_was() {
    for is_ahead_before_the_backup in [true, false] {
        let above = tempfile::tempdir().unwrap();
        let (directory, backup) = (above.path().join("data"), above.path().join("backup"));
        let clock = Clock::system();
        let store = Store::open(&location(&directory), StoreOptions::default()).unwrap();
        let node = Node::open(store, Options::new(MEMORY, clock.clone(), 1)).await.unwrap();
        cut(&node, &["3", "7"]).await;
        let ahead = || clock.step(600 * Timestamp::TICKS_PER_SECOND);
        if is_ahead_before_the_backup {
            ahead();
        }
        let mut given = put_all(&node, "old").await;
        copy_quietly(&directory, &backup).await.unwrap();
        let restored = entry(&node, "5");
        if is_ahead_before_the_backup {
            node.close().await;
            flip(&newest(&database(&directory, &restored).join("manifest")));
        } else {
            ahead();
            given = put_all(&node, "new").await;
            node.close().await;
        }
        restore(&backup, &directory, restored.id).await.unwrap();
        let node = open(&directory).await.unwrap();
        assert!(put(&node, "5", "row", "newest").await.unwrap() > given, "{is_ahead_before_the_backup}");
        node.close().await;
    }
}

/// Stores in memory: one with old rows in one range, and one with new rows in three. The files of the range with "5" are
/// gone.
async fn in_memory() -> (Arc<dyn ObjectStore>, Arc<dyn ObjectStore>, RangeEntry) {
    let (source, target) = (memory(), memory());
    let clock = Clock::system();
    for (objects, value) in [(&source, "old"), (&target, "new")] {
        let node = crate::support::open(objects, options(&clock)).await;
        if value == "new" {
            cut(&node, &["3", "7"]).await;
        }
        put_all(&node, value).await;
        node.close().await;
    }
    let node = crate::support::open(&target, options(&clock)).await;
    let lost = entry(&node, "5");
    node.close().await;
    for file in listed(&target, &format!("ranges/{}", lost.place.database)).await {
        target.delete(&file.into()).await.unwrap();
    }
    (source, target, lost)
}

async fn listed(objects: &Arc<dyn ObjectStore>, prefix: &str) -> Vec<String> {
    let listed: Vec<_> = objects.list(Some(&prefix.into())).try_collect().await.unwrap();
    listed.into_iter().map(|object| object.location.to_string()).collect()
}

/// Restores, and lets the process die when the gate says so. Whether it got to the end.
async fn restore_until_death(source: &Arc<dyn ObjectStore>, gate: &Arc<Gate>, range: RangeId) -> bool {
    let gated: Arc<dyn ObjectStore> = gate.clone();
    let (source, target, clock) = (Store::on(Arc::clone(source)), Store::on(gated), Clock::system());
    let one = OneRange { range, objects: NO_OBJECTS, clock: &clock, seed: 9 };
    let mut progress = |_: &_| {};
    let mut restoring = one.restore_in(&source, &target, &mut progress);
    loop {
        tokio::select! {
            restored = &mut restoring => return restored.map(drop).is_ok(),
            () = sleep(Duration::from_millis(10)) => {}
        }
        if gate.held() > 0 {
            // Only the map is held.
            gate.set(Passage::Dead);
        }
        if gate.has_died() {
            return false;
        }
    }
}

/// After a crash the range is as it was, or restored. Then it is restored, and nothing of the attempt is left.
async fn check_after_crash(
    source: &Arc<dyn ObjectStore>,
    target: &Arc<dyn ObjectStore>,
    lost: &RangeEntry,
    was_done: bool,
) {
    let clock = Clock::system();
    let node = crate::support::open(target, options(&clock)).await;
    assert_eq!(get(&node, "9", "row").await.unwrap().unwrap(), "new");
    match get(&node, "5", "row").await {
        Err(ReadError::Damaged(_)) => assert!(!was_done),
        read => assert_eq!((read.unwrap().unwrap().as_ref(), was_done), ("old".as_bytes(), true)),
    }
    node.close().await;
    if was_done {
        return;
    }
    assert!(restore_until_death(source, &Gate::before(target), lost.id).await);
    let node = crate::support::open(target, options(&clock)).await;
    check(&node, "old", "new").await;
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_before_any_object_leaves_the_old_range_or_the_new_one() {
    for objects in 0.. {
        let (source, target, lost) = in_memory().await;
        let gate = Gate::before(&target);
        gate.die_after(objects);
        let was_done = restore_until_death(&source, &gate, lost.id).await;
        check_after_crash(&source, &target, &lost, was_done).await;
        if was_done {
            assert!(objects > 3, "the test does not reach the restore");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_before_the_map_leaves_a_database_that_the_next_attempt_deletes() {
    let (source, target, lost) = in_memory().await;
    let gate = Gate::before(&target);
    gate.set(Passage::HoldMap);
    assert!(!restore_until_death(&source, &gate, lost.id).await);
    let attempt = |number| format!("ranges/{}-{}-{number}", lost.id.0, lost.generation.next());
    assert!(!listed(&target, &attempt(1)).await.is_empty());
    assert!(restore_until_death(&source, &Gate::before(&target), lost.id).await);
    assert_eq!(listed(&target, &attempt(1)).await, Vec::<String>::new());
    let node = crate::support::open(&target, options(&Clock::system())).await;
    check(&node, "old", "new").await;
    assert_eq!(format!("ranges/{}", entry(&node, "5").place.database), attempt(2));
    node.close().await;
}

/// A split of the range dies at a step, and then the files of the range are lost. Only a split that counts stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_broken_off_is_undone() {
    for (step, is_undone) in [(Step::Begun, true), (Step::Retired, true), (Step::Recorded, false)] {
        let (source, target) = (memory(), memory());
        let node = crate::support::open(&source, options(&Clock::system())).await;
        put_all(&node, "old").await;
        node.close().await;

        let gate = Gate::before(&target);
        let dying = gate.clone();
        let after_step = StepHook::new(move |reached, _| {
            let dying = dying.clone();
            async move {
                if reached == step {
                    dying.set(Passage::Dead);
                    std::future::pending::<()>().await;
                }
            }
        });
        let gated: Arc<dyn ObjectStore> = gate.clone();
        let node = crate::support::open(&gated, Options { after_step, ..options(&Clock::system()) }).await;
        put_all(&node, "new").await;
        let lost = entry(&node, "5");
        let splitting = tokio::spawn({
            let node = node.clone();
            async move { split(&node, partition("5").as_bytes()).await }
        });
        while !gate.has_died() {
            sleep(Duration::from_millis(10)).await;
        }
        splitting.abort();
        drop(node);
        for file in listed(&target, &format!("ranges/{}", lost.place.database)).await {
            target.delete(&file.into()).await.unwrap();
        }

        let (stores, clock) = ((Store::on(source), Store::on(Arc::clone(&target))), Clock::system());
        let one = OneRange { range: lost.id, objects: NO_OBJECTS, clock: &clock, seed: 9 };
        let restored = one.restore_in(&stores.0, &stores.1, &mut |_| {}).await;
        if !is_undone {
            let refused = restored.unwrap_err();
            assert!(matches!(refused, CopyError::Begun { .. }), "{refused}");
            continue;
        }
        restored.unwrap();
        let node = crate::support::open(&target, options(&clock)).await;
        check(&node, "old", "old").await;
        node.close().await;
    }
}

mod objects {
    use std::collections::BTreeMap;
    use std::fs;
    use std::ops::ControlFlow;

    use rangehold_engine::WriteRequest;
    use std::collections::BTreeSet;

    use rangehold_map::key::{BucketRow, KIND_BLOB, KIND_OBJECT, ObjectRow};
    use rangehold_map::{BucketId, ObjectKey, PartitionPrefix};

    use super::*;
    use crate::copy::objects::{BUCKET, Row, check, chunk_files, put, rows, user};

    const ROWS: ObjectRows = ObjectRows {
        uses: |key, row| {
            let name = ObjectKey::decode(key).map_err(|error| error.to_string())?.name.into_owned();
            let (upload, extent): Row = serde_json::from_slice(row).map_err(|error| error.to_string())?;
            Ok(vec![(extent.blob, user(&name, upload))])
        },
        counted_on: |_, _| Ok(None),
        folder_count: |_, _| Ok(None),
    };

    async fn remove(node: &Node, name: &str) {
        let (upload, extent) = rows(node).await[name];
        let partition = PartitionPrefix::object(BUCKET, name);
        let key = [partition.as_bytes(), &[0]].concat();
        let request = WriteRequest::new(&partition, &[], soon());
        node.router().write(&request, |_, _| Ok::<_, ()>(vec![(key.clone(), None)])).await.unwrap();
        node.blobs().release(&[extent], &user(name, upload)).await.unwrap();
    }

    async fn users(node: &Node) -> usize {
        let visit = |found: &mut usize, key: &[u8], _: &bytes::Bytes| {
            *found += usize::from(key.len() > 18);
            ControlFlow::Continue(())
        };
        let keys = rangehold_map::KeyRange::prefix(&[KIND_BLOB]);
        node.router().scan(&keys, || 0, visit).await.unwrap()
    }

    /// Objects in one range and the rows of their blobs in another. Objects are written, copied, overwritten and removed
    /// after the backup. Then the range that has `lost` is restored.
    async fn restored(lost: u8) -> (tempfile::TempDir, PathBuf, Node) {
        let world = damaged(&[lost]).await;
        assert_eq!(world.restore(lost).await.damaged, BTreeSet::new());
        let node = open(&world.directory).await.unwrap();
        (world.above, world.directory, node)
    }

    struct Damaged {
        above: tempfile::TempDir,
        directory: PathBuf,
        backup: PathBuf,
        ranges: BTreeMap<u8, RangeId>,
    }

    impl Damaged {
        async fn restore(&self, lost: u8) -> RangeRestored {
            restore_with(ROWS, &self.backup, &self.directory, self.ranges[&lost]).await.unwrap()
        }
    }

    /// As [`restored`], before anything is restored.
    async fn damaged(lost: &[u8]) -> Damaged {
        let above = tempfile::tempdir().unwrap();
        let (directory, backup) = (above.path().join("data"), above.path().join("backup"));
        let node = open(&directory).await.unwrap();
        split(&node, &[KIND_OBJECT]).await;
        split(&node, &[KIND_BLOB]).await;
        for (name, upload) in [("kept", 1), ("removed", 2), ("overwritten", 3)] {
            put(&node, name, upload).await;
        }
        copy_quietly(&directory, &backup).await.unwrap();
        put(&node, "overwritten", 4).await;
        put(&node, "made", 5).await;
        remove(&node, "removed").await;
        let map = node.executor().maps().current();
        node.close().await;
        let mut ranges = BTreeMap::new();
        for key in lost {
            let entry = map.lookup(&[*key]).unwrap();
            flip(&newest(&database(&directory, entry).join("manifest")));
            ranges.insert(*key, entry.id);
        }
        Damaged { above, directory, backup, ranges }
    }

    async fn check_all(node: &Node, directory: &Path, expected: &[(&str, u64)]) {
        check(node, &BTreeMap::new()).await;
        let found = rows(node).await;
        let found: Vec<_> = found.iter().map(|(name, (upload, _))| (name.as_str(), *upload)).collect();
        assert_eq!(found, expected);
        assert_eq!((users(node).await, chunk_files(directory).len()), (expected.len(), expected.len()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn restored_objects_have_their_bytes_and_keep_them_after_an_audit() {
        let (_above, directory, node) = restored(KIND_OBJECT).await;
        check_all(&node, &directory, &[("kept", 1), ("overwritten", 3), ("removed", 2)]).await;
        node.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn objects_that_are_newer_than_restored_rows_of_blobs_keep_their_bytes() {
        let (_above, directory, node) = restored(KIND_BLOB).await;
        check_all(&node, &directory, &[("kept", 1), ("made", 5), ("overwritten", 4)]).await;
        node.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_second_damaged_range_with_rows_of_blobs_is_named_and_restored_after_the_first() {
        let world = damaged(&[KIND_OBJECT, KIND_BLOB]).await;
        let first = world.restore(KIND_OBJECT).await;
        assert_eq!(first.damaged, BTreeSet::from([world.ranges[&KIND_BLOB]]));
        assert_eq!(world.restore(KIND_BLOB).await.damaged, BTreeSet::new());
        let node = open(&world.directory).await.unwrap();
        check_all(&node, &world.directory, &[("kept", 1), ("overwritten", 3), ("removed", 2)]).await;
        node.close().await;
    }

    impl Damaged {
        /// The chunk file that the directory and its backup both have.
        fn chunk_in_both(&self) -> PathBuf {
            let files = |root: &Path| -> BTreeSet<PathBuf> {
                let relative = |file: PathBuf| file.strip_prefix(root).unwrap().to_owned();
                chunk_files(root).into_iter().map(relative).collect()
            };
            let both: Vec<_> = files(&self.directory).intersection(&files(&self.backup)).cloned().collect();
            assert_eq!(both.len(), 1, "{both:?}");
            self.directory.join(&both[0])
        }

        /// Restores the range of objects. Then all objects of the backup have their bytes.
        async fn check_restored(&self) {
            self.restore(KIND_OBJECT).await;
            let node = open(&self.directory).await.unwrap();
            check_all(&node, &self.directory, &[("kept", 1), ("overwritten", 3), ("removed", 2)]).await;
            node.close().await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_damaged_file_of_a_restored_object_is_mended() {
        for damage in [|file: &Path| drop(flip(file)), cut] {
            let world = damaged(&[KIND_OBJECT]).await;
            damage(&world.chunk_in_both());
            world.check_restored().await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_file_that_is_damaged_in_the_backup_stays_as_it_is() {
        for damage in [|file: &Path| drop(flip(file)), cut, |file: &Path| fs::write(file, "").unwrap()] {
            let world = damaged(&[KIND_OBJECT]).await;
            let both = world.chunk_in_both();
            damage(&world.backup.join(both.strip_prefix(&world.directory).unwrap()));
            world.check_restored().await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_file_that_is_damaged_here_and_in_the_backup_does_not_stop_the_rest() {
        for damage in [|file: &Path| drop(flip(file)), |file: &Path| fs::write(file, "").unwrap()] {
            let world = damaged(&[KIND_OBJECT]).await;
            let both = world.chunk_in_both();
            flip(&both);
            let here = fs::read(&both).unwrap();
            damage(&world.backup.join(both.strip_prefix(&world.directory).unwrap()));
            let CopyReport { chunks_damaged, first_damaged, .. } = world.restore(KIND_OBJECT).await.copied;
            let named = first_damaged.is_some_and(|file| both.ends_with(file));
            assert!(chunks_damaged == 1 && named);
            assert!(fs::read(&both).unwrap() == here, "its other blocks can still be read");
            let node = open(&world.directory).await.unwrap();
            let found: Vec<_> = rows(&node).await.into_keys().collect();
            assert_eq!(found, ["kept", "overwritten", "removed"]);
            node.close().await;
        }
    }

    /// Takes the last bytes of a file away.
    fn cut(file: &Path) {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() - 40]).unwrap();
    }

    /// Two directories that were one may both have gone on with an upload, and then a chunk has one name and different bytes.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_range_is_not_restored_beside_files_with_other_bytes() {
        let world = damaged(&[KIND_OBJECT]).await;
        let both = world.chunk_in_both();
        let other = chunk_files(&world.directory).into_iter().find(|file| *file != both).unwrap();
        fs::copy(&other, &both).unwrap();
        let range = world.ranges[&KIND_OBJECT];
        let refused = restore_with(ROWS, &world.backup, &world.directory, range).await.unwrap_err();
        assert!(matches!(&refused, CopyError::OtherFile { path } if both.ends_with(path)), "{refused}");
        assert_eq!(fs::read(&other).unwrap(), fs::read(&both).unwrap());
    }

    /// The bucket was made after the backup, and its row lies in a range that is not restored.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_count_of_folders_that_the_backup_lacks_is_made() {
        const COUNTED: ObjectRows = ObjectRows {
            uses: |_, _| Ok(Vec::new()),
            counted_on: |_, _| Ok(None),
            folder_count: |_, row| {
                let count = PartitionPrefix::object(BucketId(7), "").object_row(&ObjectRow::Tree);
                Ok((row == "folders").then(|| (count, b"far on".to_vec())))
            },
        };
        let above = tempfile::tempdir().unwrap();
        let (directory, backup) = (above.path().join("data"), above.path().join("backup"));
        let node = open(&directory).await.unwrap();
        split(&node, &[KIND_OBJECT]).await;
        copy_quietly(&directory, &backup).await.unwrap();
        for (name, row) in [("flat", "flat"), ("deep", "folders")] {
            let bucket = PartitionPrefix::bucket(name);
            let key = bucket.bucket_row(&BucketRow::Bucket);
            let request = WriteRequest::new(&bucket, &[], soon());
            let change = vec![(key, Some(row.as_bytes().to_vec()))];
            node.router().write(&request, |_, _| Ok::<_, ()>(change.clone())).await.unwrap();
        }
        let lost = node.executor().maps().current().lookup(&[KIND_OBJECT]).unwrap().id;
        node.close().await;
        restore_with(COUNTED, &backup, &directory, lost).await.unwrap();
        let node = open(&directory).await.unwrap();
        let count = PartitionPrefix::object(BucketId(7), "").object_row(&ObjectRow::Tree);
        assert_eq!(node.router().get(&count).await.unwrap().unwrap(), "far on");
        node.close().await;
    }
}

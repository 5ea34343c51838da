//! Copying a store while it is served: what a copy shows, and what an interrupted copy leaves.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rangehold_engine::copy::{CopyError, CopyOptions, CopyReport, copy};
use rangehold_engine::store::{Store, StoreError, StoreLocation, StoreOptions};
use rangehold_engine::{Clock, Node, Options, WriteRequest};
use rangehold_map::{Change, KeyRange, PartitionPrefix, TableId, Timestamp};
use tokio::time::Instant;

pub(crate) const PARTITIONS: usize = 6;
pub(crate) const BATCH_ROWS: usize = 8;
const MEMORY_BYTES: u64 = 64 << 20;

pub(crate) fn location(directory: &Path) -> StoreLocation {
    StoreLocation::Directory(directory.to_owned())
}

pub(crate) async fn serve(directory: &Path) -> Node {
    let store = Store::open(&location(directory), StoreOptions::default()).unwrap();
    Node::open(store, Options::new(MEMORY_BYTES, Clock::system(), 1)).await.unwrap()
}

pub(crate) async fn copy_quietly(from: &Path, to: &Path) -> Result<CopyReport, CopyError> {
    copy_with(from, to, &mut |_| {}).await
}

async fn copy_with(
    from: &Path,
    to: &Path,
    progress: &mut (dyn FnMut(&CopyReport) + Send),
) -> Result<CopyReport, CopyError> {
    copy(&location(from), &location(to), &options(), progress).await
}

/// Copies into a new directory. The writers of a test never pause, so a copy may find no moment in which they leave the
/// files of the range alone; then another one is begun.
async fn copied_at_last(from: &Path, above: &Path, number: u64) -> (PathBuf, CopyReport) {
    let mut tries = 0;
    loop {
        let to = above.join(format!("{number}-{tries}"));
        match copy_quietly(from, &to).await {
            Err(CopyError::Unsteady { .. }) => tries += 1,
            report => return (to, report.unwrap()),
        }
    }
}

pub(crate) fn options() -> CopyOptions {
    CopyOptions { base: None, store: StoreOptions::default(), clock: Clock::system(), seed: 2 }
}

pub(crate) fn partition(number: usize) -> PartitionPrefix {
    PartitionPrefix::entity("account", TableId(1), &format!("p{number}"))
}

/// Writes `round` to all rows of a partition in one batch.
pub(crate) async fn put_round(server: &Node, number: usize, round: u64, value_bytes: usize) -> Timestamp {
    let partition = partition(number);
    let keys: Vec<_> = (0..BATCH_ROWS).map(|row| partition.key(&format!("r{row}"))).collect();
    let mut value = round.to_be_bytes().to_vec();
    value.resize(value_bytes, 7);
    let deadline = Instant::now() + Duration::from_secs(60);
    let judge = |_: &[_], _| -> Result<_, ()> {
        Ok(keys.iter().map(|key| (key.clone(), Some(value.clone()))).collect())
    };
    server.router().write(&WriteRequest::new(&partition, &keys, deadline), judge).await.unwrap()
}

/// The round that each row of a partition shows.
pub(crate) async fn rounds(server: &Node, number: usize) -> Vec<u64> {
    let keys = KeyRange::prefix(partition(number).as_bytes());
    let visit = |found: &mut Vec<u64>, _: &[u8], value: &bytes::Bytes| {
        found.push(u64::from_be_bytes(value[..8].try_into().unwrap()));
        ControlFlow::Continue(())
    };
    server.router().scan(&keys, Vec::new, visit).await.unwrap()
}

/// How many checkpoints of copies the source still holds.
fn copies_held(directory: &Path) -> usize {
    // Reads the files without opening the store, as a copy does, because the server has the lock.
    let manifests = directory.join("ranges/1-1-1/manifest");
    let newest = std::fs::read_dir(manifests).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let bytes = std::fs::read(newest).unwrap();
    bytes.windows(4).filter(|name| name == b"copy").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_holds_what_was_acknowledged_before_and_whole_batches_only() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(from.path()).await;
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..PARTITIONS).map(|_| AtomicU64::new(0)).collect());
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..PARTITIONS)
        .map(|number| {
            let (server, acknowledged, stop) = (server.clone(), Arc::clone(&acknowledged), Arc::clone(&stop));
            tokio::spawn(async move {
                for round in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // Large enough that memtables become sorted files during the copies.
                    put_round(&server, number, round, 3_000).await;
                    acknowledged[number].store(round, Ordering::Relaxed);
                }
            })
        })
        .collect();

    for attempt in 0..4 {
        tokio::time::sleep(Duration::from_millis(150 * attempt)).await;
        let before: Vec<_> = acknowledged.iter().map(|round| round.load(Ordering::Relaxed)).collect();
        let (to, report) = copied_at_last(from.path(), above.path(), attempt).await;
        assert_eq!((report.ranges, report.ranges_total), (1, 1));
        let copied = serve(&to).await;
        for (number, before) in before.into_iter().enumerate() {
            let rounds = rounds(&copied, number).await;
            if before > 0 {
                assert_eq!(rounds.len(), BATCH_ROWS, "partition {number}");
            }
            assert!(rounds.iter().all(|round| *round >= before), "lost: {rounds:?}, had {before}");
            assert!(rounds.windows(2).all(|pair| pair[0] == pair[1]), "torn: {rounds:?}");
        }
        copied.close().await;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    for number in 0..PARTITIONS {
        let last = acknowledged[number].load(Ordering::Relaxed);
        assert!(last > 3, "writers stood still during the copies");
        assert_eq!(rounds(&server, number).await, [last; BATCH_ROWS]);
    }
    assert_eq!(copies_held(from.path()), 0);
    server.close().await;
}

/// A split or a merge every 0.1 s, and a write in every partition between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_made_while_ranges_are_split_and_merged() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(from.path()).await;
    let (acknowledged, changes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let changing = tokio::spawn({
        let (server, acknowledged) = (server.clone(), Arc::clone(&acknowledged));
        let (stop, changes) = (Arc::clone(&stop), Arc::clone(&changes));
        async move {
            for round in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                for number in 0..PARTITIONS {
                    put_round(&server, number, round, 100).await;
                }
                acknowledged.store(round, Ordering::Relaxed);
                // A range that waits for compaction is not changed.
                if server.executor().carry_out(&some_change(&server)).await.is_ok() {
                    changes.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    for attempt in 0..4 {
        while changes.load(Ordering::Relaxed) < 2 * (attempt + 1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let before = acknowledged.load(Ordering::Relaxed);
        let to = above.path().join(attempt.to_string());
        copy_quietly(from.path(), &to).await.unwrap();
        let copied = serve(&to).await;
        for number in 0..PARTITIONS {
            let rounds = rounds(&copied, number).await;
            assert_eq!(rounds.len(), BATCH_ROWS, "partition {number}");
            assert!(rounds.iter().all(|round| *round >= before), "lost: {rounds:?}, had {before}");
        }
        copied.close().await;
    }
    stop.store(true, Ordering::Relaxed);
    changing.await.unwrap();
    server.close().await;
}

/// A split of the only range, or a merge of the two.
fn some_change(server: &Node) -> Change {
    let map = server.executor().maps().current();
    match map.entries() {
        [only] => Change::Split {
            range: only.id,
            generation: only.generation,
            at: partition(PARTITIONS / 2).as_bytes().to_vec(),
        },
        [left, right, ..] => Change::Merge {
            left: left.id,
            left_generation: left.generation,
            right: right.id,
            right_generation: right.generation,
        },
        [] => unreachable!("a map is never empty"),
    }
}

#[tokio::test]
async fn times_go_on_in_the_copy_from_where_they_were() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let to = above.path().join("copy");
    let ahead = Clock::system();
    ahead.step(600 * Timestamp::TICKS_PER_SECOND);
    let store = Store::open(&location(from.path()), StoreOptions::default()).unwrap();
    let server = Node::open(store, Options::new(MEMORY_BYTES, ahead, 1)).await.unwrap();
    let given = put_round(&server, 0, 1, 8).await;
    copy_quietly(from.path(), &to).await.unwrap();
    let copied = serve(&to).await;
    assert!(put_round(&copied, 0, 2, 8).await > given);
}

#[tokio::test]
async fn an_interrupted_copy_is_not_opened_and_can_be_made_again() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let to = above.path().join("copy");
    let server = serve(from.path()).await;
    for number in 0..200 {
        put_round(&server, number, 5, 1_000).await;
    }
    let interrupted = tokio::sync::Notify::new();
    let mut progress = |_: &CopyReport| interrupted.notify_one();
    tokio::select! {
        biased;
        () = interrupted.notified() => {}
        result = copy_with(from.path(), &to, &mut progress) => panic!("not interrupted: {result:?}"),
    }
    let refused = Store::open(&location(&to), StoreOptions::default()).unwrap_err();
    assert!(matches!(refused, StoreError::UnfinishedCopy { .. }), "{refused}");
    assert_eq!(copies_held(from.path()), 1, "the test does not see checkpoints");

    let report = copy_quietly(from.path(), &to).await.unwrap();
    assert!(report.rows >= 200 * BATCH_ROWS as u64);
    let copied = serve(&to).await;
    for number in 0..200 {
        assert_eq!(rounds(&copied, number).await, [5; BATCH_ROWS]);
    }
}

/// It fails at once. The database of the target alone would wait for room forever.
#[tokio::test]
async fn a_copy_to_a_full_disk_is_refused_by_its_name() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let to = above.path().join("copy");
    let server = serve(from.path()).await;
    put_round(&server, 0, 1, 8).await;
    let store = StoreOptions { disk_reserve_bytes: Some(u64::MAX), ..StoreOptions::default() };
    let options = CopyOptions { store, ..options() };
    let (source, target, mut progress) = (location(from.path()), location(&to), |_: &CopyReport| {});
    let copying = copy(&source, &target, &options, &mut progress);
    let refused = tokio::time::timeout(Duration::from_secs(60), copying).await.unwrap().unwrap_err();
    assert!(matches!(refused, CopyError::DiskFull { .. }), "{refused}");
    assert!(refused.to_string().contains(to.to_str().unwrap()), "{refused}");
    assert_eq!(copies_held(from.path()), 0);
    // When there is room, a copy can be made.
    copy_quietly(from.path(), &to).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_copied_is_told_before_anything_is_touched() {
    let (from, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let missing = other.path().join("missing");
    let told = |result: Result<CopyReport, CopyError>| result.unwrap_err().to_string();
    assert!(told(copy_quietly(&missing, &other.path().join("x")).await).contains("no directory"));
    assert!(!other.path().join("x").exists());

    serve(from.path()).await.close().await;
    for inside in [from.path().to_owned(), from.path().join("a/b"), from.path().join(".").join("c")] {
        assert!(told(copy_quietly(from.path(), &inside).await).contains("separate directories"));
        assert!(inside == from.path() || !inside.exists());
    }
    std::fs::write(other.path().join("letter"), "dear").unwrap();
    assert!(told(copy_quietly(from.path(), other.path()).await).contains("letter"));
    let memory = copy(&StoreLocation::Memory, &location(&missing), &options(), &mut |_| {}).await;
    assert!(told(memory).contains("memory:"));

    let (full, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    serve(full.path()).await.close().await;
    assert!(told(copy_quietly(from.path(), full.path()).await).contains("is not empty"));
    drop(Store::open(&location(empty.path()), StoreOptions::default()).unwrap());
    assert!(told(copy_quietly(empty.path(), &missing).await).contains("never served"));
}

/// Bytes of large objects, each named by the row of its object.
pub(crate) mod objects {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use futures::TryStreamExt;
    use rangehold_engine::blob::AuditCursor;
    use rangehold_engine::store::FORMAT_FILE;
    use rangehold_map::BucketId;
    use rangehold_map::blob::{BlobUser, Extent};
    use rangehold_map::key::{KIND_BLOB, bucket_objects};

    use super::*;

    pub(crate) const BUCKET: BucketId = BucketId(17);

    pub(crate) fn user(name: &str, upload: u64) -> BlobUser {
        BlobUser { bucket: BUCKET, name: name.to_owned(), upload: upload.to_string() }
    }

    /// What the row of an object says here: the upload, and the only extent.
    pub(crate) type Row = (u64, Extent);

    /// Overwrites an object: writes the new blob, then the row, then lets the old blob go.
    pub(crate) async fn put(node: &Node, name: &str, upload: u64) {
        let mut writer = node.blobs().begin(user(name, upload)).await.unwrap();
        writer.write(payload(upload)).await.unwrap();
        let extent = writer.persist().await.unwrap()[0];
        let row: Row = (upload, extent);
        let partition = PartitionPrefix::object(BUCKET, name);
        let keys = [[partition.as_bytes(), &[0]].concat()];
        let mut before = None;
        let judge = |current: &[Option<Bytes>], _| -> Result<_, ()> {
            before = current[0].clone();
            Ok(vec![(keys[0].clone(), Some(serde_json::to_vec(&row).unwrap()))])
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        node.router().write(&WriteRequest::new(&partition, &keys, deadline), judge).await.unwrap();
        if let Some(before) = before {
            let (upload, extent): Row = serde_json::from_slice(&before).unwrap();
            node.blobs().release(&[extent], &user(name, upload)).await.unwrap();
        }
    }

    pub(crate) fn payload(upload: u64) -> Bytes {
        (0..200_000_u64).map(|at| (at.wrapping_mul(upload | 1) >> 3) as u8).collect()
    }

    pub(crate) async fn rows(node: &Node) -> BTreeMap<String, Row> {
        let visit = |found: &mut BTreeMap<String, Row>, key: &[u8], value: &Bytes| {
            let key = rangehold_map::ObjectKey::decode(key).unwrap();
            found.insert(key.name.into_owned(), serde_json::from_slice(value).unwrap());
            ControlFlow::Continue(())
        };
        node.router().scan(&KeyRange::prefix(&bucket_objects(BUCKET)), BTreeMap::new, visit).await.unwrap()
    }

    /// Reads every object, before and after an audit.
    pub(crate) async fn check(node: &Node, least: &BTreeMap<String, Row>) {
        for _ in 0..2 {
            let rows = rows(node).await;
            assert!(least.iter().all(|(name, (upload, _))| rows[name].0 >= *upload), "an object was lost");
            for (upload, extent) in rows.values() {
                let read = node.blobs().read(&[*extent], 0..extent.bytes).await.unwrap();
                let bytes: Vec<Bytes> = read.try_collect().await.unwrap();
                assert_eq!(bytes.concat(), payload(*upload));
            }
            let mut cursor = Some(AuditCursor::default());
            while let Some(from) = cursor {
                let names = async |blob, user: BlobUser| {
                    let named = rows.get(&user.name).is_some_and(|(_, extent)| extent.blob == blob);
                    Ok(named)
                };
                cursor = node.blobs().audit(&from, names).await.unwrap().next;
            }
            let extents_of =
                async |_, user: BlobUser| Ok(rows.get(&user.name).map(|(_, extent)| vec![*extent]));
            node.blobs().audit_files(extents_of).await.unwrap();
        }
    }

    pub(crate) fn chunk_files(directory: &Path) -> Vec<std::path::PathBuf> {
        let blobs = std::fs::read_dir(directory.join("blobs")).unwrap();
        let files = blobs.flat_map(|blob| std::fs::read_dir(blob.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }

    #[tokio::test]
    async fn a_copy_that_was_held_up_for_hours_fails_since_files_may_be_gone() {
        let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = serve(from.path()).await;
        put(&server, "a", 1).await;
        let clock = Clock::system();
        let options = CopyOptions { clock: clock.clone(), ..options() };
        let to = location(&above.path().join("to"));
        let mut held_up = false;
        let mut progress = |report: &CopyReport| {
            if report.chunks == 1 && !std::mem::replace(&mut held_up, true) {
                clock.step(3 * 3_600 * Timestamp::TICKS_PER_SECOND);
            }
        };
        let failed = copy(&location(from.path()), &to, &options, &mut progress).await;
        assert!(matches!(failed, Err(CopyError::TooLate { .. })), "{failed:?}");
        server.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_copy_has_the_bytes_of_every_object_that_it_names() {
        let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = serve(from.path()).await;
        // Objects in one range, and the rows of blobs in two others.
        for at in [vec![KIND_BLOB], vec![KIND_BLOB, 0x01]] {
            let entry = server.executor().maps().current().lookup(&at).unwrap().clone();
            let change = Change::Split { range: entry.id, generation: entry.generation, at };
            server.executor().carry_out(&change).await.unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..3)
            .map(|number| {
                let (server, stop) = (server.clone(), Arc::clone(&stop));
                tokio::spawn(async move {
                    for upload in 1.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        put(&server, &format!("{number}/{}", upload % 4), upload).await;
                        // Nothing is deleted while a copy is made. Without a pause each copy would take longer than the one before.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                })
            })
            .collect();
        for attempt in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let before = rows(&server).await;
            let to = above.path().join(attempt.to_string());
            let report = copy_quietly(from.path(), &to).await.unwrap();
            assert!(report.chunks >= before.len() as u64, "{report:?}");
            let copied = serve(&to).await;
            check(&copied, &before).await;
            assert_eq!(chunk_files(&to).len(), rows(&copied).await.len(), "files that nobody names");
            copied.close().await;
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
        check(&server, &BTreeMap::new()).await;
        assert_eq!(chunk_files(from.path()).len(), rows(&server).await.len());
        server.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_damaged_chunk_fails_the_copy_by_its_name() {
        let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = serve(from.path()).await;
        put(&server, "a", 1).await;
        server.close().await;
        let file = chunk_files(from.path()).remove(0);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[70_000] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let failed = copy_quietly(from.path(), &above.path().join("to")).await.unwrap_err();
        assert!(failed.to_string().contains("0.chunk"), "{failed}");
    }

    #[tokio::test]
    async fn the_format_tells_of_objects_from_the_first_one_on() {
        let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let format = |directory: &Path| std::fs::read_to_string(directory.join(FORMAT_FILE)).unwrap();
        let server = serve(from.path()).await;
        put_round(&server, 1, 1, 10).await;
        assert!(format(from.path()).contains("\"format\": 1"));
        let to = above.path().join("tables");
        copy_quietly(from.path(), &to).await.unwrap();
        assert!(format(&to).contains("\"format\": 1"));
        put(&server, "a", 1).await;
        assert!(format(from.path()).contains("\"format\": 2"));
        let to = above.path().join("objects");
        copy_quietly(from.path(), &to).await.unwrap();
        assert!(format(&to).contains("\"format\": 2"));
        server.close().await;
        let server = serve(from.path()).await;
        check(&server, &rows(&server).await).await;
        server.close().await;
    }
}

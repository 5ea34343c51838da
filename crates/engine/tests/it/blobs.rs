//! Blobs: what is written is read, nobody's bytes are deleted, and the audit removes what a crash has left.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Gate, Passage, memory, open, open_gated, simulated, start, write};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_engine::blob::{AuditCursor, BlobError, Blobs, Hold, crc32c_of};
use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use rangehold_engine::{BlobHook, BlobStep, Clock, Node, Options};
use rangehold_map::BucketId;
use rangehold_map::blob::{BlobUser, Extent};
use rangehold_map::key::{BlobRow, KIND_BLOB, ObjectRow};
use rangehold_map::{KeyRange, PartitionPrefix};
use tokio::time::{sleep, timeout};

fn user(upload: &str) -> BlobUser {
    BlobUser { bucket: BucketId(17), name: "a/b".to_owned(), upload: upload.to_owned() }
}

/// Bytes that differ everywhere.
fn payload(bytes: usize) -> Bytes {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

async fn put(blobs: &Blobs, upload: &str, bytes: &Bytes) -> Vec<Extent> {
    let mut writer = blobs.begin(user(upload)).await.unwrap();
    for piece in bytes.chunks(100_000) {
        writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    writer.persist().await.unwrap().to_vec()
}

async fn read(blobs: &Blobs, extents: &[Extent], bytes: Range<u64>) -> Result<Vec<u8>, BlobError> {
    let pieces: Vec<Bytes> = blobs.read(extents, bytes).await?.try_collect().await?;
    Ok(pieces.concat())
}

/// The chunk files in the store.
async fn files(objects: &Arc<dyn ObjectStore>) -> Vec<String> {
    let listed: Vec<_> = objects.list(Some(&Path::from("blobs"))).try_collect().await.unwrap();
    listed.into_iter().map(|file| file.location.to_string()).collect()
}

/// How many rows of blobs there are.
async fn rows(node: &Node) -> usize {
    crate::support::rows(node, &KeyRange::prefix(&[KIND_BLOB])).await.unwrap().len()
}

/// A whole audit; `living` are the uploads whose rows name their blobs.
async fn audit(blobs: &Blobs, living: &[&str]) {
    let living: BTreeSet<String> = living.iter().map(|upload| (*upload).to_owned()).collect();
    let mut cursor = Some(AuditCursor::default());
    while let Some(from) = cursor {
        let names = async |_, user: BlobUser| Ok(living.contains(&user.upload));
        cursor = blobs.audit(&from, names).await.unwrap().next;
    }
    blobs.audit_files(async |_, _| Ok(None)).await.unwrap();
}

/// Files that no row names are deleted; `objects` are the uploads that have become objects, with their extents.
async fn sweep(blobs: &Blobs, objects: &[(&str, &[Extent])]) -> u64 {
    let extents_of = async |_, user: BlobUser| {
        let found = objects.iter().find(|(upload, _)| *upload == user.upload);
        Ok(found.map(|(_, extents)| extents.to_vec()))
    };
    blobs.audit_files(extents_of).await.unwrap().chunks
}

/// A blob of three chunks, of which the upload named the first and the last.
async fn with_stray_chunk(blobs: &Blobs) -> Vec<Extent> {
    let mut writer = blobs.begin(user("u")).await.unwrap();
    writer.write(payload(100_000)).await.unwrap();
    let first = writer.persist().await.unwrap().to_vec();
    writer.write(payload(70_000)).await.unwrap();
    writer.persist().await.unwrap();
    drop(writer);
    let mut writer = blobs.resume(user("u"), first).await.unwrap();
    writer.write(payload(80_000)).await.unwrap();
    writer.persist().await.unwrap().to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_no_object_names_goes_when_no_upload_can_name_it_any_more() {
    let objects = memory();
    let clock = Clock::manual(start());
    let node = open(&objects, simulated(&clock)).await;
    let blobs = node.blobs();
    let extents = with_stray_chunk(blobs).await;
    blobs.refer(&extents, &user("copy")).await.unwrap();
    let (own, copy) = (("u", &extents[..]), ("copy", &extents[..]));
    assert_eq!(sweep(blobs, &[]).await, 0, "the upload goes on");
    assert_eq!(sweep(blobs, &[copy]).await, 0, "the upload goes on beside its copy");
    assert_eq!(sweep(blobs, &[own, ("copy", &extents[..1])]).await, 0, "the users do not agree");
    let under_way = blobs.refer(&[], &user("copy")).await.unwrap();
    assert_eq!(sweep(blobs, &[own, copy]).await, 0, "the row of the copy may come");
    drop(under_way);
    let hold = Hold::place(Arc::clone(&objects), &clock).await.unwrap();
    assert_eq!(sweep(blobs, &[own, copy]).await, 0, "a copy of the store is being made");
    hold.release().await;
    let download = blobs.read(&extents, 0..1).await.unwrap();
    assert_eq!(sweep(blobs, &[own, copy]).await, 0, "a download has read a row");
    drop(download);
    let partition = PartitionPrefix::blob(extents[0].blob);
    let lost = partition.blob_row(&BlobRow::User(user("copy")));
    write(&node, &partition, vec![(lost.clone(), None)]).await.unwrap();
    assert_eq!(sweep(blobs, &[own, copy]).await, 0, "the row of a user is lost");
    write(&node, &partition, vec![(lost.clone(), Some(Vec::new()))]).await.unwrap();
    assert_eq!(files(&objects).await.len(), 3);
    assert_eq!(sweep(blobs, &[own, copy]).await, 1);
    assert_eq!(sweep(blobs, &[own, copy]).await, 0);
    let whole = [payload(100_000), payload(80_000)].concat();
    assert_eq!(read(blobs, &extents, 0..180_000).await.unwrap(), whole);
    assert_eq!(files(&objects).await.len(), 2);
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_audit_waits_for_a_row_whose_client_has_hung_up() {
    let objects = memory();
    let (gate, node) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    let whole = payload(100_000);
    let extents = put(node.blobs(), "u", &whole).await;
    let partition = PartitionPrefix::object(user("u").bucket, &user("u").name);
    let row = partition.object_row(&ObjectRow::Head);
    gate.set(Passage::HoldWrites);
    let request = write(&node, &partition, vec![(row.clone(), Some(vec![1]))]);
    assert!(timeout(Duration::from_secs(1), request).await.is_err(), "the row waits at the gate");
    let names = async |_, _| Ok(node.router().get(&row).await?.is_some());
    let from = AuditCursor::default();
    let auditing = node.blobs().audit(&from, names);
    let opening = async {
        sleep(Duration::from_secs(1)).await;
        gate.set(Passage::Open);
    };
    let (audited, ()) = tokio::join!(auditing, opening);
    assert_eq!(audited.unwrap().removed, 0);
    assert_eq!(read(node.blobs(), &extents, 0..100_000).await.unwrap(), whole);
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_download_ends_with_the_first_block_that_is_damaged() {
    let objects = memory();
    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    let whole = payload(2_000_000);
    let extents = put(node.blobs(), "u", &whole).await;
    let file = Path::from(files(&objects).await.remove(0));
    let mut bytes = objects.get(&file).await.unwrap().bytes().await.unwrap().to_vec();
    bytes[600_000] ^= 1;
    objects.put(&file, bytes.into()).await.unwrap();
    let mut download = node.blobs().read(&extents, 0..2_000_000).await.unwrap();
    let mut found = Vec::new();
    while let Ok(piece) = download.try_next().await {
        found.extend_from_slice(&piece.expect("the damage is told"));
    }
    assert!(found.len() < 600_000 && whole.starts_with(&found));
    assert!(download.try_next().await.unwrap().is_none());
    drop(download);
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_written_is_read_in_any_part() {
    let objects = memory();
    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    let whole = payload(3_000_000);
    let mut writer = node.blobs().begin(user("u")).await.unwrap();
    // Chunks of many lengths: some make one extent, others do not.
    let mut at = 0;
    for length in [1, 65_536, 65_536, 65_536, 65_535, 65_537, 700_000, 262_144, 262_144, 1_448_031] {
        writer.write(whole.slice(at..at + length)).await.unwrap();
        at += length;
        let extents = writer.persist().await.unwrap();
        assert_eq!(extents.iter().map(|extent| extent.bytes).sum::<u64>(), at as u64);
    }
    let extents = writer.extents().to_vec();
    assert!(extents.len() < 10, "{extents:?}");
    assert_eq!((at, crc32c_of(&extents)), (whole.len(), crc32c::crc32c(&whole)));
    for edge in [0, 1, 65_536, 65_537, 262_144, 1_000_000, 3_000_000_u64] {
        for length in [0, 1, 65_535, 65_536, 300_000, 3_000_000] {
            let bytes = edge..(edge + length).min(3_000_000);
            let expected = &whole[bytes.start as usize..bytes.end as usize];
            assert_eq!(read(node.blobs(), &extents, bytes.clone()).await.unwrap(), expected, "{bytes:?}");
        }
    }
    // A payload that was composed of the same bytes twice.
    let twice = [&extents[..], &extents[..]].concat();
    let seam = read(node.blobs(), &twice, 2_999_000..3_001_000).await.unwrap();
    assert_eq!(seam, [&whole[2_999_000..], &whole[..1_000]].concat());
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_upload_goes_on_after_a_crash_with_what_was_durable() {
    let objects = memory();
    let whole = payload(900_000);
    let (gate, node) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    let mut writer = node.blobs().begin(user("u")).await.unwrap();
    writer.write(whole.slice(..400_000)).await.unwrap();
    let durable = writer.persist().await.unwrap().to_vec();
    // A chunk that is durable, and of which no row ever told.
    writer.write(whole.slice(400_000..500_000)).await.unwrap();
    writer.persist().await.unwrap();
    writer.write(whole.slice(500_000..800_000)).await.unwrap();
    gate.set(Passage::Dead);
    drop(writer);

    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    let mut writer = node.blobs().resume(user("u"), durable).await.unwrap();
    assert_eq!(writer.bytes(), 400_000);
    writer.write(whole.slice(400_000..)).await.unwrap();
    let extents = writer.persist().await.unwrap().to_vec();
    assert_eq!(read(node.blobs(), &extents, 0..900_000).await.unwrap(), whole);
    drop(writer);
    audit(node.blobs(), &["u"]).await;
    assert_eq!(read(node.blobs(), &extents, 0..900_000).await.unwrap(), whole);
    node.blobs().release(&extents, &user("u")).await.unwrap();
    assert_eq!((files(&objects).await, rows(&node).await), (vec![], 0));
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_user_and_the_last_download_let_the_files_go() {
    let objects = memory();
    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    let blobs = node.blobs();
    let whole = payload(500_000);
    let extents = put(blobs, "first", &whole).await;
    blobs.refer(&extents, &user("copy")).await.unwrap();
    blobs.refer(&extents, &user("copy")).await.unwrap();
    for _ in 0..2 {
        blobs.release(&extents, &user("first")).await.unwrap();
        assert_eq!(read(blobs, &extents, 0..500_000).await.unwrap(), whole);
    }
    let mut download = blobs.read(&extents, 0..500_000).await.unwrap();
    let first = download.try_next().await.unwrap().unwrap();
    blobs.release(&extents, &user("copy")).await.unwrap();
    assert!(matches!(blobs.refer(&extents, &user("late")).await, Err(BlobError::Gone(_))));
    assert!(matches!(blobs.read(&extents, 0..1).await.err(), Some(BlobError::Gone(_))));
    audit(blobs, &[]).await;
    let rest: Vec<Bytes> = download.try_collect().await.unwrap();
    assert_eq!([vec![first], rest].concat().concat(), whole);
    // The last pin is gone, and the task that buries goes on.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!((files(&objects).await, rows(&node).await), (vec![], 0));
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn while_a_copy_holds_the_blobs_nothing_of_them_goes() {
    let objects = memory();
    let clock = Clock::manual(start());
    let node = open(&objects, simulated(&clock)).await;
    let extents = put(node.blobs(), "u", &payload(100_000)).await;
    let hold = Hold::place(Arc::clone(&objects), &clock).await.unwrap();
    node.blobs().release(&extents, &user("u")).await.unwrap();
    audit(node.blobs(), &[]).await;
    assert_eq!((files(&objects).await.len(), rows(&node).await), (1, 2));
    hold.release().await;
    audit(node.blobs(), &[]).await;
    assert_eq!((files(&objects).await, rows(&node).await), (vec![], 0));
    // A hold of a copy that died ends by itself.
    let extents = put(node.blobs(), "v", &payload(100_000)).await;
    let hold = Hold::place(Arc::clone(&objects), &clock).await.unwrap();
    node.blobs().release(&extents, &user("v")).await.unwrap();
    assert_eq!(rows(&node).await, 2);
    clock.step(3 * 3_600 * rangehold_map::Timestamp::TICKS_PER_SECOND);
    audit(node.blobs(), &[]).await;
    assert_eq!((files(&objects).await, rows(&node).await), (vec![], 0));
    drop(hold);
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_discarded_upload_leaves_nothing_and_one_under_way_is_not_asked() {
    let objects = memory();
    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    let mut writer = node.blobs().begin(user("u")).await.unwrap();
    writer.write(payload(600_000)).await.unwrap();
    writer.persist().await.unwrap();
    writer.write(payload(600_000)).await.unwrap();
    audit(node.blobs(), &[]).await;
    writer.write(payload(10)).await.unwrap();
    assert_eq!(read(node.blobs(), writer.extents(), 0..600_000).await.unwrap(), payload(600_000));
    writer.discard().await.unwrap();
    assert_eq!((files(&objects).await, rows(&node).await), (vec![], 0));
    node.close().await;
}

/// The process dies after each step. The next one has every blob that a row names, and its audit removes the rest.
#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_step_the_audit_leaves_what_is_named_and_nothing_else() {
    for died_after in BlobStep::ALL {
        // The number of times that the step is reached before the process dies there.
        for turn in 0..3 {
            let objects = memory();
            let gate = Gate::before(&objects);
            let left = Arc::new(Mutex::new(turn));
            let hook = {
                let (gate, left) = (Arc::clone(&gate), Arc::clone(&left));
                BlobHook::new(move |step, _| {
                    let (gate, left) = (Arc::clone(&gate), Arc::clone(&left));
                    async move {
                        let dies = step == died_after && {
                            let mut left = left.lock().unwrap();
                            *left -= 1;
                            *left < 0
                        };
                        if dies {
                            gate.set(Passage::Dead);
                            std::future::pending::<()>().await;
                        }
                    }
                })
            };
            let options = Options { after_blob_step: hook, ..simulated(&Clock::manual(start())) };
            let gated: Arc<dyn ObjectStore> = gate.clone();
            let node = open(&gated, options).await;
            let whole = payload(300_000);
            // What a server would have in its rows: the living uploads, with their extents.
            let named: Mutex<Vec<(&str, Vec<Extent>)>> = Mutex::default();
            let work = async {
                let note =
                    |upload, extents: &[Extent]| named.lock().unwrap().push((upload, extents.to_vec()));
                let forget = |upload| named.lock().unwrap().retain(|(other, _)| *other != upload);
                let first = put(node.blobs(), "first", &whole).await;
                note("first", &first);
                let second = put(node.blobs(), "second", &whole).await;
                note("second", &second);
                node.blobs().refer(&first, &user("copy")).await.unwrap();
                note("copy", &first);
                forget("first");
                node.blobs().release(&first, &user("first")).await.unwrap();
                forget("second");
                node.blobs().release(&second, &user("second")).await.unwrap();
                let third = put(node.blobs(), "third", &whole).await;
                note("third", &third);
                node.blobs().refer(&third, &user("last")).await.unwrap();
                note("last", &third);
                forget("copy");
                node.blobs().release(&first, &user("copy")).await.unwrap();
            };
            let _ = tokio::time::timeout(std::time::Duration::from_secs(60), work).await;
            gate.set(Passage::Dead);

            let node = open(&objects, simulated(&Clock::manual(start()))).await;
            let named = named.lock().unwrap().clone();
            let living: Vec<&str> = named.iter().map(|(upload, _)| *upload).collect();
            audit(node.blobs(), &living).await;
            for (upload, extents) in &named {
                let bytes = read(node.blobs(), extents, 0..300_000).await.unwrap();
                assert_eq!(bytes, whole, "{upload} after {died_after:?} {turn}");
            }
            let blobs: BTreeSet<_> = named.iter().map(|(_, extents)| extents[0].blob).collect();
            assert_eq!(files(&objects).await.len(), blobs.len(), "after {died_after:?} {turn}");
            assert_eq!(rows(&node).await, blobs.len() + living.len(), "after {died_after:?} {turn}");
            node.close().await;
        }
    }
}

#[tokio::test]
async fn a_damaged_or_missing_chunk_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let location = StoreLocation::Directory(directory.path().to_owned());
    let options = StoreOptions { unsafe_no_fsync: true, ..StoreOptions::default() };
    let open = || async {
        let store = Store::open(&location, options).unwrap();
        Node::open(store, Options::new(crate::support::MEMORY, Clock::system(), 1)).await.unwrap()
    };
    let node = open().await;
    let whole = payload(5_000_000);
    let extents = put(node.blobs(), "u", &whole).await;
    assert_eq!(read(node.blobs(), &extents, 0..5_000_000).await.unwrap(), whole);
    node.close().await;
    let file = directory.path().join(format!("blobs/{}/0.chunk", extents[0].blob));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[2_000_000] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let node = open().await;
    assert_eq!(read(node.blobs(), &extents, 0..1_900_000).await.unwrap(), whole[..1_900_000]);
    let refused = |result: Result<Vec<u8>, BlobError>| match result {
        Err(BlobError::Damaged(damage)) => damage.to_string(),
        other => panic!("{other:?}"),
    };
    let told = refused(read(node.blobs(), &extents, 1_900_000..2_100_000).await);
    assert!(told.contains("0.chunk"), "{told}");
    node.close().await;
    std::fs::remove_file(&file).unwrap();
    let node = open().await;
    let told = refused(read(node.blobs(), &extents, 0..1).await);
    assert!(told.contains("0.chunk"), "{told}");
    node.close().await;
}

//! Damage: a file of each kind is changed on disk, and every row is read.
//!
//! The rule: either all rows are right, or an error names the file. There is never a wrong or missing row, never a
//! panic, and never a wait without end.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use proptest::test_runner::{RngAlgorithm, TestRng};
use rangehold_engine::store::{Store, StoreError, StoreLocation, StoreOptions, check_log, damaged_file};
use rangehold_engine::{Clock, Node, Options};
use slatedb::config::{DurabilityLevel, FlushOptions, FlushType, ReadOptions, ScanOptions, Settings};
use slatedb::{Db, WriteBatch};

const RANGE: &str = "ranges/1-1-1";
const JOURNAL: &str = "journal";
const ROWS: u32 = 900;

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn settings(compacting: bool) -> Settings {
    let mut settings =
        Settings { flush_interval: None, garbage_collector_options: None, ..Settings::default() };
    settings.compactor_options = settings.compactor_options.filter(|_| compacting).map(|mut options| {
        options.poll_interval = Duration::from_millis(20);
        options
    });
    settings
}

fn store(directory: &Path) -> Store {
    open_store(directory).unwrap()
}

fn open_store(directory: &Path) -> Result<Store, StoreError> {
    let location = StoreLocation::Directory(directory.to_owned());
    // This test is not about loss of power. Without syncs, its many openings take a third of the time.
    Store::open(&location, StoreOptions { unsafe_no_fsync: true, ..StoreOptions::default() })
}

async fn open(store: &Store, compacting: bool) -> Result<Db, slatedb::Error> {
    Db::builder(RANGE, store.object_store()).with_settings(settings(compacting)).build().await
}

fn value(row: u32) -> Vec<u8> {
    row.to_be_bytes().repeat(40)
}

async fn put(db: &Db, rows: std::ops::Range<u32>) {
    let mut batch = WriteBatch::new();
    for row in rows {
        batch.put(row.to_be_bytes(), value(row));
    }
    db.write(batch).await.unwrap();
    db.flush_with_options(FlushOptions { flush_type: FlushType::Wal }).await.unwrap();
}

/// Makes a database with a file of each kind: compacted runs, a level 0, a log that has to be replayed.
async fn make(directory: &Path) {
    let store = store(directory);
    let db = open(&store, true).await.unwrap();
    for tenth in 0..8 {
        put(&db, tenth * 100..(tenth + 1) * 100).await;
        db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await.unwrap();
    }
    while db.manifest().compacted().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    db.close().await.unwrap();
    let db = open(&store, false).await.unwrap();
    put(&db, 800..820).await;
    db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await.unwrap();
    for row in (820..ROWS).step_by(20) {
        put(&db, row..row + 20).await;
    }
    // The database is not closed, because that would move the log into a sorted file.
}

/// Checks whether the log is whole, as the engine does before it opens a database.
async fn check_that_log_is_whole(store: &Store) -> Result<(), String> {
    let admin = slatedb::admin::Admin::builder(RANGE, store.object_store()).build();
    let told = |error: &(dyn std::error::Error + 'static)| match damaged_file(error) {
        Some(damaged) => damaged.to_string(),
        None => error.to_string(),
    };
    let manifest = admin.read_manifest(None).await.map_err(|error| told(&error))?.unwrap();
    check_log(&store.object_store(), RANGE, manifest.replay_after_wal_id())
        .await
        .map(drop)
        .map_err(|error| told(&error))
}

/// Opens the database and reads everything. Returns Ok if every row is right, and otherwise what the error says.
async fn read_all(directory: &Path, compacting: bool) -> Result<(), String> {
    let store = open_store(directory).map_err(|error| error.to_string())?;
    let told = |error: slatedb::Error| match damaged_file(&error) {
        Some(damaged) => damaged.to_string(),
        None => format!("{error:?} / {error}"),
    };
    check_that_log_is_whole(&store).await?;
    let db = open(&store, compacting).await.map_err(told)?;
    let options = ScanOptions { durability_filter: DurabilityLevel::Remote, ..ScanOptions::default() };
    let mut rows = db.scan_with_options(.., &options).await.map_err(told)?;
    let get = ReadOptions { durability_filter: DurabilityLevel::Remote, ..ReadOptions::default() };
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next().await.map_err(told)? {
        found.insert(row.key.to_vec(), row.value.to_vec());
    }
    for row in (0..ROWS).step_by(30) {
        let one = db.get_with_options(row.to_be_bytes(), &get).await.map_err(told)?;
        assert_eq!(one.as_deref(), Some(&value(row)[..]), "row {row} is wrong or lost");
    }
    let wanted: BTreeMap<_, _> = (0..ROWS).map(|row| (row.to_be_bytes().to_vec(), value(row))).collect();
    assert_eq!(found.len(), wanted.len());
    assert!(found == wanted, "a scan shows wrong rows");
    if compacting {
        // This is time for the compactor to read the record of its own work.
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    db.get_with_options([0], &get).await.map_err(told)?;
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The directory of the segments in the journal, which has another name after each opening.
fn owner_of_journal(directory: &Path) -> String {
    let directories = files(&directory.join(JOURNAL));
    directories[0].file_name().unwrap().to_str().unwrap().to_owned()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Damages one file of a copy of `original` and reads the copy. Returns in words what happened.
async fn outcome(original: &Path, file: &Path, damage: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) -> String {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(original, copy.path());
    let damaged = copy.path().join(file);
    match damage(fs::read(&damaged).unwrap()) {
        Some(bytes) => fs::write(&damaged, bytes).unwrap(),
        None => fs::remove_file(&damaged).unwrap(),
    }
    let root = copy.path().to_owned();
    let compacting = file.to_str().unwrap().contains("compactions");
    let reading = tokio::spawn(async move { read_all(&root, compacting).await });
    let name = file.file_name().unwrap().to_str().unwrap();
    let before = PANICS.load(Ordering::Relaxed);
    let result = match tokio::time::timeout(Duration::from_secs(20), reading).await {
        Err(_) => "HANGS".to_owned(),
        Ok(Err(panic)) => format!("WRONG {panic}"),
        Ok(Ok(Ok(()))) => "right".to_owned(),
        Ok(Ok(Err(told))) if told.contains(name) => "named".to_owned(),
        Ok(Ok(Err(told))) => format!("UNNAMED {told}"),
    };
    if PANICS.load(Ordering::Relaxed) > before { format!("PANIC {result}") } else { result }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused_by_name_and_never_served() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        hook(info);
    }));
    let original = tempfile::tempdir().unwrap();
    make(original.path()).await;
    let root = original.path().to_owned();
    let relative = |file: &PathBuf| file.strip_prefix(&root).unwrap().to_owned();
    let mut chance = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut pick = move |below: usize| {
        use proptest::prelude::Rng;
        (chance.next_u64() % below as u64) as usize
    };
    let mut seen: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    for (kind, directory) in [
        ("manifest", format!("{RANGE}/manifest")),
        ("journal", format!("{JOURNAL}/{}", owner_of_journal(original.path()))),
        ("compacted", format!("{RANGE}/compacted")),
        ("compactions", format!("{RANGE}/compactions")),
    ] {
        let mut kind_files = files(&original.path().join(directory));
        kind_files.retain(|file| file.file_name().unwrap() != "synced");
        assert_eq!(outcome(original.path(), &relative(&kind_files[0]), Some).await, "right");
        for attempt in 0..50 {
            // Only the newest files count.
            let newest = pick(kind_files.len().min(4)) + 1;
            let file = &relative(&kind_files[kind_files.len() - newest]);
            let (at, bit) = (pick(1 << 20), pick(8));
            let flipped = outcome(original.path(), file, |mut bytes| {
                // A segment ends in zeros that nobody reads.
                let written = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
                bytes[at % written] ^= 1 << bit;
                Some(bytes)
            });
            *seen.entry((kind, "flipped", flipped.await)).or_default() += 1;
            if attempt % 5 > 0 {
                continue;
            }
            let cut = outcome(original.path(), file, |bytes| Some(bytes[..at % bytes.len()].to_vec()));
            *seen.entry((kind, "cut", cut.await)).or_default() += 1;
            let emptied = outcome(original.path(), file, |_| Some(Vec::new()));
            *seen.entry((kind, "emptied", emptied.await)).or_default() += 1;
            // No other file names the last segment of the journal, so nothing can notice that it is missing.
            if (kind, newest) != ("journal", 1) {
                let missing = outcome(original.path(), file, |_| None);
                *seen.entry((kind, "missing", missing.await)).or_default() += 1;
            }
        }
    }
    for (what, times) in &seen {
        println!("{what:?} {times}");
    }
    let named: usize = seen.iter().filter(|((_, _, how), _)| how == "named").map(|(_, times)| times).sum();
    assert!(named > 100, "the damage hits what nobody reads: {named}");
    let bad: Vec<_> = seen.keys().filter(|(_, _, how)| how != "right" && how != "named").collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[tokio::test]
async fn a_server_does_not_open_a_log_with_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path()).await;
    let objects = store(directory.path()).object_store();
    let log: Vec<_> = objects.list(Some(&format!("{RANGE}/wal").into())).try_collect().await.unwrap();
    let mut log: Vec<_> = log.into_iter().map(|file| file.location).collect();
    log.sort_unstable();
    let missing = &log[log.len() - 2];
    objects.delete(missing).await.unwrap();
    let map = br#"{"format":1,"version":1,"ranges":[{"id":1,"low":"10","high":null,"generation":1,"attempt":1,"server":1}]}"#;
    objects.put(&"cluster/map/00000000000000000001.json".into(), map.to_vec().into()).await.unwrap();
    drop(objects);
    let options = Options::new(64 << 20, Clock::system(), 1);
    let Err(refused) = Node::open(store(directory.path()), options).await else {
        panic!("opened, with rows lost");
    };
    let (refused, missing) = (refused.to_string(), missing.filename().unwrap());
    assert!(refused.contains(missing), "{refused}");
}

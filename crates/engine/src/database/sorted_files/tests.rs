//! Sorted files against the database's own scan: both must show the same rows of each snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rangehold_map::KeyRange;
use slatedb::config::FlushType;
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache, SplitCache};
use slatedb::{Db, DbSnapshot};
use tokio::runtime::{Handle, Runtime};

use super::SortedFiles;
use crate::Clock;
use crate::database::{Databases, LeaveOut, Place, Shares, create, flush};
use crate::limits::{L0_FILES_MAX, MEMORY_BYTES_MIN};
use crate::store::Store;

/// Rows are so large that a file has several blocks, with some rows in each.
const VALUE_BYTES: usize = 3_000;
const KEYS: u16 = 60;
const FILES_MAX: usize = L0_FILES_MAX - 2;

#[derive(Debug, Clone)]
enum Step {
    Put(u16),
    Delete(u16),
    /// Writes all rows in memory to a new file.
    Sort,
    /// Makes a snapshot, and keeps it to the end.
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..KEYS).prop_map(Step::Put),
        5 => (0..KEYS).prop_map(Step::Delete),
        2 => Just(Step::Sort),
        1 => Just(Step::Snapshot),
    ]
}

fn key(number: u16) -> Bytes {
    Bytes::from(format!("{number:03}"))
}

/// What is needed to make a database in memory.
fn databases() -> (Databases, Place) {
    let objects = Store::in_memory().object_store();
    let shares = Shares::of(MEMORY_BYTES_MIN).unwrap();
    let databases = Databases::new(objects, shares, Clock::system(), 1, Handle::current());
    let filter = Arc::new(LeaveOut::new(Arc::default()));
    let place = Place { path: "ranges/test".to_owned(), cache_id: 1, filter };
    (databases, place)
}

/// A database in memory, with what is needed to read its files.
async fn database() -> (Databases, Place, Db) {
    let (databases, place) = databases();
    let db = create(&databases, &place).await.unwrap();
    (databases, place, db)
}

/// Carries out the steps and moves everything into files at the end. Returns the snapshots. Nothing compacts the files, so it
/// makes no more of them than the database takes.
async fn carry_out(db: &Db, steps: &[Step]) -> Vec<Arc<DbSnapshot>> {
    let mut snapshots = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Put(of) => {
                let value = [number.to_string().as_bytes(), &vec![b'.'; VALUE_BYTES]].concat();
                drop(db.put(key(*of), value).await.unwrap());
            }
            Step::Delete(of) => drop(db.delete(key(*of)).await.unwrap()),
            Step::Sort if db.manifest().l0().len() >= FILES_MAX => {}
            Step::Sort => flush(db, FlushType::MemTable).await.unwrap(),
            Step::Snapshot => snapshots.push(db.snapshot().unwrap()),
        }
    }
    flush(db, FlushType::MemTable).await.unwrap();
    snapshots.push(db.snapshot().unwrap());
    snapshots
}

/// All rows that a snapshot shows.
async fn shown(snapshot: &DbSnapshot) -> BTreeMap<Bytes, Bytes> {
    let mut rows = snapshot.scan::<std::ops::RangeFull>(..).await.unwrap();
    let mut shown = BTreeMap::new();
    while let Some(row) = rows.next().await.unwrap() {
        shown.insert(row.key, row.value);
    }
    shown
}

/// Scans files as a visitor that sometimes goes on at a later key.
async fn compare(
    files: &Arc<SortedFiles>,
    expected: &BTreeMap<Bytes, Bytes>,
    newest: u64,
    (low, high): (u16, Option<u16>),
    seeks: &[u16],
) {
    let keys = KeyRange::new(key(low).to_vec(), high.map(|high| key(high).to_vec()));
    let mut scan = files.scan(&keys, newest, low % 2 == 0);
    let mut seeks = seeks.iter();
    let mut from = key(low);
    loop {
        let end = high.map_or_else(|| Bytes::from_static(b"~"), key);
        let next = if from < end { expected.range(from.clone()..end).next() } else { None };
        let found = scan.next().await.unwrap();
        assert_eq!(found.as_ref().map(|(key, value)| (key, value)), next, "from {from:?} of {keys:?}");
        let Some((row, _)) = found else { break };
        from = [&row, &b"\0"[..]].concat().into();
        assert_eq!(scan.reached(), from);
        // Each second row is followed by the next one.
        if let Some(sought) = seeks.next().map(|number| key(*number)).filter(|sought| *sought > row) {
            scan.seek(&sought);
            from = sought;
            assert_eq!(scan.reached(), from);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn files_show_what_the_database_shows(
        steps in vec(step(), 1..250),
        low in 0..KEYS,
        high in proptest::option::of(0..KEYS),
        seeks in vec(0..KEYS, 0..20),
    ) {
        Runtime::new().unwrap().block_on(async {
            let (databases, place, db) = database().await;
            for snapshot in carry_out(&db, &steps).await {
                let files = Arc::new(databases.file_reader(&place.path).files(&db.manifest()));
                let expected = shown(&snapshot).await;
                compare(&files, &expected, snapshot.seq(), (low, high), &seeks).await;
                compare(&files, &expected, snapshot.seq(), (0, None), &[]).await;
            }
        });
    }
}

#[tokio::test]
async fn two_files_with_keys_that_follow_each_other_are_shown_as_one() {
    let (databases, place, db) = database().await;
    let mut steps: Vec<_> = (0..KEYS).map(Step::Put).collect();
    steps.insert(usize::from(KEYS) / 2, Step::Sort);
    let snapshots = carry_out(&db, &steps).await;
    let manifest = db.manifest();
    assert_eq!(manifest.l0().len(), 2, "this test needs two files");
    let files = Arc::new(databases.file_reader(&place.path).files(&manifest));
    assert!(files.are_of(&manifest));
    let mut scan = files.scan(&KeyRange::whole(), snapshots[0].seq(), false);
    let mut found = Vec::new();
    while let Some((key, _)) = scan.next().await.unwrap() {
        found.push(key);
    }
    assert_eq!(found, (0..KEYS).map(key).collect::<Vec<_>>());
}

/// A cache that keeps nothing and counts the blocks that it is given.
#[derive(Default)]
struct CountedBlocks(AtomicU64);

#[async_trait]
impl DbCache for CountedBlocks {
    async fn get_block(&self, _: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        Ok(None)
    }
    async fn get_index(&self, _: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        Ok(None)
    }
    async fn get_filter(&self, _: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        Ok(None)
    }
    async fn get_stats(&self, _: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        Ok(None)
    }
    async fn insert(&self, _: CachedKey, _: CachedEntry) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    async fn remove(&self, _: &CachedKey) {}
    fn entry_count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_flush_leaves_no_blocks_in_their_cache() {
    let (mut databases, place) = databases();
    let blocks = Arc::new(CountedBlocks::default());
    let all = SplitCache::new().with_block_cache(Some(Arc::clone(&blocks) as Arc<dyn DbCache>));
    databases.caches.all = Arc::new(all.build());
    let db = create(&databases, &place).await.unwrap();
    carry_out(&db, &(0..KEYS).map(Step::Put).collect::<Vec<_>>()).await;
    assert_eq!(blocks.entry_count(), 0);
    let files = Arc::new(databases.file_reader(&place.path).files(&db.manifest()));
    let mut scan = files.scan(&KeyRange::whole(), u64::MAX, true);
    while scan.next().await.unwrap().is_some() {}
    assert!(blocks.entry_count() > 0, "this test could not see a block that is kept");
}

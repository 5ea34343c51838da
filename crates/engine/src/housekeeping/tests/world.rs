//! A directory of databases that are split and merged, and the rows that they must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rangehold_map::KeyRange;
use slatedb::config::{CheckpointOptions, CheckpointScope, DurabilityLevel, FlushType, ScanOptions};
use slatedb::{CloneSourceSpec, Db};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::super::burial::Burial;
use super::super::keep_house;
use super::super::limits::UNUSED_BEFORE_BURIAL;
use crate::clock::Clock;
use crate::database::{
    self, Borrowed, Databases, DroppedTables, LeaveOut, NEWEST_FILE_KEY, Place, Shares, flush,
};
use crate::limits::MEMORY_BYTES_MIN;
use crate::store::{Store, StoreLocation, StoreOptions};
use crate::tasks::Tasks;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Keys = (Bound<Bytes>, Bound<Bytes>);

/// A range. Its database holds the rows from `low` up to the `low` of the next range.
pub(super) struct Range {
    pub(super) path: String,
    pub(super) low: Vec<u8>,
    pub(super) db: Db,
}

/// A store on a directory, the ranges that live in it, and all rows that they must hold.
pub(super) struct World {
    pub(super) directory: TempDir,
    pub(super) store: Arc<Store>,
    pub(super) databases: Databases,
    pub(super) ranges: Vec<Range>,
    pub(super) rows: Rows,
    pub(super) burial: Burial,
    pub(super) databases_made: u64,
    pub(super) _tasks: Tasks,
}

impl World {
    /// A world with one empty range.
    pub(super) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = StoreLocation::Directory(directory.path().to_owned());
        let store = Store::open(&location, StoreOptions::default()).unwrap();
        // Files have real times, so the clock begins with the real time. From then on it follows the time
        // of tokio.
        let clock = Clock::manual(Clock::system().wall());
        let shares = Shares::of(MEMORY_BYTES_MIN).unwrap();
        let databases = Databases::new(store.object_store(), shares, clock, 1, Handle::current());
        let mut tasks = Tasks::default();
        tasks.spawn("the housekeeper".to_owned(), keep_house(databases.clone()));
        let mut world = Self {
            directory,
            store: Arc::new(store),
            databases,
            ranges: Vec::new(),
            rows: Rows::new(),
            burial: Burial::default(),
            databases_made: 0,
            _tasks: tasks,
        };
        let path = world.next_path();
        let db = database::create(&world.databases, &place(&path)).await.unwrap();
        world.ranges.push(Range { path, low: Vec::new(), db });
        world
    }

    pub(super) fn next_path(&mut self) -> String {
        self.databases_made += 1;
        format!("ranges/{}-1-1", self.databases_made)
    }

    fn index_of(&self, key: &[u8]) -> usize {
        self.ranges.partition_point(|range| range.low.as_slice() <= key) - 1
    }

    pub(super) async fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        let range = &self.ranges[self.index_of(&key)];
        range.db.put(&key, &value).await.unwrap();
        self.rows.insert(key, value);
    }

    pub(super) async fn flush_all(&self) {
        for range in &self.ranges {
            flush(&range.db, FlushType::Wal).await.unwrap();
            flush(&range.db, FlushType::MemTable).await.unwrap();
        }
    }

    /// Prepares a range to be cloned, and returns the checkpoint to clone.
    async fn freeze(&self, index: usize) -> CloneSourceSpec {
        let Range { path, db, .. } = &self.ranges[index];
        self.databases.housekeeper.leave(path).await;
        db.put(NEWEST_FILE_KEY, []).await.unwrap();
        flush(db, FlushType::Wal).await.unwrap();
        flush(db, FlushType::MemTable).await.unwrap();
        let lifetime = Some(Duration::from_secs(60));
        let options = CheckpointOptions { lifetime, ..CheckpointOptions::default() };
        let checkpoint = db.create_checkpoint(CheckpointScope::Durable, &options).await.unwrap();
        db.close().await.unwrap();
        CloneSourceSpec::with_checkpoint(path.as_str(), checkpoint.id)
    }

    /// The keys from `low` up to `high`, without the rows that ranges keep about themselves.
    fn keys(low: &[u8], high: Option<&[u8]>) -> Keys {
        let low = if low.is_empty() { vec![0x10] } else { low.to_vec() };
        let high = high.map_or(Bound::Unbounded, |high| Bound::Excluded(Bytes::copy_from_slice(high)));
        (Bound::Included(low.into()), high)
    }

    async fn clone_of(&mut self, sources: Vec<CloneSourceSpec>) -> String {
        let path = self.next_path();
        let admin = self.databases.admin(&path);
        let mut sources = sources.into_iter();
        let mut builder = admin.create_clone_builder_from_source(sources.next().unwrap());
        for source in sources {
            builder = builder.with_source(source);
        }
        builder.with_system_clock(self.databases.clock.for_database()).build().await.unwrap();
        path
    }

    pub(super) async fn open(&self, path: &str) -> Db {
        database::open(&self.databases, &place(path), None).await.unwrap()
    }

    fn high(&self, index: usize) -> Option<Vec<u8>> {
        self.ranges.get(index + 1).map(|next| next.low.clone())
    }

    pub(super) fn may_change(&self, index: usize) -> bool {
        Borrowed::in_manifest(&self.ranges[index].db.manifest()).lets_split()
    }

    /// Splits the range that holds `at` there, unless the range begins there. With `lost`, an attempt that
    /// is never used is made before.
    pub(super) async fn split(&mut self, at: Vec<u8>, lost: bool) {
        let index = self.index_of(&at);
        if self.ranges[index].low == at || !self.may_change(index) {
            return;
        }
        let (low, high) = (self.ranges[index].low.clone(), self.high(index));
        let source = self.freeze(index).await;
        let left = source.clone().with_projection_range(Self::keys(&low, Some(&at)));
        let right = source.with_projection_range(Self::keys(&at, high.as_deref()));
        if lost {
            self.clone_of(vec![left.clone()]).await;
        }
        let left = self.clone_of(vec![left]).await;
        let right = self.clone_of(vec![right]).await;
        let left = Range { db: self.open(&left).await, path: left, low };
        let right = Range { db: self.open(&right).await, path: right, low: at };
        self.ranges.splice(index..=index, [left, right]);
    }

    /// Merges the range that holds `at` with its right neighbour.
    pub(super) async fn merge(&mut self, at: &[u8]) {
        let index = self.index_of(at);
        if index + 1 >= self.ranges.len() || !self.may_change(index) || !self.may_change(index + 1) {
            return;
        }
        let (low, middle) = (self.ranges[index].low.clone(), self.ranges[index + 1].low.clone());
        let high = self.high(index + 1);
        let left = self.freeze(index).await.with_projection_range(Self::keys(&low, Some(&middle)));
        let right = self.freeze(index + 1).await.with_projection_range(Self::keys(&middle, high.as_deref()));
        let merged = self.clone_of(vec![left, right]).await;
        let merged = Range { db: self.open(&merged).await, path: merged, low };
        self.ranges.splice(index..=index + 1, [merged]);
    }

    pub(super) fn living(&self) -> BTreeSet<String> {
        self.ranges.iter().map(|range| range.path.clone()).collect()
    }

    /// Lets time pass, and looks for dead databases now and then.
    pub(super) async fn pass(&mut self, seconds: u64) {
        let every = UNUSED_BEFORE_BURIAL.as_secs() / 2;
        for _ in 0..seconds.div_ceil(every) {
            sleep(Duration::from_secs(every)).await;
            let living = self.living();
            let databases = self.databases.clone();
            self.burial.look(&databases, &self.store, || async { Ok(living.clone()) }).await.unwrap();
        }
    }

    /// Checks that each range shows its rows as read from its files. Rows that were read before do not
    /// count.
    pub(super) async fn check(&self) {
        let mut found = Rows::new();
        for (index, range) in self.ranges.iter().enumerate() {
            let keys = Self::keys(&range.low, self.high(index).as_deref());
            let options =
                ScanOptions { durability_filter: DurabilityLevel::Memory, ..ScanOptions::default() };
            let mut rows = range.db.scan_with_options(keys, &options).await.unwrap();
            while let Some(row) = rows.next().await.unwrap() {
                found.insert(row.key.to_vec(), row.value.to_vec());
            }
        }
        assert!(found == self.rows, "{} rows of {}", found.len(), self.rows.len());
        self.check_files().await;
    }

    /// Checks that the sorted files of each range show its rows, if it has none in memory.
    async fn check_files(&self) {
        for (index, range) in self.ranges.iter().enumerate() {
            let snapshot = range.db.snapshot().unwrap();
            let files = Arc::new(self.databases.file_reader(&range.path).files(&range.db.manifest()));
            if files.sequence() < snapshot.seq() {
                continue;
            }
            let (low, high) = (range.low.clone().max(vec![0x10]), self.high(index));
            let end = high.clone().map_or(Bound::Unbounded, Bound::Excluded);
            let expected = self.rows.range((Bound::Included(low.clone()), end));
            let mut scan = files.scan(&KeyRange::new(low, high), snapshot.seq(), false);
            for (key, value) in expected {
                let (found, its) = scan.next().await.unwrap().expect("a row is missing in the files");
                assert!(found == key && its == value, "{found:?} instead of {key:?}");
            }
            assert_eq!(scan.next().await.unwrap(), None);
        }
    }

    pub(super) fn directories(&self) -> BTreeSet<String> {
        let listed = fs::read_dir(self.directory.path().join("ranges")).unwrap();
        listed.map(|entry| format!("ranges/{}", entry.unwrap().file_name().to_str().unwrap())).collect()
    }

    pub(super) fn bytes_on_disk(&self) -> u64 {
        let files = files(&self.directory.path().join("ranges"));
        files.iter().map(|file| fs::metadata(file).unwrap().len()).sum()
    }

    pub(super) fn borrowed(&self) -> Vec<Borrowed> {
        self.ranges.iter().map(|range| Borrowed::in_manifest(&range.db.manifest())).collect()
    }
}

pub(super) fn place(path: &str) -> Place {
    let filter = Arc::new(LeaveOut::new(Arc::<DroppedTables>::default()));
    let number = path.split(['/', '-']).nth(1).unwrap().parse().unwrap();
    Place { path: path.to_owned(), cache_id: number, filter }
}

pub(super) fn files(directory: &FilePath) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

pub(super) fn key(number: u32) -> Vec<u8> {
    format!("k{number:06}").into_bytes()
}

/// Two hundred bytes that do not repeat.
pub(super) fn value(number: u32) -> Vec<u8> {
    (0..25u64)
        .flat_map(|i| (u64::from(number) * 31 + i).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .collect()
}

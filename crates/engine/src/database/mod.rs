//! Opens the database of a range, and decides with which settings.
//!
//! The engine's own `open` makes an empty database where there is none, without a word. Then a wrong path
//! or deleted files would look like a table without rows. So there are two functions here, and each refuses
//! the other's case: [`create`] where nothing is, [`open`] where a manifest is.
//!
//! The parts that the engine would give each database by default are replaced. Caches are shared by all
//! ranges and memtables are small, since the defaults are for each database and add up. The housekeeper
//! compacts and collects garbage. The clock is ours, set beyond all times that the database has seen
//! (`latest`). A database that gets no requests does nothing at all.

mod background;
mod borrowed;
mod dropped;
mod error;
mod housekeeper;
mod latest;
mod marks;
mod shares;
mod sorted_files;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::path::Path;
use rangehold_map::DatabaseName;
use rangehold_map::key::KIND_RANGE_META;
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::manifest::VersionedManifest;
use slatedb::{BlockCachePolicy, CacheTarget, CompactionFilterSupplier, Db, SstBlockSize};
use tokio::runtime::Handle;

pub(crate) use background::Background;
pub use borrowed::Borrowed;
pub(crate) use borrowed::{files as borrowed_files, lenders, lenders_read};
pub(crate) use dropped::{DroppedTable, DroppedTables, LeaveOut};
pub use error::DatabaseError;
pub(crate) use housekeeper::{CompactionError, HousekeeperHandle, HousekeeperRequest};
pub(crate) use marks::Marks;
pub use shares::{Shares, TooLittleMemory};
pub(crate) use sorted_files::{FileReader, FileScan, SortedFiles};

use self::marks::FoundLog;
use self::shares::Caches;
use crate::clock::Clock;
use crate::error::Damaged;
use crate::limits;
use crate::steps::SpaceHook;
use crate::store::{self, ObjectError, damaged_file};

/// Blocks of 16 KiB: half the requests and a smaller index than with 4 KiB, and still cheap to decode for
/// one row. The database and the compactor both get it, since the compactor does not inherit it.
pub(crate) const BLOCK_SIZE: SstBlockSize = SstBlockSize::Block16Kib;

/// The key of a row whose only purpose is that a new file is made of it. It is among the rows that a range
/// keeps about itself (`range::meta`), which no client can name.
pub(crate) const NEWEST_FILE_KEY: &[u8] = &[KIND_RANGE_META, 0x0F];

/// The settings that every database of the process is opened with.
#[derive(Clone)]
pub(crate) struct Databases {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) caches: Caches,
    /// The size at which a memtable becomes a sorted file, in encoded bytes.
    pub(crate) memtable_bytes: usize,
    /// With this many encoded bytes that are not yet in sorted files, writes wait.
    pub(crate) unflushed_bytes_max: usize,
    /// Where compaction and garbage collection run.
    pub(crate) background: Handle,
    /// The handle to the housekeeper, which does both.
    pub(crate) housekeeper: HousekeeperHandle,
    /// Called after each step of the housekeeper.
    pub(crate) after_space_step: SpaceHook,
    /// The marks in the logs, by which openings shut out those before them.
    pub(crate) marks: Marks,
}

impl Databases {
    /// The settings of one process, with caches of their own and a housekeeper that does not run yet.
    pub(crate) fn new(
        objects: Arc<dyn ObjectStore>,
        shares: Shares,
        clock: Clock,
        seed: u64,
        background: Handle,
    ) -> Self {
        Self {
            objects,
            clock,
            seed,
            caches: shares.caches(),
            memtable_bytes: shares.memtable_flush_bytes(),
            unflushed_bytes_max: shares.unflushed_bytes_max(),
            background,
            housekeeper: HousekeeperHandle::new(),
            after_space_step: SpaceHook::default(),
            marks: Marks::default(),
        }
    }

    /// A reader of the sorted files of the database at `path`.
    pub(crate) fn file_reader(&self, path: &str) -> FileReader {
        FileReader { objects: Arc::clone(&self.objects), path: path.to_owned(), caches: self.caches.clone() }
    }

    /// The files of the database at `path`, seen from outside of it.
    pub(crate) fn admin(&self, path: &str) -> Admin {
        AdminBuilder::new(path, Arc::clone(&self.objects))
            .with_system_clock(self.clock.for_database())
            .with_seed(self.seed_of(path))
            .build()
    }

    /// The newest manifest of the database at `path`; `None` where there is none.
    pub(crate) async fn manifest(&self, path: &str) -> Result<Option<VersionedManifest>, slatedb::Error> {
        self.admin(path).read_manifest(None).await
    }

    /// Deletes all objects below `path`. Others may delete some of them at the same time.
    pub(crate) async fn delete_objects(&self, path: &str) -> Result<(), ObjectError> {
        let listed = self.objects.list(Some(&Path::from(path))).map_ok(|object| object.location);
        let objects: Vec<Path> =
            listed.try_collect().await.map_err(ObjectError::while_doing("listing", &path))?;
        let mut deleted = self.objects.delete_stream(futures::stream::iter(objects).map(Ok).boxed());
        while let Some(deleted) = deleted.next().await {
            match deleted {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(ObjectError::while_doing("deleting", &path)(error)),
            }
        }
        Ok(())
    }

    /// A seed for a piece of work on the database at `path` that begins now. Names of files and checkpoints
    /// are drawn from it, and two of them that come into one manifest (after a second opening, or in a merge)
    /// must differ. So the path and the time are in it. Two seeds of one path are the same only if the clock
    /// has not moved in between, by one tick of 100 ns; opening, compacting and collecting take longer.
    pub(crate) fn seed_of(&self, path: &str) -> u64 {
        // `DefaultHasher::new` has fixed keys, so the seed is the same in every run of a simulation.
        let mut hasher = DefaultHasher::new();
        (self.seed, path, self.clock.now().ticks()).hash(&mut hasher);
        hasher.finish()
    }
}

/// Where the directories of all databases are.
pub(crate) const RANGES: &str = "ranges";

/// The path of a database.
pub(crate) fn database_path(name: DatabaseName) -> String {
    format!("{RANGES}/{name}")
}

/// One database: where it is, and which rows are left out when it is compacted.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) path: String,
    /// Tells its blocks from those of other databases in the shared cache.
    pub(crate) cache_id: u64,
    pub(crate) filter: Arc<dyn CompactionFilterSupplier>,
}

/// Makes a database at a place where there is none.
pub(crate) async fn create(databases: &Databases, place: &Place) -> Result<Db, DatabaseError> {
    if inspect(databases, &place.path).await?.is_some() {
        return Err(DatabaseError::Exists(place.path.clone()));
    }
    databases.marks.note_opening(&place.path, FoundLog { last: 0, read: 0 });
    build(databases, place, None).await
}

/// Opens an existing database. With `expected_epoch`, only if it was not opened again after the opening in
/// that epoch.
pub(crate) async fn open(
    databases: &Databases,
    place: &Place,
    expected_epoch: Option<u64>,
) -> Result<Db, DatabaseError> {
    let Some(manifest) = inspect(databases, &place.path).await? else {
        return Err(DatabaseError::Missing(place.path.clone()));
    };
    let log = log_files(databases, &place.path, &manifest).await?;
    let latest =
        latest::seen(&databases.objects, &databases.admin(&place.path), &place.path, &manifest, &log)
            .await
            .map_err(DatabaseError::opening(&place.path))?;
    if let Some(latest) = latest {
        databases.clock.advance_to(latest);
    }
    let last = log.last().copied().unwrap_or(manifest.replay_after_wal_id());
    databases.marks.note_opening(&place.path, FoundLog { last, read: log.len() });
    build(databases, place, expected_epoch).await
}

/// The newest manifest of the database at `path`; `None` where no database is.
pub(crate) async fn inspect(
    databases: &Databases,
    path: &str,
) -> Result<Option<VersionedManifest>, DatabaseError> {
    databases.manifest(path).await.map_err(DatabaseError::opening(path))
}

/// The files of the log whose rows are not in sorted files, ascending. Refuses a database if one of these
/// files is missing: otherwise it would open as if the log ended there.
async fn log_files(
    databases: &Databases,
    path: &str,
    manifest: &VersionedManifest,
) -> Result<Vec<u64>, DatabaseError> {
    let checked = store::check_log(&databases.objects, path, manifest.replay_after_wal_id()).await;
    checked.map_err(|source| match damaged_file(&source) {
        Some(file) => Damaged::new(file.clone()).into(),
        None => ObjectError::while_doing("listing the log of", &path)(source).into(),
    })
}

async fn build(
    databases: &Databases,
    place: &Place,
    expected_epoch: Option<u64>,
) -> Result<Db, DatabaseError> {
    let mut builder = Db::builder(place.path.as_str(), Arc::clone(&databases.objects))
        .with_settings(settings(databases))
        .with_system_clock(databases.clock.for_database())
        .with_seed(databases.seed_of(&place.path))
        .with_sst_block_size(BLOCK_SIZE)
        .with_db_cache(Arc::clone(&databases.caches.all), place.cache_id)
        .with_block_cache_policy(kept_of_new_files());
    if let Some(epoch) = expected_epoch {
        builder = builder.with_expected_epoch(epoch);
    }
    let db = builder.build().await.map_err(DatabaseError::opening(&place.path))?;
    databases.marks.note_opened();
    databases.housekeeper.enter(place, &db);
    Ok(db)
}

/// Flushes the log, or the log and the memtable.
pub(crate) async fn flush(db: &Db, what: FlushType) -> Result<(), slatedb::Error> {
    db.flush_with_options(FlushOptions { flush_type: what }).await
}

/// What the caches keep of a file while it is written: its index and its filters. Its blocks have the rows of a memtable,
/// and the range keeps rows that were just written in its own cache, so that blocks would be a second copy.
fn kept_of_new_files() -> BlockCachePolicy {
    BlockCachePolicy::default().with_flush_targets(&[CacheTarget::Index, CacheTarget::Filters])
}

fn settings(databases: &Databases) -> Settings {
    Settings {
        // The range flushes when a write waits.
        flush_interval: None,
        l0_sst_size_bytes: databases.memtable_bytes,
        max_unflushed_bytes: databases.unflushed_bytes_max,
        l0_max_ssts: limits::L0_FILES_MAX,
        l0_max_ssts_per_key: limits::L0_FILES_MAX,
        l0_flush_parallelism: 1,
        // No limit: with a limit on retries, a full disk would close the database for good.
        object_store_max_retries: None,
        manifest_poll_interval: limits::MANIFEST_POLL,
        // The housekeeper does both.
        compactor_options: None,
        garbage_collector_options: None,
        ..Settings::default()
    }
}

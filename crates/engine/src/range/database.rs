//! Opening the database of a range, and what it is given.
//!
//! The database's own `open` makes an empty one where there is none, silently: a wrong path or
//! deleted files would look like a table without rows. So there are two ways in here, and each
//! refuses the other's case: [`create`] where nothing is, [`open`] where a manifest is.
//!
//! The database is given nothing by default: caches are shared by all ranges and memtables are
//! small (their defaults are per database and add up), compaction and garbage collection run on a
//! runtime of their own, and the clock is ours, set beyond all that the database has seen
//! ([`super::latest`]).

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions,
    Settings,
};
use slatedb::db_cache::DbCache;
use slatedb::{CompactionFilterSupplier, CompactorBuilder, Db, SstBlockSize};
use tokio::runtime::Handle;

use super::latest;
use crate::clock::Clock;
use crate::error::{Damaged, OpenError, open_error};
use crate::limits;
use crate::store::{self, damaged_file};

/// Blocks of 16 KiB: half the requests and a smaller index than 4 KiB, and still cheap to decode
/// for one row. Given to database and compactor alike; the latter does not inherit it.
const BLOCK_SIZE: SstBlockSize = SstBlockSize::Block16Kib;

/// What every database of the process is opened with.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) cache: Arc<dyn DbCache>,
    /// Size at which a memtable becomes a sorted file, in encoded bytes.
    pub(crate) memtable_bytes: usize,
    /// Encoded bytes not yet in sorted files at which writes wait.
    pub(crate) unflushed_bytes_max: usize,
    /// Where compaction and garbage collection run.
    pub(crate) background: Handle,
}

/// One database: where it is, and what leaves out rows when it is compacted.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) path: String,
    /// Tells its blocks from other databases' in the shared cache.
    pub(crate) cache_id: u64,
    pub(crate) filter: Arc<dyn CompactionFilterSupplier>,
}

/// Makes a database where there is none.
pub(crate) async fn create(around: &Surroundings, place: &Place) -> Result<Db, OpenError> {
    if has_manifest(around, &place.path).await? {
        return Err(OpenError::Database {
            path: place.path.clone(),
            why: "a database is there already, and it was to be made".to_owned(),
        });
    }
    build(around, place, None).await
}

/// Opens a database that is there. With `expected_epoch`, only if nobody has opened it since the
/// one who opened it in that epoch.
pub(crate) async fn open(
    around: &Surroundings,
    place: &Place,
    expected_epoch: Option<u64>,
) -> Result<Db, OpenError> {
    if !has_manifest(around, &place.path).await? {
        return Err(OpenError::MissingDatabase { path: place.path.clone() });
    }
    check_log(around, &place.path).await?;
    let latest = latest::seen(around, &place.path).await.map_err(|error| open_error(&place.path, &error))?;
    if let Some(latest) = latest {
        around.clock.advance_to(latest);
    }
    build(around, place, expected_epoch).await
}

/// Whether a database is at `path`.
pub(crate) async fn has_manifest(around: &Surroundings, path: &str) -> Result<bool, OpenError> {
    let prefix = Path::from(format!("{path}/manifest"));
    let mut objects = around.objects.list(Some(&prefix));
    let first = objects
        .try_next()
        .await
        .map_err(|source| OpenError::Object { doing: format!("listing {prefix}"), source })?;
    Ok(first.is_some())
}

/// Refuses a database whose log lacks a file: it would open as if it ended there.
async fn check_log(around: &Surroundings, path: &str) -> Result<(), OpenError> {
    let manifest = admin(around, path).read_manifest(None).await.map_err(|error| open_error(path, &error))?;
    let replayed_until = manifest.map_or(0, |manifest| manifest.replay_after_wal_id());
    store::check_log(&around.objects, path, replayed_until).await.map_err(|source| {
        match damaged_file(&source) {
            Some(file) => OpenError::Damaged(Damaged(file.to_string())),
            None => OpenError::Object { doing: format!("listing the log of {path}"), source },
        }
    })
}

/// The database's files seen from outside of it.
pub(crate) fn admin(around: &Surroundings, path: &str) -> Admin {
    AdminBuilder::new(path, Arc::clone(&around.objects))
        .with_system_clock(around.clock.for_database())
        .with_seed(around.seed)
        .build()
}

async fn build(around: &Surroundings, place: &Place, expected_epoch: Option<u64>) -> Result<Db, OpenError> {
    let compactor = CompactorBuilder::new(place.path.as_str(), Arc::clone(&around.objects))
        .with_options(compactor_options())
        .with_runtime(around.background.clone())
        .with_sst_block_size(BLOCK_SIZE)
        .with_compaction_filter_supplier(Arc::clone(&place.filter));
    let mut builder = Db::builder(place.path.as_str(), Arc::clone(&around.objects))
        .with_settings(settings(around))
        .with_system_clock(around.clock.for_database())
        .with_seed(around.seed ^ place.cache_id)
        .with_sst_block_size(BLOCK_SIZE)
        .with_db_cache(Arc::clone(&around.cache), place.cache_id)
        .with_gc_runtime(around.background.clone())
        .with_compactor_builder(compactor);
    if let Some(epoch) = expected_epoch {
        builder = builder.with_expected_epoch(epoch);
    }
    builder.build().await.map_err(|error| open_error(&place.path, &error))
}

fn settings(around: &Surroundings) -> Settings {
    Settings {
        // Flushed when somebody waits, by `super::flush`.
        flush_interval: None,
        l0_sst_size_bytes: around.memtable_bytes,
        max_unflushed_bytes: around.unflushed_bytes_max,
        l0_max_ssts: limits::L0_FILES_MAX,
        l0_max_ssts_per_key: limits::L0_FILES_MAX,
        l0_flush_parallelism: 1,
        // Unbounded: with bounded retries a full disk closes the database for good.
        object_store_max_retries: None,
        garbage_collector_options: Some(garbage_collector_options()),
        ..Settings::default()
    }
}

fn compactor_options() -> CompactorOptions {
    CompactorOptions {
        poll_interval: limits::COMPACTION_POLL,
        max_concurrent_compactions: limits::COMPACTIONS_AT_ONCE_MAX,
        checkpoint_lifetime: limits::REPLACED_FILES_KEPT,
        worker: Some(CompactionWorkerOptions {
            max_concurrent_compactions: limits::COMPACTIONS_AT_ONCE_MAX,
            compactions_poll_interval: limits::COMPACTION_POLL,
            max_sst_size: limits::COMPACTED_FILE_BYTES,
            max_fetch_tasks: 2,
            bytes_to_fetch: limits::COMPACTION_FETCH_BYTES,
            max_subcompactions: 1,
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

fn garbage_collector_options() -> GarbageCollectorOptions {
    let every = |interval, min_age| {
        Some(GarbageCollectorDirectoryOptions { interval: Some(interval), min_age, dry_run: false })
    };
    let directory = every(limits::GARBAGE_POLL, limits::GARBAGE_AGE_MIN);
    // Fences in the log stay as the default has it, in a dry run: to collect them too early was
    // seen to lose writes.
    GarbageCollectorOptions {
        manifest_options: directory,
        wal_options: every(limits::LOG_GARBAGE_POLL, limits::LOG_GARBAGE_AGE_MIN),
        compacted_options: directory,
        compactions_options: directory,
        ..GarbageCollectorOptions::default()
    }
}

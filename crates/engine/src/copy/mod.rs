//! Copies a store, even while a service runs on it. Backup, restore and move use this.
//!
//! **What a copy shows.** Each range as it was at one moment near the beginning of the copy, after it: every write that was
//! acknowledged before the copy began is in it, and a batch is in it as a whole or not at all. Rows are
//! copied, not files. So the copy is compacted and has no leftovers of the source, and every row of it was
//! read and found sound. What a range knows about itself (times it has reserved, tables that were dropped)
//! is stored in rows too, and is copied with them. `moment` says how one moment is held while the range is
//! being written, and `moments` how the moments of all ranges fit together while ranges change hands.
//!
//! **Large objects.** Their bytes lie outside of the ranges, so a hold keeps their files while the copy is made
//! ([`Hold`](crate::blob::Hold)). A row that says who uses a blob must be there for every row that names the blob: so the
//! moments of the ranges with those rows are taken last, in the order of their keys.
//!
//! **What an interrupted copy leaves.** In the target a mark, so that it is never opened. The next copy
//! into it clears it first. In the source a checkpoint and a hold, which end by themselves after [`CHECKPOINT_LIFETIME`].

mod blobs;
mod moment;
mod moments;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use rangehold_map::RangeId;
use rangehold_map::key::is_of_objects;
use slatedb::config::{FlushOptions, FlushType};
use slatedb::{Db, WriteBatch};
use tokio::time::timeout;

use self::moments::Moments;
use crate::clock::Clock;
use crate::database::{self, Background, DatabaseError, Databases, DroppedTables, LeaveOut, Place, Shares};
use crate::error::{Damaged, ReadError, read_error};
use crate::housekeeping::keep_house;
pub use crate::limits::CHECKPOINT_LIFETIME;
use crate::limits::{
    COPY_BATCH_BYTES_MAX, COPY_BATCH_ROWS_MAX, COPY_GIVE_UP_MAX, COPY_MEMORY_BYTES, COPY_ROOM_POLL,
};
use crate::map_store::{self, MapError};
use crate::range::Identity;
use crate::store::{Filling, ObjectError, Store, StoreError, StoreLocation, StoreOptions};
use crate::tasks::Tasks;

/// What was copied so far, or in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyReport {
    /// The number of ranges that are copied completely.
    pub ranges: u64,
    /// The number of all ranges.
    pub ranges_total: u64,
    /// The number of rows, including those that ranges keep about themselves.
    pub rows: u64,
    /// The bytes of their keys and values.
    pub bytes: u64,
    /// The number of files of large objects.
    pub chunks: u64,
    /// Their bytes.
    pub chunk_bytes: u64,
}

/// Why a store was not copied. Whatever the reason, the source is unchanged. If anything was written to the
/// target, it cannot be opened, but it can be copied to again.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store in memory exists only inside its process.
    #[error("memory: cannot be copied from or to; give a directory")]
    InMemory,
    /// The source and the target are the same, or one is inside the other.
    #[error("{from} and {to} are the same place, or one lies in the other; give separate directories")]
    SamePlace {
        /// The source.
        from: StoreLocation,
        /// The target.
        to: StoreLocation,
    },
    /// The source or the target could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The source has no map of ranges.
    #[error("{from} holds no tables yet: it was never served")]
    NeverServed {
        /// The source.
        from: StoreLocation,
    },
    /// The map of ranges could not be read or stored.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A file of a large object, or the hold that keeps these files, could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A file of a large object is damaged in the source.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The operating system gave no thread for compaction.
    #[error("the compaction runtime could not be started")]
    Runtime(#[source] std::io::Error),
    /// A database could not be opened or made.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A row of the source could not be read.
    #[error("range {range} cannot be read")]
    Read {
        /// The range.
        range: RangeId,
        /// Why.
        source: ReadError,
    },
    /// A row could not be written to the target.
    #[error("range {range} cannot be written to the copy")]
    Write {
        /// The range.
        range: RangeId,
        /// What SlateDB said.
        source: slatedb::Error,
    },
    /// The target's disk has too little space left.
    #[error("the disk of {to} is full (a copy leaves {} MiB of it free); make room, or copy to another one", reserve_bytes >> 20)]
    DiskFull {
        /// The target.
        to: StoreLocation,
        /// Free bytes below which nothing is written.
        reserve_bytes: u64,
    },
    /// The manifest of a range changed at each attempt to find a moment.
    #[error("range {range} changes too fast to be copied; try again when there are fewer writes")]
    Unsteady {
        /// The range.
        range: RangeId,
    },
    /// A change of ranges is under way, and did not end while the copy waited for it.
    #[error(
        "{range} of {from} is changing hands; copy again (if nobody serves {from}: start the service once, which brings the change to its end)"
    )]
    Changing {
        /// The source.
        from: StoreLocation,
        /// The range.
        range: RangeId,
    },
    /// Ranges were split, merged or moved at each attempt to find a moment of all of them.
    #[error("the ranges of {from} change too fast to be copied; copy again when there are fewer changes")]
    MapChanged {
        /// The source.
        from: StoreLocation,
    },
}

/// Copies the store at `from`, which another process may be serving, to `to`, which must be empty or hold
/// an interrupted copy. `progress` is called after each batch of rows. The copy is durable when this
/// returns.
pub fn copy<'a>(
    from: &'a StoreLocation,
    to: &'a StoreLocation,
    options: StoreOptions,
    clock: &'a Clock,
    seed: u64,
    progress: &'a mut (dyn FnMut(&CopyReport) + Send),
) -> BoxFuture<'a, Result<CopyReport, CopyError>> {
    Box::pin(async move {
        let (source, target) = open_both(from, to, options)?;
        let shares = Shares::of(COPY_MEMORY_BYTES).expect("a copy has more than the least");
        let background = Background::own().map_err(CopyError::Runtime)?;
        let objects = target.store().object_store();
        let databases = Databases::new(objects, shares, clock.clone(), seed, background.handle());
        // A large copy is compacted while it is made.
        let mut tasks = Tasks::default();
        tasks.spawn_on(
            &databases.background,
            "the housekeeper of the copy".to_owned(),
            keep_house(databases.clone()),
        );
        let (stored, mut moments) = Moments::hold(from, &source, &databases).await?;
        let mut report = CopyReport { ranges_total: stored.entries().len() as u64, ..CopyReport::default() };
        let mut copied = Ok(());
        for entry in stored.entries() {
            let identity = Identity::of(entry);
            copied =
                copy_range(&mut moments, target.store(), &identity, &databases, &mut report, progress).await;
            if copied.is_err() {
                break;
            }
            moments.release_one(entry.id).await;
            report.ranges += 1;
            progress(&report);
        }
        if copied.is_ok() {
            copied = blobs::copy_blobs(&mut moments, &source, target.store(), &mut report, progress).await;
        }
        moments.release().await;
        copied?;
        map_store::create(&databases.objects, &stored, "copy").await?;
        target.finish()?;
        Ok(report)
    })
}

fn open_both(
    from: &StoreLocation,
    to: &StoreLocation,
    options: StoreOptions,
) -> Result<(Store, Filling), CopyError> {
    let (Some(from_root), Some(to_root)) = (from.directory(), to.directory()) else {
        return Err(CopyError::InMemory);
    };
    let source = Store::open_beside(from_root, options)?;
    // This is checked before anything is made. If the target does not exist yet, its nearest existing
    // parent counts.
    let target = std::path::absolute(to_root).unwrap_or_else(|_| to_root.to_owned());
    let there = target.ancestors().find_map(|path| Some((path, path.canonicalize().ok()?)));
    let (above, real) = there.unwrap_or((&target, target.clone()));
    let target = real.join(target.strip_prefix(above).unwrap_or(&target));
    let source_root = source.root().unwrap_or(from_root);
    if target.starts_with(source_root) || source_root.starts_with(&target) {
        return Err(CopyError::SamePlace { from: from.clone(), to: to.clone() });
    }
    Ok((source, Store::fill(to_root, options)?))
}

async fn copy_range(
    moments: &mut Moments,
    target: &Store,
    identity: &Identity,
    databases: &Databases,
    report: &mut CopyReport,
    progress: &mut (dyn FnMut(&CopyReport) + Send),
) -> Result<(), CopyError> {
    let place = Place {
        path: identity.path(),
        cache_id: identity.id.0,
        filter: Arc::new(LeaveOut::new(Arc::<DroppedTables>::default())),
    };
    let db = while_there_is_room(target, database::create(databases, &place)).await??;
    let range = identity.id;
    if let Err(error) = copy_rows(moments, target, &db, range, report, progress).await {
        // To save its memory it may have to wait for room, and nothing needs it any more.
        let _ = timeout(COPY_GIVE_UP_MAX, db.close()).await;
        return Err(error);
    }
    let closed = while_there_is_room(target, db.close()).await?;
    closed.map_err(|source| CopyError::Write { range, source })
}

/// Waits for a step of the target's database as long as the disk has room: on a full disk such a step is
/// tried forever.
async fn while_there_is_room<T>(target: &Store, step: impl Future<Output = T>) -> Result<T, CopyError> {
    let mut step = pin!(step);
    let disk = target.disk();
    loop {
        if disk.is_low() {
            let root = target.root().expect("only directories are filled").to_owned();
            let to = StoreLocation::Directory(root);
            return Err(CopyError::DiskFull { to, reserve_bytes: disk.reserve_bytes() });
        }
        if let Ok(done) = timeout(COPY_ROOM_POLL, &mut step).await {
            return Ok(done);
        }
    }
}

async fn copy_rows(
    moments: &mut Moments,
    target: &Store,
    db: &Db,
    range: RangeId,
    report: &mut CopyReport,
    progress: &mut (dyn FnMut(&CopyReport) + Send),
) -> Result<(), CopyError> {
    let failed = |source| CopyError::Write { range, source };
    let unreadable = |error| CopyError::Read { range, source: read_error(error) };
    loop {
        let moment = moments.of(range).expect("a moment of each range was taken");
        let mut batch = WriteBatch::new();
        let (mut rows, mut bytes) = (0, 0);
        while rows < COPY_BATCH_ROWS_MAX && bytes < COPY_BATCH_BYTES_MAX {
            let row = moment.rows.next().await;
            let Some(row) = row.map_err(unreadable)? else {
                break;
            };
            if is_of_objects(&row.key) {
                target.mark_objects()?;
            }
            rows += 1;
            bytes += row.key.len() + row.value.len();
            batch.put(row.key, row.value);
        }
        if rows == 0 {
            break;
        }
        while_there_is_room(target, db.write(batch)).await?.map_err(failed)?;
        report.rows += rows as u64;
        report.bytes += bytes as u64;
        progress(report);
        moments.renew_when_due().await?;
    }
    // This puts the rows into sorted files, so that the copy has no log to replay.
    for flush_type in [FlushType::Wal, FlushType::MemTable] {
        let flushed = db.flush_with_options(FlushOptions { flush_type });
        while_there_is_room(target, flushed).await?.map_err(failed)?;
    }
    Ok(())
}

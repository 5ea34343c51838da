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
//! **A copy may be based on an earlier one.** Then what has not changed since is taken over from that (`base`).
//!
//! **What an interrupted copy leaves.** In the target a mark, so that it is never opened. The next copy
//! into it clears it first. In the source a checkpoint and a hold, which end by themselves after [`CHECKPOINT_LIFETIME`].

mod base;
mod blobs;
mod contents;
mod error;
mod moment;
mod moments;
mod notes;
mod objects;
mod one_range;
mod rows;
mod whole;

use std::sync::Arc;

use slatedb::Db;
use tokio::time::timeout;

pub use self::error::CopyError;
pub use self::objects::{Count, CountedOn, ObjectRows};
pub use self::one_range::{OneRange, RangeRestored};
pub use self::whole::{CopyOptions, copy};
use crate::clock::Clock;
use crate::database::{Background, Databases, DroppedTables, LeaveOut, Place, Shares};
use crate::error::with_causes;
use crate::housekeeping::keep_house;
pub use crate::limits::CHECKPOINT_LIFETIME;
use crate::limits::{COPY_GIVE_UP_MAX, COPY_MEMORY_BYTES};
use crate::range::Identity;
use crate::store::{Store, StoreLocation};
use crate::tasks::Tasks;

/// What was copied so far, or in all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyReport {
    /// The number of ranges that are copied completely.
    pub ranges: u64,
    /// The number of all ranges.
    pub ranges_total: u64,
    /// The number of rows, including those that ranges keep about themselves.
    pub rows: u64,
    /// The bytes of their keys and values.
    pub bytes: u64,
    /// The bytes of the sorted files of all ranges, which is about what is read; 0 if it is not known.
    pub files_bytes: u64,
    /// How many of these are done: all of a range that is copied, and of the one that is being copied as many as its copied
    /// rows have.
    pub files_bytes_done: u64,
    /// The number of files of large objects.
    pub chunks: u64,
    /// Their bytes.
    pub chunk_bytes: u64,
    /// How many of the ranges were taken over from the base.
    pub ranges_taken: u64,
    /// How many of the files of large objects were.
    pub chunks_taken: u64,
    /// The bytes of files that the copy and the base share on the disk.
    pub shared_bytes: u64,
    /// How many ranges, and files of large objects, have not changed, and were copied all the same: they could not be taken
    /// over.
    pub not_taken: u64,
    /// Why the first of these could not.
    pub not_taken_because: Option<String>,
    /// How many files of large objects are damaged in the backup and in the directory of which one range was restored. They
    /// stay as they are.
    pub chunks_damaged: u64,
    /// The first of these.
    pub first_damaged: Option<String>,
}

impl CopyReport {
    fn note_not_taken(&mut self, why: &CopyError) {
        self.not_taken += 1;
        self.not_taken_because.get_or_insert_with(|| with_causes(why));
    }
}

/// What writes the databases of a target: their settings, and the housekeeper that compacts a large copy while it is made.
struct Work {
    databases: Databases,
    _housekeeper: Tasks,
    /// Declared after the tasks that run there, so that it is dropped after them.
    _background: Background,
}

impl Work {
    fn begin(target: &Store, clock: &Clock, seed: u64) -> Result<Self, CopyError> {
        let shares = Shares::of(COPY_MEMORY_BYTES).expect("a copy has more than the least");
        let background = Background::own().map_err(CopyError::Runtime)?;
        let objects = target.object_store();
        let databases = Databases::new(objects, shares, clock.clone(), seed, background.handle());
        let mut housekeeper = Tasks::default();
        housekeeper.spawn_on(
            &databases.background,
            "the housekeeper of the copy".to_owned(),
            keep_house(databases.clone()),
        );
        Ok(Self { databases, _housekeeper: housekeeper, _background: background })
    }
}

/// Refuses two directories of which one is the other, or lies in it. If the target does not exist yet, its nearest
/// existing parent counts.
fn check_apart(from: &StoreLocation, source: &Store, to: &StoreLocation) -> Result<(), CopyError> {
    let (Some(source), Some(to_root)) = (source.root(), to.directory()) else {
        return Err(CopyError::InMemory);
    };
    let target = std::path::absolute(to_root).unwrap_or_else(|_| to_root.to_owned());
    let there = target.ancestors().find_map(|path| Some((path, path.canonicalize().ok()?)));
    let (above, real) = there.unwrap_or((&target, target.clone()));
    let target = real.join(target.strip_prefix(above).unwrap_or(&target));
    if target.starts_with(source) || source.starts_with(&target) {
        return Err(CopyError::SamePlace { from: from.clone(), to: to.clone() });
    }
    Ok(())
}

/// Closes a database of the target after a failure. To save its memory it may have to wait for room, and nothing needs
/// it any more.
async fn give_up(db: &Db) {
    let _ = timeout(COPY_GIVE_UP_MAX, db.close()).await;
}

/// The place of a database that a copy writes. Its compaction leaves out nothing.
fn place(identity: &Identity) -> Place {
    Place {
        path: identity.path(),
        cache_id: identity.id.0,
        filter: Arc::new(LeaveOut::new(Arc::<DroppedTables>::default())),
    }
}

/// Where a store is, as messages say it.
fn location(store: &Store) -> StoreLocation {
    store.root().map_or(StoreLocation::Memory, |root| StoreLocation::Directory(root.to_owned()))
}

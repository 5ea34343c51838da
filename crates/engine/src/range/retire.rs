//! How a range gets ready to change hands, and the last row that it writes.
//!
//! A range is *ready* when a freeze would be short. Its memtable is nearly empty, so that the last flush is
//! small, and there is room for the file that this flush makes. Without room a flush waits for compaction,
//! which was seen to take seconds.
//!
//! A range is *retired* by a row. After a split or a merge the keys live in new databases, and the epoch of the old
//! database does not protect those: an owner that was paused during the change would go on writing to the old
//! database, and a process that opened it would find nothing wrong with it. So the last durable row of the old
//! database names the change record that decides, and a process that finds this row reads the record before it
//! serves the database. The row has a second use: it gives the last flush something to write. Cloning is refused
//! while the log holds rows.

use std::sync::Arc;
use std::time::Duration;

use slatedb::WriteBatch;
use slatedb::config::{CheckpointOptions, CheckpointScope, FlushType};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{Frozen, Inheritance, Range, State, meta};
use crate::database::{self, Borrowed, DatabaseError, flush};
use crate::error::{ReadError, Reason};
use crate::limits::{
    CLONE_CHECKPOINT_LIFETIME, FREE_L0_FILES_MIN, FREEZE_WITHIN, L0_FILES_MAX, READY_FLUSHES_MAX, READY_POLL,
    READY_UNFLUSHED_BYTES_MAX, SAVED_WITHIN,
};
use crate::record_name::RecordName;

/// What a range waits for before it can change hands. All of this ends by itself, so asking again helps.
#[derive(Debug, Error)]
pub enum NotReady {
    /// So many new sorted files are to be compacted that there is no room for the last one.
    #[error("waiting for compaction: {0} files are waiting for it")]
    Files(usize),
    /// After an earlier change, it reads files of this many other databases until it is compacted.
    #[error("waiting for compaction: the range still reads files of {0} others")]
    Borrows(usize),
    /// Writes come faster than they are saved: so many bytes are left.
    #[error("waiting for a pause in the writes: {} KiB came while the last were saved", .0 >> 10)]
    Writes(u64),
    /// Writes are held already, or those that had been let in before did not end in time.
    #[error(
        "its writes cannot be held now: another change holds them, or those under way did not end in time"
    )]
    WritesUnderWay,
    /// The disk is low, and a change needs files.
    #[error("waiting for room on the disk")]
    DiskLow,
    /// Its database cannot be asked.
    #[error(transparent)]
    Range(#[from] ReadError),
}

impl Range {
    /// Makes the range ready, so that a freeze is short. If that takes longer than `within`, the error says what the
    /// range waits for. While the disk is low it does not wait: a change needs files.
    pub(crate) async fn get_ready(&self, within: Duration) -> Result<(), NotReady> {
        let until = Instant::now() + within;
        loop {
            if self.store.disk().is_low() {
                return Err(NotReady::DiskLow);
            }
            let waits_for = match self.ready_now().await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if Instant::now() >= until {
                return Err(waits_for);
            }
            sleep(READY_POLL).await;
        }
    }

    async fn ready_now(&self) -> Result<(), NotReady> {
        let opening = self.open_now()?;
        let files = opening.db.manifest().l0().len();
        if files + FREE_L0_FILES_MIN > L0_FILES_MAX {
            return Err(NotReady::Files(files));
        }
        let borrowed = Borrowed::in_manifest(&opening.db.manifest());
        if !borrowed.lets_split() {
            return Err(NotReady::Borrows(borrowed.databases));
        }
        for _ in 0..READY_FLUSHES_MAX {
            if opening.unflushed_bytes() <= READY_UNFLUSHED_BYTES_MAX {
                return Ok(());
            }
            self.save().await?;
        }
        let bytes = opening.unflushed_bytes();
        (bytes <= READY_UNFLUSHED_BYTES_MAX).then_some(()).ok_or(NotReady::Writes(bytes))
    }

    /// Holds new writes and waits until those under way are in the log. `None` if that takes too long, or if writes are held
    /// already.
    pub(crate) async fn freeze(&self) -> Option<Frozen> {
        self.gate.freeze(FREEZE_WITHIN).await
    }

    /// Makes `record` the one that decides about this frozen range. When this returns, the row that says so is
    /// durable, all rows are in sorted files, and the log holds nothing. Returns the checkpoint of that state. The
    /// writes that were let in before are settled by then, since their tickets are older than the row's ticket. A
    /// refused write may still have to be answered.
    pub(crate) async fn retire(&self, record: RecordName) -> Result<Uuid, ReadError> {
        let mut batch = WriteBatch::new();
        batch.put(meta::RETIREMENT, meta::encode_record(record));
        // The row must be durable before the memtable is cut: the database counts as replayed only what was in the log
        // by then.
        self.write_ungated(batch).await?;
        self.set_retired(Some(record));
        self.checkpoint().await
    }

    /// Moves everything into sorted files, and makes a checkpoint of them to clone from; one manifest has both.
    /// The checkpoint expires by itself; a clone pins the files that it needs for longer.
    async fn checkpoint(&self) -> Result<Uuid, ReadError> {
        let opening = self.open_now()?;
        let options = CheckpointOptions {
            lifetime: Some(CLONE_CHECKPOINT_LIFETIME),
            name: Some("change".to_owned()),
            ..CheckpointOptions::default()
        };
        let made = in_time(opening.db.create_checkpoint(CheckpointScope::All, &options)).await?;
        made.map(|made| made.id).map_err(|error| ReadError::Unavailable(Reason::failed(error)))
    }

    /// Moves everything into sorted files.
    pub(crate) async fn save(&self) -> Result<(), ReadError> {
        let opening = self.open_now()?;
        let saved = in_time(flush(&opening.db, FlushType::MemTable)).await?;
        // Without a further write, nothing else tells the cache.
        opening.rows.sorted(opening.sorted_sequence());
        saved.map_err(|error| ReadError::Unavailable(Reason::failed(error)))
    }

    /// Deletes the row after the change was undone, so that the range may be served again.
    pub(crate) async fn unretire(&self) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        batch.delete(meta::RETIREMENT);
        self.write_ungated(batch).await?;
        self.set_retired(None);
        Ok(())
    }

    fn set_retired(&self, record: Option<RecordName>) {
        *self.retired.lock() = record;
    }

    /// What the ranges that get this one's keys take over. Call it on a frozen range only: it would not cover
    /// later writes.
    pub(crate) fn inheritance(&self) -> Inheritance {
        Inheritance {
            high_water: self.high_water.lock().last(),
            dropped: self
                .dropped
                .list()
                .into_iter()
                .map(|table| (table.account, table.table, table.at))
                .collect(),
            closed: self.closed_buckets(),
            fences: self.fences(),
        }
    }

    /// Writes what was inherited into the range's own rows, so that the change record is not needed any more.
    pub(crate) async fn save_inheritance(&self, inheritance: &Inheritance) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        inheritance.write_into(&mut batch);
        // The range is served by now: a fence may have been raised since, and its note is not lowered.
        let _noting = self.hold_fences().await;
        let fences = self.fences();
        for bucket in inheritance.fences.keys() {
            if let Some(fence) = fences.get(bucket) {
                batch.put(meta::fence_key(*bucket), fence.to_be_bytes());
            }
        }
        self.write_own(batch).await
    }

    /// The epoch in which its database is open here.
    pub(crate) fn epoch(&self) -> Result<u64, ReadError> {
        Ok(self.open_now()?.db.manifest().writer_epoch())
    }

    /// Opens the database again after a move failed before its commit point, and goes on serving. If the target
    /// is still opening the database, its opening then fails.
    pub(crate) async fn open_again(&self) -> Result<(), DatabaseError> {
        let alone = self.opening_again.lock().await;
        let before = self.open_now().map_err(DatabaseError::reading(&self.place.path))?;
        let epoch = before.db.manifest().writer_epoch();
        let db = database::open(&self.databases, &self.place, Some(epoch)).await?;
        let opening = Arc::new(self.opening(before.number + 1, db));
        if !self.change_state(State::Open(Arc::clone(&opening))) {
            let _ = opening.db.close().await;
        }
        drop(alone);
        // The supervisor changes to the new opening when the old one ends.
        self.abandon(&before).await;
        Ok(())
    }
}

/// Waits for a step that saves rows. On a full disk it would be tried without end.
async fn in_time<T>(step: impl Future<Output = T>) -> Result<T, ReadError> {
    let late = ReadError::Unavailable(Reason::Found("its rows could not be saved in time (a full disk?)"));
    timeout(SAVED_WITHIN, step).await.map_err(|_| late)
}

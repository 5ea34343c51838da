//! How a range gets ready to change hands, and the last row of its life.
//!
//! *Ready* is what makes the freeze short: the memtable is nearly empty, so that the last flush is
//! small, and there is room for the file that it makes; without room a flush waits for compaction,
//! which was seen to take seconds.
//!
//! *Retired* is a row. A split and a merge go on in new databases, which the epoch of the old one
//! does not protect: an owner that slept through the change would write on in the old database, and
//! whoever opened it would find it sound. So its last durable row names the change record that
//! decides, and nobody serves a database with that row before it has looked there. The row is also
//! what the last flush needs to be one: cloning is refused while the log holds rows.

use std::sync::Arc;
use std::time::Duration;

use slatedb::WriteBatch;
use slatedb::config::{CheckpointOptions, CheckpointScope, FlushType};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Frozen, Inheritance, Opening, Range, State, meta};
use crate::database::{self, Borrowed, flush};
use crate::error::{OpenError, ReadError, with_causes};
use crate::limits::{
    CLONE_CHECKPOINT_LIFETIME, FREE_L0_FILES_MIN, FREEZE_WITHIN, L0_FILES_MAX, READY_FLUSHES_MAX, READY_POLL,
    READY_UNFLUSHED_BYTES_MAX,
};
use crate::record_name::RecordName;

impl Range {
    /// Brings the range into the state in which a freeze is short, within `within`. If it does not
    /// get there, says what it waits for.
    pub(crate) async fn get_ready(&self, within: Duration) -> Result<(), String> {
        let until = Instant::now() + within;
        loop {
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

    async fn ready_now(&self) -> Result<(), String> {
        let opening = self.open_now().map_err(|error| error.to_string())?;
        let files = opening.db.manifest().l0().len();
        if files + FREE_L0_FILES_MIN > L0_FILES_MAX {
            return Err(format!("waiting for compaction: {files} files are waiting for it"));
        }
        let borrowed = Borrowed::in_manifest(&opening.db.manifest());
        if !borrowed.lets_split() {
            return Err(format!(
                "waiting for compaction: the range still reads files of {} others",
                borrowed.databases
            ));
        }
        for _ in 0..READY_FLUSHES_MAX {
            if opening.unflushed_bytes() <= READY_UNFLUSHED_BYTES_MAX {
                return Ok(());
            }
            flush(&opening.db, FlushType::MemTable).await?;
        }
        let bytes = opening.unflushed_bytes();
        (bytes <= READY_UNFLUSHED_BYTES_MAX).then_some(()).ok_or_else(|| {
            format!("waiting for a pause in the writes: {} KiB came while the last were saved", bytes >> 10)
        })
    }

    /// Holds new writes and waits until those under way are in the log; `None` if that takes too long.
    pub(crate) async fn freeze(&self) -> Option<Frozen> {
        self.gate.freeze(FREEZE_WITHIN).await
    }

    /// Makes `record` the one that decides about this frozen range: durably, with everything before
    /// it in sorted files and nothing in the log. Returns the checkpoint of that. The writes that were let
    /// in before are settled by then, since their tickets are older than the row's; who is to be refused may
    /// still have to hear of it.
    pub(crate) async fn retire(&self, record: RecordName) -> Result<Uuid, ReadError> {
        let mut batch = WriteBatch::new();
        batch.put(meta::RETIREMENT, meta::encode_record(record));
        // Durable before the memtable is cut: the engine takes as replayed only what was in the log by then.
        self.write_ungated(batch).await?;
        self.set_retired(Some(record));
        self.checkpoint().await
    }

    /// Moves everything into sorted files, and makes a checkpoint with them to clone from, by one manifest.
    /// It ends by itself: what a clone needs longer, it pins.
    pub(crate) async fn checkpoint(&self) -> Result<Uuid, ReadError> {
        let opening = self.open_now()?;
        let options = CheckpointOptions {
            lifetime: Some(CLONE_CHECKPOINT_LIFETIME),
            name: Some("change".to_owned()),
            ..CheckpointOptions::default()
        };
        let made = opening.db.create_checkpoint(CheckpointScope::All, &options).await;
        made.map(|made| made.id).map_err(|error| ReadError::Unavailable(with_causes(&error)))
    }

    /// Moves everything into sorted files.
    pub(crate) async fn save(&self) -> Result<(), ReadError> {
        let opening = self.open_now()?;
        flush(&opening.db, FlushType::MemTable).await.map_err(ReadError::Unavailable)
    }

    /// The change was undone: deletes the row, so that the range may be served again.
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

    /// What the ranges take over that get this one's keys. Of a frozen range only: later writes
    /// would not be in it.
    pub(crate) fn inheritance(&self) -> Inheritance {
        Inheritance {
            high_water: self.high_water.lock().last(),
            dropped: self
                .dropped
                .list()
                .into_iter()
                .map(|table| (table.account, table.table, table.at))
                .collect(),
        }
    }

    /// Writes down what was inherited, so that the change record is not needed any more.
    pub(crate) async fn save_inheritance(&self, inheritance: &Inheritance) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        // What is reserved is above what was given.
        let reserved = inheritance.high_water.next();
        batch.put(meta::reservation_key(meta::INHERITED), meta::encode_time(reserved));
        for (account, table, at) in &inheritance.dropped {
            batch.put(meta::dropped_key(account, *table), meta::encode_time(*at));
        }
        self.write_own(batch).await
    }

    /// The epoch in which its database is open here.
    pub(crate) fn epoch(&self) -> Result<u64, ReadError> {
        Ok(self.open_now()?.db.manifest().writer_epoch())
    }

    /// A move failed before its commit point: opens the database again, so that an opening of the
    /// target's that is still under way fails, and goes on.
    pub(crate) async fn open_again(&self) -> Result<(), OpenError> {
        let alone = self.opening_again.lock().await;
        let before = self.open_now().map_err(|error| super::database_error(&self.place.path, error))?;
        let epoch = before.db.manifest().writer_epoch();
        let db = database::open(&self.databases, &self.place, Some(epoch)).await?;
        let opening = Arc::new(Opening::new(before.number + 1, db));
        if !self.change_state(State::Open(Arc::clone(&opening))) {
            let _ = opening.db.close().await;
        }
        drop(alone);
        // Its supervisor goes over to the new opening when the old one ends.
        self.abandon(&before).await;
        Ok(())
    }
}

impl Inheritance {
    /// What a merged range takes over: of the times the later one, of the tables all.
    pub(crate) fn union(self, other: Self) -> Self {
        let mut dropped = self.dropped;
        for table in other.dropped {
            if !dropped.iter().any(|(account, id, _)| (account, id) == (&table.0, &table.1)) {
                dropped.push(table);
            }
        }
        Self { high_water: self.high_water.max(other.high_water), dropped }
    }
}

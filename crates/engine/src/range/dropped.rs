//! The dropped tables of a range: no request reads or writes them, and their rows are removed.
//!
//! To drop a table, a range makes a note; it does not delete the rows one by one at once:
//!
//! ```text
//!   1 the catalogue's row of the table becomes a row "dropped id"      (the caller, durable)
//!   2 each range with keys of the table notes the id in its meta rows  (durable), and from then on
//!     answers TableDropped                                             => the drop is acknowledged
//!   3 the rows are removed: a few by deletes, many by compaction, which leaves them out
//!   4 when the range shows none of them, and a minute has passed, the catalogue's row is deleted,
//!     then the note
//! ```
//!
//! A table id is never used again. So it does no harm if a note is late or kept too long; only deleting it too
//! early would. After a crash between two steps, the notes of the earlier steps are still there, and the process that
//! opens the range goes on from them. If a caller gave up between 1 and 2, the sweeper goes on: it reads the
//! catalogue now and then.
//!
//! In step 3 a table with few rows is erased by deletes. No scan visits its keys again, so the deletes that stay
//! there cost nothing. A larger table is removed by compaction, which leaves its rows out. Compaction by
//! itself would not touch a cold file for a long time, so the housekeeper is told to rewrite all files.

use rangehold_map::key::table_prefix;
use rangehold_map::{KeyRange, TableId, Timestamp};
use slatedb::WriteBatch;
use slatedb::config::DurabilityLevel;

use super::{Range, meta};
use crate::database::{CompactionError, DroppedTable};
use crate::error::ReadError;
use crate::limits::{ERASED_AT_ONCE, ERASED_ROW_BY_ROW_MAX};

/// What a range still shows of a dropped table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remains {
    /// Nothing.
    Nothing,
    /// Too many rows to erase one by one: compaction must leave them out.
    Much,
}

impl Range {
    /// Refuses the table from now on, and notes that durably. Doing it again does no harm.
    pub(crate) async fn drop_table(&self, account: &str, table: TableId) -> Result<(), ReadError> {
        let dropped = self.dropped.insert(DroppedTable::new(account, table, self.databases.clock.now()));
        // A write that found the table there before the line above may still be about to enter the log.
        self.stripes.wait_for_holders().await;
        let mut batch = WriteBatch::new();
        batch.put(meta::dropped_key(account, table), meta::encode_time(dropped.at));
        self.write_own(batch).await
    }

    /// Refuses reads and writes of a table that the catalogue lists as dropped, although this range has no note
    /// of it yet.
    pub(crate) fn inherit_dropped(&self, account: &str, table: TableId, now: Timestamp) {
        self.dropped.insert(DroppedTable::new(account, table, now));
    }

    /// Notes durably what the catalogue lists as dropped, as far as this range has no note of it. Call this before the
    /// range is served.
    pub(crate) async fn note_dropped(&self, tables: &[(String, TableId)]) -> Result<(), ReadError> {
        let known = self.dropped.list();
        let mut batch = WriteBatch::new();
        for (account, table) in tables {
            let is_here = !KeyRange::prefix(&table_prefix(account, *table)).intersect(self.keys()).is_empty();
            let is_known = known.iter().any(|known| (&known.account, known.table) == (account, *table));
            if is_here && !is_known {
                let dropped =
                    self.dropped.insert(DroppedTable::new(account, *table, self.databases.clock.now()));
                batch.put(meta::dropped_key(account, *table), meta::encode_time(dropped.at));
            }
        }
        if batch.is_empty() { Ok(()) } else { self.write_own(batch).await }
    }

    /// The dropped tables that are not completely removed yet.
    pub(crate) fn dropped_tables(&self) -> Vec<DroppedTable> {
        self.dropped.list()
    }

    /// Erases the rows of a dropped table if they are few. [`Remains::Nothing`] means that none is
    /// left and none can come.
    pub(crate) async fn erase(&self, dropped: &DroppedTable) -> Result<Remains, ReadError> {
        let keys: KeyRange = dropped.keys().intersect(self.keys());
        // A write that was let in before the table was dropped may still be about to enter the log: so wait. And
        // what is in the log may not be durable yet: so read at the memory level, since the durable level would
        // not show it.
        self.stripes.wait_for_holders().await;
        let rows = self.first_keys(&keys, ERASED_ROW_BY_ROW_MAX + 1, DurabilityLevel::Memory).await?;
        if rows.len() > ERASED_ROW_BY_ROW_MAX {
            return Ok(Remains::Much);
        }
        for some in rows.chunks(ERASED_AT_ONCE) {
            self.delete_own(some).await?;
        }
        Ok(Remains::Nothing)
    }

    /// Deletes the note of a dropped table. Call it when no row of the table is left, and no request
    /// that began before the table was dropped can still be under way.
    pub(crate) async fn forget_dropped(&self, dropped: &DroppedTable) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        batch.delete(meta::dropped_key(&dropped.account, dropped.table));
        self.write_own(batch).await?;
        // The cache was not told of the rows that compaction has left out.
        if let Ok(opening) = self.open_now() {
            opening.rows.forget(&dropped.keys());
        }
        self.dropped.remove(dropped);
        Ok(())
    }

    /// Rewrites every file of the range, so that the rows of dropped tables are gone from all of them.
    pub(crate) async fn compact(&self) -> Result<(), CompactionError> {
        self.save().await.map_err(CompactionError::NotSaved)?;
        self.databases.housekeeper.rewrite(&self.place.path).await
    }
}

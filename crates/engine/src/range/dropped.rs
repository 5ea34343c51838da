//! The dropped tables of a range: nobody reads or writes them, and their rows go.
//!
//! A table is dropped by a note, not by deleting its rows one by one:
//!
//! ```text
//!   1 the catalogue's row of the table becomes a row "dropped id"      (the caller, durable)
//!   2 each range with keys of the table notes the id in its meta rows  (durable), and from then on
//!     answers TableDropped                                             => the drop is acknowledged
//!   3 the rows go: few by deletes, many when compaction leaves them out
//!   4 the range shows none of them, and a minute has passed: the catalogue's row goes,
//!     then the note
//! ```
//!
//! A table id is never used again, so a note may be late or kept too long without harm; it must
//! only not go early. A crash between two steps leaves the notes of the earlier ones, and whoever
//! opens the range goes on from there; so does the sweeper, which reads the catalogue now and then,
//! where a caller gave up between 1 and 2.
//!
//! In step 3 a table with few rows is erased by deletes: nobody scans its keys again, so that the deletes
//! lie there costs nobody anything. A larger one goes by compaction, which leaves its rows out
//! and would otherwise not touch a cold file for a long time: the housekeeper is told to rewrite them all.

use rangehold_map::{KeyRange, TableId, Timestamp};
use slatedb::WriteBatch;
use slatedb::config::DurabilityLevel;

use super::{Range, meta};
use crate::database::DroppedTable;
use crate::error::ReadError;
use crate::limits::{ERASED_AT_ONCE, ERASED_ROW_BY_ROW_MAX};

/// What a range still shows of a dropped table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remains {
    /// Nothing.
    Nothing,
    /// Too much to erase row by row: compaction must leave it out.
    Much,
}

impl Range {
    /// Refuses the table from now on, and notes so durably. Doing it again does no harm.
    pub(crate) async fn drop_table(&self, account: &str, table: TableId) -> Result<(), ReadError> {
        let dropped = self.dropped.insert(DroppedTable::new(account, table, self.databases.clock.now()));
        // A write that found the table there before the line above may still be about to enter the log.
        self.stripes.wait_for_holders().await;
        let mut batch = WriteBatch::new();
        batch.put(meta::dropped_key(account, table), meta::encode_time(dropped.at));
        self.write_own(batch).await
    }

    /// Refuses reads and writes of a table that its catalogue says is dropped, though no note of
    /// this range says so yet.
    pub(crate) fn inherit_dropped(&self, account: &str, table: TableId, now: Timestamp) {
        self.dropped.insert(DroppedTable::new(account, table, now));
    }

    /// The dropped tables that wait to go.
    pub(crate) fn dropped_tables(&self) -> Vec<DroppedTable> {
        self.dropped.list()
    }

    /// Erases the rows of a dropped table if they are few. [`Remains::Nothing`] means that none is
    /// left and none can come.
    pub(crate) async fn erase(&self, dropped: &DroppedTable) -> Result<Remains, ReadError> {
        let keys: KeyRange = dropped.keys().intersect(self.keys());
        // A write that was let in before the table was dropped may still be about to enter the log; and
        // what is in the log may not be durable yet, which would hide it at the other level.
        self.stripes.wait_for_holders().await;
        let rows = self.first_keys(&keys, ERASED_ROW_BY_ROW_MAX + 1, DurabilityLevel::Memory).await?;
        if rows.len() > ERASED_ROW_BY_ROW_MAX {
            return Ok(Remains::Much);
        }
        for some in rows.chunks(ERASED_AT_ONCE) {
            let mut batch = WriteBatch::new();
            for key in some {
                batch.delete(key);
            }
            self.write_own(batch).await?;
        }
        Ok(Remains::Nothing)
    }

    /// Deletes the note of a dropped table. To be called when no row of it is left and no request
    /// that began before it was dropped can still be under way.
    pub(crate) async fn forget_dropped(&self, dropped: &DroppedTable) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        batch.delete(meta::dropped_key(&dropped.account, dropped.table));
        self.write_own(batch).await?;
        self.dropped.remove(dropped);
        Ok(())
    }

    /// Rewrites every file of the range, so that what compaction leaves out is gone.
    pub(crate) async fn compact(&self) -> Result<(), String> {
        self.flush_memtable().await?;
        self.databases.housekeeper.rewrite(&self.place.path).await
    }
}

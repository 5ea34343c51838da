//! Getting rid of the rows of dropped tables, in one range.
//!
//! A table with few rows is erased by deletes: nobody scans its keys again, so that the deletes
//! lie there costs nobody anything. A larger one goes by compaction, which leaves its rows out
//! ([`crate::compaction`]) and would otherwise not touch a cold file for a long time: the
//! housekeeper is told to rewrite them all.

use rangehold_map::KeyRange;
use slatedb::WriteBatch;
use slatedb::config::DurabilityLevel;

use super::dropped::DroppedTable;
use super::{Range, meta};
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
    /// The dropped tables that wait to go.
    pub(crate) fn dropped_tables(&self) -> Vec<DroppedTable> {
        self.dropped.list()
    }

    /// Erases the rows of a dropped table if they are few. [`Remains::Nothing`] means that none is
    /// left and none can come.
    pub(crate) async fn erase(&self, dropped: &DroppedTable) -> Result<Remains, ReadError> {
        let keys: KeyRange = dropped.keys().intersect(self.keys());
        // Who was let in before the table was dropped may still be about to enter the log; and
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
        self.around.housekeeping.rewrite(&self.place.path).await
    }
}

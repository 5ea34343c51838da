//! The dropped tables of the ranges that a server holds.

use std::sync::Arc;

use rangehold_map::{KeyRange, TableId, Timestamp};

use super::PartitionServer;
use crate::database::DroppedTable;
use crate::error::ReadError;
use crate::range::{Range, Remains};

impl PartitionServer {
    /// Refuses every later read and write of the table in the ranges that hold `keys`. All of these ranges
    /// must be here. This is durable when it returns, and harmless to repeat.
    pub async fn drop_table(&self, account: &str, table: TableId, keys: &KeyRange) -> Result<(), ReadError> {
        for (range, _) in self.cover(keys)? {
            range.drop_table(account, table).await?;
        }
        Ok(())
    }

    /// The dropped tables of all ranges that are not completely removed yet.
    pub(crate) fn dropped_tables(&self) -> Vec<DroppedTable> {
        self.ranges().iter().flat_map(|range| range.dropped_tables()).collect()
    }

    /// Erases the rows of a dropped table in the ranges that have few of them. Adds the ranges that have many
    /// to `large`.
    pub(crate) async fn erase(
        &self,
        dropped: &DroppedTable,
        keys: &KeyRange,
        large: &mut Vec<Arc<Range>>,
    ) -> Result<Remains, ReadError> {
        let mut remains = Remains::Nothing;
        for (range, _) in self.cover(keys)? {
            let here = range.erase(dropped).await?;
            if here == Remains::Much && !large.iter().any(|other| Arc::ptr_eq(other, &range)) {
                large.push(range);
            }
            remains = remains.max(here);
        }
        Ok(remains)
    }

    /// Deletes the notes of a dropped table.
    pub(crate) async fn forget_dropped(&self, dropped: &DroppedTable) -> Result<(), ReadError> {
        for range in self.ranges().iter() {
            range.forget_dropped(dropped).await?;
        }
        Ok(())
    }

    /// Refuses a table that the catalogue lists as dropped.
    pub(crate) fn inherit_dropped(&self, account: &str, table: TableId, keys: &KeyRange, now: Timestamp) {
        for range in self.ranges().iter() {
            if !range.keys().intersect(keys).is_empty() {
                range.inherit_dropped(account, table, now);
            }
        }
    }
}

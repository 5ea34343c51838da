//! Leaves out the rows of dropped tables in a compaction.
//!
//! Rows of dropped tables are removed when the files that hold them are rewritten: [`LeaveOut`] leaves them
//! out. But it never leaves out a delete. If a row is left out, an older version of it may appear from a
//! file that was not rewritten. No client can read that version, and the sweeper goes on until a scan shows
//! nothing. If a delete were left out, an older version could appear too, but *after* the sweeper has
//! looked. Then that row would stay for good once the table is forgotten. So rows that a scan does not show
//! stay hidden, and deletes are removed when they reach the last run, as in any other compaction.

use std::sync::Arc;

use async_trait::async_trait;
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, RowEntry,
};

use super::DroppedTables;

/// Leaves out the rows of a range's dropped tables.
pub(crate) struct LeaveOut {
    dropped: Arc<DroppedTables>,
}

impl LeaveOut {
    pub(crate) fn new(dropped: Arc<DroppedTables>) -> Self {
        Self { dropped }
    }
}

#[async_trait]
impl CompactionFilterSupplier for LeaveOut {
    async fn create_compaction_filter(
        &self,
        _job: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        Ok(Box::new(Self { dropped: Arc::clone(&self.dropped) }))
    }
}

#[async_trait]
impl CompactionFilter for LeaveOut {
    async fn filter(&mut self, row: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        // The set is asked for each row, so that the rows of a table that is dropped during a long
        // compaction are left out from then on. While no table is dropped, this is one look at an empty
        // map.
        Ok(if !row.value.is_tombstone() && self.dropped.covers(&row.key) {
            CompactionFilterDecision::Drop
        } else {
            CompactionFilterDecision::Keep
        })
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rangehold_map::{PartitionPrefix, TableId, Timestamp};
    use slatedb::ValueDeletable;

    use super::super::DroppedTable;
    use super::*;

    #[tokio::test]
    async fn rows_of_dropped_tables_are_left_out_and_deletes_are_not() {
        let dropped = Arc::<DroppedTables>::default();
        dropped.insert(DroppedTable::new("account", TableId(7), Timestamp::default()));
        let mut filter = LeaveOut::new(dropped);
        for (table, value, left_out) in [
            (7, ValueDeletable::Value(Bytes::new()), true),
            (7, ValueDeletable::Tombstone, false),
            (8, ValueDeletable::Value(Bytes::new()), false),
        ] {
            let key = PartitionPrefix::entity("account", TableId(table), "p").key("r");
            let row = RowEntry { key: key.into(), value, seq: 1, create_ts: None, expire_ts: None };
            let decision = filter.filter(&row).await.unwrap();
            assert_eq!(decision == CompactionFilterDecision::Drop, left_out, "{row:?}");
        }
    }
}

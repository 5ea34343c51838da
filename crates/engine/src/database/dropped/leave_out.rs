//! What compaction leaves out: the rows of dropped tables.
//!
//! Rows of dropped tables go when the files they are in are rewritten: [`LeaveOut`] leaves them
//! out, but never a delete. A row left out can uncover an older version of itself in a file that
//! was not rewritten; nobody can read that one, and the sweeper looks until a scan shows nothing.
//! A delete left out would uncover one as well, and that one *after* the sweeper had looked: the
//! row would stay for good once the table is forgotten. So what a scan does not show stays hidden,
//! and deletes go when they reach the last run, as everywhere.

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
        // The set is asked for each row: a table dropped while a long compaction runs is left out
        // from there on. While nothing is dropped that is one look at an empty map.
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

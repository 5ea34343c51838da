//! The closed buckets of the ranges that a server holds.

use std::collections::BTreeSet;

use rangehold_map::{BucketId, KeyRange};

use super::PartitionServer;
use crate::error::ReadError;

impl PartitionServer {
    /// Refuses writes to the bucket in the ranges that hold `keys`, or allows them again. All of these ranges must be
    /// here. This is durable when it returns, and harmless to repeat.
    pub(crate) async fn set_closed(
        &self,
        bucket: BucketId,
        is_closed: bool,
        keys: &KeyRange,
    ) -> Result<(), ReadError> {
        for (range, _) in self.cover(keys)? {
            range.set_closed(bucket, is_closed).await?;
        }
        Ok(())
    }

    /// Refuses writes of the bucket that have not seen the change `to` of its folders, in the ranges that hold `keys`;
    /// without a number, forgets the bucket's fence. All of these ranges must be here. This is durable when it returns, and
    /// harmless to repeat.
    pub(crate) async fn fence(
        &self,
        bucket: BucketId,
        to: Option<u64>,
        keys: &KeyRange,
    ) -> Result<(), ReadError> {
        for (range, _) in self.cover(keys)? {
            match to {
                Some(to) => range.fence(bucket, to).await?,
                None => range.unfence(bucket).await?,
            }
        }
        Ok(())
    }

    /// The buckets that are closed in one of its ranges or more.
    pub(crate) fn closed_buckets(&self) -> BTreeSet<BucketId> {
        self.ranges().iter().flat_map(|range| range.closed_buckets()).collect()
    }
}

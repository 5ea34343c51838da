//! The closed buckets of a range: no request writes their objects.
//!
//! A bucket may be deleted only while it is empty, and nobody may put an object into it between the look and the
//! deletion. So it is closed first: each range with keys of the bucket notes its id in its meta rows (durably), and
//! refuses writes from then on. Reads go on. Then the caller looks whether an object is there. It deletes the bucket's
//! row, or opens the bucket again.
//!
//! A range notes a bucket in the order of its log. So when the note is durable, every write that was let in before is
//! durable too, and the look sees it.
//!
//! The notes are handed over when a range changes hands, and are there after a crash. Then the process asks which
//! buckets are closed ([`Router::closed_buckets`](crate::Router::closed_buckets)), and opens those that were not deleted.
//! A bucket id is never used again, so a note that is kept too long does no harm. A deleted bucket stays closed while the rows
//! that it has left are removed; only these writes are let in (`of_closed` of a request).

use std::collections::BTreeSet;

use parking_lot::RwLock;
use rangehold_map::BucketId;
use rangehold_map::key::bucket_of;
use slatedb::WriteBatch;

use super::{Range, meta};
use crate::error::ReadError;

/// The buckets that are closed in one range.
#[derive(Debug, Default)]
pub(super) struct ClosedBuckets(RwLock<BTreeSet<BucketId>>);

impl ClosedBuckets {
    /// Buckets that are closed by notes.
    pub(super) fn of(buckets: BTreeSet<BucketId>) -> Self {
        Self(RwLock::new(buckets))
    }

    /// Whether the partition with this prefix belongs to a closed bucket.
    pub(super) fn covers(&self, partition: &[u8]) -> bool {
        let closed = self.0.read();
        !closed.is_empty() && bucket_of(partition).is_some_and(|bucket| closed.contains(&bucket))
    }

    fn set(&self, bucket: BucketId, is_closed: bool) {
        let mut closed = self.0.write();
        match is_closed {
            true => closed.insert(bucket),
            false => closed.remove(&bucket),
        };
    }
}

impl Range {
    /// Refuses writes to the bucket from now on, or allows them again, and notes that durably. Doing it again does no
    /// harm.
    pub(crate) async fn set_closed(&self, bucket: BucketId, is_closed: bool) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        if !is_closed {
            batch.delete(meta::closed_key(bucket));
            self.write_own(batch).await?;
            self.closed.set(bucket, false);
            return Ok(());
        }
        self.closed.set(bucket, true);
        // A write that found the bucket open may still be about to enter the log.
        self.stripes.wait_for_holders().await;
        batch.put(meta::closed_key(bucket), []);
        self.write_own(batch).await
    }

    /// Refuses writes to a bucket that was closed in the range from which this one got its keys.
    pub(super) fn inherit_closed(&self, bucket: BucketId) {
        self.closed.set(bucket, true);
    }

    /// The closed buckets.
    pub(crate) fn closed_buckets(&self) -> BTreeSet<BucketId> {
        self.closed.0.read().clone()
    }
}

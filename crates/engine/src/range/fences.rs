//! The fences of a range: a write is refused if folders of its bucket may have changed since its request looked at them.
//!
//! In a bucket with a hierarchical namespace a request first looks for the folder of an object, and then writes into it.
//! Between the two the folder can be renamed or deleted, by a change of another partition. So each change of that kind
//! has a number, one more than the last, and each write says the number of the last one that its look has seen. Before
//! such a change is made, each range with keys of the bucket notes its number (durably), and from then on refuses writes
//! that say a lower one.
//!
//! A range notes a fence in the order of its log, as it notes that a bucket is closed ([`super::closed`]): when the note is
//! durable, every write that was let in before is durable too. So each write comes before the change, and is moved or
//! seen by it, or is refused and looks again.
//!
//! The notes are handed over when a range changes hands, and are there after a crash. A fence whose change was never made
//! does no harm: the writers that meet it make a change of that number which changes no folder.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use rangehold_map::BucketId;
use rangehold_map::key::bucket_of;
use slatedb::WriteBatch;
use tokio::sync::{Mutex, MutexGuard};

use super::{Range, meta};
use crate::error::ReadError;

/// The fences of one range, by their buckets.
#[derive(Debug, Default)]
pub(super) struct Fences {
    fences: RwLock<BTreeMap<BucketId, u64>>,
    /// Held while a note is made, so that the last note in the log has the highest fence.
    noting: Mutex<()>,
}

impl Fences {
    /// The fences, as the notes of a range have them.
    pub(super) fn of(fences: BTreeMap<BucketId, u64>) -> Self {
        Self { fences: RwLock::new(fences), ..Self::default() }
    }

    /// The fence that refuses a write of this partition whose look has seen changes up to `seen`.
    pub(super) fn refuses(&self, partition: &[u8], seen: u64) -> Option<u64> {
        let fences = self.fences.read();
        if fences.is_empty() {
            return None;
        }
        let fence = *fences.get(&bucket_of(partition)?)?;
        (fence > seen).then_some(fence)
    }

    /// Raises the fence of a bucket. Returns where it is then; a fence is never lowered.
    fn raise(&self, bucket: BucketId, to: u64) -> u64 {
        let mut fences = self.fences.write();
        let fence = fences.entry(bucket).or_default();
        *fence = to.max(*fence);
        *fence
    }
}

impl Range {
    /// Refuses writes of the bucket that have seen less than the change `to`, and notes that durably. When this returns,
    /// the writes that were let in before are durable. Doing it again does no harm.
    pub(crate) async fn fence(&self, bucket: BucketId, to: u64) -> Result<(), ReadError> {
        let _noting = self.fences.noting.lock().await;
        let fence = self.fences.raise(bucket, to);
        // A write that was not refused may still be about to enter the log.
        self.stripes.wait_for_holders().await;
        let mut batch = WriteBatch::new();
        batch.put(meta::fence_key(bucket), fence.to_be_bytes());
        self.write_own(batch).await
    }

    /// Removes the fence of a bucket that is gone for good, and its note.
    pub(crate) async fn unfence(&self, bucket: BucketId) -> Result<(), ReadError> {
        let _noting = self.fences.noting.lock().await;
        let mut batch = WriteBatch::new();
        batch.delete(meta::fence_key(bucket));
        self.write_own(batch).await?;
        self.fences.fences.write().remove(&bucket);
        Ok(())
    }

    /// Takes over a fence from the range from which this one got its keys.
    pub(super) fn inherit_fence(&self, bucket: BucketId, fence: u64) {
        self.fences.raise(bucket, fence);
    }

    /// While the guard lives, no fence is noted.
    pub(super) async fn hold_fences(&self) -> MutexGuard<'_, ()> {
        self.fences.noting.lock().await
    }

    /// The fences.
    pub(super) fn fences(&self) -> BTreeMap<BucketId, u64> {
        self.fences.fences.read().clone()
    }
}

//! Closing a bucket in all ranges that hold a part of it, while it is deleted. `range::closed` describes why.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use rangehold_map::key::bucket_objects;
use rangehold_map::{BucketId, KeyRange};
use tokio::time::{Instant, timeout_at};

use super::Router;
use super::notes::Note;
use crate::error::{ReadError, Reason};
use crate::run_to_end::RunToEnd;

impl Router {
    /// Refuses writes to objects of the bucket, with [`WriteError::BucketClosed`](crate::WriteError::BucketClosed), until
    /// the bucket is opened again. When this returns, no write is under way any more, and a scan sees all that were let
    /// in before. Fails with [`ReadError::Offline`] if a range of the bucket is offline.
    ///
    /// After an error some ranges may have closed the bucket: open it again, or repeat this. What was begun goes on after
    /// `deadline`, and also if the caller gives up. `kept` is dropped when it has ended: a lock there keeps others from
    /// opening the bucket while this goes on.
    pub fn close_bucket<'a>(
        &'a self,
        bucket: BucketId,
        deadline: Instant,
        kept: impl Send + 'static,
    ) -> BoxFuture<'a, Result<(), ReadError>> {
        Box::pin(async move { self.note_bucket(Note::Closed(bucket), bucket, deadline, kept).await })
    }

    /// Allows writes to the bucket again, in all its ranges. Harmless if it is open. The notes of a bucket that was
    /// deleted are removed in the same way, when no request that knows the bucket can still be under way. What was begun goes
    /// on, and keeps `kept`, as in [`close_bucket`](Self::close_bucket).
    pub fn reopen_bucket<'a>(
        &'a self,
        bucket: BucketId,
        deadline: Instant,
        kept: impl Send + 'static,
    ) -> BoxFuture<'a, Result<(), ReadError>> {
        Box::pin(async move { self.note_bucket(Note::Open(bucket), bucket, deadline, kept).await })
    }

    /// Refuses writes of the bucket whose sender has not seen the change `to` of its folders, with
    /// [`WriteError::Fenced`](crate::WriteError::Fenced). When this returns, no write that has not seen it is under way any
    /// more, and a read sees all that were let in before. Fails as [`close_bucket`](Self::close_bucket) does; it may have
    /// been done in some ranges then, and does no harm there.
    pub async fn fence_bucket(&self, bucket: BucketId, to: u64, deadline: Instant) -> Result<(), ReadError> {
        self.note_bucket(Note::Fence(bucket, to), bucket, deadline, ()).await
    }

    /// Removes the fences of a bucket that is gone for good, from all ranges.
    pub async fn unfence_bucket(&self, bucket: BucketId, deadline: Instant) -> Result<(), ReadError> {
        self.note_bucket(Note::Unfence(bucket), bucket, deadline, ()).await
    }

    async fn note_bucket(
        &self,
        note: Note,
        bucket: BucketId,
        deadline: Instant,
        kept: impl Send + 'static,
    ) -> Result<(), ReadError> {
        let router = self.clone();
        let noting = RunToEnd::new(Box::pin(async move {
            let _kept = kept;
            router.note_in_ranges(&note, KeyRange::prefix(&bucket_objects(bucket))).await
        }));
        timeout_at(deadline, noting).await.unwrap_or_else(|_| {
            let why = "the deadline passed before every range had noted what it must know of the bucket";
            Err(ReadError::Unavailable(Reason::Found(why)))
        })
    }

    /// The buckets that are closed in one of the ranges here. After a start these are the buckets whose deletion was
    /// broken off or has just ended. Those that still have their row must be opened again.
    pub fn closed_buckets(&self) -> BTreeSet<BucketId> {
        self.0.servers.load().values().flat_map(|server| server.closed_buckets()).collect()
    }
}

//! Rows: how handlers read and change them.

use bytes::Bytes;
use rangehold_engine::store::Space;
use rangehold_engine::{RowChanges, WriteError, WriteRequest};
use rangehold_map::key::BucketRow;
use rangehold_map::{PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::{Conditions, Purpose, Seen};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::{Intent, Release};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Judge, Refusal};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::ObjectService;
use super::failure::Failure;
use super::located::{check_located, moved_meanwhile};
use crate::limits::{BUCKET_OPENED_AGAIN_MAX, FOLDER_TRIES_MAX, INTENTS_MET_MAX};

/// What a judge decided: the rows that change, and what the handler answers with.
pub(super) type Decided<T> = Result<(RowChanges, T), ObjectError>;

impl ObjectService {
    /// The bucket of this name. Fails if there is none.
    pub(super) async fn bucket(&self, name: &str) -> Result<Bucket, Failure> {
        let key = PartitionPrefix::bucket(name).bucket_row(&BucketRow::Bucket);
        let row = self.router.get(&key).await?.ok_or_else(ObjectError::no_such_bucket)?;
        Ok(Bucket::decode(&row)?)
    }

    /// Changes rows of one partition. The judge sees the rows of `keys` as they are, and may be called several times;
    /// what it answered last is returned when the change is durable.
    pub(super) async fn change<T: Send>(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
        deadline: Instant,
        mut judge: impl FnMut(&[Option<Bytes>], Timestamp) -> Decided<T> + Send,
    ) -> Result<T, Failure> {
        let request = WriteRequest::new(partition, keys, deadline);
        let mut answer = None;
        let judged = |rows: &[Option<Bytes>], now: Timestamp| {
            let (changes, decided) = judge(rows, now)?;
            answer = Some(decided);
            Ok::<_, ObjectError>(changes)
        };
        self.router.write(&request, judged).await?;
        Ok(answer.expect("a write that was made was judged"))
    }

    /// Makes a write about an object. Blobs that lose a user are released afterwards. A change of several names that stands
    /// in the way is waited for if this process makes it, and else finished or undone.
    pub(super) async fn change_object<J: Judge>(
        &self,
        judge: &J,
        deadline: Instant,
    ) -> Result<J::Answer, Failure> {
        let mut met = None;
        for _ in 0..INTENTS_MET_MAX {
            let intent = match self.try_change(judge, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(Tried::Intent(intent)) => intent,
                Err(failed) => return Err(failed.into()),
            };
            let of = judge.name();
            if met.as_ref() == Some(&intent) {
                self.settle(of, &intent, deadline).await?;
            }
            let ended = timeout_at(deadline, self.changes.wait_for(of.bucket.id, of.name)).await;
            ended.map_err(|_| Failure::from(Refusal::Intent(intent.clone())))?;
            met = Some(intent);
        }
        Err(Failure::moved_again())
    }

    /// Makes a write about an object, unless a change of several names stands in the way.
    pub(super) async fn try_change<J: Judge>(
        &self,
        judge: &J,
        deadline: Instant,
    ) -> Result<J::Answer, Tried> {
        let of = judge.name();
        // Rows of folders are judged by the number that stands beside them, so no fence is needed for them.
        let Some(look) = of.bucket.look.as_ref().filter(|_| !of.name.is_empty()) else {
            return self.judged(judge, None, deadline).await;
        };
        let mut seen = look.seen;
        for _ in 0..FOLDER_TRIES_MAX {
            match self.judged(judge, Some(seen), deadline).await {
                Err(Tried::Fenced(fence)) => {
                    seen = self.met_fence(of.bucket, look, fence, deadline).await.map_err(Tried::Failed)?;
                }
                answer => return answer,
            }
        }
        Err(Tried::Failed(moved_meanwhile()))
    }

    /// Makes a write about an object whose sender has seen this change of the bucket's folders.
    pub(super) async fn judged<J: Judge>(
        &self,
        judge: &J,
        seen: Option<u64>,
        deadline: Instant,
    ) -> Result<J::Answer, Tried> {
        let of = judge.name();
        check_located(of).map_err(|error| Tried::Failed(error.into()))?;
        let (partition, keys) = (of.partition(), judge.keys());
        // Only the walk knows buckets that were deleted: it removes what they have left.
        let of_closed = of.bucket.deleted.is_some();
        let space = if judge.only_removes() { Space::Returns } else { Space::Takes };
        let request =
            WriteRequest { of_closed, seen, space, ..WriteRequest::new(&partition, &keys, deadline) };
        let mut decided = None;
        let mut judged = |rows: &[Option<Bytes>], now: Timestamp| {
            let outcome = judge.judge(rows, now)?;
            decided = Some((outcome.answer, outcome.releases));
            Ok::<_, Refusal>(outcome.changes)
        };
        let mut written = self.router.write(&request, &mut judged).await;
        // One deletion that finds the bucket not empty may follow another.
        for _ in 0..BUCKET_OPENED_AGAIN_MAX {
            if !matches!(written, Err(WriteError::BucketClosed)) {
                break;
            }
            if !self.open_again(&of.bucket.name, of.bucket.id, deadline).await.map_err(Tried::Failed)? {
                return Err(Tried::Failed(ObjectError::no_such_bucket().into()));
            }
            written = self.router.write(&request, &mut judged).await;
        }
        written?;
        let (answer, releases) = decided.expect("a write that was made was judged");
        self.release(releases).await;
        Ok(answer)
    }

    /// Removes references to blobs, after the rows that used them are gone. If this fails, or the process ends before,
    /// the audit of blobs finds them.
    async fn release(&self, releases: Vec<Release>) {
        for (blob, user) in releases {
            if let Err(error) = self.blobs.release_one(blob, &user).await {
                warn!(%blob, %error, "a blob keeps a user that is gone, until the next audit");
            }
        }
    }

    /// Changes a bucket: `change` makes the new one from the present one and the time of the write.
    pub(super) async fn change_bucket(
        &self,
        name: &str,
        conditions: &Conditions,
        deadline: Instant,
        mut change: impl FnMut(&Bucket, Micros) -> Result<Bucket, ObjectError> + Send,
    ) -> Result<Bucket, Failure> {
        let partition = PartitionPrefix::bucket(name);
        let key = partition.bucket_row(&BucketRow::Bucket);
        self.change(&partition, std::slice::from_ref(&key), deadline, |rows, now| {
            let row = rows[0].as_ref().ok_or_else(ObjectError::no_such_bucket)?;
            let bucket = Bucket::decode(row)?;
            conditions.check_seen(Some(&seen(&bucket)), Purpose::Write)?;
            let changed = change(&bucket, now.into())?;
            Ok((vec![(key.clone(), Some(changed.encode()))], changed))
        })
        .await
    }
}

/// Why a write about an object was not made.
pub(super) enum Tried {
    /// A change of several names is under way at this name.
    Intent(Intent),
    /// The folders of the bucket are being changed, or were, by the change of this number.
    Fenced(u64),
    /// Everything else.
    Failed(Failure),
}

impl From<WriteError<Refusal>> for Tried {
    fn from(failed: WriteError<Refusal>) -> Self {
        match failed {
            WriteError::Refused(Refusal::Intent(intent)) => Self::Intent(intent),
            WriteError::Fenced(fence) => Self::Fenced(fence),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<Tried> for Failure {
    fn from(tried: Tried) -> Self {
        match tried {
            Tried::Intent(intent) => Refusal::Intent(intent).into(),
            Tried::Fenced(_) => moved_meanwhile(),
            Tried::Failed(failure) => failure,
        }
    }
}

/// What conditions on a bucket look at.
pub(super) fn seen(bucket: &Bucket) -> Seen {
    Seen {
        generation: u64::try_from(bucket.created.get()).unwrap_or_default(),
        metageneration: bucket.metageneration,
        tag: bucket.etag(),
        xml_tag: None,
    }
}

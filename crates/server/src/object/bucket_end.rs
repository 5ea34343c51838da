//! The end of a bucket, and its return.
//!
//! A bucket is closed in all ranges before anybody looks whether it is empty, so no acknowledged object is lost between
//! the look and the deletion. If it is not empty, it is opened again. After a crash in between, or if the outcome of the
//! deletion is not known, the first write that finds the bucket closed looks whether it still exists, and then opens it, since
//! no deletion is under way in this process. So does the walk over the buckets. This look is a write without changes, because a
//! client may hang up while its deletion is on its way into the log. A read would then show the row from before the deletion, but
//! a write is answered only when all earlier writes of the row are durable.
//!
//! A deleted bucket keeps a row under its name and id. If it had a soft-delete policy, it can come back for some time, with
//! the objects that it had. After that time, or at once without a policy, the walk over the buckets removes the rows that it has
//! left, with their bytes: soft-deleted objects, uploads, parts and answers. The bucket stays closed meanwhile, so no request
//! that still knows it adds to them. Last go the notes that close it, and its own row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use rangehold_engine::WriteRequest;
use rangehold_engine::store::Space;
use rangehold_map::key::{BucketId, BucketRow, KIND_BUCKET, ObjectKey, ObjectRow, bucket_objects};
use rangehold_map::{Key, KeyRange, PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Generation, Head, Intent, Projection, State};
use rangehold_protocol::object::intent::Standing;
use rangehold_protocol::object::limits::BUCKET_CLOSED_SECONDS;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::Name;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::json::resource;
use super::reply::Reply;
use super::rows::seen;
use crate::limits::{INTENTS_IN_BUCKET_MAX, REQUEST_WITHIN};

impl ObjectService {
    pub(super) async fn delete_bucket(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        self.end_bucket(exchange, name, &exchange.conditions()?).await
    }

    /// Deletes a bucket if the conditions hold and nothing lives in it.
    pub(super) async fn end_bucket(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        conditions: &Conditions,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        conditions.check_seen(Some(&seen(&bucket)), Purpose::Write)?;
        let deadline = exchange.deadline();
        let ending = self.ending(deadline).await?;
        let deleted = match self.router.close_bucket(bucket.id, deadline, Arc::clone(&ending)).await {
            Ok(()) => self.delete_closed(&bucket, conditions, deadline).await,
            Err(error) => Err(error.into()),
        };
        // After an unknown outcome the deletion may still be made, or ranges may still be closed: the next write, or the walk, looks.
        let is_unknown = |failure: &Failure| failure.is_unknown() || failure.0.kind == ErrorKind::Unavailable;
        if deleted.as_ref().is_err_and(|failure| !is_unknown(failure)) {
            let _ = self.router.reopen_bucket(bucket.id, deadline, ending).await;
        }
        deleted.map(|()| Reply::empty(204))
    }

    /// Deletes a bucket that is closed, if nothing lives in it.
    async fn delete_closed(
        &self,
        bucket: &Bucket,
        conditions: &Conditions,
        deadline: Instant,
    ) -> Result<(), Failure> {
        if self.has_objects(bucket, &KeyRange::prefix(&bucket_objects(bucket.id))).await? {
            let message = "The bucket you tried to delete is not empty.";
            return Err(ObjectError::new(ErrorKind::BucketNotEmpty, message).into());
        }
        let name = bucket.name.as_str();
        let id = bucket.id;
        let partition = PartitionPrefix::bucket(name);
        let key = partition.bucket_row(&BucketRow::Bucket);
        self.change(&partition, std::slice::from_ref(&key), deadline, |rows, now| {
            let row = rows[0].as_ref().ok_or_else(ObjectError::no_such_bucket)?;
            let mut bucket = Bucket::decode(row)?;
            if bucket.id != id {
                return Err(ObjectError::no_such_bucket());
            }
            conditions.check_seen(Some(&seen(&bucket)), Purpose::Write)?;
            let now = Micros::from(now);
            let restorable_until = now.plus_seconds(bucket.soft_delete_seconds().unwrap_or(0));
            bucket.deleted = Some((now, restorable_until));
            let capacity = partition.bucket_row(&BucketRow::Capacity(id));
            let kept = partition.bucket_row(&BucketRow::Deleted(id));
            Ok((vec![(key.clone(), None), (capacity, None), (kept, Some(bucket.encode()))], ()))
        })
        .await
    }

    /// Opens a bucket again that a deletion left closed because the process ended first. A deletion that is under
    /// way in this process is waited for. Returns false if the bucket is gone.
    pub(super) async fn open_again(
        &self,
        name: &str,
        id: BucketId,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let ending = self.ending(deadline).await?;
        let partition = PartitionPrefix::bucket(name);
        let keys = [partition.bucket_row(&BucketRow::Bucket)];
        let request =
            WriteRequest { space: Space::Returns, ..WriteRequest::new(&partition, &keys, deadline) };
        let mut exists = false;
        let looked = self.router.write(&request, |rows, _| {
            exists = match &rows[0] {
                Some(row) => Bucket::decode(row)?.id == id,
                None => false,
            };
            Ok::<_, ObjectError>(Vec::new())
        });
        looked.await?;
        if exists {
            self.router.reopen_bucket(id, deadline, ending).await?;
        }
        Ok(exists)
    }

    /// Opens all buckets again that a deletion left closed.
    pub(super) async fn open_left_closed(&self) -> Result<(), Failure> {
        for (id, name) in self.living(&self.router.closed_buckets()).await? {
            self.open_again(&name, id, Instant::now() + REQUEST_WITHIN).await?;
        }
        Ok(())
    }

    /// The right to close buckets and to open them.
    async fn ending(&self, deadline: Instant) -> Result<Arc<OwnedMutexGuard<()>>, Failure> {
        let guard = timeout_at(deadline, Arc::clone(&self.ending).lock_owned()).await;
        guard.map(Arc::new).map_err(|_| Failure::unavailable("Another bucket is being deleted. Try again."))
    }

    /// Those of `buckets` that a read shows, and their names.
    async fn living(&self, buckets: &BTreeSet<BucketId>) -> Result<BTreeMap<BucketId, String>, Failure> {
        if buckets.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = KeyRange::prefix(&[KIND_BUCKET]);
        let found = self.router.scan(&rows, BTreeMap::new, |found, key, row| {
            if let Ok(Key::Bucket { row: BucketRow::Bucket, .. }) = Key::decode(key)
                && let Ok(bucket) = Bucket::decode(row)
                && buckets.contains(&bucket.id)
            {
                found.insert(bucket.id, bucket.name);
            }
            if found.len() == buckets.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Ok(found.await?)
    }

    /// Whether there is an object in `keys` that somebody can read: a live one, or an older one that is kept; or a folder.
    /// Writes there must be held off.
    pub(super) async fn has_objects(&self, bucket: &Bucket, keys: &KeyRange) -> Result<bool, Failure> {
        let look = self.router.scan(keys, Look::default, |look, key, row| {
            look.take(key, row);
            if look.found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let Look { found, intents } = look.await?;
        if found {
            return Ok(true);
        }
        for (name, intent) in intents {
            let of = Name { bucket, name: &name };
            if !matches!(self.standing(of, &intent).await?, Standing::Gone(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The bucket that had the name, was made at `generation`, and was deleted.
    pub(super) async fn deleted_bucket(&self, name: &str, generation: &str) -> Result<Bucket, Failure> {
        let created = generation.parse().map(Micros::new).map_err(|_| {
            ObjectError::invalid("generation", generation, "Give the generation of the deleted bucket.")
        })?;
        let partition = PartitionPrefix::bucket(name);
        let row = |id| partition.bucket_row(&BucketRow::Deleted(BucketId(id)));
        let lives = KeyRange::new(row(0), Some(row(u64::MAX)));
        let found = self.router.scan(
            &lives,
            || None,
            |found, _, row| match Bucket::decode(row) {
                Ok(bucket) if bucket.created != created => ControlFlow::Continue(()),
                bucket => {
                    *found = Some(bucket);
                    ControlFlow::Break(())
                }
            },
        );
        let bucket = found.await?.ok_or_else(ObjectError::no_such_bucket)??;
        match bucket.is_over(self.clock.now().into()) {
            false => Ok(bucket),
            true => Err(ObjectError::no_such_bucket().into()),
        }
    }

    /// Removes the row of a deleted bucket that can no longer be restored, and the notes that close it, if no row of its
    /// objects is left and every request that knew the bucket looks for it again. `key` is the key of its row. Returns whether it was
    /// removed.
    pub(super) async fn remove_over(&self, key: &[u8], bucket: &Bucket) -> Result<bool, Failure> {
        let now = Micros::from(self.clock.now());
        let is_remembered = bucket.deleted.is_none_or(|(at, _)| at.plus_seconds(BUCKET_CLOSED_SECONDS) > now);
        let rest = KeyRange::prefix(&bucket_objects(bucket.id));
        let has_rows = self.router.scan(
            &rest,
            || false,
            |found, _, _| {
                *found = true;
                ControlFlow::Break(())
            },
        );
        if is_remembered || has_rows.await? {
            return Ok(false);
        }
        let deadline = Instant::now() + REQUEST_WITHIN;
        if bucket.has_folders() {
            self.router.unfence_bucket(bucket.id, deadline).await?;
        }
        self.router.reopen_bucket(bucket.id, deadline, ()).await?;
        let (partition, keys) = (PartitionPrefix::bucket(&bucket.name), [key.to_vec()]);
        self.change(&partition, &keys, deadline, |rows, now| {
            let is_over = rows[0].as_ref().is_some_and(|row| is_over(row, now));
            Ok((if is_over { vec![(key.to_vec(), None)] } else { Vec::new() }, is_over))
        })
        .await
    }

    pub(super) async fn restore_bucket(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        let id = self.deleted_bucket(name, exchange.query.required("generation")?).await?.id;
        let partition = PartitionPrefix::bucket(name);
        let live = partition.bucket_row(&BucketRow::Bucket);
        let deleted = partition.bucket_row(&BucketRow::Deleted(id));
        let keys = [live.clone(), deleted.clone()];
        let ending = self.ending(exchange.deadline()).await?;
        let restored = self.change(&partition, &keys, exchange.deadline(), |rows, now| {
            let mut bucket = Bucket::decode(rows[1].as_ref().ok_or_else(ObjectError::no_such_bucket)?)?;
            if bucket.is_over(now.into()) {
                return Err(ObjectError::no_such_bucket());
            }
            if rows[0].is_some() {
                let message =
                    format!("There is a bucket {name} again: delete it before you restore the older one.");
                return Err(ObjectError::new(ErrorKind::Conflict, message));
            }
            bucket.deleted = None;
            bucket.touch(now.into());
            Ok((vec![(deleted.clone(), None), (live.clone(), Some(bucket.encode()))], bucket))
        });
        let restored = restored.await?;
        self.router.reopen_bucket(id, exchange.deadline(), ending).await?;
        resource(exchange, restored.json(&exchange.base, exchange.query.projection(Projection::NoAcl)?))
    }
}

/// What the look into a closed bucket finds.
#[derive(Default)]
struct Look {
    /// Whether there is an object, or a row that cannot be read: that must not get lost with its bucket.
    found: bool,
    /// The objects that a change of several names may have taken away.
    intents: Vec<(String, Intent)>,
}

impl Look {
    fn take(&mut self, key: &[u8], row: &Bytes) {
        let Ok(key) = ObjectKey::decode(key) else {
            self.found = true;
            return;
        };
        match key.row {
            ObjectRow::Head => match Head::decode(row) {
                Ok(Head { intent: Some(intent), .. }) if self.intents.len() < INTENTS_IN_BUCKET_MAX => {
                    self.intents.push((key.name.into_owned(), intent));
                }
                _ => self.found = true,
            },
            // Folders have to be deleted too; a rename or deletion of one that is under way is not.
            ObjectRow::FolderName { .. } => self.found = true,
            ObjectRow::NotLive(_) => {
                let generation = Generation::decode(row);
                self.found =
                    !generation.is_ok_and(|generation| matches!(generation.state, State::SoftDeleted { .. }));
            }
            _ => {}
        }
    }
}

/// Whether the row is of a bucket that can no longer be restored.
fn is_over(row: &[u8], now: Timestamp) -> bool {
    Bucket::decode(row).is_ok_and(|bucket| bucket.is_over(now.into()))
}

//! The end of a bucket, and its return.
//!
//! A bucket is closed in all ranges before anybody looks whether it is empty, so no acknowledged object is lost between
//! the look and the deletion. If it is not empty, it is opened again. After a crash in between, the first write that finds
//! the bucket closed opens it, since no deletion is under way in this process.
//!
//! A bucket with a soft-delete policy is kept for some time after it was deleted, under its name and id, and can come
//! back with the objects that it had.

use std::ops::ControlFlow;

use rangehold_map::key::{BucketId, BucketRow, KIND_BUCKET, ObjectKey, ObjectRow, bucket_objects, bucket_of};
use rangehold_map::{Key, KeyRange, PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::{Bucket, bucket_id};
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Generation, Projection, State};
use rangehold_protocol::object::micros::Micros;
use tokio::time::Instant;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::json::resource;
use super::reply::Reply;
use super::rows::seen;
use crate::limits::REQUEST_WITHIN;

impl ObjectService {
    pub(super) async fn delete_bucket(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        let conditions = exchange.conditions()?;
        let bucket = self.bucket(name).await?;
        conditions.check_seen(Some(&seen(&bucket)), Purpose::Write)?;
        let deadline = exchange.deadline();
        let _ending = self.ending.lock().await;
        let deleted = match self.router.close_bucket(bucket.id, deadline).await {
            Ok(()) => self.delete_closed(&bucket, &conditions, deadline).await,
            Err(error) => Err(error.into()),
        };
        // After an unknown outcome the bucket may be gone by now, so it stays closed; the next write to it looks.
        if deleted.as_ref().is_err_and(|failure| failure.0.kind != ErrorKind::Unavailable) {
            let _ = self.router.reopen_bucket(bucket.id, deadline).await;
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
        if self.has_objects(bucket.id).await? {
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
            let capacity = partition.bucket_row(&BucketRow::Capacity(id));
            let mut changes = vec![(key.clone(), None), (capacity, None)];
            if let Some(seconds) = bucket.soft_delete_seconds() {
                let now = Micros::from(now);
                bucket.deleted = Some((now, now.plus_seconds(seconds)));
                let kept = partition.bucket_row(&BucketRow::Deleted(bucket.id));
                changes.push((kept, Some(bucket.encode())));
            }
            Ok((changes, ()))
        })
        .await
    }

    /// Opens a bucket again that a deletion left closed, when the process ended before it did. A deletion that is under
    /// way in this process is waited for. Returns false if the bucket of the partition is gone.
    pub(super) async fn open_again(
        &self,
        partition: &PartitionPrefix,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let Some(id) = bucket_of(partition.as_bytes()) else { return Ok(false) };
        let _ending = self.ending.lock().await;
        let buckets = KeyRange::prefix(&[KIND_BUCKET]);
        let found = self.router.scan(
            &buckets,
            || false,
            |found, key, row| {
                let is_live = matches!(Key::decode(key), Ok(Key::Bucket { row: BucketRow::Bucket, .. }));
                *found = is_live && Bucket::decode(row).is_ok_and(|bucket| bucket.id == id);
                if *found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        let exists = found.await?;
        if exists {
            self.router.reopen_bucket(id, deadline).await?;
        }
        Ok(exists)
    }

    /// Whether a bucket has an object that somebody can read: a live one, or an older one that is kept.
    async fn has_objects(&self, bucket: BucketId) -> Result<bool, Failure> {
        let keys = KeyRange::prefix(&bucket_objects(bucket));
        let found = self.router.scan(
            &keys,
            || false,
            |found, key, row| {
                *found = match ObjectKey::decode(key).map(|key| key.row) {
                    Ok(ObjectRow::Head) => true,
                    Ok(ObjectRow::NotLive(_)) => {
                        let generation = Generation::decode(row);
                        !generation
                            .is_ok_and(|generation| matches!(generation.state, State::SoftDeleted { .. }))
                    }
                    Ok(_) => false,
                    // What cannot be read must not get lost with its bucket.
                    Err(_) => true,
                };
                if *found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        Ok(found.await?)
    }

    /// The bucket that had the name, was made at `generation`, and was deleted.
    pub(super) async fn deleted_bucket(&self, name: &str, generation: &str) -> Result<Bucket, Failure> {
        let row = PartitionPrefix::bucket(name).bucket_row(&BucketRow::Deleted(id_of(name, generation)?));
        let row = self.router.get(&row).await?.ok_or_else(ObjectError::no_such_bucket)?;
        Ok(Bucket::decode(&row)?)
    }

    /// Opens a deleted bucket in all ranges if it can no longer be restored, so that the rest of its rows can be removed. By
    /// then no request that knew the bucket is under way. Returns whether it can no longer be restored. `key` is the key
    /// of its row.
    pub(super) async fn open_over(&self, key: &[u8], bucket: &Bucket) -> Result<bool, Failure> {
        let _ending = self.ending.lock().await;
        let row = self.router.get(key).await?;
        let is_over = row.is_some_and(|row| is_over(&row, self.clock.now()));
        if is_over {
            self.router.reopen_bucket(bucket.id, Instant::now() + REQUEST_WITHIN).await?;
        }
        Ok(is_over)
    }

    /// Removes the row of a deleted bucket that can no longer be restored, if no row of its objects is left. Returns
    /// whether it was removed.
    pub(super) async fn remove_over(&self, key: &[u8], bucket: &Bucket) -> Result<bool, Failure> {
        let rest = KeyRange::prefix(&bucket_objects(bucket.id));
        let has_rows = self.router.scan(
            &rest,
            || false,
            |found, _, _| {
                *found = true;
                ControlFlow::Break(())
            },
        );
        if has_rows.await? {
            return Ok(false);
        }
        let (partition, keys) = (PartitionPrefix::bucket(&bucket.name), [key.to_vec()]);
        self.change(&partition, &keys, Instant::now() + REQUEST_WITHIN, |rows, now| {
            let is_over = rows[0].as_ref().is_some_and(|row| is_over(row, now));
            Ok((if is_over { vec![(key.to_vec(), None)] } else { Vec::new() }, is_over))
        })
        .await
    }

    pub(super) async fn restore_bucket(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        let id = id_of(name, exchange.query.required("generation")?)?;
        let partition = PartitionPrefix::bucket(name);
        let live = partition.bucket_row(&BucketRow::Bucket);
        let deleted = partition.bucket_row(&BucketRow::Deleted(id));
        let keys = [live.clone(), deleted.clone()];
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
        self.router.reopen_bucket(id, exchange.deadline()).await?;
        resource(exchange, restored.json(&exchange.base, exchange.query.projection(Projection::NoAcl)?))
    }
}

/// Whether the row is of a bucket that can no longer be restored.
fn is_over(row: &[u8], now: Timestamp) -> bool {
    Bucket::decode(row).is_ok_and(|bucket| bucket.is_over(now.into()))
}

/// The id of the bucket `name` whose resource shows this generation.
fn id_of(name: &str, generation: &str) -> Result<BucketId, ObjectError> {
    let created = generation.parse().map(Micros::new).map_err(|_| {
        ObjectError::invalid("generation", generation, "Give the generation of the deleted bucket.")
    });
    Ok(bucket_id(name, created?))
}

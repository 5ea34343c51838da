//! Long-running operations of a bucket: the rows that tell how far they are.

use bytes::Bytes;
use rangehold_engine::Visit;
use rangehold_map::key::BucketRow;
use rangehold_map::{Key, KeyRange, PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::limits::{OPERATION_KEPT_SECONDS, PAGE_ITEMS_MAX};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::operation::Operation;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::json::resource;
use super::reply::Reply;

impl ObjectService {
    /// Calls `make` with the time of the write and stores the operation. Returns its id too. Fails if the bucket is gone.
    pub(super) async fn store_operation(
        &self,
        bucket: &Bucket,
        deadline: Instant,
        make: impl Fn(Micros) -> Operation + Send + Sync,
    ) -> Result<(String, Operation), Failure> {
        let partition = PartitionPrefix::bucket(&bucket.name);
        let live = [partition.bucket_row(&BucketRow::Bucket)];
        let judge = |rows: &[Option<Bytes>], now: Timestamp| {
            check_alive(&rows[0], bucket)?;
            let now = Micros::from(now);
            let (id, operation) = (now.get().to_string(), make(now));
            let key = partition.bucket_row(&BucketRow::Operation(bucket.id, id.clone()));
            Ok((vec![(key, Some(operation.encode()))], (id, operation)))
        };
        self.change(&partition, &live, deadline, judge).await
    }

    /// Changes a stored operation.
    pub(super) async fn change_operation(
        &self,
        bucket: &Bucket,
        id: &str,
        deadline: Instant,
        change: impl Fn(&Operation, Micros) -> Result<Operation, ObjectError> + Send + Sync,
    ) -> Result<Operation, Failure> {
        let partition = PartitionPrefix::bucket(&bucket.name);
        let key = partition.bucket_row(&BucketRow::Operation(bucket.id, id.to_owned()));
        self.change(&partition, std::slice::from_ref(&key), deadline, |rows, now| {
            let row = rows[0].as_ref().ok_or_else(|| missing(id))?;
            let changed = change(&Operation::decode(row)?, now.into())?;
            Ok((vec![(key.clone(), Some(changed.encode()))], changed))
        })
        .await
    }

    /// At most `wanted` operations of a bucket with ids after `after`, in the order in which they were begun.
    pub(super) async fn operations_after(
        &self,
        bucket: &Bucket,
        after: &str,
        wanted: usize,
    ) -> Result<Vec<(String, Operation)>, Failure> {
        let partition = PartitionPrefix::bucket(&bucket.name);
        let from = |id: &str| partition.bucket_row(&BucketRow::Operation(bucket.id, id.to_owned()));
        let first = from("");
        // All keys of operations begin with the key of an empty id, less its last byte, which ends the id.
        let keys = KeyRange::prefix(&first[..first.len() - 1]).intersect(&KeyRange::new(from(after), None));
        let found = self.router.scan(&keys, Vec::new, |found: &mut Vec<(String, Bytes)>, key, row| {
            if let Ok(Key::Bucket { row: BucketRow::Operation(_, id), .. }) = Key::decode(key)
                && id != after
            {
                found.push((id, row.clone()));
            }
            if found.len() < wanted { Visit::Next } else { Visit::Stop }
        });
        found.await?.into_iter().map(|(id, row)| Ok((id, Operation::decode(&row)?))).collect()
    }

    pub(super) async fn get_operation(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        id: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        let key =
            PartitionPrefix::bucket(&bucket.name).bucket_row(&BucketRow::Operation(bucket.id, id.to_owned()));
        let row = self.router.get(&key).await?.ok_or_else(|| missing(id))?;
        resource(exchange, Operation::decode(&row)?.json(&exchange.base, &bucket.name, id))
    }

    pub(super) async fn list_operations(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        if let Some(filter) = exchange.parameter("filter") {
            let what = format!("storage.buckets.operations.list with the filter {filter:?}");
            return Err(ObjectError::not_implemented(&what).into());
        }
        let wanted = exchange.query.page_size("pageSize")?;
        let after = exchange.parameter("pageToken").unwrap_or_default();
        if !after.bytes().all(|byte| byte.is_ascii_digit()) {
            let hint = "Send the nextPageToken of the last page.";
            return Err(ObjectError::invalid("pageToken", after, hint).into());
        }
        let mut found = self.operations_after(&bucket, after, wanted + 1).await?;
        let more = found.len() > wanted;
        found.truncate(wanted);
        let shown = |(id, one): &(String, Operation)| one.json(&exchange.base, &bucket.name, id);
        let operations: Vec<Value> = found.iter().map(shown).collect();
        let mut reply = json!({ "kind": "storage#operations", "operations": operations });
        if let Some((last, _)) = found.last().filter(|_| more) {
            reply["nextPageToken"] = json!(last);
        }
        resource(exchange, reply)
    }

    pub(super) async fn cancel_operation(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        id: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        self.change_operation(&bucket, id, exchange.deadline(), Operation::cancelled).await?;
        resource(exchange, json!({}))
    }

    /// Removes the rows of operations that ended long ago; of a deleted bucket, all rows. Returns how many.
    pub(super) async fn remove_operations(&self, bucket: &Bucket, deadline: Instant) -> Result<u64, Failure> {
        let now = Micros::from(self.clock.now());
        let is_over = |operation: &Operation| {
            bucket.deleted.is_some()
                || (!operation.is_running() && operation.updated.plus_seconds(OPERATION_KEPT_SECONDS) <= now)
        };
        let partition = PartitionPrefix::bucket(&bucket.name);
        let (mut after, mut removed) = (String::new(), 0);
        loop {
            let page = self.operations_after(bucket, &after, PAGE_ITEMS_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(removed) };
            after.clone_from(last);
            let over = page.iter().filter(|(_, operation)| is_over(operation));
            let row = |id: &String| partition.bucket_row(&BucketRow::Operation(bucket.id, id.clone()));
            let rows: Vec<_> = over.map(|(id, _)| (row(id), None)).collect();
            if !rows.is_empty() {
                removed += rows.len() as u64;
                self.change(&partition, &[], deadline, |_, _| Ok((rows.clone(), ()))).await?;
            }
        }
    }
}

/// Checks that the row is that of the bucket, and not that of a later bucket with its name.
fn check_alive(row: &Option<Bytes>, bucket: &Bucket) -> Result<(), ObjectError> {
    let row = row.as_ref().ok_or_else(ObjectError::no_such_bucket)?;
    match Bucket::decode(row)?.id == bucket.id {
        true => Ok(()),
        false => Err(ObjectError::no_such_bucket()),
    }
}

fn missing(id: &str) -> ObjectError {
    ObjectError::new(ErrorKind::NotFound, format!("There is no operation {id}."))
}

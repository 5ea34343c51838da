//! The walk over all buckets, in the background: some minutes after the start, and then each hour.
//!
//! It carries out lifecycle rules, and removes rows whose life is over. `protocol::object::ageing` decides what is due; here
//! the rows are read in pages, and what is due is given to the same judges as requests. After each page the walk pauses for as
//! long as the page took, so that requests come first. Each page reads the bucket again: rules count as they are now.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rangehold_engine::Visit;
use rangehold_map::key::{BucketId, BucketRow, KIND_BUCKET, bucket_objects};
use rangehold_map::{Key, KeyRange};
use rangehold_protocol::object::ageing::{Ageing, Due, EndUpload, RemoveAnswer, RemovePart, What};
use rangehold_protocol::object::bucket::{Bucket, Look};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::RemoveRow;
use rangehold_protocol::object::list::Want;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Change, Delete, Edit, Expire, Name};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::ObjectService;
use super::failure::Failure;
use super::list::visit_of;
use super::located::unknown_name;
use super::upkeep::stops_within;
use crate::limits::{
    AGEING_AFTER_START, AGEING_FAILURES_MAX, AGEING_PAGE_ROWS, AGEING_PAUSE_MIN, REQUEST_WITHIN,
};

/// What a walk has done.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    /// Changes that were made.
    changes: u64,
    /// Changes that a hold, a retention or a newer change refused.
    refused: u64,
    /// Changes that failed. The next walk tries them again.
    failed: u64,
}

/// A page of a bucket's rows while it is read.
struct Page {
    ageing: Ageing,
    due: Vec<Due>,
    rows: usize,
    /// Where the next page begins.
    next: Option<Vec<u8>>,
    /// The stored name with which the page has ended because the whole name of its folder is needed.
    unknown: Option<String>,
    /// The first row that could not be read.
    fault: Option<ObjectError>,
}

impl ObjectService {
    /// Walks over the buckets now and then, until `stop` is set.
    pub(crate) async fn age(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let every = self.options.ageing_every;
        let mut wait = every.min(AGEING_AFTER_START);
        while !stops_within(wait, &mut stop).await {
            wait = every;
            tokio::select! {
                () = self.age_buckets() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Walks over all buckets once: carries out what lifecycle rules say is due, and removes rows whose life is over. A
    /// bucket that fails is left to the next walk.
    pub async fn age_buckets(&self) {
        if let Err(failure) = self.open_left_closed().await {
            warn!(error = %failure, "a bucket that its deletion left closed stays so until the next walk or write");
        }
        let (mut from, mut done) = (vec![KIND_BUCKET], Done::default());
        loop {
            let aged = match self.bucket_at(from).await {
                Ok(None) => break,
                Ok(Some((key, bucket))) => {
                    let aged = self.age_bucket(&key, &bucket, &mut done).await;
                    from = after(&key);
                    aged.map_err(|failure| (bucket.name, failure))
                }
                Err(failure) => {
                    warn!(error = %failure, "the walk over the buckets was broken off; the next one tries again");
                    break;
                }
            };
            if let Err((bucket, failure)) = aged {
                warn!(bucket, error = %failure, "a bucket was not walked over to its end; the next walk tries again");
            }
        }
        let Done { changes, refused, failed } = done;
        if changes + failed > 0 {
            info!(
                changes,
                refused, failed, "lifecycle rules were carried out, and rows removed whose life is over"
            );
        }
    }

    /// The first bucket at `from` or after it, live or deleted, and the key of its row.
    async fn bucket_at(&self, from: Vec<u8>) -> Result<Option<(Vec<u8>, Bucket)>, Failure> {
        let keys = KeyRange::prefix(&[KIND_BUCKET]).intersect(&KeyRange::new(from, None));
        let found = self.router.scan(
            &keys,
            || None,
            |found, key, row| {
                let is_bucket = matches!(
                    Key::decode(key),
                    Ok(Key::Bucket { row: BucketRow::Bucket | BucketRow::Deleted(_), .. })
                );
                // A row that cannot be read is passed over; requests for the bucket tell of it.
                *found = is_bucket.then(|| Bucket::decode(row).ok()).flatten().map(|b| (key.to_vec(), b));
                if found.is_some() { Visit::Stop } else { Visit::Next }
            },
        );
        Ok(found.await?)
    }

    async fn age_bucket(&self, key: &[u8], bucket: &Bucket, done: &mut Done) -> Result<(), Failure> {
        match bucket.deleted {
            None => {
                self.age_rows(key, bucket.id, done).await?;
                done.changes += self.remove_operations(bucket, Instant::now() + REQUEST_WITHIN).await?;
                Ok(())
            }
            Some(_) if !bucket.is_over(self.clock.now().into()) => Ok(()),
            Some(_) => {
                self.age_rows(key, bucket.id, done).await?;
                done.changes += self.remove_operations(bucket, Instant::now() + REQUEST_WITHIN).await?;
                done.changes += u64::from(self.remove_over(key, bucket).await?);
                Ok(())
            }
        }
    }

    /// Walks over the rows of the bucket's objects. `key` is the key of the bucket's own row.
    async fn age_rows(&self, key: &[u8], id: BucketId, done: &mut Done) -> Result<(), Failure> {
        let all = KeyRange::prefix(&bucket_objects(id));
        let (mut from, mut ageing) = (Some(all.low().to_vec()), Ageing::default());
        let mut look: Option<Look> = None;
        let failures_max = done.failed + AGEING_FAILURES_MAX;
        while let Some(low) = from {
            let begun = Instant::now();
            let Some(row) = self.router.get(key).await? else { return Ok(()) };
            let mut bucket = Bucket::decode(&row)?;
            if bucket.id != id {
                return Ok(());
            }
            bucket.look = self.look_for_rules(&bucket, look.take()).await?;
            let now = Micros::from(self.clock.now());
            let keys = all.intersect(&KeyRange::new(low, None));
            let begin = || Page::new(ageing.clone());
            let page = self.router.scan(&keys, begin, |page, key, row| page.take(&bucket, now, key, row));
            let mut page = page.await?;
            if page.next.is_none() {
                page.ageing.finish(&bucket, now, &mut page.due);
            }
            if let Some(fault) = page.fault {
                warn!(error = fault.message, bucket = bucket.name, "a row cannot be read, and does not age");
            }
            for due in &page.due {
                done.count(self.carry_out(&bucket, due).await);
                if done.failed >= failures_max {
                    return Err(Failure::unavailable("Too many changes failed."));
                }
            }
            (from, ageing, look) = (page.next, page.ageing, bucket.look.take());
            if let (Some(stored), Some(look)) = (page.unknown, &mut look) {
                self.find_folder_of(id, &stored, look).await?;
            }
            sleep(pause(begun.elapsed())).await;
        }
        Ok(())
    }

    /// What the walk has seen of the folders of a bucket whose rules speak of whole names. What it has seen before a folder
    /// was renamed or deleted does not count.
    async fn look_for_rules(&self, bucket: &Bucket, look: Option<Look>) -> Result<Option<Look>, Failure> {
        if !bucket.has_folders() || bucket.settings.lifecycle.is_none() {
            return Ok(None);
        }
        let seen = self.tree(bucket.id).await?.changes;
        Ok(Some(look.filter(|look| look.seen == seen).unwrap_or_else(|| Look::new(seen))))
    }

    /// Makes a change that is due. Returns whether there was still something to change.
    async fn carry_out(&self, bucket: &Bucket, due: &Due) -> Result<bool, Failure> {
        let mut bucket = Cow::Borrowed(bucket);
        if let Some(look) = &bucket.look {
            // A rule counts only if its object still has the name for which it was applied.
            let mut own = Look::new(look.seen);
            own.found(&due.name, &bucket.whole(&due.name));
            bucket.to_mut().look = Some(own);
        }
        let bucket = &*bucket;
        let of = Name { bucket, name: &due.name };
        let deadline = Instant::now() + REQUEST_WITHIN;
        match &due.what {
            What::Delete(target) => {
                let conditions = target.conditions();
                let delete = Delete { of, generation: target.generation(), conditions: &conditions };
                self.change_object(&delete, deadline).await.map(|()| true)
            }
            What::SetStorageClass(target, class) => {
                let (conditions, edit) = (target.conditions(), Edit::Class(*class));
                let change = Change { of, generation: target.generation(), conditions: &conditions, edit };
                self.change_object(&change, deadline).await.map(|_| true)
            }
            What::Expire(generation) => {
                self.change_object(&Expire { of, generation: *generation }, deadline).await
            }
            What::EndUpload(upload) => self.change_object(&EndUpload { of, upload }, deadline).await,
            What::RemovePart(upload, number) => {
                self.change_object(&RemovePart { of, upload, number: *number }, deadline).await
            }
            What::RemoveAnswer(upload) => self.change_object(&RemoveAnswer { of, upload }, deadline).await,
            What::RemoveFolderRow(row) => self.change_object(&RemoveRow { bucket, row }, deadline).await,
            What::Settle(intent) => self.settle(of, intent, deadline).await.map(|()| true),
            What::Forget(id) => self.forget(of, id, deadline).await,
        }
    }
}

impl Done {
    fn count(&mut self, result: Result<bool, Failure>) {
        match result {
            Ok(changed) => self.changes += u64::from(changed),
            Err(Failure(error)) if is_for_now(error.kind) => self.failed += 1,
            Err(_) => self.refused += 1,
        }
    }
}

/// Whether a change failed by a fault of the server. Every other error says that the object is not to be changed.
fn is_for_now(kind: ErrorKind) -> bool {
    kind.status() >= 500
}

impl Page {
    fn new(ageing: Ageing) -> Self {
        Self { ageing, due: Vec::new(), rows: 0, next: None, unknown: None, fault: None }
    }

    fn take(&mut self, bucket: &Bucket, now: Micros, key: &[u8], row: &Bytes) -> Visit {
        if let Some(stored) = unknown_name(bucket, key) {
            (self.unknown, self.next) = (Some(stored), Some(key.to_vec()));
            return Visit::Stop;
        }
        self.rows += 1;
        let want = self.ageing.visit(bucket, now, key, row, &mut self.due).unwrap_or_else(|fault| {
            self.fault.get_or_insert(fault);
            Want::Next
        });
        if self.rows < AGEING_PAGE_ROWS {
            return visit_of(want);
        }
        self.next = Some(match want {
            Want::Seek(further) => further,
            Want::Next | Want::Stop => after(key),
        });
        Visit::Stop
    }
}

/// The least key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// How long the walk pauses after a page that took so long.
fn pause(page: Duration) -> Duration {
    page.max(AGEING_PAUSE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_not_failures_and_a_row_that_was_gone_changes_nothing() {
        let mut done = Done::default();
        let failed = |kind| Err(Failure(ObjectError::new(kind, "why")));
        let results =
            [Ok(true), Ok(false), failed(ErrorKind::Hold), failed(ErrorKind::Unavailable), Ok(true)];
        results.into_iter().for_each(|result| done.count(result));
        assert_eq!((done.changes, done.refused, done.failed), (2, 1, 1));
    }
}

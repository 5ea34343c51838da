//! The restoration of many soft-deleted objects, as an operation that goes on after its request, and after a crash.
//!
//! The operation's row has the job. A task of the process carries jobs on: it looks at a stretch of rows, restores what the
//! client asked for, and notes how far it is. So a crash repeats one stretch at most, in which nothing is restored twice: a
//! restored generation is no longer soft-deleted, and nothing replaces what lives since the operation began.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use rangehold_engine::Visit;
use rangehold_map::key::{BucketRow, KIND_BUCKET, ObjectGeneration, bucket_objects, names_from};
use rangehold_map::{Key, KeyRange};
use rangehold_protocol::object::bucket::{Bucket, Look};
use rangehold_protocol::object::bulk_restore::{BulkRestore, Candidate, Found, Job, Search};
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::list::Want;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::operation::{INTERNAL, Operation, Outcome};
use rangehold_protocol::object::write::{Name, Restore};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::grants::{CREATE, DELETE};
use super::json::resource;
use super::list::visit_of;
use super::located::{Wants, moved_meanwhile, unknown_name};
use super::reply::Reply;
use crate::limits::{
    AGEING_EVERY, AGEING_PAGE_ROWS, AGEING_PAUSE_MIN, FOLDER_TRIES_MAX, JOBS_AGAIN_AFTER,
    OPERATIONS_RUNNING_MAX, REQUEST_WITHIN,
};

/// What the operation is called.
const SORT: &str = "BulkRestoreObjects";

impl ObjectService {
    pub(super) async fn bulk_restore(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let request = BulkRestore::from_body(self.body_object(exchange, body).await?)?;
        let bucket = self.bucket(bucket).await?;
        self.permit(exchange, CREATE, &bucket, None).await?;
        if request.allow_overwrite {
            self.permit(exchange, DELETE, &bucket, None).await?;
        }
        let running = self.running_jobs().await?.into_iter().filter(|(name, ..)| *name == bucket.name);
        if running.count() >= OPERATIONS_RUNNING_MAX {
            let message =
                format!("{OPERATIONS_RUNNING_MAX} operations of the bucket are under way, the most.");
            return Err(ObjectError::new(ErrorKind::Conflict, message).into());
        }
        let job = Job { request, ..Job::default() };
        let text = serde_json::to_string(&job).expect("a job can be written as JSON");
        let make = |now: Micros| Operation::begun(SORT, &job.counts(), text.clone(), now);
        let (id, operation) = self.store_operation(&bucket, exchange.deadline(), make).await?;
        self.jobs.notify_one();
        resource(exchange, operation.json(&exchange.base, &bucket.name, &id))
    }

    /// Carries jobs on whenever one was begun, until `stop` is set. Those that a crash broke off are carried on first.
    pub(crate) async fn carry_on(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            let wait = tokio::select! {
                done = self.carry_on_all() => if done { AGEING_EVERY } else { JOBS_AGAIN_AFTER },
                _ = stop.wait_for(|stop| *stop) => return,
            };
            tokio::select! {
                _ = timeout(wait, self.jobs.notified()) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Carries all jobs to their ends. Returns false if one was broken off.
    async fn carry_on_all(&self) -> bool {
        let jobs = match self.running_jobs().await {
            Ok(jobs) => jobs,
            Err(failure) => {
                warn!(error = %failure, "it is not known which operations are under way; they are looked for again soon");
                return false;
            }
        };
        let mut all = true;
        for (bucket, id, operation) in jobs {
            if let Err(failure) = self.carry_job(&bucket, &id, operation).await {
                warn!(bucket, id, error = %failure, "an operation was broken off; it goes on soon");
                all = false;
            }
        }
        all
    }

    /// The operations that go on, with the names of their buckets and their ids.
    async fn running_jobs(&self) -> Result<Vec<(String, String, Operation)>, Failure> {
        let keys = KeyRange::prefix(&[KIND_BUCKET]);
        let found = self.router.scan(&keys, Vec::new, |found: &mut Vec<_>, key, row: &Bytes| {
            if let Ok(Key::Bucket { name, row: BucketRow::Operation(_, id) }) = Key::decode(key)
                && let Ok(operation) = Operation::decode(row)
                && operation.sort == SORT
                && operation.is_running()
            {
                found.push((name, id, operation));
            }
            ControlFlow::Continue(())
        });
        Ok(found.await?)
    }

    async fn carry_job(&self, bucket: &str, id: &str, operation: Operation) -> Result<(), Failure> {
        let Ok(mut job) = serde_json::from_str::<Job>(&operation.job) else {
            let bucket = self.bucket(bucket).await?;
            let outcome = Outcome::Failed(INTERNAL, "The operation cannot be read.".to_owned());
            let end = |one: &Operation, now| Ok(one.clone().ended(outcome.clone(), now));
            return self.change_operation(&bucket, id, deadline(), end).await.map(drop);
        };
        let globs = job.request.globs()?;
        loop {
            let begun = Instant::now();
            // A bucket that was deleted meanwhile has no operations any more.
            let mut bucket = match self.bucket(bucket).await {
                Err(Failure(error)) if error.kind == ErrorKind::NoSuchBucket => return Ok(()),
                other => other?,
            };
            let times = (Micros::from(self.clock.now()), operation.begun);
            let search = Search::new(&job.request, &globs, times, AGEING_PAGE_ROWS);
            if bucket.has_folders() && !globs.is_empty() {
                bucket.look = Some(Look::new(self.tree(bucket.id).await?.changes));
            }
            let found = self.candidates(&mut bucket, &job.after, search).await?;
            job.skipped += found.skipped;
            for candidate in &found.candidates {
                self.restore_candidate(&bucket, candidate, &mut job).await?;
            }
            let is_done = found.last.is_none();
            job.after = found.last.unwrap_or_default();
            let text = serde_json::to_string(&job).expect("a job can be written as JSON");
            let counts = job.counts().to_string();
            let note = |one: &Operation, now: Micros| {
                if !one.is_running() {
                    return Ok(one.clone());
                }
                let noted =
                    Operation { details: counts.clone(), job: text.clone(), updated: now, ..one.clone() };
                Ok(if is_done { noted.ended(Outcome::Done("{}".to_owned()), now) } else { noted })
            };
            let noted = self.change_operation(&bucket, id, deadline(), note).await?;
            if !noted.is_running() {
                info!(bucket = bucket.name, id, counts, "an operation has ended");
                return Ok(());
            }
            sleep(begun.elapsed().max(AGEING_PAUSE_MIN)).await;
        }
    }

    /// What a search finds behind the name `after`. Folders whose whole names it needs are looked for on the way.
    async fn candidates(
        &self,
        bucket: &mut Bucket,
        after: &str,
        mut search: Search<'_>,
    ) -> Result<Found, Failure> {
        // The least name behind `after`.
        let low = if after.is_empty() { after.to_owned() } else { format!("{after}\0") };
        let (all, mut low) = (KeyRange::prefix(&bucket_objects(bucket.id)), names_from(bucket.id, &low));
        loop {
            let keys = all.intersect(&KeyRange::new(low, None));
            let (of, begin) = (&*bucket, || (search.clone(), None, None));
            let scanned = self.router.scan(&keys, begin, |(search, unknown, fault), key, row| {
                if let Some(stored) = unknown_name(of, key) {
                    *unknown = Some((stored, key.to_vec()));
                    return Visit::Stop;
                }
                visit_of(search.visit(of, key, row).unwrap_or_else(|error| {
                    *fault = Some(error);
                    Want::Stop
                }))
            });
            let (searched, unknown, fault) = scanned.await?;
            if let Some(fault) = fault {
                return Err(fault.into());
            }
            let (Some((stored, key)), Some(look)) = (unknown, &mut bucket.look) else {
                return Ok(searched.finish());
            };
            self.find_folder_of(bucket.id, &stored, look).await?;
            (search, low) = (searched, key);
        }
    }

    /// The bucket for a write of a stored name that a scan has found, with a look of its own, so that the write meets fences.
    /// `None` if the folder of the name was deleted.
    async fn bucket_of<'b>(
        &self,
        bucket: &'b Bucket,
        stored: &str,
    ) -> Result<Option<Cow<'b, Bucket>>, Failure> {
        if !bucket.has_folders() {
            return Ok(Some(Cow::Borrowed(bucket)));
        }
        for _ in 0..FOLDER_TRIES_MAX {
            let seen = self.tree(bucket.id).await?.changes;
            let (mut climbed, mut own) = (bucket.clone(), bucket.clone());
            let mut look = Look::new(seen);
            self.find_folder_of(bucket.id, stored, &mut look).await?;
            (climbed.look, own.look) = (Some(look), None);
            match self.located(&mut own, &climbed.whole(stored), Wants::There, deadline()).await {
                Ok(found) if found == stored => return Ok(Some(Cow::Owned(own))),
                Err(failure) if failure.0.kind != ErrorKind::NoSuchObject => return Err(failure),
                Ok(_) | Err(_) => {}
            }
            if self.tree(bucket.id).await?.changes == seen {
                return Ok(None);
            }
        }
        Err(moved_meanwhile())
    }

    async fn restore_candidate(
        &self,
        bucket: &Bucket,
        candidate: &Candidate,
        job: &mut Job,
    ) -> Result<(), Failure> {
        let Some(bucket) = self.bucket_of(bucket, &candidate.name).await? else {
            job.failed += 1;
            return Ok(());
        };
        let conditions = Conditions { generation_match: Some(candidate.live), ..Conditions::default() };
        let restore = Restore {
            of: Name { bucket: &bucket, name: &candidate.name },
            generation: ObjectGeneration(candidate.generation),
            token: None,
            conditions: &conditions,
            copies_acl: job.request.copy_source_acl,
        };
        match self.change_object(&restore, deadline()).await {
            Ok(_) => job.succeeded += 1,
            // By a fault of the server: the stretch is repeated.
            Err(failure) if failure.0.kind.status() >= 500 => return Err(failure),
            Err(Failure(error)) if error.kind == ErrorKind::ConditionNotMet => job.skipped += 1,
            Err(_) => job.failed += 1,
        }
        Ok(())
    }
}

fn deadline() -> Instant {
    Instant::now() + REQUEST_WITHIN
}

//! Asks admission for each request for an object, in the profile `cloud`, and keeps what buckets bear in their rows.
//!
//! A request is asked for once, before its handler: by its name in the path. The name of a new object may come in the
//! body, so uploads and new folders ask for it when they know it, and resumable uploads with the request or message that ends
//! them.

use std::sync::Arc;

use rangehold_map::capacity::Usage;
use rangehold_map::key::{BucketRow, ObjectRow};
use rangehold_map::load::Access as LoadAccess;
use rangehold_map::{BucketId, PartitionPrefix};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::with_slash;
use rangehold_protocol::object::list::ListRequest;
use rangehold_protocol::object::request::{Api, Call, Operation as Op};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::upkeep::stops_within;
use crate::admission::{About, ObjectAsk, ObjectRates, RatesView, ToStore, TooFast};
use crate::limits::REQUEST_WITHIN;

/// Why the rates of a bucket are not shown.
#[derive(Debug)]
pub(crate) enum NotShown {
    /// The profile has none.
    NoRates,
    /// There is no such bucket.
    NoBucket,
    /// Its rows could not be read.
    Failed(Failure),
}

impl ObjectService {
    /// What a bucket bears now, for people. One that nobody has used since the start is taken into use, as by a request.
    pub(crate) async fn rates_of(&self, bucket: &str) -> Result<(Bucket, RatesView), NotShown> {
        let rates = self.admission.object_rates().ok_or(NotShown::NoRates)?;
        let bucket = self.bucket(bucket).await?;
        if !rates.knows(bucket.id) {
            self.learn(rates, &bucket).await?;
        }
        // It was deleted, or gave way to another one, just now.
        let view = rates.view(bucket.id, self.clock.now()).ok_or(NotShown::NoBucket)?;
        Ok((bucket, view))
    }

    /// Lets a call of the JSON API in, or refuses it.
    pub(super) async fn admit_call(&self, exchange: &Exchange<'_>, call: &Call) -> Result<(), Failure> {
        if self.admission.object_rates().is_none() {
            return Ok(());
        }
        let (bucket, object) = (call.bucket.as_str(), call.object.as_str());
        match call.operation {
            Op::ObjectsList | Op::FoldersList => {
                // If the parameters are wrong, the handler says so.
                let request = ListRequest::parse(|name| exchange.query.get(name)).unwrap_or_default();
                self.admit(exchange, bucket, request.begins_at(), Usage::Read, About::Listing).await
            }
            Op::FoldersGet => self.admit_folder(exchange, bucket, &call.id, Usage::Read).await,
            Op::FoldersDelete | Op::FoldersDeleteRecursive => {
                self.admit_folder(exchange, bucket, &call.id, Usage::Write).await
            }
            Op::FoldersRename => {
                self.admit_folder(exchange, bucket, &call.id, Usage::Write).await?;
                self.admit_folder(exchange, bucket, &call.to_object, Usage::Write).await
            }
            Op::ObjectsGet | Op::ObjectAclList | Op::ObjectAclGet => {
                self.admit_name(exchange, bucket, object, Usage::Read).await
            }
            Op::ObjectsPatch
            | Op::ObjectsUpdate
            | Op::ObjectsDelete
            | Op::ObjectsRestore
            | Op::ObjectsCompose
            | Op::ObjectAclInsert
            | Op::ObjectAclPatch
            | Op::ObjectAclUpdate
            | Op::ObjectAclDelete => self.admit_name(exchange, bucket, object, Usage::Write).await,
            Op::ObjectsCopy | Op::ObjectsRewrite => {
                self.admit_name(exchange, bucket, object, Usage::Read).await?;
                self.admit_name(exchange, &call.to_bucket, &call.to_object, Usage::Write).await
            }
            Op::ObjectsMove => {
                self.admit_name(exchange, bucket, object, Usage::Write).await?;
                let admitted = self.admit_name(exchange, bucket, &call.to_object, Usage::Write).await;
                if admitted.is_err() {
                    self.not_written(bucket, object).await;
                }
                admitted
            }
            _ => Ok(()),
        }
    }

    /// Lets a request for one name in, or refuses it.
    pub(super) async fn admit_name(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        usage: Usage,
    ) -> Result<(), Failure> {
        self.admit(exchange, bucket, name, usage, About::Object).await
    }

    /// Lets a request for one folder in, or refuses it.
    pub(super) async fn admit_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        usage: Usage,
    ) -> Result<(), Failure> {
        self.admit(exchange, bucket, &with_slash(name), usage, About::Folder).await
    }

    /// Lets a request in, or refuses it. A request that is let in late waits here.
    pub(super) async fn admit(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        usage: Usage,
        about: About,
    ) -> Result<(), Failure> {
        let Some(rates) = self.admission.object_rates() else { return Ok(()) };
        let bucket = match self.bucket(bucket).await {
            Ok(bucket) => bucket,
            // The handler answers that there is no such bucket.
            Err(failure) if failure.0.kind == ErrorKind::NoSuchBucket => return Ok(()),
            Err(failure) => return Err(failure),
        };
        if !rates.knows(bucket.id) {
            self.learn(rates, &bucket).await?;
        }
        let ask = ObjectAsk { bucket: bucket.id, name, usage, about };
        self.check_bytes(exchange, &bucket, &ask)?;
        self.let_in(exchange, rates, &bucket, &ask).await
    }

    /// Lets in the end of an upload whose bytes come in a stream, or refuses it. Bandwidth does not matter here: the bytes were
    /// let in when the stream began, and may have used it up since.
    pub(super) async fn admit_end(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
    ) -> Result<(), Failure> {
        let Some(rates) = self.admission.object_rates() else { return Ok(()) };
        if !rates.knows(bucket.id) {
            self.learn(rates, bucket).await?;
        }
        let ask = ObjectAsk { bucket: bucket.id, name, usage: Usage::Write, about: About::Object };
        self.let_in(exchange, rates, bucket, &ask).await
    }

    /// Asks for a request to a bucket that is in use.
    async fn let_in(
        &self,
        exchange: &Exchange<'_>,
        rates: &ObjectRates,
        bucket: &Bucket,
        ask: &ObjectAsk<'_>,
    ) -> Result<(), Failure> {
        match rates.ask(ask, self.admission.hash((bucket.id, ask.name)), self.clock.now()) {
            Ok(delay) if delay.is_zero() => Ok(()),
            Ok(delay) => {
                self.metrics.late(delay);
                sleep(delay).await;
                Ok(())
            }
            Err(too_fast) => Err(self.refused(exchange, too_fast, bucket, ask)),
        }
    }

    /// Lets bytes of an object come or go that no request for its name brings, such as those of a part of an upload, or
    /// refuses them.
    pub(super) fn admit_bytes(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
        usage: Usage,
    ) -> Result<(), Failure> {
        let ask = ObjectAsk { bucket: bucket.id, name, usage, about: About::Object };
        self.check_bytes(exchange, bucket, &ask)
    }

    /// Refuses a request while the bandwidth of its project is used up. What it brings and takes is charged by its
    /// [`Meter`](super::meter::Meter).
    fn check_bytes(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        ask: &ObjectAsk<'_>,
    ) -> Result<(), Failure> {
        let Some(rates) = self.admission.object_rates().filter(|rates| rates.counts_bytes()) else {
            return Ok(());
        };
        let asked = rates.ask_bytes(self.scope_of(bucket), self.clock.now());
        asked.map_err(|too_fast| self.refused(exchange, too_fast, bucket, ask))
    }

    /// The failure of a request that is not let in, which is counted.
    fn refused(
        &self,
        exchange: &Exchange<'_>,
        too_fast: TooFast,
        bucket: &Bucket,
        ask: &ObjectAsk<'_>,
    ) -> Failure {
        self.metrics.throttled(too_fast.cause());
        self.count_refusal(ask);
        refusal(exchange, too_fast, &bucket.name, ask.name).into()
    }

    /// A write that was let in is not made, since the other name that it writes is refused.
    async fn not_written(&self, bucket: &str, name: &str) {
        if let (Some(rates), Ok(bucket)) = (self.admission.object_rates(), self.bucket(bucket).await) {
            rates.not_written(self.admission.hash((bucket.id, name)), self.clock.now());
        }
    }

    /// Counts a refusal in the load of the range, which would look idle otherwise.
    fn count_refusal(&self, ask: &ObjectAsk<'_>) {
        let key = PartitionPrefix::object(ask.bucket, ask.name).object_row(&ObjectRow::Head);
        let access = match (ask.about, ask.usage) {
            (About::Listing, _) => LoadAccess::Scan,
            (_, Usage::Write) => LoadAccess::Write,
            (_, Usage::Read) => LoadAccess::PointRead,
        };
        self.router.throttled(&key, access);
    }

    /// Takes a bucket into use, with the row that says what it bears.
    async fn learn(&self, rates: &ObjectRates, bucket: &Bucket) -> Result<(), Failure> {
        let row = self.router.get(&row_of(&bucket.name, bucket.id)).await?;
        let is_hierarchical = bucket.has_folders();
        let learned = rates.learn(bucket.id, &bucket.name, is_hierarchical, row.as_deref(), self.clock.now());
        if let Err(error) = learned {
            warn!(bucket = bucket.name, %error, "the bucket begins at the threshold");
        }
        Ok(())
    }

    /// Lets time pass for the rates of buckets, and stores what has changed, until `stop` is set.
    pub(crate) async fn keep_rates(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let Some(rates) = self.admission.object_rates() else { return };
        while !stops_within(rates.tick_every(), &mut stop).await {
            let (to_store, spans) = rates.tick(self.clock.now());
            self.metrics.spans(spans);
            for changed in to_store {
                self.store_capacity(rates, changed).await;
            }
        }
    }

    async fn store_capacity(&self, rates: &ObjectRates, changed: ToStore) {
        let ToStore { bucket: id, name, row } = changed;
        let partition = PartitionPrefix::bucket(&name);
        let live = [partition.bucket_row(&BucketRow::Bucket)];
        let written = self.change(&partition, &live, Instant::now() + REQUEST_WITHIN, |rows, _| {
            let bucket = rows[0].as_ref().ok_or_else(ObjectError::no_such_bucket)?;
            match Bucket::decode(bucket)?.id == id {
                true => Ok((vec![(row_of(&name, id), Some(row.clone()))], ())),
                false => Err(ObjectError::no_such_bucket()),
            }
        });
        match written.await {
            Ok(()) => {}
            Err(failure) if failure.0.kind == ErrorKind::NoSuchBucket => rates.forget(id),
            Err(failure) => {
                warn!(bucket = name, error = %failure, "what the bucket bears could not be stored, and is stored later");
                rates.not_stored(id);
            }
        }
    }
}

impl From<Failure> for NotShown {
    fn from(failure: Failure) -> Self {
        match failure.0.kind {
            ErrorKind::NoSuchBucket => Self::NoBucket,
            _ => Self::Failed(failure),
        }
    }
}

fn row_of(bucket: &str, id: BucketId) -> Vec<u8> {
    PartitionPrefix::bucket(bucket).bucket_row(&BucketRow::Capacity(id))
}

/// The error for a request that is not let in. The texts for names and the 503 were recorded from the real service; that for
/// a bucket was not seen, and is made like them.
fn refusal(exchange: &Exchange<'_>, too_fast: TooFast, bucket: &str, name: &str) -> ObjectError {
    let is_xml = exchange.api == Api::Xml;
    let limited = |message: String| ObjectError::new(ErrorKind::RateLimited, message);
    match too_fast {
        TooFast::Name if is_xml => {
            limited(format!("Changing object {bucket}/{name} too quickly, please slow down"))
        }
        TooFast::Name => ObjectError::object_rate(bucket, name),
        TooFast::Bucket => limited(format!(
            "The bucket {bucket} exceeded the rate limit for requests to a range of its objects. Please reduce your request \
             rate. See https://cloud.google.com/storage/docs/gcs429."
        )),
        TooFast::Bandwidth => limited(format!(
            "The project exceeded the bandwidth quota for the location of bucket {bucket}. Please reduce your request rate. \
             See https://cloud.google.com/storage/docs/gcs429."
        )),
        TooFast::Backend => ObjectError::new(ErrorKind::Unavailable, "Backend Error"),
    }
}

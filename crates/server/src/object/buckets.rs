//! Buckets: their resources, listings and policies.

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use rangehold_map::key::{BucketId, BucketRow, KIND_BUCKET};
use rangehold_map::{Key, KeyRange, PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::{BodyMode, Bucket, BucketParameters, next_id};
use rangehold_protocol::object::condition::Purpose;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::Projection;
use rangehold_protocol::object::micros::Micros;
use serde_json::{Map, Value, json};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::keys::DEVELOPMENT_PROJECT;
use super::reply::Reply;
use super::rows::seen;

impl ObjectService {
    /// The project that a request about buckets names. The service needs one; with open access a client of emulators, such
    /// as gcsfs, may leave it out, and means the project of development then.
    pub(super) fn project<'a>(&self, exchange: &'a Exchange<'_>) -> Result<&'a str, ObjectError> {
        match exchange.parameter("project") {
            None if self.options.access.is_open() => Ok(DEVELOPMENT_PROJECT),
            named => named.ok_or_else(|| ObjectError::required("project")),
        }
    }

    pub(super) async fn insert_bucket(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let project = self.project(exchange)?;
        let parameters = parameters(exchange)?;
        let body = self.body_object(exchange, body).await?;
        let bucket = self.make_bucket(exchange, project, &body, parameters).await?;
        let spelled_out = body.contains_key("acl") || body.contains_key("defaultObjectAcl");
        let unsaid = if spelled_out { Projection::Full } else { Projection::NoAcl };
        resource(exchange, bucket.json(&exchange.base, exchange.query.projection(unsaid)?))
    }

    /// Makes the bucket that the JSON of an insert describes.
    pub(super) async fn make_bucket(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
        body: &Map<String, Value>,
        parameters: BucketParameters,
    ) -> Result<Bucket, Failure> {
        let name = body.get("name").and_then(Value::as_str).ok_or_else(|| ObjectError::required("name"))?;
        let id = self.next_bucket_id(exchange).await?;
        let partition = PartitionPrefix::bucket(name);
        let key = partition.bucket_row(&BucketRow::Bucket);
        let judge = |rows: &[Option<Bytes>], now: Timestamp| {
            let bucket = Bucket::insert(id, project, body, parameters, now.into())?;
            if rows[0].is_some() {
                let message =
                    "Your previous request to create the named bucket succeeded and you already own it.";
                return Err(ObjectError::new(ErrorKind::BucketExists, message));
            }
            Ok((vec![(key.clone(), Some(bucket.encode()))], bucket))
        };
        self.change(&partition, std::slice::from_ref(&key), exchange.deadline(), judge).await
    }

    /// An id that no bucket had. The count of ids is durable before the id is used, so a crash in between only skips one.
    async fn next_bucket_id(&self, exchange: &Exchange<'_>) -> Result<BucketId, Failure> {
        let partition = PartitionPrefix::bucket_ids();
        let key = partition.bucket_row(&BucketRow::LastId);
        self.change(&partition, std::slice::from_ref(&key), exchange.deadline(), |rows, _| {
            let (id, row) = next_id(rows[0].as_deref())?;
            Ok((vec![(key.clone(), Some(row))], id))
        })
        .await
    }

    pub(super) async fn list_buckets(&self, exchange: &Exchange<'_>) -> Result<Reply, Failure> {
        let projection = exchange.query.projection(Projection::NoAcl)?;
        let select = Select {
            project: self.project(exchange)?,
            prefix: exchange.parameter("prefix").unwrap_or_default(),
            deleted: exchange.query.flag("softDeleted")?,
            after: page_after(exchange)?,
            wanted: exchange.query.page_size("maxResults")?,
        };
        let (buckets, next) = self.selected_buckets(&select, exchange.now.into()).await?;
        let items: Vec<Value> =
            buckets.iter().map(|bucket| bucket.json(&exchange.base, projection)).collect();
        let mut reply = json!({ "kind": "storage#buckets" });
        if !items.is_empty() {
            reply["items"] = items.into();
        }
        if let Some(next) = next {
            reply["nextPageToken"] = token_of(next).into();
        }
        resource(exchange, reply)
    }

    /// A page of buckets and, if there are more, the name of its last one.
    pub(super) async fn selected_buckets(
        &self,
        select: &Select<'_>,
        now: Micros,
    ) -> Result<(Vec<Bucket>, Option<String>), Failure> {
        let Select { project, prefix, deleted, ref after, wanted } = *select;
        let low = PartitionPrefix::bucket(after.as_deref().unwrap_or(prefix).max(prefix));
        // The rows of a name come after its partition's first bytes, so a token's own name is met again, and skipped.
        let keys = KeyRange::prefix(&[KIND_BUCKET])
            .intersect(&KeyRange::new(without_end(low.as_bytes()).to_vec(), None));
        let found = self.router.scan(&keys, Page::default, |page, key, row| {
            let Ok(Key::Bucket { name, row: sort }) = Key::decode(key) else {
                return ControlFlow::Continue(());
            };
            if !name.starts_with(prefix) {
                return if *name > *prefix { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            let of_sort = match sort {
                BucketRow::Bucket => !deleted,
                BucketRow::Deleted(_) => deleted,
                BucketRow::Notification(_)
                | BucketRow::Capacity(_)
                | BucketRow::Operation(..)
                | BucketRow::LastId => false,
            };
            if !of_sort || after.as_ref().is_some_and(|after| name <= *after) {
                return ControlFlow::Continue(());
            }
            page.take(name, row, (project, now), wanted)
        });
        let page = found.await?;
        let buckets: Vec<Bucket> =
            page.rows.iter().map(|row| Bucket::decode(row)).collect::<Result<_, _>>()?;
        Ok((buckets, page.has_more.then_some(page.last)))
    }

    pub(super) async fn lock_retention(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        exchange.query.required("ifMetagenerationMatch")?;
        let conditions = exchange.conditions()?;
        let locked = self.change_bucket(name, &conditions, exchange.deadline(), Bucket::locked).await?;
        resource(exchange, locked.json(&exchange.base, Projection::NoAcl))
    }

    pub(super) async fn bucket_layout(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        resource(exchange, self.bucket(name).await?.layout_json())
    }

    pub(super) async fn get_bucket(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        let bucket = match exchange.query.flag("softDeleted")? {
            true => self.deleted_bucket(name, exchange.query.required("generation")?).await?,
            false => self.bucket(name).await?,
        };
        exchange.conditions()?.check_seen(Some(&seen(&bucket)), Purpose::Read)?;
        resource(exchange, bucket.json(&exchange.base, exchange.query.projection(Projection::NoAcl)?))
    }

    pub(super) async fn write_bucket(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        mode: BodyMode<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let (parameters, conditions) = (parameters(exchange)?, exchange.conditions()?);
        let body = self.body_object(exchange, body).await?;
        let change = |bucket: &Bucket, now| bucket.changed(&body, mode, parameters, now);
        let changed = self.change_bucket(name, &conditions, exchange.deadline(), change).await?;
        resource(exchange, changed.json(&exchange.base, exchange.query.projection(Projection::Full)?))
    }
}

/// Which buckets a listing has.
pub(super) struct Select<'a> {
    pub(super) project: &'a str,
    pub(super) prefix: &'a str,
    /// Whether it has the deleted ones that can be restored, in the place of the live ones.
    pub(super) deleted: bool,
    /// The name after which the page begins.
    pub(super) after: Option<String>,
    /// How many the page has at most.
    pub(super) wanted: usize,
}

/// A page of a listing while it is read.
#[derive(Default)]
struct Page {
    rows: Vec<Bytes>,
    /// The name of the last bucket in it.
    last: String,
    has_more: bool,
}

impl Page {
    /// Takes a row, if it is of the project and not of a bucket that can no longer be restored. Ends the page when it is full and another row follows.
    fn take(
        &mut self,
        name: String,
        row: &Bytes,
        (project, now): (&str, Micros),
        wanted: usize,
    ) -> ControlFlow<()> {
        // A row that cannot be read is taken, so that the listing fails and does not leave a bucket out.
        if Bucket::decode(row).is_ok_and(|bucket| bucket.project != project || bucket.is_over(now)) {
            return ControlFlow::Continue(());
        }
        // Deleted buckets of one name are not separated: a token names the last bucket, and the page after it begins
        // with another name.
        if self.rows.len() >= wanted && name != self.last {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        self.rows.push(row.clone());
        self.last = name;
        ControlFlow::Continue(())
    }
}

/// The token of the page after the item `name`.
pub(super) fn token_of(name: String) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

/// The name after which the page begins that is asked for; `None` for the first page.
pub(super) fn page_after(exchange: &Exchange<'_>) -> Result<Option<String>, ObjectError> {
    let token = exchange.parameter("pageToken");
    token.map(|token| name_in_token("pageToken", token)).transpose()
}

/// The name in a token, which came in this parameter.
pub(super) fn name_in_token(parameter: &str, token: &str) -> Result<String, ObjectError> {
    let name = URL_SAFE_NO_PAD.decode(token).ok().and_then(|name| String::from_utf8(name).ok());
    name.ok_or_else(|| ObjectError::invalid(parameter, token, "Send the token of the last page."))
}

/// The first `wanted` of some items and, if there are more, the token of the page after them. `name` gives the name of
/// an item.
pub(super) fn cut_page<T>(
    mut items: impl Iterator<Item = T>,
    wanted: usize,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Option<String>) {
    let page: Vec<T> = items.by_ref().take(wanted).collect();
    let last = page.last().filter(|_| items.next().is_some());
    let next = last.map(|last| token_of(name(last).to_owned()));
    (page, next)
}

/// The key of a partition without the byte that ends its name, so that longer names lie above it too.
fn without_end(partition: &[u8]) -> &[u8] {
    &partition[..partition.len() - 1]
}

fn parameters(exchange: &Exchange<'_>) -> Result<BucketParameters, ObjectError> {
    let query = &exchange.query;
    Ok(BucketParameters {
        acl: query.predefined("predefinedAcl", true)?,
        default_object_acl: query.predefined("predefinedDefaultObjectAcl", false)?,
        enable_object_retention: query.flag("enableObjectRetention")?,
    })
}

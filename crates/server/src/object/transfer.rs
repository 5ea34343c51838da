//! Objects that are made of one other: copy, rewrite and move. They share the chunks of their sources' blobs.

use rangehold_engine::blob::{BlobError, UnderWay};
use rangehold_map::blob::{BlobUser, Extent};
use rangehold_protocol::object::acl::Acl;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::{Content, Draft, Encryption, Generation, Projection, Settings};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::name::check_object;
use rangehold_protocol::object::request::Call;
use rangehold_protocol::object::rewrite;
use rangehold_protocol::object::write::{Create, Name, Payload};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::ObjectService;
use super::encryption::{check_key, customer_key};
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::located::Wants;
use super::media::{TRIES_MAX, replaced_again};
use super::reply::Reply;
use super::several::{Leaving, NamesChange, check_may_leave};
use crate::limits::NAMES_CHANGE_TRIES_MAX;

/// The `kind` of the answers to rewrites.
const REWRITE_RESPONSE: &str = "storage#rewriteResponse";

/// What a copy or a rewrite asks for, and its source.
struct Copy {
    from: Bucket,
    from_name: String,
    to: Bucket,
    to_name: String,
    source: Source,
    draft: Draft,
    conditions: Conditions,
}

impl Copy {
    /// Whether the copy lies elsewhere than its source.
    fn moves_bytes(&self) -> bool {
        let class = self.draft.storage_class.unwrap_or(self.to.storage_class());
        self.from.settings.location != self.to.settings.location
            || self.source.generation.storage_class != class
    }
}

/// A source, as it was read.
pub(super) struct Source {
    pub(super) generation: Generation,
    pub(super) content: Content,
}

impl ObjectService {
    pub(super) async fn copy(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        for _ in 0..TRIES_MAX {
            let copy = self.wanted_copy(exchange, call, &body, None).await?;
            if let Some(made) = self.make_copy(exchange, &copy).await? {
                return self.object_resource(exchange, &copy.to, &call.to_object, &made, Projection::NoAcl);
            }
        }
        Err(replaced_again())
    }

    /// As a copy. A client may want that it takes several calls ([`rewrite`]).
    pub(super) async fn rewrite(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let asked = rewrite::Asked::of(call, &exchange.query)?;
        let body = self.body_object(exchange, body).await?;
        for _ in 0..TRIES_MAX {
            let copy = self.wanted_copy(exchange, call, &body, asked.generation()).await?;
            if let Some(reply) = self.rewrite_once(exchange, call, &asked, &copy).await? {
                return Ok(reply);
            }
        }
        Err(replaced_again())
    }

    /// One call of a rewrite; `None` if the source was removed since it was read.
    async fn rewrite_once(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        asked: &rewrite::Asked,
        copy: &Copy,
    ) -> Result<Option<Reply>, Failure> {
        let source = &copy.source.generation;
        if let Some(unfinished) = asked.unfinished(source.id.0, source.size, copy.moves_bytes()) {
            let reply = json!({
                "kind": REWRITE_RESPONSE,
                "totalBytesRewritten": unfinished.rewritten.to_string(),
                "objectSize": source.size.to_string(),
                "done": false,
                "rewriteToken": unfinished.token,
            });
            return resource(exchange, reply).map(Some);
        }
        let Some(made) = self.make_copy(exchange, copy).await? else { return Ok(None) };
        let size = made.size.to_string();
        let mut shown = Vec::new();
        let address = super::objects::address(exchange, &copy.to, &call.to_object);
        let projection = exchange.query.projection(Projection::NoAcl)?;
        let all = rangehold_protocol::object::fields::Fields::All;
        made.put_json(&mut shown, &address, projection, &all, true);
        let shown: Value = serde_json::from_slice(&shown).expect("a resource is JSON");
        let reply = json!({
            "kind": REWRITE_RESPONSE,
            "totalBytesRewritten": size,
            "objectSize": size,
            "done": true,
            "resource": shown,
        });
        resource(exchange, reply).map(Some)
    }

    /// Reads what a copy or rewrite asks for. `begun_with` is the generation of the source that an earlier call has seen.
    async fn wanted_copy(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &Map<String, Value>,
        begun_with: Option<u64>,
    ) -> Result<Copy, Failure> {
        check_object(&call.to_object)?;
        let (from, from_name) = self.place(exchange, &call.bucket, &call.object, Wants::There).await?;
        let wanted = begun_with.or(exchange.query.number("sourceGeneration")?);
        let source_conditions = exchange.query.source_conditions()?;
        let source = self.source(&from, &from_name, wanted, &source_conditions).await?;
        // A copy in one call has its key in the headers of the target; a rewrite has both.
        let key = customer_key(exchange, "x-goog-copy-source-encryption")?;
        let target_key = customer_key(exchange, "x-goog-encryption")?;
        check_key(&source.generation, key.or(target_key.filter(|_| call_is_copy(call))))?;
        let mut draft = draft(&source.generation, body, exchange)?;
        draft.customer_key = target_key;
        let conditions = exchange.query.conditions(None, None)?;
        let (to, to_name) = self.place(exchange, &call.to_bucket, &call.to_object, Wants::New).await?;
        let (from_name, to_name) = (from_name.into_owned(), to_name.into_owned());
        Ok(Copy { from, from_name, to, to_name, source, draft, conditions })
    }

    /// Makes a copy; `None` if the source was removed since it was read.
    async fn make_copy(&self, exchange: &Exchange<'_>, copy: &Copy) -> Result<Option<Generation>, Failure> {
        let to = Name { bucket: &copy.to, name: &copy.to_name };
        let from = Name { bucket: &copy.from, name: &copy.from_name };
        self.take_over(exchange, to, &copy.draft, &copy.conditions, (from, &copy.source)).await
    }

    /// A generation and its content, of which the conditions hold.
    pub(super) async fn source(
        &self,
        bucket: &Bucket,
        name: &str,
        wanted: Option<u64>,
        conditions: &Conditions,
    ) -> Result<Source, Failure> {
        for _ in 0..TRIES_MAX {
            let generation = self.generation(bucket, name, wanted).await?;
            conditions.check(Some(&generation), Purpose::Write)?;
            if let Some(content) = self.content(bucket, name, &generation).await? {
                return Ok(Source { generation, content });
            }
            self.check_removed(Name { bucket, name }, &generation).await?;
        }
        Err(replaced_again())
    }

    /// Notes that `user` uses the blobs of a source. `None` if the source was removed since it was read. Then its chunks may be gone,
    /// even if other objects still use the blobs.
    pub(super) async fn refer(
        &self,
        of: Name<'_>,
        source: &Source,
        user: &BlobUser,
    ) -> Result<Option<UnderWay>, Failure> {
        let Source { generation, content } = source;
        let under_way = match self.blobs.refer(extents(content), user).await {
            Err(BlobError::Gone(_)) => {
                self.check_removed(of, generation).await?;
                return Ok(None);
            }
            noted => noted?,
        };
        if extents(content).is_empty() || self.is_kept(of, generation).await? {
            return Ok(Some(under_way));
        }
        self.give_back(extents(content), user).await;
        Ok(None)
    }

    /// Writes an object with the bytes of another one; `None` if that one was removed since it was read.
    pub(super) async fn take_over(
        &self,
        exchange: &Exchange<'_>,
        to: Name<'_>,
        draft: &Draft,
        conditions: &Conditions,
        (from, source): (Name<'_>, &Source),
    ) -> Result<Option<Generation>, Failure> {
        let (user, owner) = (user(exchange, to), exchange.owner(to.bucket));
        let (extents, payload) = (extents(&source.content), payload_of(source, &user));
        let Some(_under_way) = self.refer(from, source, &user).await? else { return Ok(None) };
        let create = Create {
            to,
            draft,
            conditions,
            payload: &payload,
            owner: &owner,
            ends_upload: None,
            also: &Vec::new(),
        };
        let change = NamesChange { create, sources: &[], id: "", deadline: exchange.deadline() };
        self.write_of_others(&change, extents, &user).await
    }

    /// Writes an object whose bytes lie in blobs of others, and removes the sources that leave. `None` if one of these has
    /// changed since it was read. If the object is not written, its references to the blobs are removed.
    pub(super) async fn write_of_others(
        &self,
        change: &NamesChange<'_>,
        extents: &[Extent],
        user: &BlobUser,
    ) -> Result<Option<Generation>, Failure> {
        let made = match change.sources {
            [] => self.change_object(&change.create, change.deadline).await.map(Some),
            _ => self.replace(change).await,
        };
        let may_be_written = made.as_ref().map_or_else(Failure::is_unknown, Option::is_some);
        if !may_be_written {
            self.give_back(extents, user).await;
        }
        made
    }

    /// Removes references to blobs that no row has come to use.
    async fn give_back(&self, extents: &[Extent], user: &BlobUser) {
        if let Err(error) = self.blobs.release(extents, user).await {
            tracing::warn!(%error, "a blob keeps a user that is gone, until the next audit");
        }
    }

    /// Moves an object to another name of its bucket: readers see it under one of the two names at any time.
    pub(super) async fn move_object(&self, exchange: &Exchange<'_>, call: &Call) -> Result<Reply, Failure> {
        let mut bucket = self.bucket_for(exchange, &call.bucket).await?;
        check_object(&call.to_object)?;
        if call.object == call.to_object {
            let hint = "The source and the destination must have different names.";
            return Err(ObjectError::invalid("destinationObject", &call.to_object, hint).into());
        }
        let deadline = exchange.deadline();
        let conditions = [exchange.query.source_conditions()?, exchange.query.conditions(None, None)?];
        let source = self.located(&mut bucket, &call.object, Wants::There, deadline).await?;
        let target = self.located(&mut bucket, &call.to_object, Wants::New, deadline).await?;
        let (from, to) = (Name { bucket: &bucket, name: &source }, Name { bucket: &bucket, name: &target });
        let _turn = self.turn(&bucket, [from.name, to.name], deadline).await?;
        for tries in 0..NAMES_CHANGE_TRIES_MAX {
            let id = format!("{}-{tries}", exchange.id);
            if let Some(made) = self.move_once(exchange, from, to, &conditions, &id, deadline).await? {
                return self.object_resource(exchange, &bucket, to.name, &made, Projection::NoAcl);
            }
        }
        Err(Failure::unavailable("The object is changed again and again while it is moved. Try again."))
    }

    /// Moves an object, unless it is changed at the same time.
    async fn move_once(
        &self,
        exchange: &Exchange<'_>,
        from: Name<'_>,
        to: Name<'_>,
        [of_source, of_target]: &[Conditions; 2],
        id: &str,
        deadline: Instant,
    ) -> Result<Option<Generation>, Failure> {
        let (bucket, now) = (from.bucket, exchange.now.into());
        let source = self.source(bucket, from.name, None, of_source).await?;
        let draft = moved(&source.generation, bucket, now);
        let sources = [Leaving { name: from.name, live: &source.generation, is_final: false }];
        check_may_leave(bucket, &sources, now)?;
        let (user, owner) = (user(exchange, to), exchange.owner(bucket));
        let (extents, payload) = (extents(&source.content), payload_of(&source, &user));
        let Some(_under_way) = self.refer(from, &source, &user).await? else { return Ok(None) };
        let create = Create {
            to,
            draft: &draft,
            conditions: of_target,
            payload: &payload,
            owner: &owner,
            ends_upload: None,
            also: &Vec::new(),
        };
        self.write_of_others(&NamesChange { create, sources: &sources, id, deadline }, extents, &user).await
    }
}

fn call_is_copy(call: &Call) -> bool {
    call.operation == rangehold_protocol::object::request::Operation::ObjectsCopy
}

/// The bytes of a source, for an object of this user.
fn payload_of(source: &Source, user: &BlobUser) -> Payload {
    let Generation { crc32c, md5, component_count, .. } = source.generation;
    let payload = Payload::new(&source.content, crc32c, md5, &user.upload);
    match component_count {
        Some(parts) => payload.composed_of(parts),
        None => payload,
    }
}

/// What a moved object is like: as its source.
fn moved(source: &Generation, bucket: &Bucket, now: Micros) -> Draft {
    let mut settings = source.settings.clone();
    settings.retention = settings.retention.filter(|retention| retention.retain_until_time > now);
    let (customer_key, kms_key) = match &source.encryption {
        Encryption::Default => (None, None),
        Encryption::Customer(sha256) => (Some(*sha256), None),
        Encryption::Kms(key) => (None, Some(key.clone())),
    };
    Draft {
        settings,
        storage_class: Some(source.storage_class),
        acl: (!bucket.settings.uniform_access()).then(|| source.acl.clone()),
        customer_key,
        kms_key,
    }
}

/// The user of the blobs of what this request writes.
pub(super) fn user(exchange: &Exchange<'_>, to: Name<'_>) -> BlobUser {
    BlobUser { bucket: to.bucket.id, name: to.name.to_owned(), upload: exchange.id.to_owned() }
}

pub(super) fn extents(content: &Content) -> &[Extent] {
    match content {
        Content::Inline(_) => &[],
        Content::Extents(extents) => extents,
    }
}

/// What the client wants of a copy: what it says or, if it says nothing, what the source has, without what protects it.
fn draft(
    source: &Generation,
    body: &Map<String, Value>,
    exchange: &Exchange<'_>,
) -> Result<Draft, ObjectError> {
    let mut draft = match body.is_empty() {
        false => Draft::from_body(body, exchange.now.into())?,
        true => Draft {
            settings: Settings {
                temporary_hold: None,
                event_based_hold: None,
                retention: None,
                ..source.settings.clone()
            },
            ..Draft::default()
        },
    };
    if draft.settings.content_type.is_none() {
        draft.settings.content_type = source.settings.content_type.clone();
    }
    if let Some(list) = exchange.query.predefined("destinationPredefinedAcl", false)? {
        draft.acl = Some(Acl::Predefined(list));
    }
    if let Some(key) = exchange.parameter("destinationKmsKeyName") {
        draft.kms_key = Some(key.to_owned());
    } else if let (None, Encryption::Kms(key)) = (&draft.kms_key, &source.encryption) {
        draft.kms_key = Some(key.clone());
    }
    Ok(draft)
}

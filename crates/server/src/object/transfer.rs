//! Objects that are made of others: copy, rewrite and compose. They share the chunks of their sources' blobs.

use bytes::{Bytes, BytesMut};
use rangehold_map::blob::{BlobUser, Extent};
use rangehold_protocol::object::acl::Acl;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::checksum::Crc32c;
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Content, Draft, Encryption, Generation, Projection, Settings};
use rangehold_protocol::object::limits::COMPOSE_SOURCES_MAX;
use rangehold_protocol::object::name::check_object;
use rangehold_protocol::object::request::Call;
use rangehold_protocol::object::write::{Create, Delete, Name, Payload};
use serde_json::{Map, Value, json};

use super::ObjectService;
use super::encryption::{check_key, customer_key};
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::payload::Receiver;
use super::reply::Reply;

/// A source, as it was read.
pub(super) struct Source {
    pub(super) generation: Generation,
    content: Content,
}

impl ObjectService {
    pub(super) async fn copy(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let (bucket, made) = self.transfer(exchange, call, body).await?;
        self.object_resource(exchange, &bucket, &call.to_object, &made, Projection::NoAcl)
    }

    /// As a copy. No bytes are moved, so one call is always enough, and there are no tokens to go on with.
    pub(super) async fn rewrite(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        if let Some(token) = exchange.parameter("rewriteToken") {
            let hint = "This server has given no token: it rewrites in one call.";
            return Err(ObjectError::invalid("rewriteToken", token, hint).into());
        }
        let (bucket, made) = self.transfer(exchange, call, body).await?;
        let size = made.size.to_string();
        let mut shown = Vec::new();
        let address = super::objects::address(exchange, &bucket, &call.to_object);
        let projection = exchange.query.projection(Projection::NoAcl)?;
        let all = rangehold_protocol::object::fields::Fields::All;
        made.put_json(&mut shown, &address, projection, &all, true);
        let shown: Value = serde_json::from_slice(&shown).expect("a resource is JSON");
        let reply = json!({
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": size,
            "objectSize": size,
            "done": true,
            "resource": shown,
        });
        resource(exchange, reply)
    }

    async fn transfer(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<(Bucket, Generation), Failure> {
        let body = self.body_object(exchange, body).await?;
        check_object(&call.to_object)?;
        let (from, to) = (self.bucket(&call.bucket).await?, self.bucket(&call.to_bucket).await?);
        let wanted = exchange.query.number("sourceGeneration")?;
        let source_conditions = exchange.query.source_conditions()?;
        let source = self.source(&from, &call.object, wanted, &source_conditions).await?;
        // A copy in one call has its key in the headers of the target; a rewrite has both.
        let key = customer_key(exchange, "x-goog-copy-source-encryption")?;
        let target_key = customer_key(exchange, "x-goog-encryption")?;
        check_key(&source.generation, key.or(target_key.filter(|_| call_is_copy(call))))?;
        let mut draft = draft(&source.generation, &body, exchange)?;
        draft.customer_key = target_key;
        let conditions = exchange.query.conditions(None, None)?;
        let to_name = Name { bucket: &to, name: &call.to_object };
        let made = self.take_over(exchange, to_name, &draft, &conditions, &source).await?;
        Ok((to, made))
    }

    /// A generation and its content, of which the conditions hold.
    pub(super) async fn source(
        &self,
        bucket: &Bucket,
        name: &str,
        wanted: Option<u64>,
        conditions: &Conditions,
    ) -> Result<Source, Failure> {
        let generation = self.generation(bucket, name, wanted).await?;
        conditions.check(Some(&generation), Purpose::Write)?;
        let content = self.content(bucket, name, &generation).await?;
        let content = content.ok_or_else(|| ObjectError::no_such_object(&bucket.name, name))?;
        Ok(Source { generation, content })
    }

    /// Writes an object with the bytes of another one.
    pub(super) async fn take_over(
        &self,
        exchange: &Exchange<'_>,
        to: Name<'_>,
        draft: &Draft,
        conditions: &Conditions,
        source: &Source,
    ) -> Result<Generation, Failure> {
        let user = user(exchange, to);
        let Generation { crc32c, md5, component_count, .. } = source.generation;
        let payload = Payload::new(&source.content, crc32c, md5, &user.upload);
        let payload = match component_count {
            Some(parts) => payload.composed_of(parts),
            None => payload,
        };
        let extents = extents(&source.content);
        let _under_way = self.blobs.refer(extents, &user).await?;
        self.write_of_others(exchange, to, draft, conditions, &payload, (extents, &user)).await
    }

    /// Writes an object whose bytes lie in blobs of others. If it is refused, its references to them are removed.
    async fn write_of_others(
        &self,
        exchange: &Exchange<'_>,
        to: Name<'_>,
        draft: &Draft,
        conditions: &Conditions,
        payload: &Payload,
        (extents, user): (&[Extent], &BlobUser),
    ) -> Result<Generation, Failure> {
        let owner = exchange.owner(to.bucket);
        let create =
            Create { to, draft, conditions, payload, owner: &owner, ends_upload: None, also: &Vec::new() };
        let made = self.change_object(&create, exchange.deadline()).await;
        if made.is_err()
            && let Err(error) = self.blobs.release(extents, user).await
        {
            tracing::warn!(%error, "a blob keeps a user that is gone, until the next audit");
        }
        made
    }

    /// Moves an object to another name of its bucket: first the new name gets it, then the old one loses it. A reader may
    /// see both names for a moment, and after a crash in between both are there.
    pub(super) async fn move_object(&self, exchange: &Exchange<'_>, call: &Call) -> Result<Reply, Failure> {
        let bucket = self.bucket(&call.bucket).await?;
        check_object(&call.to_object)?;
        let conditions = exchange.query.conditions(None, None)?;
        let source_conditions = exchange.query.source_conditions()?;
        let source = self.source(&bucket, &call.object, None, &source_conditions).await?;
        let (from, to) =
            (Name { bucket: &bucket, name: &call.object }, Name { bucket: &bucket, name: &call.to_object });
        let period = bucket.retention_seconds();
        source.generation.check_unprotected(&bucket.name, from.name, period, exchange.now.into())?;
        let draft = Draft {
            settings: source.generation.settings.clone(),
            storage_class: Some(source.generation.storage_class),
            acl: (!bucket.settings.uniform_access()).then(|| source.generation.acl.clone()),
            ..Draft::default()
        };
        let made = self.take_over(exchange, to, &draft, &conditions, &source).await?;
        self.delete_source(exchange, from, &source.generation).await?;
        self.object_resource(exchange, &bucket, to.name, &made, Projection::NoAcl)
    }

    pub(super) async fn compose(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let bucket = self.bucket(&call.bucket).await?;
        check_object(&call.object)?;
        let to = Name { bucket: &bucket, name: &call.object };
        let sources = self.sources(&bucket, &body).await?;
        let (key, user) = (customer_key(exchange, "x-goog-encryption")?, user(exchange, to));
        for (_, source) in &sources {
            check_key(&source.generation, key)?;
        }
        let destination = body.get("destination").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut draft = Draft::from_body(&destination, exchange.now.into())?;
        draft.customer_key = key;
        draft.kms_key = exchange.parameter("kmsKeyName").map(str::to_owned).or(draft.kms_key);
        if let Some(list) = exchange.query.predefined("destinationPredefinedAcl", false)? {
            draft.acl = Some(Acl::Predefined(list));
        }
        let joined = self.join(&sources, &user).await?;
        let crc32c = sources.iter().fold(Crc32c::default(), |sum, (_, source)| {
            sum.followed_by(source.generation.crc32c, source.generation.size)
        });
        let parts = sources.iter().map(|(_, source)| source.generation.component_count.unwrap_or(1)).sum();
        let payload = Payload::new(&joined, crc32c, None, &user.upload).composed_of(parts);
        let conditions = exchange.query.conditions(None, None)?;
        let of_others = (extents(&joined), &user);
        let made = self.write_of_others(exchange, to, &draft, &conditions, &payload, of_others).await?;
        // A crash in between leaves sources that were to be deleted.
        if body.get("deleteSourceObjects").and_then(Value::as_bool) == Some(true) {
            for (name, source) in &sources {
                self.delete_source(exchange, Name { bucket: &bucket, name }, &source.generation).await?;
            }
        }
        self.object_resource(exchange, &bucket, to.name, &made, Projection::NoAcl)
    }

    /// The sources of a compose, in their order.
    async fn sources(
        &self,
        bucket: &Bucket,
        body: &Map<String, Value>,
    ) -> Result<Vec<(String, Source)>, Failure> {
        let listed = body.get("sourceObjects").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if listed.is_empty() || listed.len() > COMPOSE_SOURCES_MAX {
            let hint = format!("Give 1 to {COMPOSE_SOURCES_MAX} source objects.");
            return Err(ObjectError::invalid("sourceObjects", listed.len(), &hint).into());
        }
        let number = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.parse::<u64>()
                .map_err(|_| ObjectError::invalid("sourceObjects", &text, "Give a generation."))
        };
        let mut sources = Vec::with_capacity(listed.len());
        for one in listed {
            let name = one.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| ObjectError::required("sourceObjects.name"))?;
            let wanted = one.get("generation").filter(|value| !value.is_null()).map(number).transpose()?;
            let matched =
                one.pointer("/objectPreconditions/ifGenerationMatch").filter(|value| !value.is_null());
            let generation_match = matched.map(number).transpose()?;
            let conditions = Conditions { generation_match, ..Conditions::default() };
            sources.push((name.to_owned(), self.source(bucket, name, wanted, &conditions).await?));
        }
        Ok(sources)
    }

    /// The bytes of all sources as one content. Chunks are shared; bytes that lie in rows go into new blobs, unless
    /// all of them fit into one row.
    async fn join(&self, sources: &[(String, Source)], user: &BlobUser) -> Result<Content, Failure> {
        let mut joined: Vec<Extent> = Vec::new();
        let mut inline = BytesMut::new();
        for (_, source) in sources {
            match &source.content {
                Content::Inline(bytes) => inline.extend_from_slice(bytes),
                Content::Extents(extents) => {
                    joined.extend(self.stored(&mut inline, user).await?);
                    self.blobs.refer(extents, user).await?;
                    joined.extend_from_slice(extents);
                }
            }
        }
        let fits = inline.len() <= super::payload::INLINE_BYTES_MAX;
        if joined.is_empty() && fits {
            return Ok(Content::Inline(inline.freeze()));
        }
        joined.extend(self.stored(&mut inline, user).await?);
        Ok(Content::Extents(joined))
    }

    /// Writes bytes that lay in rows into a blob of their own.
    async fn stored(&self, inline: &mut BytesMut, user: &BlobUser) -> Result<Vec<Extent>, Failure> {
        let bytes: Bytes = inline.split().freeze();
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let mut receiver = Receiver::new(self.blobs.clone(), user.clone());
        receiver.take(bytes).await?;
        Ok(receiver.persist(None).await?.extents)
    }

    /// Deletes a generation that another object was made of, for good, unless that has happened meanwhile.
    async fn delete_source(
        &self,
        exchange: &Exchange<'_>,
        of: Name<'_>,
        generation: &Generation,
    ) -> Result<(), Failure> {
        let conditions = Conditions::default();
        let delete = Delete { of, generation: Some(generation.id.0), conditions: &conditions };
        let deleted = self.change_object(&delete, exchange.deadline()).await;
        match deleted {
            Err(Failure(error))
                if matches!(error.kind, ErrorKind::ConditionNotMet | ErrorKind::NoSuchObject) =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

fn call_is_copy(call: &Call) -> bool {
    call.operation == rangehold_protocol::object::request::Operation::ObjectsCopy
}

/// The user of the blobs of what this request writes.
fn user(exchange: &Exchange<'_>, to: Name<'_>) -> BlobUser {
    BlobUser { bucket: to.bucket.id, name: to.name.to_owned(), upload: exchange.id.to_owned() }
}

fn extents(content: &Content) -> &[Extent] {
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
                temporary_hold: false,
                event_based_hold: false,
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

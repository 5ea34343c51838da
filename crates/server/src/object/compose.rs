//! Compose: one object of up to 32 others. It shares the chunks of its sources' blobs, and removes the sources if the client
//! asks for that. The JSON API and the XML API read their requests into a [`Composition`].

use bytes::{Bytes, BytesMut};
use rangehold_map::blob::{BlobUser, Extent};
use rangehold_protocol::object::acl::Acl;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::checksum::Crc32c;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::{Content, Draft, Generation, Projection, State};
use rangehold_protocol::object::limits::COMPOSE_SOURCES_MAX;
use rangehold_protocol::object::name::check_object;
use rangehold_protocol::object::request::Call;
use rangehold_protocol::object::write::{Create, Name, Payload};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::ObjectService;
use super::encryption::{check_key, customer_key};
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::grants::{DELETE, GET};
use super::located::Wants;
use super::meter::Meter;
use super::payload::{INLINE_BYTES_MAX, Receiver};
use super::reply::Reply;
use super::several::{Leaving, NamesChange, check_may_leave};
use super::transfer::{Source, extents, user};
use crate::limits::NAMES_CHANGE_TRIES_MAX;

/// What a client wants.
pub(super) struct Composition {
    /// Names, generations if they are named, and conditions.
    pub(super) sources: Vec<(String, Option<u64>, Conditions)>,
    pub(super) draft: Draft,
    /// The conditions on the target.
    pub(super) conditions: Conditions,
    /// Whether the sources are removed.
    pub(super) deletes: bool,
}

/// An object that was composed.
pub(super) struct Composed {
    pub(super) bucket: Bucket,
    /// The name under which it is stored.
    pub(super) stored: String,
    pub(super) made: Generation,
}

impl ObjectService {
    pub(super) async fn compose(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let wanted = Composition::read(exchange, &body)?;
        let projection = exchange.query.projection(Projection::Full)?;
        let composed = self.composed(exchange, &call.bucket, &call.object, wanted).await?;
        self.object_resource(exchange, &composed.bucket, &composed.stored, &composed.made, projection)
    }

    /// Composes an object. The sender may write it; whether the sender may also read the sources, and remove them, is checked
    /// here, since they are named in the body.
    pub(super) async fn composed(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        mut wanted: Composition,
    ) -> Result<Composed, Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        check_object(name)?;
        for (source, generation, _) in &wanted.sources {
            self.permit_of(exchange, GET, &bucket, Some(source), *generation).await?;
            if wanted.deletes && source != name {
                self.permit(exchange, DELETE, &bucket, Some(source)).await?;
            }
        }
        let deadline = exchange.deadline();
        let stored = self.located(&mut bucket, name, Wants::New, deadline).await?.into_owned();
        for (source, ..) in &mut wanted.sources {
            *source = self.located(&mut bucket, source, Wants::There, deadline).await?.into_owned();
        }
        let to = Name { bucket: &bucket, name: &stored };
        let made = self.compose_in_turn(exchange, to, &wanted, deadline).await?;
        Ok(Composed { bucket, stored, made })
    }

    /// Composes an object when it is its turn, if sources are removed. It tries again while others change them.
    async fn compose_in_turn(
        &self,
        exchange: &Exchange<'_>,
        to: Name<'_>,
        wanted: &Composition,
        deadline: Instant,
    ) -> Result<Generation, Failure> {
        let names = wanted.sources.iter().map(|(name, ..)| name.as_str()).chain([to.name]);
        let others_go = wanted.deletes && wanted.sources.iter().any(|(name, ..)| name != to.name);
        let _turn = if others_go { Some(self.turn(to.bucket, names, deadline).await?) } else { None };
        for tries in 0..NAMES_CHANGE_TRIES_MAX {
            let id = format!("{}-{tries}", exchange.id);
            if let Some(made) = self.compose_once(exchange, to, wanted, &id, deadline).await? {
                return Ok(made);
            }
        }
        Err(Failure::unavailable("The sources are changed again and again. Try again."))
    }

    /// Composes an object, unless a source is removed at the same time, or one that is to be removed is changed.
    async fn compose_once(
        &self,
        exchange: &Exchange<'_>,
        to: Name<'_>,
        wanted: &Composition,
        id: &str,
        deadline: Instant,
    ) -> Result<Option<Generation>, Failure> {
        let is_named =
            |name: &str| wanted.sources.iter().any(|(other, number, _)| other == name && number.is_some());
        let mut sources = Vec::with_capacity(wanted.sources.len());
        for (name, generation, conditions) in &wanted.sources {
            let source = self.source(to.bucket, name, *generation, conditions).await?;
            check_key(&source.generation, wanted.draft.customer_key)?;
            sources.push((name.as_str(), source));
        }
        let leaving = if wanted.deletes { leaving(&sources, to, is_named)? } else { Vec::new() };
        check_may_leave(to.bucket, &leaving, exchange.now.into())?;
        let (user, owner) = (user(exchange, to), exchange.owner(to.bucket));
        // Until the object is written, the audit does not ask this user whether it uses a blob.
        let _under_way = self.blobs.refer(&[], &user).await?;
        let Some(joined) = self.join(to.bucket, &sources, &user).await? else { return Ok(None) };
        let crc32c = sources.iter().fold(Crc32c::default(), |sum, (_, source)| {
            sum.followed_by(source.generation.crc32c, source.generation.size)
        });
        let parts = sources.iter().map(|(_, source)| source.generation.component_count.unwrap_or(1));
        // gRPC tells it in 31 bits. Compositions of compositions may have more parts.
        let parts = parts.fold(0, u32::saturating_add).min(i32::MAX as u32);
        let payload = Payload::new(&joined, crc32c, None, &user.upload).composed_of(parts);
        let create = Create {
            to,
            draft: &wanted.draft,
            conditions: &wanted.conditions,
            payload: &payload,
            owner: &owner,
            ends_upload: None,
            also: &Vec::new(),
        };
        let change = NamesChange { create, sources: &leaving, id, deadline };
        self.write_of_others(&change, extents(&joined), &user).await
    }

    /// The bytes of all sources as one content; `None` if a source was removed since it was read. Chunks are shared; bytes that lie
    /// in rows go into new blobs, unless all of them fit into one row.
    async fn join(
        &self,
        bucket: &Bucket,
        sources: &[(&str, Source)],
        user: &BlobUser,
    ) -> Result<Option<Content>, Failure> {
        let mut joined: Vec<Extent> = Vec::new();
        let mut inline = BytesMut::new();
        for (name, source) in sources {
            match &source.content {
                Content::Inline(bytes) => inline.extend_from_slice(bytes),
                Content::Extents(extents) => {
                    joined.extend(self.stored(&mut inline, user).await?);
                    if self.refer(Name { bucket, name }, source, user).await?.is_none() {
                        return Ok(None);
                    }
                    joined.extend_from_slice(extents);
                }
            }
        }
        let fits = inline.len() <= INLINE_BYTES_MAX;
        if joined.is_empty() && fits {
            return Ok(Some(Content::Inline(inline.freeze())));
        }
        joined.extend(self.stored(&mut inline, user).await?);
        Ok(Some(Content::Extents(joined)))
    }

    /// Writes bytes that lay in rows into a blob of their own.
    async fn stored(&self, inline: &mut BytesMut, user: &BlobUser) -> Result<Vec<Extent>, Failure> {
        let bytes: Bytes = inline.split().freeze();
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        // These bytes were here before.
        let mut receiver = Receiver::new(self.blobs.clone(), user.clone(), Meter::default());
        receiver.take(bytes).await?;
        Ok(receiver.persist(None).await?.extents)
    }
}

impl Composition {
    fn read(exchange: &Exchange<'_>, body: &Map<String, Value>) -> Result<Self, ObjectError> {
        let listed = body.get("sourceObjects").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if listed.is_empty() || listed.len() > COMPOSE_SOURCES_MAX {
            let hint = format!("Give 1 to {COMPOSE_SOURCES_MAX} source objects.");
            return Err(ObjectError::invalid("sourceObjects", listed.len(), &hint));
        }
        let destination = body.get("destination").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut draft = Draft::from_body(&destination, exchange.now.into())?;
        draft.customer_key = customer_key(exchange, "x-goog-encryption")?;
        draft.kms_key = exchange.parameter("kmsKeyName").map(str::to_owned).or(draft.kms_key);
        if let Some(list) = exchange.query.predefined("destinationPredefinedAcl", false)? {
            draft.acl = Some(Acl::Predefined(list));
        }
        Ok(Self {
            sources: listed.iter().map(source).collect::<Result<_, _>>()?,
            draft,
            conditions: exchange.query.conditions(None, None)?,
            deletes: body.get("deleteSourceObjects").and_then(Value::as_bool) == Some(true),
        })
    }
}

/// Reads one of `sourceObjects`.
fn source(one: &Value) -> Result<(String, Option<u64>, Conditions), ObjectError> {
    let number = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse::<u64>().map_err(|_| ObjectError::invalid("sourceObjects", &text, "Give a generation."))
    };
    let name = one.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| ObjectError::required("sourceObjects.name"))?;
    let generation = one.get("generation").filter(|value| !value.is_null()).map(number).transpose()?;
    let matched = one.pointer("/objectPreconditions/ifGenerationMatch").filter(|value| !value.is_null());
    let generation_match = matched.map(number).transpose()?;
    Ok((name.to_owned(), generation, Conditions { generation_match, ..Conditions::default() }))
}

/// The sources that go: each name once, and not the target, which is overwritten.
/// `is_named` says whether the client has named the generation of a source.
fn leaving<'s>(
    sources: &'s [(&'s str, Source)],
    to: Name<'_>,
    is_named: impl Fn(&str) -> bool,
) -> Result<Vec<Leaving<'s>>, ObjectError> {
    let mut leaving: Vec<Leaving<'s>> = Vec::new();
    for (name, Source { generation, .. }) in sources.iter().filter(|(name, _)| *name != to.name) {
        if generation.state != State::Live {
            let hint = format!(
                "Generation {} of {} is not live. Delete it by its generation, after the compose.",
                generation.id.0,
                to.bucket.shown(name)
            );
            return Err(ObjectError::invalid("deleteSourceObjects", "true", &hint));
        }
        if leaving.iter().all(|other| other.name != *name) {
            leaving.push(Leaving { name, live: generation, is_final: is_named(name) });
        }
    }
    Ok(leaving)
}

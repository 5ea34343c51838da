//! New objects whose bytes come in one request: media and multipart uploads.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use rangehold_map::blob::BlobUser;
use rangehold_map::capacity::Usage;
use rangehold_protocol::object::acl::Acl;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::checksum::Announced;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Draft, Generation, Projection};
use rangehold_protocol::object::limits::{BUCKET_CLOSED_SECONDS, JSON_BODY_BYTES_MAX};
use rangehold_protocol::object::merge::body_object;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::multipart::{Boundary, Event, MultipartError, Parser, TransferDecoder};
use rangehold_protocol::object::name::check_object;
use rangehold_protocol::object::write::{Create, Name};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::ObjectService;
use super::encryption::customer_key;
use super::exchange::{Exchange, RequestBody, check_length, text_of};
use super::failure::Failure;
use super::faults::FaultMet;
use super::located::Wants;
use super::payload::{Received, Receiver};
use super::reply::Reply;
use crate::body::Piece;

/// What a client says about a new object.
pub(super) struct Described {
    pub(super) name: String,
    pub(super) draft: Draft,
    pub(super) announced: Announced,
}

impl ObjectService {
    /// The body is the bytes.
    pub(super) async fn insert_media(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let conditions = exchange.conditions()?;
        let content_type = exchange.header("content-type");
        let mut described = described(exchange, &Map::new(), content_type)?;
        self.permit_write(exchange, &bucket, &described.name).await?;
        self.admit_name(exchange, &bucket.name, &described.name, Usage::Write).await?;
        check_length(exchange)?;
        self.locate(&mut bucket, &mut described, exchange.deadline()).await?;
        let mut receiver = self.receiver(exchange, &bucket, &described.name);
        let mut met = FaultMet::default();
        while let Some(piece) = self.piece(exchange, body).await? {
            let bytes = piece.hold(piece.bytes.clone());
            self.take_bytes(exchange, &mut met, &mut receiver, bytes).await?;
        }
        let received = receiver.finish(&[described.announced]).await?;
        self.insert(exchange, &bucket, described, &conditions, received).await
    }

    /// The body has a part with the resource, and a part with the bytes.
    pub(super) async fn insert_multipart(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let conditions = exchange.conditions()?;
        let content_type = exchange.header("content-type").unwrap_or_default();
        let boundary = Boundary::from_content_type(content_type, "related").map_err(malformed)?;
        let mut parts = Parts::new(boundary);
        let mut receiving: Option<(Described, Receiver)> = None;
        let mut met = FaultMet::default();
        while let Some(piece) = self.piece(exchange, body).await? {
            parts.parser.push(piece.bytes.clone());
            while let Some(found) = parts.next()? {
                match found {
                    Found::MediaBegins(content_type) => {
                        let resource = body_object(&parts.resource)?;
                        let mut described = described(exchange, &resource, content_type.as_deref())?;
                        self.permit_write(exchange, &bucket, &described.name).await?;
                        self.admit_name(exchange, &bucket.name, &described.name, Usage::Write).await?;
                        self.locate(&mut bucket, &mut described, exchange.deadline()).await?;
                        let receiver = self.receiver(exchange, &bucket, &described.name);
                        receiving = Some((described, receiver));
                    }
                    Found::Media(bytes) => {
                        let (_, receiver) = receiving.as_mut().expect("the part with the bytes has begun");
                        self.take_bytes(exchange, &mut met, receiver, piece.hold(bytes)).await?;
                    }
                }
            }
        }
        parts.finish()?;
        let Some((described, receiver)) = receiving else {
            let message = "A multipart upload has two parts: the resource in JSON, and the bytes.";
            return Err(ObjectError::new(ErrorKind::ParseError, message).into());
        };
        let received = receiver.finish(&[described.announced]).await?;
        self.insert(exchange, &bucket, described, &conditions, received).await
    }

    /// Finds where a new object lies. Its description has the stored name from then on.
    pub(super) async fn locate(
        &self,
        bucket: &mut Bucket,
        described: &mut Described,
        deadline: Instant,
    ) -> Result<(), Failure> {
        if let Cow::Owned(stored) = self.located(bucket, &described.name, Wants::New, deadline).await? {
            described.name = stored;
        }
        Ok(())
    }

    async fn insert(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        described: Described,
        conditions: &Conditions,
        received: Received,
    ) -> Result<Reply, Failure> {
        let Described { name, draft, .. } = &described;
        let spelled_out = draft.acl.as_ref().is_some_and(|acl| matches!(acl, Acl::Listed(_)));
        let made = self.create(exchange, Name { bucket, name }, draft, conditions, received).await?;
        let unsaid = if spelled_out { Projection::Full } else { Projection::NoAcl };
        self.object_resource(exchange, bucket, name, &made, unsaid)
    }

    /// Writes a new live generation whose bytes have arrived.
    pub(super) async fn create(
        &self,
        exchange: &Exchange<'_>,
        to: Name<'_>,
        draft: &Draft,
        conditions: &Conditions,
        received: Received,
    ) -> Result<Generation, Failure> {
        let owner = exchange.owner(to.bucket);
        let create = Create {
            to,
            draft,
            conditions,
            payload: &received.payload,
            owner: &owner,
            ends_upload: None,
            also: &Vec::new(),
        };
        let made = match self.check_bucket_again(exchange, to.bucket).await {
            Ok(()) => self.change_object(&create, exchange.deadline()).await,
            Err(failure) => Err(failure),
        };
        if made.as_ref().is_err_and(|failure| !failure.is_unknown()) {
            received.give_up().await;
        }
        made
    }

    /// Looks for the bucket again if the request is old. A deleted bucket is sure to refuse writes for a day only, and an upload
    /// may take longer.
    async fn check_bucket_again(&self, exchange: &Exchange<'_>, bucket: &Bucket) -> Result<(), Failure> {
        let old_at = Micros::from(exchange.now).plus_seconds(BUCKET_CLOSED_SECONDS / 2);
        if Micros::from(self.clock.now()) < old_at || self.bucket(&bucket.name).await?.id == bucket.id {
            return Ok(());
        }
        Err(ObjectError::no_such_bucket().into())
    }

    /// A receiver for the bytes of this request.
    pub(super) fn receiver(&self, exchange: &Exchange<'_>, bucket: &Bucket, name: &str) -> Receiver {
        let upload = exchange.id.to_owned();
        let user = BlobUser { bucket: bucket.id, name: name.to_owned(), upload };
        Receiver::new(self.blobs.clone(), user, self.meter(bucket))
    }

    /// The next piece of a payload; `None` at its end.
    pub(super) async fn piece(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Result<Option<Piece>, Failure> {
        let RequestBody::Incoming { incoming, rest, packed } = body else {
            return Err(ObjectError::not_implemented("An upload in a batch").into());
        };
        let piece = match packed {
            None => self.bodies.piece(incoming, rest, exchange.tenant).await?,
            Some(packed) => self.bodies.unpacked_piece(incoming, rest, packed, exchange.tenant).await?,
        };
        exchange.open.progressed();
        Ok(piece)
    }
}

/// The parts of a multipart upload while they arrive.
struct Parts {
    parser: Parser,
    /// The parts that have begun.
    begun: usize,
    /// Takes the encoding off the part with the bytes.
    decoder: TransferDecoder,
    /// What has arrived of the first part.
    resource: BytesMut,
}

/// What comes next in a multipart upload.
enum Found {
    /// The part with the bytes begins. It has this content type.
    MediaBegins(Option<String>),
    /// Some of these bytes.
    Media(Bytes),
}

impl Parts {
    fn new(boundary: Boundary) -> Self {
        let decoder = TransferDecoder::default();
        Self { parser: Parser::new(boundary), begun: 0, decoder, resource: BytesMut::new() }
    }

    /// What comes next; `None` if more of the body is needed, or at its end.
    fn next(&mut self) -> Result<Option<Found>, ObjectError> {
        while let Some(event) = self.parser.event().map_err(malformed)? {
            match event {
                Event::Part(head) => {
                    self.begun += 1;
                    if self.begun == 2 {
                        self.decoder = TransferDecoder::of(&head)?;
                        return Ok(Some(Found::MediaBegins(head.content_type().map(str::to_owned))));
                    }
                    if self.begun > 2 {
                        let message = "A multipart upload has two parts, and this one has more.";
                        return Err(ObjectError::new(ErrorKind::ParseError, message));
                    }
                }
                Event::Data(bytes) if self.begun == 2 => {
                    let bytes = self.decoder.decode(bytes)?;
                    if !bytes.is_empty() {
                        return Ok(Some(Found::Media(bytes)));
                    }
                }
                Event::Data(bytes) => {
                    if self.resource.len() + bytes.len() > JSON_BODY_BYTES_MAX {
                        let message = format!(
                            "Metadata part is too large: it has more than {JSON_BODY_BYTES_MAX} bytes."
                        );
                        return Err(ObjectError::new(ErrorKind::TooLarge, message));
                    }
                    self.resource.extend_from_slice(&bytes);
                }
                Event::End => break,
            }
        }
        Ok(None)
    }

    /// Checks at the end of the body that nothing of it is missing.
    fn finish(self) -> Result<(), ObjectError> {
        self.parser.finish().map_err(malformed)?;
        self.decoder.finish()
    }
}

/// What the resource, the parameters and the headers say about a new object. `media_type` is the content type that
/// came with the bytes.
pub(super) fn described(
    exchange: &Exchange<'_>,
    resource: &Map<String, Value>,
    media_type: Option<&str>,
) -> Result<Described, ObjectError> {
    let named = exchange.parameter("name").or_else(|| resource.get("name").and_then(Value::as_str));
    let name = named.ok_or_else(|| ObjectError::required("name"))?.to_owned();
    check_object(&name)?;
    let mut draft = Draft::from_body(resource, exchange.now.into())?;
    let settings = &mut draft.settings;
    if settings.content_type.is_none() {
        settings.content_type = media_type.map(str::to_owned);
    }
    if let Some(encoding) = exchange.parameter("contentEncoding") {
        settings.content_encoding = Some(encoding.to_owned());
    }
    if let Some(list) = exchange.query.predefined("predefinedAcl", false)? {
        draft.acl = Some(Acl::Predefined(list));
    }
    if let Some(key) = exchange.parameter("kmsKeyName") {
        draft.kms_key = Some(key.to_owned());
    }
    draft.customer_key = customer_key(exchange, "x-goog-encryption")?;
    let announced = announced(exchange, resource)?;
    Ok(Described { name, draft, announced })
}

/// The checksums that the resource and the headers announce.
pub(super) fn announced(
    exchange: &Exchange<'_>,
    resource: &Map<String, Value>,
) -> Result<Announced, ObjectError> {
    let mut announced = Draft::announced(resource)?;
    let headers = exchange.head.headers.get_all("x-goog-hash").iter();
    for header in headers.filter_map(text_of) {
        announced.add_goog_hash(header)?;
    }
    if let Some(md5) = exchange.header("content-md5") {
        announced.add_md5(md5, "Content-MD5")?;
    }
    Ok(announced)
}

fn malformed(error: MultipartError) -> ObjectError {
    ObjectError::new(ErrorKind::ParseError, error.to_string())
}

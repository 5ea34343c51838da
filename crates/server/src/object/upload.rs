//! Resumable uploads: sessions that live a week, also over restarts.
//!
//! The id of an upload names its object too: `<id>-<name in base64>`, so a request with nothing but the id finds the
//! session, which lies under the name. A reply tells only of bytes that are durable.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rangehold_map::blob::BlobUser;
use rangehold_map::capacity::Usage;
use rangehold_map::key::ObjectRow;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::checksum::Announced;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Generation, Projection};
use rangehold_protocol::object::link::segment;
use rangehold_protocol::object::request::Api;
use rangehold_protocol::object::upload::{
    Answer, ContentRange, Progress, Session, Step, UploadKind, told_range, whole_chunks,
};
use rangehold_protocol::object::write::{BeginUpload, CancelUpload, Create, Name, SaveUpload};
use serde_json::Map;

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::faults::{FaultMet, ordered_error};
use super::insert::{Described, announced, described};
use super::located::Wants;
use super::media::written;
use super::payload::Receiver;
use super::reply::Reply;
use crate::limits::UPLOAD_SAVED_EACH_BYTES;

/// An upload that a request names.
pub(super) struct Upload<'a> {
    /// The name that gets the object.
    pub(super) of: Name<'a>,
    /// The id of its rows.
    pub(super) id: &'a str,
}

/// Bytes that a request brings to an upload.
struct Incoming {
    /// Bytes at the beginning that are there already.
    skip: u64,
    /// How many bytes the upload has when those of a chunk that count have come; what follows is dropped.
    ends: Option<u64>,
    is_last: bool,
    /// The size of the object, if it is known.
    total: Option<u64>,
}

/// What a request made of an upload.
enum Done {
    /// So many bytes are durable.
    Saved(u64),
    /// The upload ended with this generation.
    Finished(Box<Generation>),
    /// A retry test ordered an error, after some bytes were saved.
    Spoiled(u16),
}

impl ObjectService {
    /// Begins an upload. The reply has its address.
    pub(super) async fn begin_upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let resource = self.body_object(exchange, body).await?;
        let bucket = self.bucket(bucket).await?;
        let media_type = exchange.header("x-upload-content-type");
        let described = described(exchange, &resource, media_type)?;
        self.permit_write(exchange, &bucket, &described.name).await?;
        let total = exchange.header("x-upload-content-length").and_then(|length| length.parse().ok());
        let conditions = exchange.conditions()?;
        // They shape the last answer, and clients send them only here.
        exchange.query.projection(Projection::NoAcl)?;
        exchange.fields()?;
        let id = self.store_session(exchange, &bucket, described, conditions, total).await?;
        let form: String = ["projection", "fields"]
            .into_iter()
            .filter_map(|name| Some(format!("&{name}={}", segment(exchange.parameter(name)?))))
            .collect();
        let location = format!(
            "{}/upload/storage/v1/b/{}/o?uploadType=resumable{form}&upload_id={id}",
            exchange.base,
            segment(&bucket.name)
        );
        Ok(Reply::empty(200).header("Location", location).header("X-GUploader-UploadID", id))
    }

    /// Stores the session of a new upload, and returns the id that clients use.
    pub(super) async fn store_session(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        described: Described,
        conditions: Conditions,
        total: Option<u64>,
    ) -> Result<String, Failure> {
        let Described { name, draft, announced } = described;
        let session = Session {
            kind: UploadKind::Resumable,
            begun: exchange.now.into(),
            draft,
            conditions,
            announced,
            owner: exchange.owner(bucket),
            progress: Progress { total, ..Progress::default() },
        };
        let upload = exchange.id.replace('-', "");
        let (bucket, stored) = self.located_in(bucket, &name, Wants::New, exchange.deadline()).await?;
        let of = Name { bucket: &bucket, name: &stored };
        let begin = BeginUpload { of, upload: &upload, session: &session };
        self.change_object(&begin, exchange.deadline()).await?;
        Ok(format!("{upload}-{}", URL_SAFE_NO_PAD.encode(&name)))
    }

    /// Cancels an upload.
    pub(super) async fn cancel_upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, id, name) =
            self.place_of(exchange, bucket, exchange.query.required("upload_id")?).await?;
        let of = Name { bucket: &bucket, name: &name };
        let cancel = CancelUpload { of, upload: id };
        self.change_object(&cancel, exchange.deadline()).await?;
        Ok(Reply::empty(499))
    }

    /// A request that brings bytes, or asks how many have come.
    pub(super) async fn continue_upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let whole_id = exchange.query.required("upload_id")?;
        let (bucket, id, name) = self.place_of(exchange, bucket, whole_id).await?;
        let upload = Upload { of: Name { bucket: &bucket, name: &name }, id };
        let done = match self.session(exchange, &upload).await? {
            Ok(session) => self.advance(exchange, &upload, session, body).await?,
            Err(generation) => Done::Finished(generation),
        };
        let reply = match done {
            Done::Saved(bytes) => told(exchange, bytes),
            // The XML API answers as a `PUT` of the whole object does.
            Done::Finished(made) if exchange.api == Api::Xml => written(200, &made),
            Done::Finished(made) => {
                self.object_resource(exchange, &bucket, &name, &made, Projection::NoAcl)?
            }
            Done::Spoiled(status) => ordered_error(status, exchange.api),
        };
        Ok(reply.header("X-GUploader-UploadID", whole_id))
    }

    /// Where an upload lies: the bucket, the id of its rows, and the stored name. An upload whose folder was renamed or
    /// deleted does not go on.
    pub(super) async fn place_of<'i>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        whole_id: &'i str,
    ) -> Result<(Bucket, &'i str, String), Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let (id, name) = parts_of(whole_id)?;
        let stored = self.located_upload(exchange, &mut bucket, &name, id).await?.into_owned();
        Ok((bucket, id, stored))
    }

    /// The stored name of an object that is uploaded.
    pub(super) async fn located_upload<'n>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &mut Bucket,
        name: &'n str,
        upload: &str,
    ) -> Result<Cow<'n, str>, Failure> {
        let located = self.located(bucket, name, Wants::There, exchange.deadline()).await;
        located.map_err(|failure| match failure.0.kind {
            ErrorKind::NoSuchObject => ObjectError::no_such_upload(upload).into(),
            _ => failure,
        })
    }

    /// The session of an upload or, if it has ended, the generation that it made.
    pub(super) async fn session(
        &self,
        exchange: &Exchange<'_>,
        upload: &Upload<'_>,
    ) -> Result<Result<Session, Box<Generation>>, Failure> {
        let row = self.row(upload.of, &ObjectRow::Upload(upload.id.into())).await?;
        if let Some(row) = row {
            let session = Session::decode(&row)?;
            return match session.is_over(exchange.now.into()) {
                true => Err(ObjectError::no_such_upload(upload.id).into()),
                false => Ok(Ok(session)),
            };
        }
        let answer = self.row(upload.of, &ObjectRow::Answer(upload.id.into())).await?;
        let answer = answer.ok_or_else(|| ObjectError::no_such_upload(upload.id))?;
        Ok(Err(Box::new(Answer::decode(&answer)?.generation()?)))
    }

    async fn advance(
        &self,
        exchange: &Exchange<'_>,
        upload: &Upload<'_>,
        session: Session,
        body: &mut RequestBody,
    ) -> Result<Done, Failure> {
        let length = declared(exchange, body);
        let range = ContentRange::parse(exchange.header("content-range"))?;
        let Progress { bytes, total, .. } = session.progress;
        match range.step(bytes, total, length)? {
            Step::Tell => Ok(Done::Saved(bytes)),
            Step::Receive { skip, length: counted, is_last, total } => {
                let Name { bucket, name } = upload.of;
                let shown = bucket.shown(name);
                if is_last {
                    self.admit_name(exchange, &bucket.name, shown, Usage::Write).await?;
                } else {
                    self.admit_bytes(exchange, bucket, shown, Usage::Write)?;
                }
                let ends = if is_last { None } else { counted };
                let ends = ends.map(|counted| bytes + counted.saturating_sub(skip));
                let incoming = Incoming { skip, ends, is_last, total };
                self.receive(exchange, upload, session, incoming, body).await
            }
        }
    }

    /// Stores the bytes of a body and, if they are the last, writes the object.
    async fn receive(
        &self,
        exchange: &Exchange<'_>,
        upload: &Upload<'_>,
        session: Session,
        incoming: Incoming,
        body: &mut RequestBody,
    ) -> Result<Done, Failure> {
        let Name { bucket, name } = upload.of;
        let user = BlobUser { bucket: bucket.id, name: name.to_owned(), upload: upload.id.to_owned() };
        let (blobs, meter) = (self.blobs.clone(), self.meter(bucket));
        let mut receiver = Receiver::resume(blobs, user, meter, &session.progress).await?;
        let (ends_at, mut met) = (incoming.ends.unwrap_or(u64::MAX), FaultMet::default());
        let (mut skip, mut saved) = (incoming.skip, session.progress.bytes);
        loop {
            let piece = match self.piece(exchange, body).await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(damaged) if body.is_damaged() => return Err(damaged),
                Err(broken_off) => {
                    // What has come is kept, so that the client can go on there.
                    self.save(exchange, upload, saved, &mut receiver, incoming.total).await?;
                    return Err(broken_off);
                }
            };
            let known = skip.min(piece.bytes.len() as u64);
            skip -= known;
            let bytes = piece.hold(piece.bytes.slice(known as usize..));
            let have = receiver.bytes();
            let room = ends_at.saturating_sub(have).min(bytes.len() as u64);
            let fault = self.fault_at(exchange, &mut met, have..have + room).await;
            let taken = fault.map_or(room, |(_, after)| room.min(after.saturating_sub(have)));
            let counted = bytes.slice(..taken as usize);
            receiver.pass_over(piece.bytes.len() - counted.len());
            receiver.take(counted).await?;
            if let Some((status, _)) = fault {
                self.save(exchange, upload, saved, &mut receiver, incoming.total).await?;
                return Ok(Done::Spoiled(status));
            }
            // Damage is seen at the end of what the client compressed, so nothing of that is kept before.
            if receiver.bytes() >= saved + UPLOAD_SAVED_EACH_BYTES && !body.is_unpacked() {
                saved = self.save(exchange, upload, saved, &mut receiver, incoming.total).await?;
            }
        }
        let is_short = incoming.total.is_some_and(|total| receiver.bytes() < total);
        if !incoming.is_last || is_short {
            let saved = self.save(exchange, upload, saved, &mut receiver, incoming.total).await?;
            return Ok(Done::Saved(saved));
        }
        let expected = announced(exchange, &Map::new())?;
        let made = self.end_upload(exchange, upload, &session, receiver, expected, incoming.total).await?;
        Ok(Done::Finished(Box::new(made)))
    }

    /// Makes durable what an upload has received, and notes it in its session. Returns how many bytes that is.
    pub(super) async fn save(
        &self,
        exchange: &Exchange<'_>,
        upload: &Upload<'_>,
        from: u64,
        receiver: &mut Receiver,
        total: Option<u64>,
    ) -> Result<u64, Failure> {
        let progress = receiver.persist(total).await?;
        let save = SaveUpload { of: upload.of, upload: upload.id, from, progress: &progress };
        self.change_object(&save, exchange.deadline()).await?;
        Ok(progress.bytes)
    }

    /// Writes the object of an upload whose bytes have all come. `announced` are checksums of the last request, and `total`
    /// is the size that the object must have.
    pub(super) async fn end_upload(
        &self,
        exchange: &Exchange<'_>,
        upload: &Upload<'_>,
        session: &Session,
        receiver: Receiver,
        announced: Announced,
        total: Option<u64>,
    ) -> Result<Generation, Failure> {
        let of = upload.of;
        let expected = [session.announced, announced];
        if let Err(refused) = right_bytes(&receiver, &expected, total) {
            // The bytes that came are not those that were meant: the upload cannot become an object any more. Its session
            // names them until it is cancelled. If another request has made an object of them, the cancellation fails, and
            // they stay.
            let cancel = CancelUpload { of, upload: upload.id };
            self.change_object(&cancel, exchange.deadline()).await?;
            receiver.give_up().await;
            return Err(refused.into());
        }
        // After an error, here or below, the bytes stay with the session, so that the client can ask again.
        let received = receiver.finish(&[]).await?;
        let create = Create {
            to: of,
            draft: &session.draft,
            conditions: &session.conditions,
            payload: &received.payload,
            owner: &session.owner,
            ends_upload: Some(upload.id),
            also: &Vec::new(),
        };
        self.change_object(&create, exchange.deadline()).await
    }
}

/// How many bytes a request brings, if its head says it.
fn declared(exchange: &Exchange<'_>, body: &RequestBody) -> Option<u64> {
    let length = exchange.header("content-length").filter(|_| !body.is_unpacked());
    length.and_then(|length| length.parse().ok())
}

/// Whether the bytes that have come are those that the client announced.
fn right_bytes(receiver: &Receiver, announced: &[Announced], total: Option<u64>) -> Result<(), ObjectError> {
    if let Some(total) = total.filter(|total| receiver.bytes() > *total) {
        let message = format!("The object was announced with {total} bytes, and more have come.");
        return Err(ObjectError::new(ErrorKind::Invalid, message));
    }
    receiver.check(announced)
}

/// The reply that tells how many bytes are durable. A call of gRPC, which comes as one of the JSON API, may go on at any byte.
fn told(exchange: &Exchange<'_>, have: u64) -> Reply {
    let bytes = if exchange.api == Api::Json { have } else { whole_chunks(have) };
    let mut reply = match exchange.header("x-guploader-no-308") {
        Some("yes") => Reply::empty(200).header("X-Http-Status-Code-Override", "308"),
        _ => Reply::empty(308),
    };
    if let Some(range) = told_range(bytes) {
        reply.set("Range", range);
    }
    reply
}

/// The id of an upload's rows, and the name of its object.
pub(super) fn parts_of(id: &str) -> Result<(&str, String), ObjectError> {
    let parts = id.split_once('-').and_then(|(upload, name)| {
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
        Some((upload, name))
    });
    parts.ok_or_else(|| ObjectError::no_such_upload(id))
}

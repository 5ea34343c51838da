//! Multipart uploads.

use rangehold_map::KeyRange;
use rangehold_map::blob::BlobUser;
use rangehold_map::capacity::Usage;
use rangehold_map::key::{ObjectKey, ObjectRow};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::link::segment;
use rangehold_protocol::object::parts::{AbortUpload, CompleteUpload, PutPart, RemoveParts, Stored};
use rangehold_protocol::object::request::Api;
use rangehold_protocol::object::upload::{Answer, Progress, Session, UploadKind};
use rangehold_protocol::object::write::{BeginUpload, CancelUpload, Create, Name};
use rangehold_protocol::object::xml::parts::{
    self, COMPLETE_BYTES_MAX, ListedPart, ListedUpload, PART_NUMBER_MAX, read_complete,
};

use super::object::described;
use super::{XmlApi, conditions, xml_reply};
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::located::Wants;
use crate::object::media::put_hashes;
use crate::object::payload::Receiver;
use crate::object::reply::Reply;

impl XmlApi<'_> {
    pub(super) async fn begin_upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (described, conditions) = (described(exchange, name)?, conditions(exchange)?);
        let (bucket, stored) = self.place(exchange, bucket, name, Wants::New).await?;
        let session = Session {
            kind: UploadKind::Parts,
            begun: exchange.now.into(),
            draft: described.draft,
            conditions,
            announced: described.announced,
            owner: exchange.owner(&bucket),
            progress: Progress::default(),
        };
        let upload = exchange.id.replace('-', "");
        let of = Name { bucket: &bucket, name: &stored };
        let begin = BeginUpload { of, upload: &upload, session: &session };
        self.change_object(&begin, exchange.deadline()).await?;
        Ok(xml_reply(200, parts::begun(&bucket.name, name, &upload)))
    }

    pub(super) async fn put_part(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        (upload, number): (&str, u32),
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let stored = self.located_upload(exchange, &mut bucket, name, upload).await?;
        let of = Name { bucket: &bucket, name: &stored };
        self.parts_session(exchange, &of, upload)
            .await?
            .ok_or_else(|| ObjectError::no_such_upload(upload))?;
        let described = described(exchange, name)?;
        let user = BlobUser { bucket: bucket.id, name: of.name.to_owned(), upload: upload.to_owned() };
        self.admit_bytes(exchange, &bucket, name, Usage::Write)?;
        let mut receiver = Receiver::new(self.blobs.clone(), user, self.meter(&bucket));
        self.receive(exchange, body, &mut receiver).await?;
        let received = receiver.finish_part(&described.announced, exchange.now.into()).await?;
        let put = PutPart { of, upload, number, part: &received.part };
        let stored = self.change_object(&put, exchange.deadline()).await;
        if let Err(failure) = stored {
            if !failure.is_unknown() {
                received.give_up().await;
            }
            return Err(failure);
        }
        let part = &received.part;
        let mut reply = Reply::empty(200).header("ETag", format!("\"{}\"", part.etag()));
        put_hashes(&mut reply, part.crc32c, Some(part.md5), Api::Xml);
        Ok(reply)
    }

    pub(super) async fn complete_upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        upload: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        // Not decompressed: Python's client repeats the object's `Content-Encoding` here.
        let list = read_complete(&self.sent_body(exchange, body, COMPLETE_BYTES_MAX).await?)?;
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let stored = self.located_upload(exchange, &mut bucket, name, upload).await?;
        let of = Name { bucket: &bucket, name: &stored };
        let made = match self.parts_session(exchange, &of, upload).await? {
            Some(session) => self.join_parts(exchange, of, upload, &session, &list).await?,
            // The client did not hear the first answer, and asks again.
            None => {
                let answer = self.row(of, &ObjectRow::Answer(upload.into())).await?;
                let answer = answer.ok_or_else(|| ObjectError::no_such_upload(upload))?;
                Answer::decode(&answer)?.generation()?
            }
        };
        let location = format!("{}/{}/{}", exchange.base, segment(&bucket.name), segment(name));
        let body = parts::completed(&location, &bucket.name, name, &made.xml_etag());
        let mut reply = xml_reply(200, body)
            .header("ETag", format!("\"{}\"", made.xml_etag()))
            .header("x-goog-generation", made.id.0.to_string())
            .header("x-goog-metageneration", made.metageneration.to_string());
        put_hashes(&mut reply, made.crc32c, made.md5, Api::Xml);
        Ok(reply)
    }

    /// Makes the object of the parts in `list`.
    async fn join_parts(
        &self,
        exchange: &Exchange<'_>,
        of: Name<'_>,
        upload: &str,
        session: &Session,
        list: &[(u32, String)],
    ) -> Result<Generation, Failure> {
        let stored = self.stored_parts(&of, upload).await?;
        let payload = stored.payload(list, upload)?;
        let unused: Vec<u32> = stored
            .iter()
            .map(|(number, _)| number)
            .filter(|number| list.iter().all(|(named, _)| named != number))
            .collect();
        let own = conditions(exchange)?;
        let create = Create {
            to: of,
            draft: &session.draft,
            conditions: if own.is_empty() { &session.conditions } else { &own },
            payload: &payload,
            owner: &session.owner,
            ends_upload: Some(upload),
            also: &stored.removal(&of, upload),
        };
        let complete = CompleteUpload { create, parts: &stored, unused: &unused };
        let made = self.change_object(&complete, exchange.deadline()).await?;
        self.remove_late_parts(exchange, of, upload).await;
        Ok(made)
    }

    pub(super) async fn abort_upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        upload: &str,
    ) -> Result<Reply, Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let stored = self.located_upload(exchange, &mut bucket, name, upload).await?;
        let of = Name { bucket: &bucket, name: &stored };
        self.remove_parts(exchange, of, upload).await?;
        self.remove_late_parts(exchange, of, upload).await;
        Ok(Reply::empty(204))
    }

    async fn remove_parts(&self, exchange: &Exchange<'_>, of: Name<'_>, upload: &str) -> Result<(), Failure> {
        let stored = self.stored_parts(&of, upload).await?;
        let abort = AbortUpload { cancel: CancelUpload { of, upload }, parts: &stored };
        self.change_object(&abort, exchange.deadline()).await
    }

    /// Removes parts that came while the upload ended.
    async fn remove_late_parts(&self, exchange: &Exchange<'_>, of: Name<'_>, upload: &str) {
        let removal = async {
            let late = self.stored_parts(&of, upload).await?;
            if late.is_empty() {
                return Ok(());
            }
            self.change_object(&RemoveParts { of, upload, parts: &late }, exchange.deadline()).await
        };
        let removed: Result<(), Failure> = removal.await;
        if let Err(error) = removed {
            tracing::warn!(%error, upload, "parts that came while their upload ended stay for now");
        }
    }

    pub(super) async fn list_parts(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        upload: &str,
    ) -> Result<Reply, Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let stored = self.located_upload(exchange, &mut bucket, name, upload).await?;
        let of = Name { bucket: &bucket, name: &stored };
        let session = self.parts_session(exchange, &of, upload).await?;
        let session = session.ok_or_else(|| ObjectError::no_such_upload(upload))?;
        let after = exchange.query.number("part-number-marker")?.unwrap_or(0);
        let most = exchange.query.number("max-parts")?.unwrap_or(1000).min(1000) as usize;
        let stored = self.stored_parts(&of, upload).await?;
        let mut listed: Vec<ListedPart> = stored
            .iter()
            .filter(|(number, _)| u64::from(*number) > after)
            .take(most + 1)
            .map(|(number, part)| ListedPart {
                number,
                modified: part.modified.text(),
                etag: part.etag(),
                size: part.size(),
            })
            .collect();
        let more = listed.len() > most;
        listed.truncate(most);
        let class = session.draft.storage_class.unwrap_or(bucket.storage_class());
        let shown = ListedUpload {
            name: name.to_owned(),
            upload: upload.to_owned(),
            storage_class: class.name().to_owned(),
            begun: session.begun.text(),
        };
        Ok(xml_reply(200, parts::listed(&bucket.name, &shown, &listed, more)))
    }

    /// The session of a multipart upload; `None` if there is none, or it is too old.
    async fn parts_session(
        &self,
        exchange: &Exchange<'_>,
        of: &Name<'_>,
        upload: &str,
    ) -> Result<Option<Session>, Failure> {
        let row = self.row(*of, &ObjectRow::Upload(upload.into())).await?;
        let session = row.map(|row| Session::decode(&row)).transpose()?;
        Ok(session
            .filter(|session| session.kind == UploadKind::Parts && !session.is_over(exchange.now.into())))
    }

    /// All parts of an upload, in the order of their numbers.
    async fn stored_parts(&self, of: &Name<'_>, upload: &str) -> Result<Stored, Failure> {
        let key = |part| of.key(&ObjectRow::Part { upload: upload.into(), part });
        let range = KeyRange::new(key(0), Some(key(PART_NUMBER_MAX + 1)));
        let begin = || (Stored::default(), None);
        let scanned = self.router.scan(&range, begin, |(stored, fault), key, row| {
            let pushed = match ObjectKey::decode(key) {
                Ok(ObjectKey { row: ObjectRow::Part { part, .. }, .. }) => stored.push(part, row.clone()),
                _ => Err(ObjectError::damaged("a row between the parts of an upload")),
            };
            if let Err(error) = pushed {
                fault.get_or_insert(error);
            }
            rangehold_engine::Visit::Next
        });
        match scanned.await? {
            (_, Some(fault)) => Err(fault.into()),
            (stored, None) => Ok(stored),
        }
    }
}

//! Objects: put, get, head, delete, and resumable uploads.

use rangehold_protocol::object::condition::Purpose;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::link::segment;
use rangehold_protocol::object::name::check_object;
use rangehold_protocol::object::signed::Dialect;
use rangehold_protocol::object::write::Name;
use rangehold_protocol::object::xml::headers;
use rangehold_protocol::time::parse_http_date;

use super::{XmlApi, conditions, written};
use crate::object::encryption::customer_key;
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::insert::Described;
use crate::object::located::Wants;
use crate::object::reply::Reply;

/// Parameters of a download that replace a header of the reply. Signed URLs use them.
const REPLACED: [(&str, &str); 6] = [
    ("response-cache-control", "Cache-Control"),
    ("response-content-disposition", "Content-Disposition"),
    ("response-content-encoding", "Content-Encoding"),
    ("response-content-language", "Content-Language"),
    ("response-content-type", "Content-Type"),
    ("response-expires", "Expires"),
];

impl XmlApi<'_> {
    /// The bytes of an object. For a `HEAD` the connection sends the headers alone.
    pub(super) async fn get(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let conditions = conditions(exchange)?;
        let (since, until) = (exchange.header("if-modified-since"), exchange.header("if-unmodified-since"));
        // HTTP gives entity tags the precedence over times.
        let since = since.filter(|_| conditions.tag_not_match.is_none());
        let until = until.filter(|_| conditions.tag_match.is_none());
        let check = |generation: &Generation| {
            conditions.check(Some(generation), Purpose::Read)?;
            let updated = generation.updated.timestamp().unix_seconds();
            let after = |text: &str| parse_http_date(text).map(|time| updated > time.unix_seconds());
            if until.and_then(after) == Some(true) {
                return Err(ObjectError::condition_not_met("If-Unmodified-Since"));
            }
            match since.and_then(after) {
                Some(false) => Err(ObjectError::not_modified()),
                _ => Ok(()),
            }
        };
        let mut reply = self.download_if(exchange, bucket, name, check).await?;
        if exchange.dialect == Dialect::Amazon {
            // Its clients look for the metadata under their own name.
            let own = reply.named.iter().filter_map(|(name, value)| {
                Some((format!("x-amz-meta-{}", name.strip_prefix("x-goog-meta-")?), value.clone()))
            });
            reply.named.extend(own.collect::<Vec<_>>());
        }
        for (parameter, header) in REPLACED {
            if let Some(value) = exchange.parameter(parameter) {
                reply.headers.retain(|(name, _)| *name != header);
                reply.set(header, value);
            }
        }
        Ok(reply)
    }

    /// Writes an object with the bytes of the body.
    pub(super) async fn put(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let described = described(exchange, name)?;
        let conditions = conditions(exchange)?;
        let (bucket, name) = self.place(exchange, bucket, name, Wants::New).await?;
        let mut receiver = self.receiver(exchange, &bucket, &name);
        self.receive(exchange, body, &mut receiver).await?;
        let received = receiver.finish(&[described.announced]).await?;
        let to = Name { bucket: &bucket, name: &name };
        let made = self.create(exchange, to, &described.draft, &conditions, received).await?;
        Ok(written(200, &made))
    }

    pub(super) async fn delete(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        self.delete_if(exchange, &bucket, &name, &conditions(exchange)?).await
    }

    /// Begins a resumable upload. Its bytes come as those of an upload that the JSON API began.
    pub(super) async fn begin_session(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        let described = described(exchange, name)?;
        let id = self.store_session(exchange, &bucket, described, conditions(exchange)?, None).await?;
        let in_path = match exchange.bucket_in_host {
            Some(_) => String::new(),
            None => format!("/{}", segment(&bucket.name)),
        };
        let location = format!("{}{in_path}/{}?upload_id={id}", exchange.base, segment(name));
        Ok(Reply::empty(201).header("Location", location).header("X-GUploader-UploadID", id))
    }
}

/// What the headers say about a new object.
pub(super) fn described(exchange: &Exchange<'_>, name: &str) -> Result<Described, ObjectError> {
    check_object(name)?;
    let texts: Vec<_> = exchange.texts().collect();
    let texts = || texts.iter().map(|(name, value)| (name.as_ref(), *value));
    let mut draft = headers::draft(texts(), exchange.now.into())?;
    draft.customer_key = customer_key(exchange, "x-goog-encryption")?;
    let announced = headers::announced(texts())?;
    Ok(Described { name: name.to_owned(), draft, announced })
}

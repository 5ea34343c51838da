//! Bytes up: in one request, or in a session.
//!
//! [`Bucket::upload`] sends a body that is in memory, in one request. [`Session`](super::Session) sends chunks, and can be left and taken up again,
//! by another process too: its URL is all that it needs. Both announce the CRC32C, and the service refuses other bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use rangehold_protocol::object::checksum::Crc32c;
use serde_json::{Value, json};

use super::bucket::{Bucket, checked};
use super::call::Call;
use super::error::Error;
use super::line::parsed;
use super::resource::{Condition, Object};

/// The bytes of a new object, and what is to be said about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes; empty for a session, whose bytes come later.
    pub bytes: Bytes,
    /// The media type.
    pub content_type: String,
    /// Names and values of the program's own.
    pub metadata: BTreeMap<String, String>,
}

impl<T: Into<Bytes>> From<T> for Content {
    fn from(bytes: T) -> Self {
        let content_type = "application/octet-stream".to_owned();
        Self { bytes: bytes.into(), content_type, metadata: BTreeMap::new() }
    }
}

impl Content {
    /// The same with a media type.
    #[must_use]
    pub fn of_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// The metadata of the request that begins the upload.
    pub(super) fn resource(&self, name: &str, crc32c: Option<Crc32c>) -> Value {
        let mut resource = json!({ "name": name, "contentType": self.content_type });
        if !self.metadata.is_empty() {
            resource["metadata"] = json!(self.metadata);
        }
        if let Some(crc32c) = crc32c {
            resource["crc32c"] = crc32c.text().into();
        }
        resource
    }
}

impl Bucket {
    /// Makes an object of bytes in memory, by one request. Fails with status 412 if the condition does not hold.
    ///
    /// With [`Condition::Any`] the upload is not repeated after a lost answer.
    pub async fn upload(
        &self,
        name: &str,
        mut content: Content,
        condition: Condition,
    ) -> Result<Object, Error> {
        checked(name)?;
        let token = self.mark();
        content.metadata.extend(token.clone());
        let sum = Crc32c::of(&content.bytes);
        // A boundary of chance: the bytes cannot hold it but by a chance of one in 2^128.
        let boundary = format!("rangehold-{:032x}", u128::from_be_bytes(self.line.sender.fresh()));
        let head = format!(
            "--{boundary}\r\nContent-Type: application/json\r\n\r\n{}\r\n--{boundary}\r\nContent-Type: {}\r\n\r\n",
            content.resource(name, Some(sum)),
            content.content_type
        );
        let end = format!("\r\n--{boundary}--\r\n");
        let body = [head.as_bytes(), &content.bytes, end.as_bytes()].concat();
        let call = Call::upload(self.name(), "multipart")
            .condition(condition)
            .body(&format!("multipart/related; boundary={boundary}"), body);
        let object: Object = match self.line.send(&call).await {
            Ok(answer) => parsed(&answer)?,
            Err(failure) => {
                let is_ours = |object: &Object| {
                    token.as_ref().is_some_and(|(key, token)| object.metadata.get(key) == Some(token))
                };
                self.settle(name, failure, is_ours).await?
            }
        };
        self.compared(object, sum)
    }

    /// The object, if the service stored the bytes that were sent.
    pub(super) fn compared(&self, object: Object, sum: Crc32c) -> Result<Object, Error> {
        match object.crc32c.filter(|found| *found != sum) {
            None => Ok(object),
            Some(found) => {
                Err(Error::Damaged { name: format!("{}/{}", self.name(), object.name), expected: sum, found })
            }
        }
    }
}

//! JSON bodies of requests, and replies with JSON.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::limits::JSON_BODY_BYTES_MAX;
use rangehold_protocol::object::merge::body_object;
use serde_json::{Map, Value};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::reply::Reply;

impl ObjectService {
    /// The body of a request as a JSON object. An empty body is an object without members.
    pub(super) async fn body_object(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Result<Map<String, Value>, Failure> {
        Ok(body_object(&self.whole_body(exchange, body, JSON_BODY_BYTES_MAX).await?)?)
    }

    /// All of a body, decompressed if its client compressed it.
    pub(super) async fn whole_body(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
        bytes_max: usize,
    ) -> Result<Bytes, Failure> {
        let bytes = self.sent_body(exchange, body, bytes_max).await?;
        // A client may say how it would compress a body, and send none.
        if bytes.is_empty() || !exchange.is_packed() {
            return Ok(bytes);
        }
        let mut decoded = Vec::new();
        let mut decoder = MultiGzDecoder::new(&*bytes).take(bytes_max as u64 + 1);
        let read = decoder.read_to_end(&mut decoded);
        read.map_err(|error| {
            ObjectError::new(ErrorKind::ParseError, format!("The body cannot be decompressed: {error}."))
        })?;
        if decoded.len() > bytes_max {
            let message = format!("The body has more than {bytes_max} bytes when it is decompressed.");
            return Err(ObjectError::new(ErrorKind::TooLarge, message).into());
        }
        Ok(decoded.into())
    }

    /// All of a body, as it was sent.
    pub(super) async fn sent_body(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
        bytes_max: usize,
    ) -> Result<Bytes, Failure> {
        match body {
            RequestBody::Whole(bytes) if bytes.len() > bytes_max => {
                let message = format!("The body has more than {bytes_max} bytes.");
                Err(ObjectError::new(ErrorKind::TooLarge, message).into())
            }
            RequestBody::Whole(bytes) => Ok(std::mem::take(bytes)),
            RequestBody::Incoming { incoming, .. } => {
                Ok(self.bodies.read(incoming, bytes_max, exchange.tenant, exchange.deadline()).await?.bytes)
            }
        }
    }
}

/// A resource, with the members that the client wants.
pub(super) fn resource(exchange: &Exchange<'_>, mut value: Value) -> Result<Reply, Failure> {
    exchange.fields()?.apply(&mut value);
    Ok(Reply::json(200, value.to_string()))
}

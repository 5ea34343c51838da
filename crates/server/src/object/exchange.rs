//! A request as its handler sees it, and its parameters.

use std::borrow::Cow;

use bytes::Bytes;
use http::Version;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use hyper::body::Incoming;
use rangehold_map::Timestamp;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::fields::Fields;
use rangehold_protocol::object::request::{Api, Query};
use rangehold_protocol::object::signed::{ChunkSigner, Dialect};
use tokio::time::Instant;

use super::access::Principal;
use super::finish::Speaks;
use crate::body::Packed;
use crate::fair::Tenant;
use crate::limits;
use crate::listener::OpenRequest;

/// How headers of Amazon S3 begin.
const AMAZON_PREFIX: &str = "x-amz-";

/// A request, without its body.
pub(crate) struct Exchange<'a> {
    /// Method, URI and headers as they came.
    pub(crate) head: &'a Parts,
    /// Told of each piece of a body that passes.
    pub(crate) open: &'a OpenRequest,
    /// The address of the server as the client knows it, without a slash at its end: `http://127.0.0.1:4443`.
    pub(crate) base: String,
    /// The bucket that stands in front of the host's name.
    pub(crate) bucket_in_host: Option<String>,
    /// The API that it belongs to.
    pub(crate) api: Api,
    /// Whose words its headers have.
    pub(crate) dialect: Dialect,
    /// Decoded query parameters.
    pub(crate) query: Query,
    /// The id of the request, which is new.
    pub(crate) id: &'a str,
    /// The time of the wall clock when the request came.
    pub(crate) now: Timestamp,
    /// The sender.
    pub(crate) principal: Principal,
    /// What checks the chunks of the body, if they are signed.
    pub(crate) chunks: Option<ChunkSigner>,
    /// Members of a patch that take the place of older ones as wholes; a mask of gRPC says so.
    pub(crate) whole: &'a [String],
    /// In whose name it shares what requests share.
    pub(crate) tenant: Tenant,
}

/// The body of a request.
pub(crate) enum RequestBody {
    /// It comes from the connection. What came beyond the last piece is in `rest`. Its pieces are decompressed if it is
    /// `packed`.
    Incoming { incoming: Incoming, rest: Bytes, packed: Option<Packed> },
    /// It is here, as that of a call in a batch.
    Whole(Bytes),
}

impl RequestBody {
    /// A body of which nothing was read.
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self::Incoming { incoming, rest: Bytes::new(), packed: None }
    }

    /// From now on the body comes out decompressed, if its client compressed it.
    pub(crate) fn unpack(&mut self, exchange: &Exchange<'_>) {
        if let Self::Incoming { packed, .. } = self
            && exchange.is_packed()
        {
            packed.get_or_insert_default();
        }
    }

    /// Whether it is decompressed on its way in. Then its declared length says nothing of the bytes that come out.
    pub(crate) fn is_unpacked(&self) -> bool {
        matches!(self, Self::Incoming { packed: Some(_), .. })
    }

    /// Whether it was found to be other than its client compressed, so that nothing of it can be trusted.
    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self, Self::Incoming { packed: Some(packed), .. } if packed.is_damaged())
    }
}

impl Exchange<'_> {
    /// The first value of a header, if it is text. A client of Amazon S3 writes `x-amz-` in the place of `x-goog-`.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = text(&self.head.headers, name);
        match (self.dialect, name.strip_prefix("x-goog-")) {
            (Dialect::Amazon, Some(rest)) => {
                found.or_else(|| text(&self.head.headers, &format!("{AMAZON_PREFIX}{rest}")))
            }
            _ => found,
        }
    }

    /// The names and values of the headers that are text, with `x-goog-` in the place of Amazon's prefix.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
        let is_amazon = self.dialect == Dialect::Amazon;
        self.head.headers.iter().filter_map(move |(name, value)| {
            let name = match name.as_str().strip_prefix(AMAZON_PREFIX) {
                Some(rest) if is_amazon => Cow::from(format!("x-goog-{rest}")),
                _ => Cow::from(name.as_str()),
            };
            Some((name, text_of(value)?))
        })
    }

    /// Whether it asks for the bytes of an object, and not for what is known of them.
    pub(crate) fn is_media(&self) -> bool {
        self.query.get("alt") == Some("media")
    }

    /// In which form errors are told to the sender.
    pub(super) fn speaks(&self) -> Speaks {
        Speaks::of(self.api, self.is_media())
    }

    /// Whether the client compressed the body: Java's does. In the XML API this header is of the object.
    pub(crate) fn is_packed(&self) -> bool {
        self.header("content-encoding").is_some_and(|coding| coding.trim().eq_ignore_ascii_case("gzip"))
    }

    /// A parameter of the query; an empty one counts as absent.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).filter(|value| !value.is_empty())
    }

    /// The generation that is asked for; a client of Amazon S3 calls it a version.
    pub(crate) fn generation(&self) -> Result<Option<u64>, ObjectError> {
        match (self.query.number("generation")?, self.dialect) {
            (None, Dialect::Amazon) if self.parameter("versionId") != Some("null") => {
                self.query.number("versionId")
            }
            (generation, _) => Ok(generation),
        }
    }

    /// The conditions on what is read or changed.
    pub(crate) fn conditions(&self) -> Result<Conditions, ObjectError> {
        self.query.conditions(self.header("if-match"), self.header("if-none-match"))
    }

    /// The members that the reply has.
    pub(crate) fn fields(&self) -> Result<Fields, ObjectError> {
        self.parameter("fields").map_or(Ok(Fields::All), Fields::parse)
    }

    /// The entity that owns what this request writes.
    pub(crate) fn owner(&self, bucket: &Bucket) -> String {
        match &self.principal.email {
            Some(email) => format!("user-{email}"),
            None => bucket.owner(),
        }
    }

    /// Until when an operation that is begun now must be answered.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + limits::REQUEST_WITHIN
    }
}

/// A header's first value, if it is text.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(text_of)
}

/// A header's value, if it is text. Users write their metadata and the names of objects in UTF-8.
pub(crate) fn text_of(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok()
}

/// Refuses a request with a header that is not text. Such a header would count as absent, be it a condition or the user's
/// metadata.
pub(super) fn check_texts(headers: &HeaderMap) -> Result<(), ObjectError> {
    match headers.iter().find(|(_, value)| text_of(value).is_none()) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("The value of the header '{name}' is not UTF-8.");
            Err(ObjectError::new(ErrorKind::Invalid, message).at(name.as_str()))
        }
    }
}

/// Refuses a body of HTTP/1 whose length is not said. The connection reads no byte of such a body, so an object would become
/// empty.
pub(super) fn check_length(exchange: &Exchange<'_>) -> Result<(), ObjectError> {
    let headers = &exchange.head.headers;
    let is_said = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if is_said || exchange.head.version > Version::HTTP_11 {
        return Ok(());
    }
    let message =
        "The request has no Content-Length. Send it, or send the body with 'Transfer-Encoding: chunked'.";
    Err(ObjectError::new(ErrorKind::LengthRequired, message))
}

//! Replies: what a handler returns, and how it becomes bytes.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use tokio::sync::OwnedSemaphorePermit;

use crate::listener::OpenRequest;

/// What a reply holds until its client has read it.
pub(crate) struct Sending {
    pub(crate) _open: OpenRequest,
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

struct SentBody {
    bytes: Vec<u8>,
    _sending: Sending,
}

impl AsRef<[u8]> for SentBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A reply in the making: of a request of its own, or of one part of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// HTTP status.
    pub(crate) status: u16,
    /// Headers in the order in which a part of a batch shows them.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body; empty for none.
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A reply without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// A reply with a body of the given type.
    pub(crate) fn with_body(status: u16, content_type: impl Into<String>, body: Vec<u8>) -> Self {
        Self { status, headers: vec![("Content-Type", content_type.into())], body }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    /// As [`Reply::header`], in place.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.headers.push((name, value.into()));
    }

    /// The reply as hyper sends it. A header value that cannot stand in a header is left out; all
    /// come from our own encoders, which write visible ASCII, or were headers before.
    ///
    /// `sending` is dropped when the last byte has left.
    pub(crate) fn into_response(self, sending: Sending) -> Response<Full<Bytes>> {
        let body = Bytes::from_owner(SentBody { bytes: self.body, _sending: sending });
        let mut response = Response::new(Full::new(body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).expect("statuses are written in this program");
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

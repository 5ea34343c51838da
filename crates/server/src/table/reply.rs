//! Replies: what a handler returns, and how it becomes bytes.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

use crate::listener::OpenRequest;
use crate::room::Place;

/// The resources that a reply holds until its client has read it.
pub(crate) struct Sending {
    pub(crate) _open: OpenRequest,
    pub(crate) _place: Option<Place>,
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

/// A reply while it is built: to a single request, or to one part of a batch.
#[derive(Debug)]
pub(crate) struct Reply {
    /// HTTP status.
    pub(crate) status: u16,
    /// Headers in the order in which a part of a batch shows them.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body. An empty one is not sent.
    pub(crate) body: Vec<u8>,
    /// The room that a page took while it was built.
    pub(crate) place: Option<Place>,
}

impl Reply {
    /// A reply without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), place: None }
    }

    /// A reply with a body of the given type.
    pub(crate) fn with_body(status: u16, content_type: impl Into<String>, body: Vec<u8>) -> Self {
        Self { status, headers: vec![("Content-Type", content_type.into())], body, place: None }
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

    /// The reply as hyper sends it. A value that is not allowed in a header is left out. There should be none: all
    /// values come from our own encoders, which write visible ASCII, or from headers.
    ///
    /// `sending` is dropped when the last byte was sent.
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

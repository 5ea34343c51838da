//! Replies: what a handler returns, and how it becomes bytes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};

use crate::listener::OpenRequest;
use crate::room::Place;

/// Bytes of a payload as they are read. An error breaks the connection off, so that the client sees that its download
/// is not complete.
pub(crate) type Pieces = BoxStream<'static, std::io::Result<Bytes>>;

/// Bytes and trailers as they are made.
pub(crate) type Frames = BoxStream<'static, std::io::Result<Frame<Bytes>>>;

/// The body of a reply.
pub(crate) enum Content {
    /// It is here.
    Whole(Bytes),
    /// So many bytes, which are read while they are sent.
    Stream(u64, Pieces),
    /// Bytes of an unknown number.
    Unmeasured(Pieces),
    /// Messages of gRPC, and at their end the trailers.
    Frames(Frames),
}

/// A reply while it is built: to a request, or to a part of a batch.
pub(crate) struct Reply {
    /// HTTP status.
    pub(crate) status: u16,
    /// Headers, in the order in which they are sent.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Headers whose names the users choose: the metadata of an object.
    pub(crate) named: Vec<(String, String)>,
    /// The body.
    pub(crate) content: Content,
}

impl Reply {
    /// A reply without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), named: Vec::new(), content: Content::Whole(Bytes::new()) }
    }

    /// A reply with a body of the given type.
    pub(crate) fn with_body(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut reply = Self::empty(status).header("Content-Type", content_type);
        reply.content = Content::Whole(body.into());
        reply
    }

    /// A reply with JSON.
    pub(crate) fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::with_body(status, "application/json; charset=UTF-8", body)
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

    /// The first value of a header that was set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The reply as it is sent. `open` and `place`, the room of a large body, end when the last byte was sent. Metadata that
    /// cannot be written in a header, as it has line breaks, is left out.
    pub(super) fn into_response(self, open: OpenRequest, place: Option<Place>) -> Response<SentBody> {
        let mut response = Response::new(SentBody { content: self.content, open, _place: place });
        *response.status_mut() =
            StatusCode::from_u16(self.status).expect("statuses are written in this program");
        let headers = self.headers.into_iter().map(|(name, value)| (name.to_owned(), value));
        for (name, value) in headers.chain(self.named) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes()))
            {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// The body of a reply while it is sent.
pub struct SentBody {
    content: Content,
    open: OpenRequest,
    _place: Option<Place>,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        self.open.progressed();
        let piece = match &mut self.content {
            Content::Whole(bytes) if bytes.is_empty() => None,
            Content::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Stream(_, pieces) | Content::Unmeasured(pieces) => {
                ready!(pieces.as_mut().poll_next(context))
            }
            Content::Frames(frames) => return frames.as_mut().poll_next(context),
        };
        if let (Some(Ok(piece)), Content::Stream(left, _)) = (&piece, &mut self.content) {
            *left = left.saturating_sub(piece.len() as u64);
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Stream(left, _) => *left == 0,
            Content::Unmeasured(_) | Content::Frames(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(left, _) => SizeHint::with_exact(*left),
            Content::Unmeasured(_) | Content::Frames(_) => SizeHint::default(),
        }
    }
}

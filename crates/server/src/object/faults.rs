//! How the faults of retry tests are carried out.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::error::{ObjectError, Particular};
use rangehold_protocol::object::grpc::status::kind_of_status;
use rangehold_protocol::object::request::Api;
use rangehold_protocol::object::xml;
use serde_json::json;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::payload::Receiver;
use super::reply::{Content, Pieces, Reply};
use super::retry_tests::{Fault, Transport, UPLOAD};

/// Whether a request has met a fault at the bytes that it brings. It meets at most one: the next one is left for the
/// request with which its client tries again.
#[derive(Default)]
pub(super) struct FaultMet(bool);

impl ObjectService {
    /// The id of the retry test that a request belongs to.
    fn test_of<'e>(&self, exchange: &'e Exchange<'_>) -> Option<&'e str> {
        if !self.options.retry_tests {
            return None;
        }
        exchange.header("x-retry-test-id")
    }

    /// Whether a request belongs to a retry test that exists.
    fn is_in_retry_test(&self, exchange: &Exchange<'_>) -> bool {
        self.test_of(exchange).is_some_and(|id| self.retry_tests.has(id))
    }

    /// The fault that a retry test orders for this request. `bytes` are those of an object that an upload is about to
    /// store, counted from the object's beginning.
    pub(super) fn ordered_fault(
        &self,
        exchange: &Exchange<'_>,
        operation: &str,
        bytes: Option<&Range<u64>>,
    ) -> Option<Fault> {
        let id = self.test_of(exchange)?;
        // Only calls of gRPC say how they came.
        let transport = exchange.head.extensions.get::<Transport>().copied().unwrap_or(Transport::Http);
        self.retry_tests.take(id, transport, operation, bytes)
    }

    /// Meets the fault that a retry test orders for `bytes` of an object, which an upload is about to store. It stands still
    /// here, or the upload has to end with the status that is returned, with so many bytes of the object stored.
    pub(super) async fn fault_at(
        &self,
        exchange: &Exchange<'_>,
        met: &mut FaultMet,
        bytes: Range<u64>,
    ) -> Option<(u16, u64)> {
        if met.0 {
            return None;
        }
        let fault = self.ordered_fault(exchange, UPLOAD, Some(&bytes))?;
        met.0 = true;
        match fault {
            Fault::StatusAfter(status, after) => Some((status, after)),
            Fault::Stall(stall, _) => {
                tokio::time::sleep(stall).await;
                None
            }
            // These are met by the reply.
            _ => None,
        }
    }

    /// Takes bytes of an object that comes in one request, and meets the fault that a retry test orders for them.
    pub(super) async fn take_bytes(
        &self,
        exchange: &Exchange<'_>,
        met: &mut FaultMet,
        receiver: &mut Receiver,
        bytes: Bytes,
    ) -> Result<(), Failure> {
        let have = receiver.bytes();
        match self.fault_at(exchange, met, have..have + bytes.len() as u64).await {
            Some((status, _)) => Err(ordered_failure(status)),
            None => receiver.take(bytes).await,
        }
    }

    /// The bucket of the objects that a request is about. In a retry test its retention policy protects none of them: Node's client
    /// sets one of ten minutes on the bucket of every test, and then replaces and deletes objects there. Google's testbench does
    /// not enforce it.
    pub(super) async fn bucket_for(&self, exchange: &Exchange<'_>, name: &str) -> Result<Bucket, Failure> {
        let mut bucket = self.bucket(name).await?;
        bucket.ignores_retention = self.is_in_retry_test(exchange);
        Ok(bucket)
    }

    /// Locks the retention policy of a bucket. Google's clients test how they repeat this call with a bucket that has no policy,
    /// and expect that it succeeds, as in Google's testbench. In a retry test such a lock changes nothing.
    pub(super) async fn lock_in_test(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        if self.is_in_retry_test(exchange) && self.bucket(name).await?.settings.retention_policy.is_none() {
            exchange.query.required("ifMetagenerationMatch")?;
            return self.get_bucket(exchange, name).await;
        }
        self.lock_retention(exchange, name).await
    }

    /// Does the work of an operation, or carries a fault out in its place or around it.
    pub(super) async fn under_fault(
        &self,
        exchange: &Exchange<'_>,
        operation: &str,
        work: impl Future<Output = Result<Reply, Failure>>,
    ) -> Result<Reply, Failure> {
        let told = |failure| told_as_ordered(failure, exchange.api);
        let ordered = self.ordered_fault(exchange, operation, None);
        match ordered.or_else(|| self.own_fault(exchange, operation)) {
            None => work.await.or_else(told),
            Some(fault) if fault.is_early() => Ok(fault.spoil(Reply::empty(200), exchange.api)),
            // A client waits for the head first, so the head is late.
            Some(Fault::Stall(stall, 0)) => {
                let done = work.await.or_else(told);
                tokio::time::sleep(stall).await;
                done
            }
            Some(fault) => work.await.or_else(told).map(|reply| fault.spoil(reply, exchange.api)),
        }
    }
}

impl Fault {
    /// Makes the reply to a request go wrong.
    pub(super) fn spoil(self, mut reply: Reply, api: Api) -> Reply {
        match self {
            Self::Status(status) | Self::StatusAfter(status, _) => ordered_error(status, api),
            Self::Reset => reset(),
            Self::BrokenBeyond(after) if length(&reply.content).is_none_or(|length| length <= after) => reply,
            Self::BrokenStream(after) | Self::BrokenBeyond(after) => {
                reply.content = cut(reply.content, after);
                reply
            }
            Self::Corrupted => {
                reply.content = corrupted(reply.content);
                reply
            }
            Self::Stall(stall, after) => {
                reply.content = stalled(reply.content, stall, after);
                reply
            }
        }
    }

    /// Whether it happens before anything is done.
    pub(super) fn is_early(self) -> bool {
        matches!(self, Self::Status(_) | Self::Reset)
    }
}

/// The reply with an ordered status.
pub(super) fn ordered_error(status: u16, api: Api) -> Reply {
    let message = "A retry test ordered this error.";
    if api == Api::Xml {
        let body = xml::error::document("ServiceUnavailable", message);
        return Reply::with_body(status, "application/xml; charset=UTF-8", body);
    }
    let detail = json!({ "message": message, "domain": "global", "reason": "backendError" });
    let body = json!({ "error": { "code": status, "message": message, "errors": [detail] } });
    Reply::json(status, body.to_string())
}

/// The refusal with an ordered status, where there is no reply to put it in.
pub(super) fn ordered_failure(status: u16) -> Failure {
    let message = format!("A retry test ordered the error {status}.");
    Failure(ObjectError::new(kind_of_status(status), message).with(Particular::Ordered(status)))
}

/// The reply for a failure. One that a retry test ordered has exactly the ordered status, such as 502, which no refusal of this
/// server has.
pub(super) fn told_as_ordered(failure: Failure, api: Api) -> Result<Reply, Failure> {
    match failure.0.particular {
        Some(Particular::Ordered(status)) => Ok(ordered_error(status, api)),
        _ => Err(failure),
    }
}

/// A reply of which nothing is sent: the connection ends.
fn reset() -> Reply {
    let mut reply = Reply::empty(200);
    reply.content = Content::Stream(1, stream::iter([Err(broken())]).boxed());
    reply
}

/// The body, which breaks off after so many bytes.
fn cut(content: Content, after: u64) -> Content {
    let (length, pieces) = streamed(content);
    let cut = pieces.scan(Some(after), |left, piece| {
        let next = match (left.take(), piece) {
            (None, _) => None,
            (Some(0), _) => Some(Err(broken())),
            (Some(more), Ok(piece)) => {
                let sent = piece.len().min(usize::try_from(more).unwrap_or(usize::MAX));
                *left = Some(more - sent as u64);
                Some(Ok(piece.slice(..sent)))
            }
            (Some(_), error) => Some(error),
        };
        std::future::ready(next)
    });
    // A body that is shorter breaks off at its end.
    let cut = cut.chain(stream::iter([Err(broken())])).boxed();
    match length {
        Some(length) => Content::Stream(length, cut),
        None => Content::Unmeasured(cut),
    }
}

/// The body with another first byte.
fn corrupted(content: Content) -> Content {
    let (length, pieces) = streamed(content);
    let corrupted = pieces.scan(true, |is_first, piece| {
        let spoils = piece.as_ref().is_ok_and(|piece| !piece.is_empty()) && std::mem::take(is_first);
        let piece = if spoils { piece.map(|piece| with_other_first(&piece)) } else { piece };
        std::future::ready(Some(piece))
    });
    match length {
        Some(length) => Content::Stream(length, corrupted.boxed()),
        None => Content::Unmeasured(corrupted.boxed()),
    }
}

fn with_other_first(piece: &[u8]) -> Bytes {
    let mut piece = piece.to_vec();
    if let Some(first) = piece.first_mut() {
        *first = if *first == b'A' { b'B' } else { b'A' };
    }
    piece.into()
}

/// The body, which stands still once, after so many bytes.
fn stalled(content: Content, stall: Duration, after: u64) -> Content {
    let (length, pieces) = streamed(content);
    let stalled = pieces.scan((0, false), move |(sent, has_stalled), piece| {
        *sent += piece.as_ref().map_or(0, |piece: &Bytes| piece.len() as u64);
        let stalls = *sent >= after && !std::mem::replace(has_stalled, *sent >= after);
        async move {
            if stalls {
                tokio::time::sleep(stall).await;
            }
            Some(piece)
        }
    });
    match length {
        Some(length) => Content::Stream(length, stalled.boxed()),
        None => Content::Unmeasured(stalled.boxed()),
    }
}

/// The length of a body, if that is known.
fn length(content: &Content) -> Option<u64> {
    match content {
        Content::Whole(bytes) => Some(bytes.len() as u64),
        Content::Stream(length, _) => Some(*length),
        Content::Unmeasured(_) | Content::Frames(_) => None,
    }
}

/// The pieces of a body, and its length if that is known.
fn streamed(content: Content) -> (Option<u64>, Pieces) {
    let length = length(&content);
    match content {
        Content::Whole(bytes) => (length, stream::iter([Ok(bytes)]).boxed()),
        Content::Stream(_, pieces) | Content::Unmeasured(pieces) => (length, pieces),
        Content::Frames(_) => unreachable!("faults are carried out in the work of a call, not in its reply"),
    }
}

fn broken() -> std::io::Error {
    std::io::Error::other("a retry test ordered that the connection breaks")
}

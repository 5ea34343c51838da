//! The bytes of objects that come and go, as the bandwidth of their project in their location counts them.
//!
//! Each piece is charged when it has come, or when the connection takes it. So what is announced and never sent costs nothing,
//! whatever form the bytes have: a body, a chunk of a session, a part, messages of gRPC. What is written about
//! objects, such as metadata, listings and errors, is not counted.
//!
//! A transfer that goes on is never broken off, and takes all the bandwidth that it can get. The budget goes into debt
//! by it, and requests for objects that come later are refused until the debt is paid (`rates`).

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::Method;
use rangehold_engine::Clock;
use rangehold_protocol::object::bucket::Bucket;

use super::ObjectService;
use super::exchange::Exchange;
use super::reply::{Content, Pieces};
use crate::admission::Admission;

/// Charges bytes to a project in a location. The default charges nothing.
#[derive(Clone, Default)]
pub(crate) struct Meter(Option<Metered>);

#[derive(Clone)]
struct Metered {
    admission: Arc<Admission>,
    clock: Clock,
    scope: u64,
}

impl ObjectService {
    /// The meter of a bucket's objects.
    pub(super) fn meter(&self, bucket: &Bucket) -> Meter {
        let counts = self.admission.object_rates().is_some_and(|rates| rates.counts_bytes());
        Meter(counts.then(|| Metered {
            admission: Arc::clone(&self.admission),
            clock: self.clock.clone(),
            scope: self.scope_of(bucket),
        }))
    }

    /// The meter of what a reply has of a bucket's objects. A `HEAD` gets none of it.
    pub(super) fn meter_of_reply(&self, exchange: &Exchange<'_>, bucket: &Bucket) -> Meter {
        if exchange.head.method == Method::HEAD { Meter::default() } else { self.meter(bucket) }
    }

    /// A project in a location, as a hash.
    pub(super) fn scope_of(&self, bucket: &Bucket) -> u64 {
        self.admission.hash((&bucket.project, &bucket.settings.location))
    }
}

impl Meter {
    /// So many bytes have come or gone.
    pub(crate) fn charge(&self, bytes: usize) {
        let Some(Metered { admission, clock, scope }) = &self.0 else { return };
        if let Some(rates) = admission.object_rates() {
            rates.charge_bytes(*scope, bytes as u64, clock.now());
        }
    }

    /// The same content, whose bytes are charged while they leave.
    pub(super) fn over(self, content: Content) -> Content {
        match content {
            content if self.0.is_none() => content,
            Content::Whole(bytes) => {
                self.charge(bytes.len());
                Content::Whole(bytes)
            }
            Content::Stream(length, pieces) => Content::Stream(length, self.over_pieces(pieces)),
            Content::Unmeasured(pieces) => Content::Unmeasured(self.over_pieces(pieces)),
            Content::Frames(frames) => Content::Frames(frames),
        }
    }

    fn over_pieces(self, pieces: Pieces) -> Pieces {
        pieces.inspect(move |piece| self.charge(piece.as_ref().map_or(0, Bytes::len))).boxed()
    }
}

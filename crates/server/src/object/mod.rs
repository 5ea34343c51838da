//! The front end for objects, as Google Cloud Storage offers them: from a request to a reply.
//!
//! ```text
//!   request -> host (is it ours? which bucket?) -> access (who) -> handler -> headers, metrics
//! ```

mod access;
mod hosts;
mod keys;
mod reply;

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use rangehold_engine::{Clock, Router};
use serde_json::json;
use tokio::time::Instant;
use tracing::debug;

pub use self::access::Access;
pub use self::hosts::Hosts;
pub use self::keys::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN, HmacKey, KeysError, ObjectKeys};
use self::reply::Reply;
pub use self::reply::SentBody;
use crate::body::drain;
use crate::listener::Connection;
use crate::metrics::Metrics;
use crate::request_ids::RequestIds;

/// The object service of one process.
pub struct ObjectService {
    #[expect(dead_code, reason = "no operation is served yet")]
    router: Router,
    clock: Clock,
    ids: RequestIds,
    options: Options,
    metrics: Arc<Metrics>,
}

/// The options of an object service.
pub struct Options {
    /// Seed of request ids, and of everything else that is random.
    pub seed: u64,
    /// Memory of the process in bytes. Uploads and downloads may take fixed shares of it.
    pub memory_bytes: u64,
    /// Which requests are believed.
    pub access: Access,
    /// The accounts that are known.
    pub keys: ObjectKeys,
    /// The names of this server.
    pub hosts: Hosts,
    /// Whether clients may ask for errors at `/retry_test`.
    pub retry_tests: bool,
}

/// What is known about a request before it is read.
struct Arrival {
    id: String,
    begun: Instant,
}

impl ObjectService {
    /// A service over the ranges that `router` finds.
    pub fn new(router: Router, clock: Clock, options: Options, metrics: Arc<Metrics>) -> Self {
        Self { router, clock, ids: RequestIds::new(options.seed), options, metrics }
    }

    /// Answers one request. It never fails: an error is a reply too.
    pub async fn handle(&self, connection: Connection, request: Request<Incoming>) -> Response<SentBody> {
        let (head, body) = request.into_parts();
        let open = connection.open_request();
        let arrival = Arrival { id: self.ids.next(), begun: Instant::now() };
        let _under_way = self.metrics.begin();
        let reply = self.answer(&head).header("X-GUploader-UploadID", arrival.id.as_str());
        // A client that sent `Expect` waits for permission to send its body. To read the body here would give that
        // permission.
        if !head.headers.contains_key(http::header::EXPECT) {
            drain(body).await;
        }
        let elapsed = arrival.begun.elapsed();
        self.metrics.finish("Unknown", reply.status, elapsed);
        debug!(
            request_id = arrival.id, method = %head.method, path = head.uri.path(), status = reply.status,
            elapsed_us = elapsed.as_micros() as u64, "request"
        );
        reply.into_response(open)
    }

    fn answer(&self, head: &Parts) -> Reply {
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let host = head.uri.authority().map(|authority| authority.as_str()).or_else(|| text("host"));
        if host.and_then(|host| self.options.hosts.bucket_of(host)).is_none() {
            return refusal(400, "invalid", "the host of the request is not a name of this server");
        }
        let keys = &self.options.keys;
        if self.options.access.principal(text("authorization"), keys, self.clock.wall()).is_err() {
            return refusal(401, "authError", "Invalid Credentials");
        }
        refusal(501, "notImplemented", "this operation is not served")
    }
}

fn refusal(status: u16, reason: &str, message: &str) -> Reply {
    let body = json!({"error": {"code": status, "message": message,
        "errors": [{"message": message, "domain": "global", "reason": reason}]}});
    Reply::json(status, body.to_string())
}

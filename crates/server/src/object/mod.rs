//! The front end for objects, as Google Cloud Storage offers them: from a request to a reply.
//!
//! ```text
//!   request -> host (is it ours? which bucket?) -> access (who) -> route (what)
//!           -> permit, read body, act on the partition server -> reply -> headers, CORS, metrics
//! ```
//!
//! Handlers are in one file for each noun, and return a `Reply` or a `Failure`. `finish` alone turns either into a
//! response, so every reply has the same headers and every error the same body.

mod access;
mod acl;
mod ageing;
mod batch;
mod bucket_end;
mod buckets;
mod bulk_restore;
mod byte_range;
mod changes;
mod compose;
mod cors;
mod encryption;
mod exchange;
mod failure;
mod faults;
mod finish;
mod folder_changes;
mod folder_contents;
mod folders;
mod grants;
mod grpc;
mod gunzip;
mod hmac_keys;
mod hosts;
mod iam;
mod insert;
mod instructions;
mod json;
mod keys;
mod list;
mod located;
mod managed_folders;
mod media;
mod meter;
mod notifications;
mod objects;
mod operations;
mod payload;
mod perform;
mod permission;
mod rates;
mod reply;
mod retry_tests;
mod rows;
mod settle;
mod several;
mod transfer;
mod tree_page;
mod tree_walk;
mod upkeep;
mod upload;
mod xml;

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::Mutex;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rangehold_engine::blob::Blobs;
use rangehold_engine::{Clock, NamesHook, Node, Router};
use rangehold_map::Timestamp;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::request::{Api, Query, api_of, parse};
use rangehold_protocol::object::signed::{Claim, Dialect};
use tokio::time::Instant;
use tracing::debug;

pub use self::access::Access;
use self::access::Principal;
use self::changes::Changes;
use self::exchange::{Exchange, RequestBody, check_texts, text};
use self::failure::Failure;
use self::finish::Speaks;
pub use self::hosts::Hosts;
pub use self::keys::{
    DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN, HmacKey, KeysError, ObjectKeys, SharedObjectKeys,
};
pub(crate) use self::rates::NotShown;
pub use self::reply::SentBody;
use self::reply::{Content, Reply};
use self::retry_tests::RetryTests;
use self::xml::XmlApi;
use self::xml::signature::claim_of;
use crate::admission::Admission;
use crate::body::{Bodies, drain};
use crate::fair::Tenant;
use crate::limits;
use crate::listener::{Connection, OpenRequest};
use crate::metrics::Metrics;
use crate::request_ids::RequestIds;
use crate::room::{Place, Room};
use crate::table::{Shared, TableService};
use crate::turns::Turns;

/// The object service of one process.
pub struct ObjectService {
    router: Router,
    blobs: Blobs,
    clock: Clock,
    ids: RequestIds,
    options: Options,
    bodies: Bodies,
    replies: Room,
    /// Turns at the processor for listings.
    turns: Turns,
    admission: Arc<Admission>,
    retry_tests: RetryTests,
    /// Held while a bucket is deleted, so that nobody opens it meanwhile. A step that goes on after its request keeps it.
    ending: Arc<tokio::sync::Mutex<()>>,
    /// Told when an operation was begun that goes on after its request.
    jobs: tokio::sync::Notify,
    /// The changes of several names that this process is making.
    changes: Changes,
    names_hook: NamesHook,
    /// Makes the secrets of HMAC keys.
    secrets: Mutex<StdRng>,
    metrics: Arc<Metrics>,
}

/// The options of an object service.
pub struct Options {
    /// Seed of request ids, and of everything else that is random.
    pub seed: u64,
    /// Seed of the secrets of HMAC keys, which nobody may guess.
    pub secret_seed: [u8; 32],
    /// Which requests are believed.
    pub access: Access,
    /// The accounts that are known.
    pub keys: SharedObjectKeys,
    /// The names of this server.
    pub hosts: Hosts,
    /// Whether clients may ask for errors at `/retry_test`.
    pub retry_tests: bool,
    /// How long a page of a listing looks for names before it ends with a token.
    pub page_within: Duration,
    /// The time between two walks over the buckets, which carry out lifecycle rules and remove rows whose life is over.
    pub ageing_every: Duration,
    /// The time between the start and the first audit of blobs, which looks for files that nobody uses.
    pub audit_after_start: Duration,
    /// The time between two audits.
    pub audit_every: Duration,
}

/// What is known about a request before it is read.
struct Arrival {
    id: String,
    /// The time of the wall clock.
    now: Timestamp,
    begun: Instant,
}

/// The result of a request.
struct Outcome {
    /// Its name in the metrics: the operation, or one of the constants below if the operation is not known.
    operation: &'static str,
    speaks: Speaks,
    result: Result<Reply, Failure>,
}

const UNKNOWN: &str = "storage.unknown";
const UNAUTHENTICATED: &str = "storage.unauthenticated";
const PREFLIGHT: &str = "storage.preflight";
const BATCH: &str = "storage.batch";
const RETRY_TEST: &str = "storage.retryTest";

impl ObjectService {
    /// A service over the ranges and blobs of `node`. Its requests share room and turns with those of `tables`, so that
    /// both together stay within the memory and the processors of the process.
    pub fn new(
        node: &Node,
        clock: Clock,
        options: Options,
        tables: &TableService,
        metrics: Arc<Metrics>,
    ) -> Self {
        let Shared { bodies, replies, turns, admission } = tables.shared();
        let ids = RequestIds::new(options.seed);
        let retry_tests = RetryTests::default();
        let secrets = Mutex::new(StdRng::from_seed(options.secret_seed));
        let (router, blobs) = (node.router().clone(), node.blobs().clone());
        Self {
            router,
            blobs,
            clock,
            ids,
            options,
            bodies,
            replies,
            turns,
            admission,
            retry_tests,
            ending: Arc::default(),
            jobs: tokio::sync::Notify::new(),
            changes: Changes::default(),
            names_hook: node.names_hook().clone(),
            secrets,
            metrics,
        }
    }

    /// Answers one request. It never fails: an error is a reply too.
    pub async fn handle(
        self: &Arc<Self>,
        connection: Connection,
        request: Request<Incoming>,
    ) -> Response<SentBody> {
        if grpc::is_call(request.headers()) {
            return Box::pin(grpc::called(self, connection, request)).await;
        }
        let (head, body) = request.into_parts();
        let mut body = RequestBody::new(body);
        let open = connection.open_request();
        let arrival = Arrival { id: self.ids.next(), now: self.clock.wall(), begun: Instant::now() };
        let _under_way = self.metrics.begin();
        let (exchange, mut outcome) = match self.read(&connection, &head, &open, &arrival).await {
            Ok(exchange) => {
                let outcome = self.answer(&exchange, &mut body).await;
                (Some(exchange), outcome)
            }
            Err(outcome) => (None, outcome),
        };
        let operation = outcome.operation;
        let place = match &exchange {
            Some(exchange) => self.place_for(exchange, &mut outcome).await,
            None => None,
        };
        let mut reply = finish::finish(&arrival, outcome);
        if let Some(exchange) = exchange.as_ref().filter(|_| operation != PREFLIGHT) {
            self.add_cors(exchange, &mut reply).await;
        }
        // A client that sent `Expect` waits for permission to send its body. To read the body here would give that
        // permission.
        if let RequestBody::Incoming { incoming, .. } = body
            && !head.headers.contains_key(http::header::EXPECT)
        {
            drain(incoming).await;
        }
        let elapsed = arrival.begun.elapsed();
        self.metrics.finish(operation, reply.status, elapsed);
        debug!(
            request_id = arrival.id, operation, method = %head.method, path = head.uri.path(), status = reply.status,
            elapsed_us = elapsed.as_micros() as u64, "request"
        );
        reply.into_response(open, place)
    }

    /// Takes room for a large reply that is here as a whole. An error may replace the reply.
    async fn place_for(&self, exchange: &Exchange<'_>, outcome: &mut Outcome) -> Option<Place> {
        let Ok(Reply { content: Content::Whole(body), .. }) = &outcome.result else { return None };
        if body.len() < limits::SMALL_REPLY_BYTES {
            return None;
        }
        let is_read = exchange.head.method == http::Method::GET;
        match self.replies.place_of_reply(exchange.tenant, body.len(), is_read).await {
            Ok(place) => place,
            Err(no_room) => {
                outcome.result = Err(no_room.into());
                None
            }
        }
    }

    /// Reads what every handler needs from the head: the host, the query and the sender.
    async fn read<'a>(
        &self,
        connection: &Connection,
        head: &'a Parts,
        open: &'a OpenRequest,
        arrival: &'a Arrival,
    ) -> Result<Exchange<'a>, Outcome> {
        let uri = &head.uri;
        let speaks = Speaks::of_unread(uri, false);
        let invalid = |message: String| {
            let result = Err(ObjectError::new(ErrorKind::Invalid, message).into());
            Outcome { operation: UNKNOWN, speaks, result }
        };
        if uri.path().len() + uri.query().map_or(0, str::len) > limits::URI_BYTES_MAX {
            return Err(invalid(format!("The URI is longer than {} bytes.", limits::URI_BYTES_MAX)));
        }
        // HTTP/2 has the host in its pseudo-header, HTTP/1.1 in a header or an absolute URI.
        let host =
            uri.authority().map(|authority| authority.as_str()).or_else(|| text(&head.headers, "host"));
        let host = host.ok_or_else(|| invalid("The request has no Host.".to_owned()))?;
        let Some(bucket_in_host) = self.options.hosts.bucket_of(host) else {
            return Err(invalid(format!(
                "{host:?} is not a name of this server: use its address, localhost, or a name given by --object-hosts."
            )));
        };
        let speaks = Speaks::of_unread(uri, bucket_in_host.is_some());
        let refused = |operation, error: Failure| Outcome { operation, speaks, result: Err(error) };
        check_texts(&head.headers).map_err(|error| refused(UNKNOWN, error.into()))?;
        let query = Query::parse(uri.query().unwrap_or_default());
        let query = query.map_err(|error| refused(UNKNOWN, error.into()))?;
        let is_xml = speaks == Speaks::Xml;
        let unsigned = |error| refused(UNAUTHENTICATED, error);
        // A browser asks for permission without a signature of its own, at the address that is signed for its next request.
        let may_be_signed = is_xml && head.method != http::Method::OPTIONS;
        let claim = match may_be_signed {
            true => claim_of(head, host, bucket_in_host).map_err(|error| unsigned(error.into()))?,
            false => None,
        };
        let is_amazon = |claim: &Claim| claim.dialect == Dialect::Amazon;
        let dialect = match claim.as_ref().is_some_and(is_amazon) || (is_xml && speaks_amazon(head)) {
            true => Dialect::Amazon,
            false => Dialect::Google,
        };
        let (principal, chunks) = match claim {
            Some(claim) => self.signer(&claim, arrival.now).await.map_err(unsigned)?,
            None => {
                let sender = self.sender(connection, head, &query, arrival);
                (sender.map_err(|error| unsigned(error.into()))?, None)
            }
        };
        connection.prove();
        let scheme = if connection.tls { "https" } else { "http" };
        let group = self.admission.hash(("objects", &principal.email));
        Ok(Exchange {
            head,
            open,
            base: format!("{scheme}://{host}"),
            bucket_in_host: bucket_in_host.map(str::to_owned),
            api: if is_xml { Api::Xml } else { api_of(uri.path()) },
            dialect,
            query,
            id: &arrival.id,
            now: arrival.now,
            whole: &[],
            tenant: Tenant { group, member: self.admission.hash(uri.path()) },
            principal,
            chunks,
        })
    }

    /// The sender of a request that is not signed, from its token.
    fn sender(
        &self,
        connection: &Connection,
        head: &Parts,
        query: &Query,
        arrival: &Arrival,
    ) -> Result<Principal, ObjectError> {
        let token = text(&head.headers, "authorization").map(str::to_owned);
        let token = token.or_else(|| query.get("access_token").map(|token| format!("Bearer {token}")));
        // A token that somebody has read is good for every request. Open access believes any token, so none is a secret.
        if token.is_some() && !self.options.access.is_open() && !connection.is_private() {
            let message = "A token is accepted only over TLS, or from the server's own machine.";
            return Err(ObjectError::new(ErrorKind::Unauthenticated, message));
        }
        let principal =
            self.options.access.principal(token.as_deref(), &self.options.keys.load(), arrival.now);
        principal.map_err(|_| ObjectError::new(ErrorKind::Unauthenticated, "Invalid Credentials"))
    }

    async fn answer(&self, exchange: &Exchange<'_>, body: &mut RequestBody) -> Outcome {
        if exchange.head.method == http::Method::OPTIONS {
            return Outcome {
                operation: PREFLIGHT,
                speaks: Speaks::Json,
                result: self.preflight(exchange).await,
            };
        }
        if let Err(error) = self.check_origin(exchange).await {
            return Outcome { operation: UNKNOWN, speaks: exchange.speaks(), result: Err(error) };
        }
        if self.options.retry_tests
            && let Some(result) = self.retry_test(exchange, body).await
        {
            return Outcome { operation: RETRY_TEST, speaks: Speaks::Json, result };
        }
        self.routed(exchange, body).await
    }

    /// Finds the operation that a request asks for, and carries it out.
    async fn routed(&self, exchange: &Exchange<'_>, body: &mut RequestBody) -> Outcome {
        let path = exchange.head.uri.path();
        let speaks = exchange.speaks();
        let refused =
            |operation, error: ObjectError| Outcome { operation, speaks, result: Err(error.into()) };
        match exchange.api {
            Api::Batch => {
                let result = Box::pin(self.batch(exchange, body)).await;
                return Outcome { operation: BATCH, speaks, result };
            }
            Api::Xml => return Box::pin(XmlApi(self).answer(exchange, body)).await,
            Api::Json | Api::Upload | Api::Download => {}
        }
        let method = exchange.head.method.as_str();
        let method = match exchange.header("x-http-method-override") {
            Some(other) if method == "POST" => other,
            _ => method,
        };
        let call = match parse(method, path) {
            Ok(call) => call,
            Err(error) => return refused(UNKNOWN, error),
        };
        let result = self.perform(exchange, &call, exchange.is_media(), method, body).await;
        Outcome { operation: call.operation.name(), speaks, result }
    }
}

/// Whether a request has headers of Amazon S3, as those of its clients that do not sign.
fn speaks_amazon(head: &Parts) -> bool {
    head.headers.keys().any(|name| name.as_str().starts_with("x-amz-"))
}

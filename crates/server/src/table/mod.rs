//! The front end for tables: from a request to a reply.
//!
//! ```text
//!   request -> address (which account) -> authenticate (who) -> route (what)
//!           -> permit, read body, act on the partition server -> reply -> headers, CORS, metrics
//! ```
//!
//! Handlers are in one file for each noun: `entities`, `query`, `batch`, and `service` for
//! tables and what belongs to an account. They return a `Reply` or a `Failure`; `finish`
//! alone turns either into a response, so every reply has the same headers and every error the
//! same body.

mod address;
mod admit;
mod authenticate;
mod batch;
mod catalogue;
mod content;
mod entities;
mod exchange;
mod failure;
mod finish;
mod page;
mod prepared;
mod query;
mod reach;
mod reply;
mod service;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use rangehold_engine::{Clock, Router};
use rangehold_map::Timestamp;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::request::{Method, Operation, Target};
use rangehold_protocol::uri::Query;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::debug;

use self::address::Address;
use self::catalogue::Catalogue;
use self::exchange::{Authorised, Exchange};
use self::failure::Failure;
use self::reply::{Reply, Sending};
use crate::accounts::SharedAccounts;
use crate::admission::Admission;
use crate::body::{Bodies, drain};
use crate::fair::Tenant;
use crate::limits;
use crate::listener::Connection;
use crate::metrics::Metrics;
use crate::profile::Profile;
use crate::queries::Queries;
use crate::rehearsal::Rehearsals;
use crate::request_ids::RequestIds;
use crate::room::{Place, Room};
use crate::tokens::TokenVerifier;
use crate::turns::Turns;

/// The table service of one process.
pub struct TableService {
    router: Router,
    accounts: SharedAccounts,
    memory_bytes: u64,
    tokens: Option<TokenVerifier>,
    clock: Clock,
    ids: RequestIds,
    bodies: Bodies,
    /// Bytes of pages that are being built, and of large replies that clients have not read yet.
    replies: Room,
    /// Turns at the processor for pages and batches.
    turns: Turns,
    /// Bytes of large bodies whose requests are carried out.
    large: Room,
    profile: Profile,
    admission: Arc<Admission>,
    queries: Arc<Queries>,
    rehearsals: Arc<Rehearsals>,
    metrics: Arc<Metrics>,
}

/// The options of a table service.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of request ids, and of everything else that is random.
    pub seed: u64,
    /// Memory of the process in bytes. Bodies and replies may take fixed shares of it.
    pub memory_bytes: u64,
    /// Processor cores of the process: so many pages and batches are worked on at once.
    pub cores: usize,
    /// The numbers by which it lets requests in and answers them.
    pub profile: Profile,
}

/// What the requests of all services of a process share.
pub(crate) struct Shared {
    pub(crate) bodies: Bodies,
    pub(crate) replies: Room,
    pub(crate) turns: Turns,
    pub(crate) admission: Arc<Admission>,
}

/// What is known about a request before it is read.
struct Arrival {
    id: String,
    /// The time of the wall clock: dates in requests are compared with it, and replies carry it. Stored rows get
    /// their time from the engine.
    now: Timestamp,
    begun: Instant,
}

/// The result of a request.
struct Outcome {
    /// Its name in the metrics: the operation, or one of the constants below if the operation is not known.
    operation: &'static str,
    result: Result<Reply, Failure>,
    /// Whether errors are written as XML.
    xml: bool,
}

const UNKNOWN: &str = "Unknown";
const UNAUTHENTICATED: &str = "Unauthenticated";
const PREFLIGHT: &str = "Preflight";

impl TableService {
    /// A service of `accounts` over the ranges that `router` finds. Call this on the runtime that answers requests.
    pub fn new(
        router: Router,
        accounts: SharedAccounts,
        tokens: Option<TokenVerifier>,
        clock: Clock,
        options: Options,
        metrics: Arc<Metrics>,
    ) -> Self {
        let Options { seed, memory_bytes, cores, profile } = options;
        Self {
            router,
            accounts,
            memory_bytes,
            tokens,
            clock,
            ids: RequestIds::new(seed),
            bodies: Bodies::new(limits::room_bytes(memory_bytes, limits::BODIES_SHARE_OF_MEMORY)),
            replies: Room::of_bytes(limits::room_bytes(memory_bytes, limits::REPLIES_SHARE_OF_MEMORY)),
            turns: Turns::of_cores(cores),
            large: Room::of_turns(cores.max(2) * limits::LARGE_BYTES_FOR_CORE),
            admission: Admission::start(&profile, seed, metrics.clone()),
            queries: Arc::default(),
            rehearsals: Arc::new(Rehearsals::new(profile.moving, seed)),
            profile,
            metrics,
        }
    }

    /// What its requests share with those of another service of the same process.
    pub(crate) fn shared(&self) -> Shared {
        Shared {
            bodies: self.bodies.clone(),
            replies: self.replies.clone(),
            turns: self.turns.clone(),
            admission: self.admission.clone(),
        }
    }

    /// The accounts that it knows.
    pub(crate) fn accounts(&self) -> &SharedAccounts {
        &self.accounts
    }

    /// Memory that caches and buffers of the process may take, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The counts of queries, by their kind.
    pub fn queries(&self) -> Arc<Queries> {
        self.queries.clone()
    }

    /// The rehearsals of its ranges.
    pub fn rehearsals(&self) -> Arc<Rehearsals> {
        self.rehearsals.clone()
    }

    /// In whose name a request for a table of this name shares what requests share. A SAS is a principal of its own.
    /// `table` is empty if the request is for none, or for one that is not known yet.
    fn tenant(&self, exchange: &Exchange<'_>, table: &str) -> Tenant {
        let principal = exchange.query.get("sig").unwrap_or_default();
        Tenant {
            group: self.admission.hash(&exchange.address.account),
            member: self.admission.hash((table.to_ascii_lowercase(), principal)),
        }
    }

    fn catalogue<'a>(&'a self, account: &'a str) -> Catalogue<'a> {
        Catalogue { router: &self.router, account }
    }

    /// Answers one request. It never fails: an error is a reply too.
    pub async fn handle(&self, connection: Connection, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, mut body) = request.into_parts();
        let open = connection.open_request();
        let arrival = Arrival { id: self.ids.next(), now: self.clock.wall(), begun: Instant::now() };
        let _under_way = self.metrics.begin();
        let (exchange, mut outcome) = match self.read(&connection, &head, &arrival) {
            Ok(exchange) => {
                let outcome = self.answer(&exchange, &mut body).await;
                (Some(exchange), outcome)
            }
            Err(failure) => (None, Outcome { operation: UNKNOWN, result: Err(failure), xml: false }),
        };
        let operation = outcome.operation;
        let place = match &exchange {
            Some(exchange) => self.place_for(exchange, &mut outcome).await,
            None => None,
        };
        let mut reply = finish::finish(exchange.as_ref(), &head, &arrival, outcome);
        if let Some(exchange) = exchange.as_ref().filter(|_| operation != PREFLIGHT) {
            // The reply is ready. If the rules cannot be read in time, it is sent without CORS headers.
            let _ = timeout(limits::CORS_RULES_WITHIN, self.add_cors(exchange, &mut reply)).await;
        }
        // A client that sent `Expect` waits for permission to send its body. To read the body here would give that
        // permission.
        if !head.headers.contains_key(http::header::EXPECT) {
            drain(body).await;
        }
        let elapsed = arrival.begun.elapsed();
        self.metrics.finish(operation, reply.status, elapsed);
        debug!(
            request_id = arrival.id, operation, method = %head.method, path = head.uri.path(), status = reply.status,
            elapsed_us = elapsed.as_micros() as u64, "request"
        );
        reply.into_response(Sending { _open: open, _place: place })
    }

    /// Takes room for a large reply. A page has room already. An error may replace the reply.
    async fn place_for(&self, exchange: &Exchange<'_>, outcome: &mut Outcome) -> Option<Place> {
        let reply = outcome.result.as_mut().ok()?;
        if reply.body.len() < limits::SMALL_REPLY_BYTES {
            return None;
        }
        if let Some(place) = reply.place.take() {
            place.keep(reply.body.len());
            return Some(place);
        }
        let is_read = exchange.head.method == http::Method::GET;
        match self.replies.place_of_reply(self.tenant(exchange, ""), reply.body.len(), is_read).await {
            Ok(place) => place,
            Err(no_room) => {
                outcome.result = Err(no_room.into());
                None
            }
        }
    }

    /// Reads what every handler needs from the head. Fails if the head is malformed.
    fn read<'a>(
        &self,
        connection: &'a Connection,
        head: &'a Parts,
        arrival: &'a Arrival,
    ) -> Result<Exchange<'a>, Failure> {
        exchange::check_headers(&head.headers)?;
        let uri = &head.uri;
        if uri.path().len() + uri.query().map_or(0, str::len) > limits::URI_BYTES_MAX {
            return Err(TableError::new(
                ErrorCode::InvalidUri,
                format!("The requested URI is invalid: it is longer than {} bytes.", limits::URI_BYTES_MAX),
            )
            .into());
        }
        // HTTP/2 has the host in its pseudo-header, HTTP/1.1 in a header or an absolute URI.
        let host = uri.authority().map(|authority| authority.as_str());
        let host = host
            .or_else(|| exchange::text(&head.headers, "host"))
            .filter(|host| !host.is_empty())
            .ok_or(ErrorCode::HostInformationNotPresent)?;
        let scheme = if connection.tls { "https" } else { "http" };
        let address = Address::of(scheme, host, uri.path(), &self.accounts.load());
        let query = Query::parse(uri.query().unwrap_or_default())?;
        let deadline = exchange::deadline(&query)?;
        Ok(Exchange { head, connection, address, query, request_id: &arrival.id, now: arrival.now, deadline })
    }

    async fn answer(&self, exchange: &Exchange<'_>, body: &mut Incoming) -> Outcome {
        if exchange.head.method == http::Method::OPTIONS {
            return Outcome { operation: PREFLIGHT, result: self.preflight(exchange).await, xml: true };
        }
        let xml = exchange.query.get("comp").is_some();
        let authenticated = timeout_at(exchange.deadline, self.authenticate(exchange)).await;
        let principal = match authenticated.unwrap_or_else(|_| Err(ErrorCode::OperationTimedOut.into())) {
            Ok(principal) => {
                exchange.connection.prove();
                principal
            }
            Err(failure) => {
                return Outcome { operation: UNAUTHENTICATED, result: Err(failure), xml };
            }
        };
        let operation = match route(exchange) {
            Ok(operation) => operation,
            Err(error) => {
                return Outcome { operation: UNKNOWN, result: Err(error.into()), xml };
            }
        };
        let (name, xml) = (operation.name(), operation.speaks_xml());
        let request = Authorised { exchange, principal };
        let result = match (operation.is_write(), exchange.address.secondary) {
            (true, true) => Err(ErrorCode::InsufficientAccountPermissions.into()),
            // A write checks its deadline itself: only it knows whether its outcome is still open.
            (true, false) => self.run(&request, operation, body).await,
            (false, _) => timeout_at(exchange.deadline, self.run(&request, operation, body))
                .await
                .unwrap_or_else(|_| Err(ErrorCode::OperationTimedOut.into())),
        };
        Outcome { operation: name, result, xml }
    }

    async fn run(
        &self,
        request: &Authorised<'_>,
        operation: Operation,
        body: &mut Incoming,
    ) -> Result<Reply, Failure> {
        self.admit_operation(&request.exchange.address.account, &operation)?;
        // The largest are boxed. Else each request would carry room for them, 24 KiB, and copy it from caller to caller.
        match operation {
            Operation::QueryTables => self.query_tables(request).await,
            Operation::GetTable(name) => self.get_table(request, &name).await,
            Operation::CreateTable => self.create_table(request, body).await,
            Operation::DeleteTable(name) => self.delete_table(request, &name).await,
            Operation::GetTableAcl(name) => self.get_acl(request, &name).await,
            Operation::SetTableAcl(name) => self.set_acl(request, &name, body).await,
            Operation::QueryEntities(table) => Box::pin(self.query_entities(request, &table)).await,
            Operation::GetEntity(name) => self.get_entity(request, &name).await,
            Operation::InsertEntity(table) => self.insert_entity(request, table, body).await,
            Operation::WriteEntity(name, kind) => self.write_entity(request, name, kind, body).await,
            Operation::MisnamedEntity(table) => self.refuse_misnamed(request, &table).await,
            Operation::Batch => Box::pin(self.batch(request, body)).await,
            Operation::GetServiceProperties => self.get_service_properties(request).await,
            Operation::SetServiceProperties => self.set_service_properties(request, body).await,
            Operation::GetServiceStats => self.get_service_stats(request).await,
        }
    }
}

/// The operation that a request asks for.
fn route(exchange: &Exchange<'_>) -> Result<Operation, TableError> {
    check_version(exchange)?;
    let headers = &exchange.head.headers;
    // A value that is not text cannot be the name of a method, and is refused like an unknown method.
    let tunnelled = headers.get_all("x-http-method").iter().map(|value| value.to_str().unwrap_or("?"));
    let method = Method::of(exchange.head.method.as_str(), tunnelled)?;
    let account = exchange.address.account.as_str();
    let target = Target::parse(account, &exchange.address.path)?;
    Operation::of(method, target, &exchange.query, exchange.conditions())
}

/// Accepts every well-formed version, also later ones than we know: an update of an SDK must not break its
/// users.
fn check_version(exchange: &Exchange<'_>) -> Result<(), TableError> {
    let Some(version) = exchange.header("x-ms-version") else {
        return Ok(());
    };
    let digits = |range: std::ops::Range<usize>| {
        version.get(range).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let dashes = version.len() == 10 && version.as_bytes()[4] == b'-' && version.as_bytes()[7] == b'-';
    if dashes && digits(0..4) && digits(5..7) && digits(8..10) {
        return Ok(());
    }
    Err(TableError::new(
        ErrorCode::InvalidHeaderValue,
        format!(
            "The value for one of the HTTP headers is not in the correct format: x-ms-version={version}."
        ),
    ))
}

/// Refuses a body whose content type is not JSON.
fn expect_json(exchange: &Exchange<'_>) -> Result<(), TableError> {
    // A request of a web page must name the type. If the type is JSON, the browser first asks for permission by CORS.
    // If there is no type, the browser sends the body without asking.
    let unnamed = if exchange.header("origin").is_some() { "" } else { "application/json" };
    let content_type = exchange.header("content-type").unwrap_or(unnamed);
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(()),
        "application/atom+xml" => Err(ErrorCode::AtomFormatNotSupported.into()),
        _ => Err(ErrorCode::MediaTypeNotSupported.into()),
    }
}

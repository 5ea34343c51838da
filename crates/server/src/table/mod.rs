//! The front end for tables: from a request to a reply.
//!
//! ```text
//!   request -> address (which account) -> authenticate (who) -> route (what)
//!           -> permit, read body, act on the partition server -> reply -> headers, CORS, metrics
//! ```
//!
//! Handlers live in one file per noun: [`entities`], [`query`], [`batch`], and [`service`] for
//! tables and what belongs to an account. They return a [`Reply`] or a [`Failure`]; this module
//! alone turns either into a response, so every reply has the same headers and every error the
//! same body.

mod address;
mod authenticate;
mod batch;
mod catalogue;
mod entities;
mod exchange;
mod failure;
mod query;
mod reply;
mod service;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use rangehold_engine::{Clock, PartitionServer};
use rangehold_map::Timestamp;
use rangehold_protocol::auth::bearer;
use rangehold_protocol::table::error::{ErrorCode, TableError};
use rangehold_protocol::table::error_reply;
use rangehold_protocol::table::request::{Method, Operation, Target};
use rangehold_protocol::time;
use rangehold_protocol::uri::Query;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::debug;

use self::address::Address;
use self::catalogue::Catalogue;
use self::exchange::{Authorised, Exchange};
use self::failure::Failure;
use self::reply::Reply;
use crate::accounts::SharedAccounts;
use crate::body::{BodyRoom, drain};
use crate::limits;
use crate::listener::Connection;
use crate::metrics::Metrics;
use crate::request_ids::RequestIds;
use crate::tokens::TokenVerifier;

/// The table service of one process.
pub struct TableService {
    partitions: PartitionServer,
    accounts: SharedAccounts,
    tokens: Option<TokenVerifier>,
    clock: Clock,
    ids: RequestIds,
    bodies: BodyRoom,
    pages: Semaphore,
    metrics: Arc<Metrics>,
}

/// What is known of a request before anything of it was understood.
struct Arrival {
    id: String,
    now: Timestamp,
    begun: Instant,
}

/// How a reply is dressed: authentication failures were recorded with fewer headers.
struct Outcome {
    operation: &'static str,
    result: Result<Reply, Failure>,
    xml: bool,
}

impl TableService {
    /// A service of `accounts` over `partitions`. `seed` is where request ids come from.
    pub fn new(
        partitions: PartitionServer,
        accounts: SharedAccounts,
        tokens: Option<TokenVerifier>,
        clock: Clock,
        seed: u64,
        memory_bytes: u64,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            partitions,
            accounts,
            tokens,
            clock,
            ids: RequestIds::new(seed),
            bodies: BodyRoom::new(memory_bytes),
            pages: Semaphore::new(limits::PAGES_MAX),
            metrics,
        }
    }

    fn catalogue<'a>(&'a self, account: &'a str) -> Catalogue<'a> {
        Catalogue { partitions: &self.partitions, account }
    }

    /// Answers one request. Never fails: what goes wrong is in the reply.
    pub async fn handle(&self, connection: Connection, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, mut body) = request.into_parts();
        if let Some(reply) = health(&head) {
            return reply.into_response();
        }
        let arrival = Arrival { id: self.ids.next(), now: self.clock.wall(), begun: Instant::now() };
        let _under_way = self.metrics.begin();
        let (exchange, outcome) = match self.read(connection, &head, &arrival) {
            Ok(exchange) => {
                let outcome = self.answer(&exchange, &mut body).await;
                (Some(exchange), outcome)
            }
            Err(failure) => (None, Outcome { operation: "Unknown", result: Err(failure), xml: false }),
        };
        let operation = outcome.operation;
        let mut reply = self.finish(exchange.as_ref(), &head, &arrival, outcome);
        if let Some(exchange) = &exchange {
            self.add_cors(exchange, &mut reply).await;
        }
        drain(body).await;
        let elapsed = arrival.begun.elapsed();
        self.metrics.finish(operation, reply.status, elapsed);
        debug!(
            request_id = arrival.id, operation, method = %head.method, path = head.uri.path(), status = reply.status,
            elapsed_us = elapsed.as_micros() as u64, "request"
        );
        reply.into_response()
    }

    /// Reads what every handler needs; fails on requests that are malformed as such.
    fn read<'a>(
        &self,
        connection: Connection,
        head: &'a Parts,
        arrival: &'a Arrival,
    ) -> Result<Exchange<'a>, Failure> {
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
            return Outcome { operation: "Preflight", result: self.preflight(exchange).await, xml: true };
        }
        let xml = exchange.query.get("comp").is_some();
        let principal = match self.authenticate(exchange).await {
            Ok(principal) => principal,
            Err(failure) => return Outcome { operation: "Unauthenticated", result: Err(failure), xml },
        };
        let operation = match route(exchange) {
            Ok(operation) => operation,
            Err(error) => return Outcome { operation: "Unknown", result: Err(error.into()), xml },
        };
        let (name, xml) = (operation.name(), operation.speaks_xml());
        let request = Authorised { exchange, principal };
        let result = match exchange.address.secondary && operation.is_write() {
            true => Err(ErrorCode::InsufficientAccountPermissions.into()),
            false => self.run(&request, operation, body).await,
        };
        Outcome { operation: name, result, xml }
    }

    async fn run(
        &self,
        request: &Authorised<'_>,
        operation: Operation,
        body: &mut Incoming,
    ) -> Result<Reply, Failure> {
        match operation {
            Operation::QueryTables => self.query_tables(request).await,
            Operation::GetTable(name) => self.get_table(request, &name).await,
            Operation::CreateTable => self.create_table(request, body).await,
            Operation::DeleteTable(name) => self.delete_table(request, &name).await,
            Operation::GetTableAcl(name) => self.get_acl(request, &name).await,
            Operation::SetTableAcl(name) => self.set_acl(request, &name, body).await,
            Operation::QueryEntities(table) => self.query_entities(request, &table).await,
            Operation::GetEntity(name) => self.get_entity(request, &name).await,
            Operation::InsertEntity(table) => self.insert_entity(request, table, body).await,
            Operation::WriteEntity(name, kind) => self.write_entity(request, name, kind, body).await,
            Operation::Batch => self.batch(request, body).await,
            Operation::GetServiceProperties => self.get_service_properties(request).await,
            Operation::SetServiceProperties => self.set_service_properties(request, body).await,
            Operation::GetServiceStats => self.get_service_stats(request).await,
        }
    }

    /// Puts on what every reply has, as the service was recorded sending it.
    fn finish(
        &self,
        exchange: Option<&Exchange<'_>>,
        head: &Parts,
        arrival: &Arrival,
        outcome: Outcome,
    ) -> Reply {
        let header = |name: &str| exchange::text(&head.headers, name);
        let unauthenticated = outcome.operation == "Unauthenticated";
        let mut reply = match outcome.result {
            Ok(mut reply) => {
                if !outcome.xml {
                    reply.set("Cache-Control", "no-cache");
                    reply.set("X-Content-Type-Options", "nosniff");
                }
                if head.method == http::Method::GET && header("origin").is_none() {
                    reply.set("Vary", "Origin");
                }
                reply
            }
            Err(failure) => {
                let mut reply = error_reply(exchange, arrival, &failure.error, outcome.xml, unauthenticated);
                let applied = exchange.and_then(|exchange| exchange.prefer().applied());
                if let Some(applied) = applied.filter(|_| !unauthenticated) {
                    reply.set("Preference-Applied", applied);
                }
                reply
            }
        };
        if unauthenticated {
            reply.set("Server", "Microsoft-HTTPAPI/2.0");
        } else {
            reply.set("Server", "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0");
            if let Some(version) = header("x-ms-version") {
                reply.set("x-ms-version", version);
            }
        }
        reply.set("x-ms-request-id", &arrival.id);
        if let Some(id) = header("x-ms-client-request-id") {
            reply.set("x-ms-client-request-id", id);
        }
        reply.set("Date", time::http_date(arrival.now));
        reply
    }
}

fn error_reply(
    exchange: Option<&Exchange<'_>>,
    arrival: &Arrival,
    error: &TableError,
    xml: bool,
    unauthenticated: bool,
) -> Reply {
    let status = error.code.status();
    let mut reply = if xml {
        Reply::with_body(status, "application/xml", error_reply::xml(error, &arrival.id, arrival.now))
    } else {
        let level = exchange.map(Exchange::level_or_default).unwrap_or_default();
        let content_type = if unauthenticated { "application/json" } else { level.content_type() };
        Reply::with_body(status, content_type, error_reply::json(error, &arrival.id, arrival.now))
    };
    if xml || unauthenticated {
        reply.set("x-ms-error-code", error.code.name());
    } else {
        reply.set("X-Content-Type-Options", "nosniff");
        if error.code.is_found_by_store() {
            reply.set("Cache-Control", "no-cache");
        }
    }
    if status == 401 {
        reply.set("WWW-Authenticate", bearer::challenge());
    }
    reply
}

/// The operation that a request asks for.
fn route(exchange: &Exchange<'_>) -> Result<Operation, TableError> {
    check_version(exchange)?;
    let headers = &exchange.head.headers;
    let tunnelled = headers.get_all("x-http-method").iter().filter_map(|value| value.to_str().ok());
    let method = Method::of(exchange.head.method.as_str(), tunnelled)?;
    let account = exchange.address.account.as_str();
    let target = Target::parse(account, &exchange.address.path)?;
    Operation::of(account, method, target, &exchange.query, exchange.conditions())
}

/// Any well-formed version is taken, later ones than we know included: an SDK's update must not
/// break its users.
fn check_version(exchange: &Exchange<'_>) -> Result<(), TableError> {
    let Some(version) = exchange.header("x-ms-version") else { return Ok(()) };
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

/// Refuses a body that says it is something else than JSON.
fn expect_json(exchange: &Exchange<'_>) -> Result<(), TableError> {
    let content_type = exchange.header("content-type").unwrap_or("application/json");
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(()),
        "application/atom+xml" => Err(ErrorCode::AtomFormatNotSupported.into()),
        _ => Err(ErrorCode::MediaTypeNotSupported.into()),
    }
}

/// Containers and proxies ask for health on the port they know; they have no keys.
fn health(head: &Parts) -> Option<Reply> {
    let asked = matches!(head.uri.path(), "/healthz" | "/livez" | "/readyz");
    (asked && head.method == http::Method::GET).then(|| Reply::with_body(200, "text/plain", b"ok\n".to_vec()))
}

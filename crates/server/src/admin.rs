//! The admin endpoint: health and metrics for everybody on the loopback, the rest for whoever can
//! read the token in the data directory.
//!
//! | path | token | answer |
//! |---|---|---|
//! | `/livez`, `/healthz` | no | 200 while the process runs |
//! | `/readyz` | no | 200 once requests are served and the store can be written; else 503 |
//! | `/metrics` | no | Prometheus text |
//! | `/v1/status` | yes | JSON: version, ranges, memory, disk |
//! | `/v1/queries` | yes | JSON: for each kind of query what it looked at and returned |
//! | `/v1/rehearsals` | yes | JSON: see [`rehearsals`] |
//!
//! A web page that the user visits must not reach this through his browser: a request with an
//! `Origin` is refused, and one whose `Host` is not this machine (DNS rebinding) too.

pub mod rehearsals;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use rangehold_engine::Node;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::time::timeout;

use crate::limits;
use crate::metrics::Metrics;
use crate::queries::Queries;
use crate::rehearsal::Rehearsals;
use crate::table::TableService;
use crate::tls::write_private;

/// Name of the file with the admin token, in the data directory.
pub const TOKEN_FILE: &str = "admin-token";

/// The admin endpoint of one process.
pub struct Admin {
    node: Node,
    queries: Arc<Queries>,
    rehearsals: Arc<Rehearsals>,
    metrics: Arc<Metrics>,
    /// Without one nobody is authorised.
    token: Option<String>,
    /// The address it listens on, which a `Host` may name.
    address: IpAddr,
}

/// The token in `directory`, made from `random` bytes if there is none yet; only its owner may
/// read the file.
pub fn token_in(directory: &Path, random: [u8; 32]) -> std::io::Result<String> {
    let path = directory.join(TOKEN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned()),
        Ok(_) => make_token(&path, random),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make_token(&path, random),
        Err(error) => Err(error),
    }
}

fn make_token(path: &Path, random: [u8; 32]) -> std::io::Result<String> {
    let token = URL_SAFE_NO_PAD.encode(random);
    write_private(path, token.as_bytes())?;
    Ok(token)
}

impl Admin {
    /// An admin endpoint of `node` and `tables` that will listen on `address` and takes `token`; without
    /// one it shows no more than health and metrics.
    pub fn new(
        node: Node,
        tables: &TableService,
        metrics: Arc<Metrics>,
        token: Option<String>,
        address: IpAddr,
    ) -> Self {
        Self { node, queries: tables.queries(), rehearsals: tables.rehearsals(), metrics, token, address }
    }

    /// Answers one request.
    pub async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        if head.headers.contains_key(header::ORIGIN) {
            return plain(
                StatusCode::FORBIDDEN,
                "requests from web pages are refused (they carry an Origin header)\n",
            );
        }
        if !self.host_is_ours(&head) {
            return plain(
                StatusCode::FORBIDDEN,
                "the Host header names another machine; use the address this listens on\n",
            );
        }
        if head.uri.path().starts_with("/v1/") && !self.is_authorised(&head) {
            let text = format!(
                "send 'Authorization: Bearer TOKEN' with the token in {TOKEN_FILE} in the data directory\n"
            );
            return plain(StatusCode::UNAUTHORIZED, text);
        }
        if head.uri.path() == "/v1/rehearsals" {
            return self.rehearse(&head, body).await;
        }
        if head.method != Method::GET {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here\n");
        }
        match head.uri.path() {
            "/livez" | "/healthz" => plain(StatusCode::OK, "ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => {
                let mut response = plain(StatusCode::OK, self.metrics.render(&self.node.statistics()));
                let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
                response
            }
            "/v1/status" => self.status(),
            "/v1/queries" => json_text(format!("{:#}\n", self.queries.to_json())),
            _ => plain(
                StatusCode::NOT_FOUND,
                "there is /livez, /readyz, /healthz, /metrics, /v1/status, /v1/queries and /v1/rehearsals\n",
            ),
        }
    }

    async fn rehearse(&self, head: &Parts, body: Incoming) -> Response<Full<Bytes>> {
        let body = Limited::new(body, rehearsals::ORDER_BYTES_MAX).collect();
        let Ok(Ok(body)) = timeout(limits::ROOM_WITHIN, body).await else {
            return plain(StatusCode::BAD_REQUEST, "the order did not come, or is too long\n");
        };
        let map = self.node.router().map();
        let known = |range| map.get(range).is_some();
        match rehearsals::answer(&self.rehearsals, &head.method, &body.to_bytes(), known) {
            (StatusCode::OK, text) => json_text(text),
            (status, text) => plain(status, text),
        }
    }

    fn host_is_ours(&self, head: &Parts) -> bool {
        let host = head.uri.authority().map(|a| a.as_str());
        let host = host.or_else(|| head.headers.get(header::HOST).and_then(|value| value.to_str().ok()));
        let Some(host) = host else { return false };
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((v6, _)) => v6,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let address: Option<IpAddr> = name.parse().ok();
        name == "localhost"
            || address
                .is_some_and(|ip| ip.is_loopback() || ip == self.address || self.address.is_unspecified())
    }

    fn is_authorised(&self, head: &Parts) -> bool {
        let given = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(given) = given.and_then(|value| value.strip_prefix("Bearer ")) else { return false };
        self.token.as_ref().is_some_and(|token| bool::from(given.as_bytes().ct_eq(token.as_bytes())))
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let statistics = self.node.statistics();
        if statistics.disk_low {
            return plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "the disk is nearly full: writes are refused, reads are served\n",
            );
        }
        plain(StatusCode::OK, "ready\n")
    }

    fn status(&self) -> Response<Full<Bytes>> {
        let engine = self.node.statistics();
        let ranges: Vec<_> = engine
            .ranges
            .iter()
            .map(|(id, range)| {
                json!({
                    "range": id.to_string(),
                    "reads": range.reads,
                    "scans": range.scans,
                    "writes": range.writes,
                    "refusals": range.refusals,
                    "flushes": range.flushes,
                    "unflushed_bytes": range.unflushed_bytes,
                    "dropped_tables_pending": range.dropped_tables_pending,
                    "reopenings": range.reopenings,
                })
            })
            .collect();
        let status = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "map_version": engine.map_version,
            "ranges": ranges,
            "disk_free_bytes": engine.disk_free_bytes,
            "disk_low": engine.disk_low,
            "damaged_files": engine.damaged_files,
        });
        json_text(format!("{status:#}\n"))
    }
}

fn json_text(text: String) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::OK, text);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

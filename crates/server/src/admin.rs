//! The admin endpoint. Everybody who can connect may read health and metrics. The rest is for clients that can read
//! the token in the data directory.
//!
//! | path | token | answer |
//! |---|---|---|
//! | `/livez`, `/healthz` | no | 200 while the process runs |
//! | `/readyz` | no | JSON: 200 if every request is served, 503 if some are not; and what is wrong |
//! | `/metrics` | no | Prometheus text |
//! | `/v1/status` | yes | JSON: version, addresses, memory, accounts, ranges, disk |
//! | `/v1/ranges`, `/v1/map`, `/v1/map/check`, `/v1/events` | yes | JSON: see `docs/admin-api.md` |
//! | `POST /v1/map/{split,merge,move,offline,online}` | yes | carries a change out |
//! | `/v1/history` | yes | JSON: the load by key and time |
//! | `/v1/buckets/NAME/rates` | yes | JSON: what a bucket bears, and how its names grow |
//! | `/v1/queries` | yes | JSON: for each kind of query, how many entities it looked at and returned |
//! | `/v1/rehearsals` | yes | JSON: see [`rehearsals`] |
//!
//! A web page must not reach this endpoint through the browser of a user on this machine. So a request with an
//! `Origin` header is refused, and so is a request whose `Host` names another machine (such an attack is called DNS
//! rebinding).

mod api;
mod body;
mod buckets;
mod counts;
mod history;
mod memory;
mod readiness;
pub mod rehearsals;
mod status;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use rangehold_engine::Node;
use rangehold_map::Timestamp;
use serde_json::Value;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::api::Refused;
use self::body::{answer, body_of, compact, json_response, not_served, plain};
pub(crate) use self::status::Addresses;
use self::status::Seen;
use crate::accounts::SharedAccounts;
use crate::history::History;
use crate::limits::{EVENTS_WAIT, HISTORY_ANSWERS_AT_ONCE};
use crate::manager::Manager;
use crate::metrics::Metrics;
use crate::object::ObjectService;
use crate::queries::Queries;
use crate::rehearsal::Rehearsals;
use crate::table::TableService;
use crate::tls::write_private;

/// Name of the file with the admin token, in the data directory.
pub const TOKEN_FILE: &str = "admin-token";

/// The admin endpoint of one process.
pub struct Admin {
    node: Node,
    manager: Manager,
    history: Option<History>,
    history_places: Semaphore,
    /// If there are none, it has no buckets to show.
    objects: Option<Arc<ObjectService>>,
    queries: Arc<Queries>,
    rehearsals: Arc<Rehearsals>,
    metrics: Arc<Metrics>,
    accounts: SharedAccounts,
    /// Memory that caches and buffers may take.
    memory_bytes: u64,
    /// When it was made.
    started: Timestamp,
    /// Where the server listens, once it does.
    addresses: Option<Addresses>,
    /// If there is none, every request that needs a token is refused.
    token: Option<String>,
    /// The address on which the endpoint listens. A request may name it in `Host`.
    address: IpAddr,
    /// More names that a request may have in `Host`.
    hosts: Vec<String>,
}

/// The token in `directory`. If there is none yet, it is made from `random` bytes. Only the owner of the file may
/// read it.
pub fn token_in(directory: &Path, random: [u8; 32]) -> std::io::Result<String> {
    let path = directory.join(TOKEN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned()),
        Ok(_) => make_token(&path, random),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make_token(&path, random),
        Err(error) => {
            let said = format!(
                "cannot read {}: {error}; if the file is damaged, delete it, and a new token is made",
                path.display()
            );
            Err(std::io::Error::new(error.kind(), said))
        }
    }
}

fn make_token(path: &Path, random: [u8; 32]) -> std::io::Result<String> {
    let token = token_of(random);
    write_private(path, token.as_bytes())?;
    Ok(token)
}

/// A token of `random` bytes, for a server that has no directory to keep it in.
pub fn token_of(random: [u8; 32]) -> String {
    URL_SAFE_NO_PAD.encode(random)
}

impl Admin {
    /// An admin endpoint of `node`, its `manager` and `tables`, which will listen on `address` and accept `token`.
    /// Without a token it shows only health and metrics.
    pub fn new(
        node: Node,
        manager: Manager,
        tables: &TableService,
        metrics: Arc<Metrics>,
        token: Option<String>,
        address: IpAddr,
    ) -> Self {
        let (queries, rehearsals) = (tables.queries(), tables.rehearsals());
        let (history, history_places) = (None, Semaphore::new(HISTORY_ANSWERS_AT_ONCE));
        let (objects, hosts) = (None, Vec::new());
        Self {
            accounts: tables.accounts().clone(),
            memory_bytes: tables.memory_bytes(),
            started: node.host().clock().now(),
            addresses: None,
            node,
            manager,
            history,
            history_places,
            objects,
            queries,
            rehearsals,
            metrics,
            token,
            address,
            hosts,
        }
    }

    /// Adds names by which it is called, such as that of a container. The case of letters makes no difference.
    pub fn with_hosts(self, hosts: Vec<String>) -> Self {
        Self { hosts, ..self }
    }

    /// Adds the history that it shows. Without one it says that none is kept.
    pub fn with_history(self, history: Option<History>) -> Self {
        Self { history, ..self }
    }

    /// Adds the objects of whose buckets it shows the rates.
    pub(crate) fn with_objects(self, objects: Option<Arc<ObjectService>>) -> Self {
        Self { objects, ..self }
    }

    /// Adds where the server listens.
    pub(crate) fn with_addresses(self, addresses: Addresses) -> Self {
        Self { addresses: Some(addresses), ..self }
    }

    /// The history that it shows.
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// The manager, which carries changes out.
    pub fn manager(&self) -> &Manager {
        &self.manager
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
                "the Host header names another machine; use the address this listens on, or a name given by --admin-hosts\n",
            );
        }
        if head.uri.path().starts_with("/v1/") && !self.is_authorised(&head) {
            let text = format!(
                "send 'Authorization: Bearer TOKEN' with the token in {TOKEN_FILE} in the data directory, or the one that the \
                 server was given or has printed\n"
            );
            return plain(StatusCode::UNAUTHORIZED, text);
        }
        if let Some(verb) = head.uri.path().strip_prefix("/v1/map/").filter(|verb| *verb != "check") {
            return match head.method {
                Method::POST => answer(self.change(verb, body).await),
                _ => not_served(&head, "POST"),
            };
        }
        if head.uri.path() == "/v1/rehearsals" {
            return match head.method {
                Method::GET | Method::POST | Method::DELETE => answer(self.rehearse(&head, body).await),
                _ => not_served(&head, "GET, POST or DELETE"),
            };
        }
        if head.method != Method::GET {
            return not_served(&head, "GET");
        }
        if let Some(bucket) = buckets::bucket_in(head.uri.path()) {
            return answer(self.rates_of(bucket).await);
        }
        match head.uri.path() {
            "/livez" | "/healthz" => plain(StatusCode::OK, "ok\n"),
            "/readyz" => self.readiness(readiness::Audience::Operators),
            "/metrics" => {
                let mut response = plain(StatusCode::OK, self.metrics.render(&self.node.statistics()));
                let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
                response
            }
            "/v1/status" => json_response(StatusCode::OK, &self.status().await),
            "/v1/map" => answer(self.map(head.uri.query()).await),
            "/v1/map/check" => {
                json_response(StatusCode::OK, &api::check(&self.node.executor().maps().current()))
            }
            "/v1/ranges" => {
                let names = self.manager.names().await;
                let map = self.node.executor().maps().current();
                json_response(StatusCode::OK, &api::ranges(&map, &self.manager, &names))
            }
            "/v1/queries" => json_response(StatusCode::OK, &self.queries.to_json()),
            "/v1/events" => answer(self.events(head.uri.query()).await),
            "/v1/history" => match self.history_of(head.uri.query()).await {
                // Numbers would take one line each in the usual form, and there are too many of them.
                Ok(value) => compact(StatusCode::OK, &value),
                Err(refused) => answer(Err(refused)),
            },
            _ => plain(
                StatusCode::NOT_FOUND,
                "there is /livez, /readyz, /healthz, /metrics, /v1/status, /v1/ranges, /v1/map, /v1/events, /v1/history, /v1/queries, /v1/buckets/NAME/rates and /v1/rehearsals\n",
            ),
        }
    }

    /// Answers the question of a container or proxy whether the process lives, or is ready, on any port that speaks HTTP;
    /// `None` if the request is another one. A request with credentials is never such a question: it may mean a resource of
    /// that name.
    pub(crate) fn health(&self, request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
        let signed = request.headers().contains_key(header::AUTHORIZATION) || request.uri().query().is_some();
        if signed || request.method() != Method::GET {
            return None;
        }
        match request.uri().path() {
            "/livez" | "/healthz" => Some(plain(StatusCode::OK, "ok\n")),
            "/readyz" => Some(self.readiness(readiness::Audience::Clients)),
            _ => None,
        }
    }

    async fn map(&self, query: Option<&str>) -> Result<Value, Refused> {
        let (only, names) = (api::only(query)?, self.manager.names().await);
        api::map(&self.node.executor().maps().current(), &names, only.as_ref())
    }

    async fn rehearse(&self, head: &Parts, body: Incoming) -> Result<Value, Refused> {
        let body = body_of(body).await?;
        let (map, names) = (self.node.executor().maps().current(), self.manager.names().await);
        rehearsals::answer(&self.rehearsals, &head.method, &body, &map, &names)
    }

    async fn change(&self, verb: &str, body: Incoming) -> Result<Value, Refused> {
        let body = body_of(body).await?;
        let Some(asked) = api::asked(verb, &body) else {
            return Err(Refused::malformed(format!(
                "there is no change {verb:?}: choose split, merge, move, offline or online"
            )));
        };
        let map = self.node.executor().maps().current();
        api::change(&self.manager, &map, &asked?).await
    }

    /// The events after a number. Waits for the first one, and returns an empty list when the waiting time is over.
    async fn events(&self, query: Option<&str>) -> Result<Value, Refused> {
        let (mut after, mut wait) = (0, EVENTS_WAIT);
        for parameter in query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
            let number = parameter.split_once('=').and_then(|(name, text)| Some((name, text.parse().ok()?)));
            match number {
                Some(("after", number)) => after = number,
                Some(("wait", seconds)) => wait = EVENTS_WAIT.min(Duration::from_secs(seconds)),
                _ => {
                    return Err(Refused::malformed(format!(
                        "{parameter:?} is not understood: write after=NUMBER or wait=SECONDS"
                    )));
                }
            }
        }
        Ok(api::events(&self.manager.events().wait_after(after, wait).await))
    }

    /// The history of load.
    async fn history_of(&self, query: Option<&str>) -> Result<Value, Refused> {
        let Some(history) = self.history.clone() else { return Err(history::off()) };
        let names = self.manager.names().await;
        let now = self.node.host().clock().now().unix_seconds();
        let question = history::question(query, now, &names)?;
        // The semaphore is never closed.
        let _place = self.history_places.acquire().await;
        spawn_blocking(move || history::answer(&history.answer(&question), question.to.min(now), &names))
            .await
            .map_err(|_| {
                Refused::with(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "broken-off",
                    "the history cannot be read: a fault of this program, see its log",
                )
            })
    }

    /// The rates of a bucket.
    async fn rates_of(&self, bucket: &str) -> Result<Value, Refused> {
        let objects = self.objects.as_ref().ok_or_else(buckets::no_objects)?;
        let (found, view) = objects.rates_of(bucket).await.map_err(|why| buckets::refused(bucket, &why))?;
        Ok(buckets::answer(&found, &view, self.node.host().clock().now()))
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
            || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
            || address
                .is_some_and(|ip| ip.is_loopback() || ip == self.address || self.address.is_unspecified())
    }

    fn is_authorised(&self, head: &Parts) -> bool {
        let given = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(given) = given.and_then(|value| value.strip_prefix("Bearer ")) else { return false };
        self.token.as_ref().is_some_and(|token| bool::from(given.as_bytes().ct_eq(token.as_bytes())))
    }

    fn readiness(&self, audience: readiness::Audience) -> Response<Full<Bytes>> {
        let history = self.history.as_ref().and_then(History::trouble);
        let troubles = readiness::troubles(&self.node.statistics(), history);
        let ready = troubles.iter().all(|trouble| trouble.stops.is_none());
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        json_response(status, &readiness::answer(ready, &troubles, audience))
    }

    async fn status(&self) -> Value {
        let router = self.node.router();
        let (tables, buckets) = tokio::join!(counts::tables(router), counts::buckets(router));
        let accounts = self.accounts.load_full();
        let now = self.node.host().clock().now();
        status::answer(&Seen {
            addresses: self.addresses,
            uptime_s: (now.ticks() - self.started.ticks()) / Timestamp::TICKS_PER_SECOND,
            budget_bytes: self.memory_bytes,
            resident_bytes: memory::resident_bytes(),
            accounts: accounts.iter().map(|account| account.name.as_str()).collect(),
            tables,
            buckets,
            engine: self.node.statistics(),
        })
    }
}

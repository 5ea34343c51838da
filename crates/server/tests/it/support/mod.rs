//! A table service in this process, in memory, and clients that send exactly what a test tells them to send.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

pub(crate) mod wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rangehold_engine::store::Store;
use rangehold_engine::{Clock, NamesHook, Node, ScanHook, StepHook};
use rangehold_server::accounts::{Accounts, SharedAccounts, WELL_KNOWN_ACCOUNT};
use rangehold_server::admin::Admin;
use rangehold_server::history::{History, HistoryOptions};
use rangehold_server::limits;
use rangehold_server::manager::{Manager, ManagerOptions};
use rangehold_server::metrics::Metrics;
use rangehold_server::object::{self, Access, Hosts, ObjectKeys, ObjectService, SharedObjectKeys};
use rangehold_server::profile::Profile;
use rangehold_server::table::{Options, TableService};
use rangehold_server::tokens::TokenVerifier;
use rangehold_server::{Endpoints, Running, serve};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::wire::{Answer, Request};
use rangehold_testkit::sign::Signer;

/// A name by which the admin endpoints of the services started here are called.
pub(crate) const ADMIN_HOST: &str = "tables.internal";
/// The admin token of the services started here.
pub(crate) const ADMIN_TOKEN: &str = "the-admin-token";
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");
/// The type of a body that [`batch`] writes.
pub(crate) const MULTIPART: (&str, &str) = ("Content-Type", "multipart/mixed; boundary=b");
/// The memory of the services started here.
pub(crate) const MEMORY_BYTES: u64 = 64 << 20;
/// How many services were started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// The body of a batch. An operation begins with its request line; its head has no `Content-Type` of a body in JSON.
pub(crate) fn batch(operations: impl IntoIterator<Item = (String, String)>) -> String {
    let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for (head, json) in operations {
        body += "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += &format!("{head}\r\nContent-Type: application/json\r\n\r\n{json}\r\n");
    }
    body + "--c--\r\n--b--\r\n"
}

/// What the query of the next page has besides that of this one; `None` after the last page.
pub(crate) fn next_page(answer: &Answer) -> Option<String> {
    let partition = answer.header("x-ms-continuation-NextPartitionKey")?;
    let row = answer.header("x-ms-continuation-NextRowKey").expect("both keys come");
    Some(format!("&NextPartitionKey={partition}&NextRowKey={row}"))
}

/// A running service.
pub(crate) struct Service {
    /// Its sockets.
    pub(crate) running: Running,
    /// The accounts it knows, which a test may replace.
    pub(crate) accounts: SharedAccounts,
    /// Its clock, which a test may step.
    pub(crate) clock: Clock,
    /// Its ranges, which a test may split and move.
    pub(crate) node: Node,
}

/// The settings with which a service is started.
pub(crate) struct Wanted {
    pub(crate) store: Store,
    pub(crate) accounts: Accounts,
    pub(crate) profile: Profile,
    pub(crate) servers: u64,
    /// Whether the manager plans.
    pub(crate) plans: bool,
    pub(crate) history: Option<HistoryOptions>,
    /// The time in which a page of a listing of objects looks for names.
    pub(crate) page_within: Duration,
    /// The time between two walks over the buckets.
    pub(crate) ageing_every: Duration,
    /// The time before the first audit of blobs, if it is not that of a server. The next one follows after the same time.
    pub(crate) audit_every: Option<Duration>,
    /// Which requests for objects are believed, and the accounts that are known.
    pub(crate) access: Access,
    pub(crate) keys: ObjectKeys,
    /// Called after each step of a change of ranges.
    pub(crate) after_step: StepHook,
    /// The clock, if it is not the machine's. Then all work is done in the test's own thread, so its time may be paused.
    pub(crate) clock: Option<Clock>,
    /// How far its clock is ahead, in ticks.
    pub(crate) ahead: i64,
    /// Called after each step of a change of several object names.
    pub(crate) after_names_step: NamesHook,
    /// Called after each range that a scan reads.
    pub(crate) after_scan_step: ScanHook,
}

impl Default for Wanted {
    fn default() -> Self {
        let (accounts, profile) = (Accounts::well_known(), Profile::fast());
        Self {
            store: Store::in_memory(),
            accounts,
            profile,
            servers: 1,
            plans: false,
            history: None,
            page_within: limits::PAGE_WITHIN,
            ageing_every: limits::AGEING_EVERY,
            audit_every: None,
            access: Access::Open,
            keys: ObjectKeys::development(),
            after_step: StepHook::default(),
            clock: None,
            ahead: 0,
            after_names_step: NamesHook::default(),
            after_scan_step: ScanHook::default(),
        }
    }
}

impl Service {
    /// Starts a service with the well-known account on free ports of the loopback. It accepts bearer tokens by their
    /// claims alone.
    pub(crate) async fn start() -> Self {
        Self::with_accounts(Accounts::well_known()).await
    }

    /// The same with other accounts.
    pub(crate) async fn with_accounts(accounts: Accounts) -> Self {
        Self::with(accounts, Profile::fast(), 1).await
    }

    /// The same with another profile.
    pub(crate) async fn with_profile(profile: Profile) -> Self {
        Self::with(Accounts::well_known(), profile, 1).await
    }

    /// The same with the well-known account and several partition servers.
    pub(crate) async fn with_servers(servers: u64) -> Self {
        Self::with(Accounts::well_known(), Profile::fast(), servers).await
    }

    async fn with(accounts: Accounts, profile: Profile, servers: u64) -> Self {
        Self::open(Wanted { accounts, profile, servers, ..Wanted::default() }).await
    }

    /// Starts a service as `wanted` says.
    pub(crate) async fn open(wanted: Wanted) -> Self {
        let Wanted { store, accounts, profile, servers, plans, history, ageing_every, .. } = wanted;
        let compact_on_callers_runtime = wanted.clock.is_some();
        let clock = wanted.clock.unwrap_or_else(Clock::system);
        clock.step(wanted.ahead);
        let accounts = SharedAccounts::new(accounts);
        let options = rangehold_engine::Options {
            servers,
            compact_on_callers_runtime,
            after_step: wanted.after_step,
            after_names_step: wanted.after_names_step,
            after_scan_step: wanted.after_scan_step,
            ..rangehold_engine::Options::new(MEMORY_BYTES, clock.clone(), 1)
        };
        let node = Node::open(store, options).await.unwrap();
        let metrics = Metrics::new();
        let (tables, objects, admin) = (listen().await, listen().await, listen().await);
        let admin_address = admin.local_addr().unwrap().ip();
        let service = TableService::new(
            node.router().clone(),
            accounts.clone(),
            Some(TokenVerifier::claims_only()),
            clock.clone(),
            // With one core, a request that waits for a turn while it has one is never answered.
            Options { seed: 2, memory_bytes: MEMORY_BYTES, cores: 1, profile: profile.clone() },
            metrics.clone(),
        );
        let object_options = object::Options {
            // The ids of requests differ between services over one store, as they do in earnest.
            seed: 3 + STARTED.fetch_add(1, Ordering::Relaxed),
            secret_seed: [4; 32],
            access: wanted.access,
            keys: SharedObjectKeys::new(wanted.keys),
            hosts: Hosts::new([]),
            retry_tests: true,
            page_within: wanted.page_within,
            ageing_every,
            audit_after_start: wanted.audit_every.unwrap_or(limits::BLOB_AUDIT_AFTER_START),
            audit_every: wanted.audit_every.unwrap_or(limits::BLOB_AUDIT_EVERY),
        };
        let object_service =
            ObjectService::new(&node, clock.clone(), object_options, &service, metrics.clone());
        let manager = ManagerOptions::new(profile.plan.clone(), &profile.load, WELL_KNOWN_ACCOUNT);
        let manager = Manager::new(&node, service.rehearsals(), ManagerOptions { plans, ..manager });
        let admin_service =
            Admin::new(node.clone(), manager, &service, metrics, Some(ADMIN_TOKEN.to_owned()), admin_address);
        let history = history.map(|options| History::open(&node, &options));
        let admin_service = admin_service.with_history(history).with_hosts(vec![ADMIN_HOST.to_owned()]);
        let endpoints = Endpoints {
            tables: (service, tables),
            objects: Some((object_service, objects)),
            tls: None,
            admin: (admin_service, admin),
        };
        let running = serve(node.clone(), endpoints).unwrap();
        Self { running, accounts, clock, node }
    }

    /// `http://HOST:PORT/devstoreaccount1`
    pub(crate) fn base(&self) -> String {
        format!("http://{}/{WELL_KNOWN_ACCOUNT}", self.running.table_address)
    }

    /// Sends a request signed with the well-known account's key. `target` begins after the account.
    pub(crate) async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.send_as(&Signer::well_known(), Request::new(method, target, headers, body)).await
    }

    /// Sends a request signed by `signer`. Its target begins after the account. If it has no date, it gets one.
    pub(crate) async fn send_as(&self, signer: &Signer, mut request: Request) -> Answer {
        request.target = format!("/{}{}", signer.account, request.target);
        signer.sign(&mut request, self.clock.wall().unix_seconds());
        self.send_raw(&request).await
    }

    /// Sends a request as it is given, to the table service.
    pub(crate) async fn send_raw(&self, request: &Request) -> Answer {
        wire::exchange(self.running.table_address, request).await
    }

    /// Sends a request as it is given, to the object service.
    pub(crate) async fn send_object(&self, request: &Request) -> Answer {
        let address = self.running.object_address.expect("objects are served");
        wire::exchange(address, request).await
    }

    /// Sends a request as it is given, to the admin endpoint.
    pub(crate) async fn send_admin(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        wire::exchange(self.running.admin_address, &Request::new(method, target, headers, b"")).await
    }

    /// The same with a body and the admin token.
    pub(crate) async fn order(&self, method: &str, target: &str, body: &str) -> Answer {
        let token = format!("Bearer {ADMIN_TOKEN}");
        let request = Request::new(method, target, &[("Authorization", &token)], body.as_bytes());
        wire::exchange(self.running.admin_address, &request).await
    }

    /// Asserts that a well-behaved client is served.
    pub(crate) async fn still_serves(&self) {
        let answer = self.send("GET", "/Tables", &[], b"").await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Creates a table.
    pub(crate) async fn create_table(&self, name: &str) {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        let answer = self.send("POST", "/Tables", &[JSON], body.as_bytes()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Asks the admin endpoint, and reads its JSON.
    pub(crate) async fn told(&self, target: &str) -> Value {
        let answer = self.order("GET", target, "").await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// Splits a range at a key, by the admin endpoint.
    pub(crate) async fn split(&self, at: &str) {
        let answer = self.order("POST", "/v1/map/split", &json!({ "at": at }).to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

/// Does `work` in one moment of a test whose time is paused: no timer ends meanwhile. Otherwise time leaps to the next timer
/// whenever all tasks wait, also if they wait for a socket.
pub(crate) async fn in_one_moment<T>(work: impl Future<Output = T>) -> T {
    let (ends, ended) = mpsc::channel::<()>();
    // Tokio's time does not leap while a blocking task runs.
    let held = tokio::task::spawn_blocking(move || ended.recv().ok());
    let done = work.await;
    drop(ends);
    held.await.unwrap();
    done
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

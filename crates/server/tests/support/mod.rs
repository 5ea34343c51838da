//! A table service in this process, in memory, and a client that signs and reads replies raw.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rangehold_engine::store::Store;
use rangehold_engine::{Clock, Options, PartitionServer};
use rangehold_protocol::time;
use rangehold_server::accounts::{Accounts, SharedAccounts, WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY};
use rangehold_server::admin::Admin;
use rangehold_server::metrics::Metrics;
use rangehold_server::table::TableService;
use rangehold_server::{Running, serve};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The admin token of the services started here.
pub const ADMIN_TOKEN: &str = "the-admin-token";
const MEMORY_BYTES: u64 = 64 << 20;

/// A running service.
pub struct Service {
    /// Its sockets.
    pub running: Running,
    clock: Clock,
}

/// A reply as it came.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers by lower-case name; of several of one name the last.
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    pub body: String,
}

impl Service {
    /// Starts a service on free ports of the loopback.
    pub async fn start() -> Self {
        let clock = Clock::system();
        let options = Options::new(MEMORY_BYTES, clock.clone(), 1);
        let partitions = PartitionServer::open(Store::in_memory(), options).await.unwrap();
        let metrics = Metrics::new();
        let (tables, admin) = (listen().await, listen().await);
        let admin_address = admin.local_addr().unwrap().ip();
        let service = TableService::new(
            partitions.clone(),
            SharedAccounts::new(Accounts::well_known()),
            None,
            clock.clone(),
            2,
            MEMORY_BYTES,
            metrics.clone(),
        );
        let admin_service = Admin::new(partitions.clone(), metrics, ADMIN_TOKEN.to_owned(), admin_address);
        let running = serve(partitions, service, tables, None, admin_service, admin).unwrap();
        Self { running, clock }
    }

    /// `http://HOST:PORT/devstoreaccount1`
    pub fn base(&self) -> String {
        format!("http://{}/{WELL_KNOWN_ACCOUNT}", self.running.table_address)
    }

    /// Sends a request signed with the account's key. `path` begins after the account.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let path = format!("/{WELL_KNOWN_ACCOUNT}{path}");
        let date = time::http_date(self.clock.now());
        let (resource, query) = path.split_once('?').unwrap_or((&path, ""));
        let component = query.split('&').find(|p| p.starts_with("comp=")).map(|p| format!("?{p}"));
        let to_sign = format!("{date}\n/{WELL_KNOWN_ACCOUNT}{resource}{}", component.unwrap_or_default());
        let key = STANDARD.decode(WELL_KNOWN_KEY).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(to_sign.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let authorization = format!("SharedKeyLite {WELL_KNOWN_ACCOUNT}:{signature}");
        let mut all = vec![("x-ms-date", date.as_str()), ("Authorization", authorization.as_str())];
        all.extend_from_slice(headers);
        self.send_raw(method, &path, &all, body).await
    }

    /// Sends a request as it is given, to the table service.
    pub async fn send_raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        exchange(self.running.table_address, method, path, headers, body).await
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// One request on a connection of its own.
pub async fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses a body early may close before it was sent whole.
    let _ = stream.write_all(body).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Answer { status, headers, body: body.to_owned() }
}

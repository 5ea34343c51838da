//! The attackers: clients of one account that take all they can get. Each sends only what is allowed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use rangehold_testkit::http::{Connection, Request};
use rangehold_testkit::seconds_since_1970;
use rangehold_testkit::sign::{Signer, VERSION};

/// Their account.
pub(super) const ACCOUNT: &str = "greedy";
/// Its key.
pub(super) const KEY: &str = "Z3JlZWR5IGtleQ==";
const TABLE: &str = "large";
/// Entities in their table, and the bytes of text in each.
const ROWS: usize = 400;
const TEXT_BYTES: usize = 30_000;
/// How often an attacker looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What an attacker does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attacker {
    /// Begins 1,100 bodies with one byte, with a SAS that may only add to one table.
    Bytes,
    /// Begins 600 bodies and stops after 60,000 bytes.
    Bodies,
    /// Sends batches of 3.2 MB, 64 at once.
    Batches,
    /// Sends queries with 1,000 comparisons, 40 at once.
    Filters,
    /// Asks for 40 large pages, and does not read them.
    Unread,
    /// Opens 4,100 connections, and does nothing.
    Idle,
}

impl Attacker {
    pub(super) const ALL: [Self; 6] =
        [Self::Bytes, Self::Bodies, Self::Batches, Self::Filters, Self::Unread, Self::Idle];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "1,100 bodies of which one byte comes",
            Self::Bodies => "600 bodies that stop after 60 KB",
            Self::Batches => "64 clients that send batches of 3.2 MB",
            Self::Filters => "40 queries with 1,000 comparisons",
            Self::Unread => "40 large pages that are not read",
            Self::Idle => "4,100 idle connections",
        }
    }

    /// Attacks until `stop`. What the server does to an attacker does not matter.
    pub(super) fn attack(self, address: SocketAddr, stop: &AtomicBool) {
        match self {
            Self::Bytes => hold(address, 1_100, &unfinished(address, 1), stop),
            Self::Bodies => hold(address, 600, &unfinished(address, 60_000), stop),
            Self::Batches => {
                in_a_loop(address, 64, &batch(0..100), stop);
            }
            Self::Filters => {
                let filter = vec!["Number%20lt%200"; 1_000].join("%20or%20");
                in_a_loop(address, 40, &get(&format!("?$filter={filter}")), stop);
            }
            Self::Unread => {
                let mut request = get("");
                sign(&mut request);
                hold(address, 40, &request.head(address), stop);
            }
            Self::Idle => hold(address, 4_100, b"", stop),
        }
    }
}

/// Makes the attackers' table.
pub(super) fn prepare(address: SocketAddr) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let body = format!("{{\"TableName\":\"{TABLE}\"}}");
    let json = [("Content-Type", "application/json")];
    let table = Request::new("POST", &format!("/{ACCOUNT}/Tables"), &json, body.as_bytes());
    let batches = (0..ROWS).step_by(100).map(|first| batch(first..first + 100));
    for mut request in std::iter::once(table).chain(batches) {
        sign(&mut request);
        let answer = connection.send(&request)?;
        if answer.status >= 300 || answer.body.contains("odata.error") {
            bail!("the attackers' table was answered {}: {}", answer.status, answer.body);
        }
    }
    Ok(())
}

/// Opens connections that send `bytes` and nothing else, and opens those again that the server ends.
fn hold(address: SocketAddr, count: usize, bytes: &[u8], stop: &AtomicBool) {
    let open = || {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        stream.set_nonblocking(true).ok()?;
        // What the server does not take at once is left out.
        let _ = stream.write(bytes);
        Some(stream)
    };
    let mut held: Vec<Option<TcpStream>> = (0..count).map(|_| open()).collect();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY);
        // A reply that is not to be read is only looked at.
        let ended =
            |stream: &TcpStream| matches!(stream.peek(&mut [0]), Ok(0)) || stream.take_error().is_err();
        for place in &mut held {
            if place.as_ref().is_none_or(ended) && !stop.load(Ordering::Relaxed) {
                *place = open();
            }
        }
    }
    for mut stream in held.into_iter().flatten() {
        // Takes what has come, so that the connection ends without a reset.
        let _ = stream.read(&mut [0; 4_096]);
    }
}

/// Answers to the requests of some clients.
pub(super) struct Answers {
    /// Requests that were carried out.
    pub(super) done: u64,
    /// Requests that were refused, or had no answer.
    pub(super) refused: u64,
}

/// So many clients send batches of 3.2 MB for a while.
pub(super) fn batches(address: SocketAddr, clients: usize, time: Duration) -> Answers {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
        });
        in_a_loop(address, clients, &batch(0..100), &stop)
    })
}

/// Sends the same request again and again, by so many clients at once.
fn in_a_loop(address: SocketAddr, clients: usize, request: &Request, stop: &AtomicBool) -> Answers {
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let client = || {
        let mut connection = None;
        while !stop.load(Ordering::Relaxed) {
            let mut request = request.clone();
            sign(&mut request);
            let open = || Connection::open_patient(address, Duration::from_secs(5)).ok();
            let Some(mut used) = connection.take().or_else(open) else { continue };
            let sent = used.send(&request);
            let is_done = sent.is_ok_and(|answer| answer.status < 400);
            if is_done { &done } else { &refused }.fetch_add(1, Ordering::Relaxed);
            connection = is_done.then_some(used);
        }
    };
    thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(client);
        }
    });
    Answers { done: done.into_inner(), refused: refused.into_inner() }
}

/// An insert with a SAS that may only add to one table, of whose body `sent` bytes come.
fn unfinished(address: SocketAddr, sent: usize) -> Vec<u8> {
    let fields = [("sv", VERSION), ("tn", TABLE), ("sp", "a"), ("se", "2099-01-01T00:00:00Z")];
    let token = Signer::new(ACCOUNT, KEY).sas(&fields.map(|(name, value)| (name, value.to_owned())));
    let headers = [("Content-Type", "application/json"), ("Content-Length", "64000")];
    let request = Request::new("POST", &format!("/{ACCOUNT}/{TABLE}?{token}"), &headers, b"");
    let mut bytes = request.head(address);
    bytes.resize(bytes.len() + sent, b' ');
    bytes
}

fn get(query: &str) -> Request {
    Request::new("GET", &format!("/{ACCOUNT}/{TABLE}(){query}"), &[("Accept", "application/json")], b"")
}

fn batch(rows: Range<usize>) -> Request {
    let text = "x".repeat(TEXT_BYTES);
    let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for row in rows {
        body += &format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             PUT http://h/{ACCOUNT}/{TABLE}(PartitionKey='p',RowKey='{row:04}') HTTP/1.1\r\n\
             Content-Type: application/json\r\n\r\n{{\"Text\":\"{text}\",\"Number\":{row}}}\r\n"
        );
    }
    body += "--c--\r\n--b--\r\n";
    let headers = [("Content-Type", "multipart/mixed; boundary=b")];
    Request::new("POST", &format!("/{ACCOUNT}/$batch"), &headers, body.as_bytes())
}

fn sign(request: &mut Request) {
    Signer::new(ACCOUNT, KEY).sign(request, seconds_since_1970());
}

//! Clients that take their time. Tokio's clock is stopped in these tests. When all tasks wait, it leaps to the next
//! timer, so 15 s pass at once.

use std::time::Duration;

use rangehold_server::limits::{HEADERS_WITHIN, REQUEST_WITHIN, STOP_WITHIN};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::support::Service;
use crate::support::wire::{Request, parse};
use rangehold_testkit::sign::Signer;

/// Sends `begin` and then waits. Returns how long it took until the service closed the connection, and what it sent.
async fn waits_after(service: &Service, begin: &[u8]) -> (Duration, Vec<u8>) {
    let mut stream = TcpStream::connect(service.running.table_address).await.expect("the service listens");
    stream.write_all(begin).await.expect("the service listens");
    tokio::time::pause();
    let begun = Instant::now();
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply).await;
    let elapsed = begun.elapsed();
    tokio::time::resume();
    (elapsed, reply)
}

/// Asserts that the time was about `expected`. Timers are rounded up, and some time may have passed before the clock
/// was stopped.
fn assert_about(elapsed: Duration, expected: Duration) {
    let slack = Duration::from_secs(3);
    assert!(elapsed + slack >= expected && elapsed <= expected + slack, "{elapsed:?}, expected {expected:?}");
}

#[tokio::test]
async fn half_a_head() {
    let service = Service::start().await;
    for begin in [&b""[..], b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: a\r\nx-ha"] {
        let (elapsed, reply) = waits_after(&service, begin).await;
        assert_about(elapsed, HEADERS_WITHIN);
        assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 408"), "{}", reply.escape_ascii());
    }
    service.still_serves().await;
}

/// Connections with half a head and with half a body are closed within the limit for the end.
#[tokio::test]
async fn a_client_that_has_not_finished_does_not_hold_up_the_end() {
    let service = Service::start().await;
    let mut half_a_body = begun_insert(&service, 100);
    half_a_body.extend_from_slice(b"{\"PartitionKey\":");
    let mut open = Vec::new();
    for begin in [b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: a\r\nx-ha".to_vec(), half_a_body] {
        let mut stream =
            TcpStream::connect(service.running.table_address).await.expect("the service listens");
        stream.write_all(&begin).await.expect("the service listens");
        open.push(stream);
    }
    // The server reads what was sent.
    sleep(Duration::from_millis(50)).await;
    tokio::time::pause();
    let begun = Instant::now();
    let stopping = tokio::spawn(service.running.stop());
    for mut stream in open {
        // The connection ends, perhaps with a reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        assert!(begun.elapsed() <= STOP_WITHIN, "{:?}", begun.elapsed());
    }
    // The store is closed by threads that know nothing of the paused clock, so how long that takes is not seen here.
    stopping.await.expect("the end does not panic");
}

/// A connection that was used and is kept open is closed after that time too.
#[tokio::test]
async fn a_kept_connection_without_a_next_request() {
    let service = Service::start().await;
    let (elapsed, reply) = waits_after(&service, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_about(elapsed, HEADERS_WITHIN);
    assert_eq!(parse(&reply).expect("a reply").status, 200);
    service.still_serves().await;
}

fn begun_insert(service: &Service, length: u64) -> Vec<u8> {
    let length = length.to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
    let mut request = Request::new("POST", "/devstoreaccount1/notes", &headers, b"");
    Signer::well_known().sign(&mut request, service.clock.wall().unix_seconds());
    request.head(service.running.table_address)
}

#[tokio::test]
async fn half_a_body() {
    let service = Service::start().await;
    let mut begin = begun_insert(&service, 100);
    begin.extend_from_slice(b"{\"PartitionKey\":");
    let (elapsed, reply) = waits_after(&service, &begin).await;
    assert_about(elapsed, REQUEST_WITHIN);
    let answer = parse(&reply).expect("a reply");
    assert_eq!((answer.status, answer.code()), (408, "RequestTimedOut"));
    service.still_serves().await;
}

/// The body is never idle for long, but it is not complete when the time of the request is over.
#[tokio::test]
async fn a_body_in_drops() {
    let service = Service::start().await;
    let begin = begun_insert(&service, 100_000);
    let stream = TcpStream::connect(service.running.table_address).await.expect("the service listens");
    let (mut from, mut to) = stream.into_split();
    to.write_all(&begin).await.expect("the service listens");
    tokio::time::pause();
    let begun = Instant::now();
    let dripping = tokio::spawn(async move {
        while to.write_all(b" ").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let mut reply = Vec::new();
    let _ = from.read_to_end(&mut reply).await;
    dripping.abort();
    assert_about(begun.elapsed(), REQUEST_WITHIN + Duration::from_secs(2));
    tokio::time::resume();
    let answer = parse(&reply).expect("a reply");
    assert_eq!((answer.status, answer.code()), (408, "RequestTimedOut"));
    service.still_serves().await;
}

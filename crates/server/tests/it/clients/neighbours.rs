//! Clients that take what they can get, beside a quiet one. The quiet client is refused nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use rangehold_server::accounts::Accounts;
use rangehold_server::listener;
use rangehold_testkit::sign::{Signer, percent_encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::support::Service;
use crate::support::wire::{Answer, Request, send_bytes};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const KEYS: [&str; 2] = ["a2V5IG9uZQ==", "a2V5IHR3bw=="];
/// Bytes of the text of a large entity.
const LARGE: usize = 30_000;

/// A service with a greedy account and a quiet one, each with a table that has `rows` entities with a text of
/// `bytes`.
async fn two_accounts(rows: usize, bytes: usize) -> (Arc<Service>, Signer, Signer) {
    let accounts = format!("greedy:{};quiet:{}", KEYS[0], KEYS[1]);
    let service = Service::with_accounts(Accounts::parse(&accounts).expect("two accounts")).await;
    let signers = [Signer::new("greedy", KEYS[0]), Signer::new("quiet", KEYS[1])];
    let text = "x".repeat(bytes);
    for signer in &signers {
        let table = Request::new("POST", "/Tables", &[JSON], br#"{"TableName":"notes"}"#);
        assert_eq!(service.send_as(signer, table).await.status, 201);
        for first in (0..rows).step_by(100) {
            let answer = service.send_as(signer, batch(first..rows.min(first + 100), &text)).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
    }
    let [greedy, quiet] = signers;
    (Arc::new(service), greedy, quiet)
}

fn batch(rows: std::ops::Range<usize>, text: &str) -> Request {
    let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for row in rows {
        body += &format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             PUT /notes(PartitionKey='p',RowKey='{row:05}') HTTP/1.1\r\n\
             Content-Type: application/json\r\n\r\n{{\"Text\":\"{text}\",\"Number\":{row}}}\r\n"
        );
    }
    body += "--c--\r\n--b--\r\n";
    Request::new("POST", "/$batch", &[("Content-Type", "multipart/mixed; boundary=b")], body.as_bytes())
}

/// A query takes turns at the processor. The service has one core, so the query would wait without end if the batch around
/// it had its turn.
#[tokio::test]
async fn a_batch_of_one_query_is_answered_on_one_core() {
    let (service, _, quiet) = two_accounts(2, 10).await;
    let body = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                GET /notes()?$filter=Number%20ge%201 HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n\r\n\
                --b--\r\n";
    let headers = [("Content-Type", "multipart/mixed; boundary=b")];
    let answer = service.send_as(&quiet, Request::new("POST", "/$batch", &headers, body.as_bytes())).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert!(answer.body.contains("HTTP/1.1 200 OK") && answer.body.contains("\"00001\""), "{answer:?}");
}

async fn insert(service: &Service, signer: &Signer, row: &str) -> Answer {
    let body = format!(r#"{{"PartitionKey":"q","RowKey":"{row}","Text":"{}"}}"#, "y".repeat(1_000));
    service.send_as(signer, Request::new("POST", "/notes", &[JSON], body.as_bytes())).await
}

/// Follows a query to its end, and returns how many entities it gave.
async fn entities(service: &Service, signer: &Signer) -> usize {
    let mut target = "/notes()".to_owned();
    let mut count = 0;
    loop {
        let answer = service.send_as(signer, Request::new("GET", &target, &[], b"")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        count += answer.body.matches("\"RowKey\"").count();
        let token = |name: &str| answer.header(name).map(|value| percent_encode(&value));
        let next = token("x-ms-continuation-nextpartitionkey").zip(token("x-ms-continuation-nextrowkey"));
        let Some((partition, row)) = next else { return count };
        target = format!("/notes()?NextPartitionKey={partition}&NextRowKey={row}");
    }
}

/// Many requests with bodies that stop in the middle, from a SAS that may only add to one table.
#[tokio::test]
async fn bodies_that_stop_in_the_middle_keep_nobody_else_from_writing() {
    let (service, greedy, quiet) = two_accounts(0, 0).await;
    let fields = [("sv", "2019-02-02"), ("tn", "notes"), ("sp", "a"), ("se", "2099-01-01T00:00:00Z")];
    let token = greedy.sas(&fields.map(|(name, value)| (name, value.to_owned())));
    let mut held = Vec::new();
    for (sent, count) in [(1, 200), (60_000, 220)] {
        for _ in 0..count {
            let headers = [JSON, ("Content-Length", "64000")];
            let request = Request::new("POST", &format!("/greedy/notes?{token}"), &headers, b"");
            let mut stream = TcpStream::connect(service.running.table_address).await.unwrap();
            stream.write_all(&request.head(service.running.table_address)).await.unwrap();
            // Some of these bodies have to wait, and then so does what their client sends.
            let sending = async {
                let _ = stream.write_all(&vec![b' '; sent]).await;
            };
            let _ = tokio::time::timeout(Duration::from_millis(20), sending).await;
            held.push(stream);
        }
    }
    for row in 0..10 {
        // A quiet account, and a quiet principal of the same account and table.
        for signer in [&quiet, &greedy] {
            let answer = insert(&service, signer, &row.to_string()).await;
            assert_eq!(answer.status, 201, "{answer:?}");
        }
    }
    let answer = service.send_as(&quiet, batch(0..100, &"x".repeat(LARGE))).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.body.matches("HTTP/1.1 204 No Content").count(), 100, "{}", answer.body);
}

/// Many pages at once, each of which compares a thousand times for each row.
#[tokio::test]
async fn long_filters_keep_nobody_else_from_reading() {
    let (service, greedy, quiet) = two_accounts(300, 10).await;
    let filter = (0..1_000).map(|_| "Number lt 0").collect::<Vec<_>>().join(" or ");
    let target = format!("/notes()?$filter={}", filter.replace(' ', "%20"));
    let attackers: Vec<_> = (0..40)
        .map(|_| {
            let (service, greedy, target) = (service.clone(), greedy.clone(), target.clone());
            tokio::spawn(async move {
                loop {
                    let answer = service.send_as(&greedy, Request::new("GET", &target, &[], b"")).await;
                    assert!(matches!(answer.status, 200 | 503), "{answer:?}");
                }
            })
        })
        .collect();
    for row in 0..5 {
        assert_eq!(entities(&service, &quiet).await, 300 + row);
        assert_eq!(insert(&service, &quiet, &row.to_string()).await.status, 201);
    }
    for attacker in attackers {
        assert!(!attacker.is_finished(), "the filter is legal");
        attacker.abort();
    }
}

/// Clients that ask for large pages, and do not read them.
#[tokio::test]
async fn replies_that_are_not_read_keep_nobody_else_from_reading() {
    let (service, greedy, quiet) = two_accounts(200, LARGE).await;
    let mut unread = Vec::new();
    for _ in 0..16 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut stream = socket.connect(service.running.table_address).await.unwrap();
        let mut request = Request::new("GET", "/greedy/notes()", &[], b"");
        greedy.sign(&mut request, service.clock.wall().unix_seconds());
        stream.write_all(&request.head(service.running.table_address)).await.unwrap();
        // The first byte shows that the reply is there. Those that find no room wait, and get none.
        let _ = tokio::time::timeout(Duration::from_millis(200), stream.read_u8()).await;
        unread.push(stream);
    }
    assert_eq!(entities(&service, &quiet).await, 200);
    assert_eq!(entities(&service, &quiet).await, 200);
}

/// More idle connections of one address than the listener keeps.
#[tokio::test]
async fn idle_connections_lock_nobody_out() {
    let (_stop, stopped) = watch::channel(false);
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let answer = |_, _| async { Response::new(Full::new(Bytes::from_static(b"ok"))) };
    tokio::spawn(listener::serve(socket, None, 16, answer, stopped));
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    for _ in 0..3 {
        let reply = send_bytes(address, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert!(reply.ends_with(b"ok"), "{}", reply.escape_ascii());
    }
}

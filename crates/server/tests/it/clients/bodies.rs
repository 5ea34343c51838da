//! Bodies that are too large, break off, or hold too much.

use std::sync::Arc;

use rangehold_protocol::table::limits::{
    BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, BODY_BYTES_MAX, XML_BYTES_MAX,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::wire::{Request, parse, send_bytes};
use crate::support::{JSON, MULTIPART, Service, batch};
use rangehold_testkit::sign::Signer;

#[tokio::test]
async fn a_body_above_its_limit_is_refused() {
    let service = Service::start().await;
    service.create_table("notes").await;
    for (method, target, header, limit) in [
        ("POST", "/notes", JSON, BODY_BYTES_MAX),
        ("POST", "/Tables", JSON, BODY_BYTES_MAX),
        ("PUT", "/notes(PartitionKey='p',RowKey='r')", JSON, BODY_BYTES_MAX),
        ("POST", "/$batch", MULTIPART, BATCH_BYTES_MAX),
        ("PUT", "/notes?comp=acl", ("Content-Type", "application/xml"), XML_BYTES_MAX),
        ("PUT", "/?restype=service&comp=properties", ("Content-Type", "application/xml"), XML_BYTES_MAX),
    ] {
        let body = vec![b' '; limit + 1];
        let declared = service.send(method, target, &[header], &body).await;
        assert_eq!((declared.status, declared.code()), (413, "RequestBodyTooLarge"), "{method} {target}");
        let chunked = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
        let chunked =
            service.send(method, target, &[header, ("Transfer-Encoding", "chunked")], &chunked).await;
        assert_eq!((chunked.status, chunked.code()), (413, "RequestBodyTooLarge"), "{method} {target}");
    }
    service.still_serves().await;
}

/// A client that sends everything before it reads, as most clients do, sees why it was refused. It does not see a
/// reset connection, although it sends far more than sockets hold.
#[tokio::test]
async fn a_refusal_reaches_a_client_that_sends_much() {
    let service = Service::start().await;
    let address = service.running.table_address;
    let body = vec![b' '; 12 << 20];
    let mut stranger = Request::new("POST", "/devstoreaccount1/Tables", &[JSON], &body);
    for expected in [(401, "NoAuthenticationInformation"), (413, "RequestBodyTooLarge")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&stranger.head(address)).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        let answer = parse(&reply).expect("a reply");
        assert_eq!((answer.status, answer.code()), expected);
        Signer::well_known().sign(&mut stranger, service.clock.wall().unix_seconds());
    }
    service.still_serves().await;
}

/// A client that asks before it sends gets the refusal instead of "go on".
#[tokio::test]
async fn a_client_that_asks_first_is_not_made_to_send() {
    let service = Service::start().await;
    let mut request = Request::new("POST", "/devstoreaccount1/Tables", &[JSON], b"");
    request.set("Expect", "100-continue");
    request.set("Content-Length", "1000000");
    let reply = send_bytes(service.running.table_address, &request.head(service.running.table_address)).await;
    assert_eq!(parse(&reply).expect("a reply").status, 401);
    service.still_serves().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let service = Service::start().await;
    let address = service.running.table_address;
    for lengths in [("Content-Length", "100"), ("Transfer-Encoding", "chunked")] {
        let mut request = Request::new("POST", "/devstoreaccount1/Tables", &[JSON, lengths], b"");
        Signer::well_known().sign(&mut request, service.clock.wall().unix_seconds());
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&request.head(address)).await.unwrap();
        stream.write_all(b"14\r\n{\"TableName\":\"notes\"").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        // The connection may close before the reply arrives. But if there is a reply, it is not a success.
        if let Some(answer) = parse(&reply) {
            assert_eq!((answer.status, answer.code()), (400, "InvalidInput"), "{lengths:?}");
        }
    }
    let tables =
        service.send("GET", "/Tables", &[("Accept", "application/json;odata=nometadata")], b"").await;
    assert_eq!(tables.body, r#"{"value":[]}"#);
}

/// All batches together are four times as large as the room for bodies. They wait for each other, and none is refused.
#[tokio::test]
async fn many_large_batches_at_once_all_succeed() {
    const CLIENTS: usize = 16;
    let service = Service::start().await;
    service.create_table("notes").await;
    let service = Arc::new(service);
    let text = "x".repeat(32_000);
    let clients = (0..CLIENTS).map(|client| {
        let put = |row| {
            let head = format!("PUT /notes(PartitionKey='{client}',RowKey='{row}') HTTP/1.1");
            (head, format!(r#"{{"Text":"{text}"}}"#))
        };
        let body = batch((0..BATCH_OPERATIONS_MAX).map(put));
        let service = Arc::clone(&service);
        tokio::spawn(async move { service.send("POST", "/$batch", &[MULTIPART], body.as_bytes()).await })
    });
    for client in clients.collect::<Vec<_>>() {
        let answer = client.await.unwrap();
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.body.matches("HTTP/1.1 204 No Content").count(), BATCH_OPERATIONS_MAX);
    }
    service.still_serves().await;
}

#[tokio::test]
async fn one_operation_too_many() {
    let service = Service::start().await;
    service.create_table("notes").await;
    let puts = |count: usize| {
        let put = |index| {
            let head =
                format!("PUT /notes(PartitionKey='p',RowKey='{index}') HTTP/1.1\r\nContent-ID: {index}");
            (head, "{}".to_owned())
        };
        batch((0..count).map(put))
    };
    let most = service.send("POST", "/$batch", &[MULTIPART], puts(BATCH_OPERATIONS_MAX).as_bytes()).await;
    assert_eq!(most.status, 202);
    assert_eq!(most.body.matches("HTTP/1.1 204 No Content").count(), BATCH_OPERATIONS_MAX);
    // As in the recordings, the reply has the index of the last operation that is allowed, and no Content-ID.
    let more = service.send("POST", "/$batch", &[MULTIPART], puts(BATCH_OPERATIONS_MAX + 1).as_bytes()).await;
    assert_eq!(more.status, 202);
    assert!(
        more.body.contains("HTTP/1.1 400 Bad Request\r\nX-Content-Type-Options: nosniff"),
        "{}",
        more.body
    );
    let text = "99:The batch request operation exceeds the maximum 100 changes per change set.\\nRequestId:";
    assert!(more.body.contains(text), "{}", more.body);
}

//! Sends requests without blocking the service, which runs in the same threads.

use std::net::SocketAddr;

pub(crate) use rangehold_testkit::http::{Answer, Request, parse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request on a connection of its own.
pub(crate) async fn exchange(address: SocketAddr, request: &Request) -> Answer {
    let mut bytes = request.head(address);
    bytes.extend_from_slice(&request.body);
    let reply = send_bytes(address, &bytes).await;
    parse(&reply).unwrap_or_else(|| panic!("no reply to {} {}", request.method, request.target))
}

/// Sends bytes on a connection of their own, and returns what comes until the connection is closed.
pub(crate) async fn send_bytes(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    // Reads and writes at the same time: a server that refuses a request early closes before all of it is sent.
    let bytes = bytes.to_vec();
    let writing = tokio::spawn(async move {
        let _ = to.write_all(&bytes).await;
        to
    });
    let mut reply = Vec::new();
    let _ = from.read_to_end(&mut reply).await;
    writing.abort();
    reply
}

//! HTTP/1.1 by hand, so that a test can send what no client library would.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request as a test writes it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Sent in this order. `Host` and `Content-Length` are added where they are absent, and
    /// `Connection: close` always.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: headers.collect(),
            body: body.to_vec(),
        }
    }

    /// The value of a header, if it is there.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    /// Request line and headers, as bytes.
    pub(crate) fn head(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", self.method, self.target);
        if self.header("host").is_none() {
            head += &format!("Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if self.header("content-length").is_none() && self.header("transfer-encoding").is_none() {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        (head + "\r\n").into_bytes()
    }
}

/// A reply as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Headers in their order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header; of several of one name all, with commas between.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let values: Vec<&str> = found.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The error's code, in whichever format it is told; empty if there is none.
    pub(crate) fn code(&self) -> &str {
        let between = |begin: &str, end: &str| {
            let rest = &self.body[self.body.find(begin)? + begin.len()..];
            rest.find(end).map(|end| &rest[..end])
        };
        between("\"code\":\"", "\"").or_else(|| between("<m:code>", "<")).unwrap_or_default()
    }
}

/// One request on a connection of its own.
pub(crate) async fn exchange(address: SocketAddr, request: &Request) -> Answer {
    let mut bytes = request.head(address);
    bytes.extend_from_slice(&request.body);
    let reply = send_bytes(address, &bytes).await;
    parse(&reply).unwrap_or_else(|| panic!("no reply to {} {}", request.method, request.target))
}

/// Sends bytes on a connection of their own, and gives what comes until it is closed.
pub(crate) async fn send_bytes(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    // Read and written at once: a server that refuses a request early closes before it is sent whole.
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

/// Reads a reply; `None` if it is none.
pub(crate) fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Some(Answer { status, headers, body: body.to_owned() })
}

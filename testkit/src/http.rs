//! HTTP/1.1 by hand: requests as they are written to the connection, and answers as they arrive.
//!
//! A test must be able to send what no client library would send, and a crash test must know exactly which
//! request went out and which answer came back. So nothing here retries, pools or hides: an error of the
//! connection means that the outcome is unknown, and the caller decides what to make of it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer: twice the server's own deadline for a write.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Largest answer that is read: a page of 1,000 entities of 30 KiB fits.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A request as a test writes it.
#[derive(Clone, Debug)]
pub struct Request {
    /// For example `GET`.
    pub method: String,
    /// Path and query as they stand in the request line.
    pub target: String,
    /// Sent in this order. `Host` and `Content-Length` are added where they are absent.
    pub headers: Vec<(String, String)>,
    /// The body; may be empty.
    pub body: Vec<u8>,
}

impl Request {
    /// A request with these parts.
    pub fn new(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: headers.collect(),
            body: body.to_vec(),
        }
    }

    /// The value of a header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Adds a header, even if one of this name is there already.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    /// Request line and headers as bytes; the server is asked to close the connection after its answer.
    pub fn head(&self, address: SocketAddr) -> Vec<u8> {
        self.written(address, "Connection: close\r\n")
    }

    fn written(&self, address: SocketAddr, first: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n{first}", self.method, self.target);
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

/// An answer as it arrived.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, for example 200.
    pub status: u16,
    /// Headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; bytes that are not UTF-8 are replaced.
    pub body: String,
}

impl Answer {
    /// The value of a header; if several have this name, all values with commas between them.
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let values: Vec<&str> = found.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The code of the error in the body, in JSON or XML; empty if there is none.
    pub fn code(&self) -> &str {
        let between = |begin: &str, end: &str| {
            let rest = &self.body[self.body.find(begin)? + begin.len()..];
            rest.find(end).map(|end| &rest[..end])
        };
        between("\"code\":\"", "\"").or_else(|| between("<m:code>", "<")).unwrap_or_default()
    }
}

/// Reads an answer whose connection was closed after it; `None` if the bytes are not an answer.
pub fn parse(mut bytes: &[u8]) -> Option<Answer> {
    let mut answer = read_head(&mut bytes).ok()?;
    answer.body = String::from_utf8_lossy(bytes).into_owned();
    Some(answer)
}

/// A connection that stays open between requests; its calls block.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    /// Connects; fails at once if no process listens.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::open_patient(address, ANSWER_WAIT)
    }

    /// Connects, for answers that may take as long as `wait`.
    pub fn open_patient(address: SocketAddr, wait: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_WAIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(ANSWER_WAIT))?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    /// Sends one request and reads its answer.
    pub fn send(&mut self, request: &Request) -> io::Result<Answer> {
        let mut bytes = request.written(self.address, "");
        bytes.extend_from_slice(&request.body);
        self.stream.get_mut().write_all(&bytes)?;
        let mut answer = read_head(&mut self.stream)?;
        answer.body = String::from_utf8_lossy(&self.body(&answer)?).into_owned();
        Ok(answer)
    }

    fn body(&mut self, answer: &Answer) -> io::Result<Vec<u8>> {
        if matches!(answer.status, 204 | 304) {
            return Ok(Vec::new());
        }
        let chunked = answer.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        if !chunked {
            let length = answer.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            return self.exactly(length);
        }
        let mut body = Vec::new();
        loop {
            let line = read_line(&mut self.stream)?;
            let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .map_err(|_| malformed(format!("not a chunk length: {line:?}")))?;
            body.extend(self.exactly(length)?);
            let _end = read_line(&mut self.stream)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(malformed(format!("an answer of {length} bytes; at most {BODY_BYTES_MAX} are read")));
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Status line and headers.
fn read_head(from: &mut impl BufRead) -> io::Result<Answer> {
    let status_line = read_line(from)?;
    let status = status_line.split(' ').nth(1).and_then(|text| text.parse().ok());
    let status = status.ok_or_else(|| malformed(format!("not a status line: {status_line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            return Ok(Answer { status, headers, body: String::new() });
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| malformed(format!("not a header: {line:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\n") {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
    }
    let text = String::from_utf8(line).map_err(|_| malformed("a header that is not UTF-8".into()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn malformed(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

//! One keep-alive HTTP/1.1 connection, blocking.
//!
//! A crash test wants to know exactly which request was sent and which answer came back, so nothing
//! here retries, pools or hides: an error of the connection is an unknown outcome, and the caller
//! decides what that means.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer: twice the server's own deadline for a write.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Largest answer that is read: a page of 1,000 entities of 30 KiB fits.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    /// Path and query as they stand in the request line.
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The first header of this name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection to the server.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    /// Connects; fails at once when nobody listens.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        Self::open_patient(address, ANSWER_WAIT)
    }

    /// The same, for answers that may take so long.
    pub(crate) fn open_patient(address: SocketAddr, wait: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(ANSWER_WAIT))?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string() })
    }

    /// Sends one request and reads its answer.
    pub(crate) fn send(&mut self, request: &Request) -> io::Result<Response> {
        let mut bytes = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target, self.host);
        for (name, value) in &request.headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        bytes.push_str(&format!("Content-Length: {}\r\n\r\n", request.body.len()));
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(&request.body);
        self.stream.get_mut().write_all(&bytes)?;
        self.receive()
    }

    fn receive(&mut self) -> io::Result<Response> {
        let status_line = self.line()?;
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| malformed(format!("not a status line: {status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| malformed(format!("not a header: {line:?}")))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new() };
        response.body = self.body(&response)?;
        Ok(response)
    }

    fn body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        if matches!(response.status, 204 | 304) {
            return Ok(Vec::new());
        }
        let chunked = response.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        if !chunked {
            let length = response.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            return self.exactly(length);
        }
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .map_err(|_| malformed(format!("not a chunk length: {line:?}")))?;
            body.extend(self.exactly(length)?);
            let _end = self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(malformed(format!("an answer of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        let text = String::from_utf8(line).map_err(|_| malformed("a header that is not UTF-8".into()))?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }
}

fn malformed(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

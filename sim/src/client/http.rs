//! HTTP/1.1 as a client speaks it, over any stream.
//!
//! Nothing here retries, pools or hides: the caller judges what went wrong.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Most bytes of a reply: a page ends after 4 MiB, with the entity that goes beyond.
const REPLY_BYTES_MAX: usize = 6 << 20;
/// Pieces in which a slow body is sent.
const SLOW_PIECES: usize = 4;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `PUT`, ...
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// Names and values, in the order in which they are sent.
    pub headers: Vec<(&'static str, String)>,
    /// The body; may be empty.
    pub body: Vec<u8>,
}

/// A reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status, as 200.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl Request {
    fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: sim\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + &format!("Content-Length: {}\r\n\r\n", self.body.len())
    }

    /// Sends it. With `pause` the body comes in pieces, with this pause between them.
    pub async fn send(&self, to: &mut (impl AsyncWrite + Unpin), pause: Option<Duration>) -> Result<()> {
        let mut bytes = self.head().into_bytes();
        let Some(pause) = pause else {
            bytes.extend_from_slice(&self.body);
            return to.write_all(&bytes).await;
        };
        to.write_all(&bytes).await?;
        for piece in self.body.chunks(self.body.len().div_ceil(SLOW_PIECES).max(1)) {
            tokio::time::sleep(pause).await;
            to.write_all(piece).await?;
        }
        Ok(())
    }
}

impl Reply {
    /// Reads one reply. A reply of the service always states its length.
    pub async fn receive(from: &mut (impl AsyncRead + Unpin)) -> Result<Self> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end;
            }
            more(from, &mut bytes).await?;
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| malformed("no status line"))?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut reply = Self { status, headers, body: String::new() };
        let length: usize = match reply.header("content-length") {
            Some(length) => length.parse().map_err(|_| malformed("no length"))?,
            None => 0,
        };
        while bytes.len() < head_end + 4 + length {
            more(from, &mut bytes).await?;
        }
        reply.body = String::from_utf8_lossy(&bytes[head_end + 4..head_end + 4 + length]).into_owned();
        Ok(reply)
    }

    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The code of an error, for example `EntityNotFound`; empty if there is none.
    pub fn code(&self) -> &str {
        let between = |begin: &str, end: &str| {
            let rest = &self.body[self.body.find(begin)? + begin.len()..];
            rest.find(end).map(|end| &rest[..end])
        };
        between("\"code\":\"", "\"").or_else(|| between("<m:code>", "<")).unwrap_or_default()
    }
}

async fn more(from: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Result<()> {
    if bytes.len() > REPLY_BYTES_MAX {
        return Err(malformed("the reply does not end"));
    }
    match from.read_buf(bytes).await? {
        0 => Err(Error::new(ErrorKind::UnexpectedEof, "the connection ended")),
        _ => Ok(()),
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn malformed(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}

//! Batches of the JSON API: one request whose body holds up to [`CALLS_MAX`] others.
//!
//! ```text
//!   --B
//!   Content-Type: application/http
//!   Content-ID: <id+1>
//!
//!   PATCH /storage/v1/b/bucket/o/name HTTP/1.1
//!   Content-Type: application/json
//!   Content-Length: 17
//!
//!   {"metadata":null}
//!   --B--
//! ```
//!
//! This module reads and writes only the envelope. The calls inside are independent of each other, and each is handled
//! as if it had come alone.

use bytes::{Bytes, BytesMut};

use super::multipart::{Boundary, Event, MultipartError, Parser, PartHead};

/// Calls in one batch.
pub const CALLS_MAX: usize = 100;
/// Bytes of the body of a batch.
pub const BATCH_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Bytes of the request line and the headers of one call.
const CALL_HEAD_BYTES_MAX: usize = 32 * 1024;

/// One request in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `Content-ID` of the part, which the reply repeats.
    pub content_id: Option<String>,
    /// The method, as the client wrote it.
    pub method: String,
    /// A path with its query, or an absolute URL.
    pub target: String,
    /// Header names and values in their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReply {
    /// `Content-ID` of the call.
    pub content_id: Option<String>,
    /// The status code and its standard text, for example 204 and `No Content`.
    pub status: (u16, &'static str),
    /// Header names and values. The length of the body is added.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Why a batch was refused as a whole: 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The envelope is wrong.
    #[error(transparent)]
    Multipart(#[from] MultipartError),
    /// There are too many calls.
    #[error("the batch has more than {CALLS_MAX} calls; send several batches")]
    TooManyCalls,
    /// A part is not a request. The field says what was found.
    #[error("part {part} of the batch is not an HTTP request: {found}")]
    NotARequest {
        /// The number of the part, from 1.
        part: usize,
        /// What was found.
        found: String,
    },
}

/// Reads the calls of a batch.
///
/// # Errors
/// [`BatchError`]; one wrong call refuses the whole batch, since then the others may have been cut wrongly too.
pub fn parse(content_type: &str, body: Bytes) -> Result<Vec<Call>, BatchError> {
    let mut parser = Parser::new(Boundary::from_content_type(content_type, "mixed")?);
    parser.push(body);
    let mut parts: Vec<(PartHead, BytesMut)> = Vec::new();
    while let Some(event) = parser.event()? {
        match event {
            Event::Part(_) if parts.len() == CALLS_MAX => return Err(BatchError::TooManyCalls),
            Event::Part(head) => parts.push((head, BytesMut::new())),
            Event::Data(data) => {
                parts.last_mut().expect("data come after a part began").1.extend_from_slice(&data);
            }
            Event::End => break,
        }
    }
    parser.finish()?;
    let calls = parts.into_iter().enumerate().map(|(at, (head, data))| {
        call(&head, data.freeze()).map_err(|found| BatchError::NotARequest { part: at + 1, found })
    });
    calls.collect()
}

/// Reads one call: a request line, headers, an empty line and a body, with LF or CRLF.
fn call(head: &PartHead, data: Bytes) -> Result<Call, String> {
    let mut lines = Vec::new();
    let mut rest = data.as_ref();
    // White space before the request line is passed over.
    while let [b'\r' | b'\n', after @ ..] = rest {
        rest = after;
    }
    while !rest.is_empty() {
        let (line, after) = match memchr::memchr(b'\n', rest) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        if data.len() - rest.len() > CALL_HEAD_BYTES_MAX {
            return Err(format!("its headers have more than {CALL_HEAD_BYTES_MAX} bytes"));
        }
        lines.push(std::str::from_utf8(line).map_err(|_| "a header that is not UTF-8".to_owned())?);
    }
    let (first, headers) = lines.split_first().ok_or("it is empty")?;
    let mut words = first.split_ascii_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(format!("the request line {first:?}"));
    };
    // A vertical tab, or white space beyond ASCII, does not end a word of the line.
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let is_version = |version: &str| version.starts_with("HTTP/");
    if !words.next().is_none_or(is_version) || method.contains(is_odd) || target.contains(is_odd) {
        return Err(format!("the request line {first:?}"));
    }
    let headers = PartHead::read(headers.iter().copied()).map_err(|error| error.to_string())?;
    let mut body = data.slice_ref(rest);
    if let Some(length) = headers.get("content-length") {
        let length = length.parse().ok().filter(|length| *length <= body.len());
        body.truncate(
            length.ok_or_else(|| format!("a body of {} bytes, and another Content-Length", body.len()))?,
        );
    }
    Ok(Call {
        content_id: head.get("content-id").map(str::to_owned),
        method: method.to_owned(),
        target: target.to_owned(),
        headers: headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body,
    })
}

/// Writes the body of the reply to a batch. Its content type is `multipart/mixed` with this boundary.
pub fn render(boundary: &Boundary, replies: &[CallReply]) -> Vec<u8> {
    let mut out = Vec::new();
    for reply in replies {
        let (code, reason) = reply.status;
        let mut head = format!("--{}\r\nContent-Type: application/http\r\n", boundary.as_str());
        if let Some(id) = &reply.content_id {
            head += &format!("Content-ID: {}\r\n", reply_id(id));
        }
        head += &format!("\r\nHTTP/1.1 {code} {reason}\r\n");
        for (name, value) in &reply.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", reply.body.len());
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&reply.body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{}--\r\n", boundary.as_str()).as_bytes());
    out
}

/// `<id>` becomes `<response-id>`.
fn reply_id(id: &str) -> String {
    match id.strip_prefix('<') {
        Some(rest) => format!("<response-{rest}"),
        None => format!("response-{id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT_TYPE: &str = "multipart/mixed; boundary=\"B\"";

    fn read(body: &str) -> Result<Vec<Call>, BatchError> {
        parse(CONTENT_TYPE, Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn calls_of_the_official_clients_are_read() {
        let python = "--B\nContent-Type: application/http\nMIME-Version: 1.0\n\nPATCH http://h/storage/v1/b/a HTTP/1.1\r\n\
            Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{}\n--B\n\nDELETE /storage/v1/b/a/o/n?generation=1 \
            HTTP/1.1\n\n\n--B--";
        let java = "--B\r\nContent-ID: <x+1>\r\nContent-Type: application/http\r\ncontent-transfer-encoding: binary\r\n\r\n\
            GET https://h/storage/v1/b/a/o/%2F HTTP/1.1\r\nA: b\r\n\r\n\r\n--B--\r\n";
        let calls = read(python).expect("two calls");
        assert_eq!(calls.len(), 2);
        assert_eq!(
            (calls[0].method.as_str(), calls[0].target.as_str()),
            ("PATCH", "http://h/storage/v1/b/a")
        );
        assert_eq!(calls[0].body, "{}");
        assert_eq!(
            (calls[1].method.as_str(), calls[1].target.as_str()),
            ("DELETE", "/storage/v1/b/a/o/n?generation=1")
        );
        assert_eq!(calls[1].body, "");
        let calls = read(java).expect("a call");
        assert_eq!(calls[0].content_id.as_deref(), Some("<x+1>"));
        assert_eq!(calls[0].headers, [("A".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn a_part_that_is_not_a_request_refuses_the_batch() {
        for part in [
            "",
            "GET",
            "GET / FTP/1",
            "GET /a\u{b}b HTTP/1.1",
            "GET / HTTP/1.1\r\nwrong",
            "PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort",
        ] {
            let refused = read(&format!("--B\r\n\r\n{part}\r\n--B--"));
            assert!(matches!(refused, Err(BatchError::NotARequest { part: 1, .. })), "{part:?}: {refused:?}");
        }
        let calls = |count: usize| read(&format!("{}--B--", "--B\n\nGET / HTTP/1.1\n\n\n".repeat(count)));
        assert_eq!(calls(CALLS_MAX).map(|calls| calls.len()), Ok(CALLS_MAX));
        assert_eq!(calls(CALLS_MAX + 1), Err(BatchError::TooManyCalls));
    }

    #[test]
    fn replies_have_the_form_that_clients_read() {
        let boundary = Boundary::new("batch_1").expect("a boundary");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let replies = [
            CallReply {
                content_id: Some("<x+1>".to_owned()),
                status: (200, "OK"),
                headers: vec![header("Content-Type", "application/json")],
                body: Bytes::from_static(b"{}"),
            },
            CallReply {
                content_id: None,
                status: (204, "No Content"),
                headers: Vec::new(),
                body: Bytes::new(),
            },
        ];
        let expected = "--batch_1\r\nContent-Type: application/http\r\nContent-ID: <response-x+1>\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}\r\n\
            --batch_1\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n\
            --batch_1--\r\n";
        assert_eq!(String::from_utf8(render(&boundary, &replies)).expect("text"), expected);
    }
}

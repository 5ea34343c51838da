//! Writes the reply to a batch, byte for byte as recordings of the service show it.
//!
//! The status of the reply is always 202. After success it has one part for each operation, in their order;
//! after a failure it has exactly one part, with the error. The parts begin with these headers, in this
//! order:
//!
//! | part | headers |
//! |---|---|
//! | insert, no content | `X-Content-Type-Options`, `Cache-Control`, `Preference-Applied`, `DataServiceVersion: 3.0;`, `Location`, `DataServiceId`, `ETag` |
//! | update, merge, upsert | `X-Content-Type-Options`, `Cache-Control`, `DataServiceVersion: 1.0;`, `ETag` |
//! | delete | `X-Content-Type-Options`, `Cache-Control`, `DataServiceVersion: 1.0;` |
//! | error | `X-Content-Type-Options`, `Cache-Control`, `Preference-Applied` (if asked for), `DataServiceVersion: 3.0;`, `Content-Type` |
//!
//! `Content-ID` stands before all of them if the operation had one.

/// The reply to one batch, while it is being written.
#[derive(Debug)]
pub struct BatchReply {
    out: Vec<u8>,
    batch: String,
    change_set: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    InChangeSet,
    Query,
}

impl BatchReply {
    /// A reply with these boundaries, such as `batchresponse_<guid>` and `changesetresponse_<guid>`.
    pub fn new(batch: String, change_set: String) -> Self {
        Self { out: Vec::with_capacity(1024), batch, change_set, state: State::Empty }
    }

    /// The content type of the reply.
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.batch)
    }

    /// Adds the reply to one operation of the change set.
    pub fn operation(&mut self, status: u16, headers: &[(impl AsRef<str>, impl AsRef<str>)], body: &[u8]) {
        self.begin_change_set();
        self.delimiter(&self.change_set.clone());
        self.part(status, headers, body);
    }

    /// Adds the reply to the single query of a batch.
    pub fn query(&mut self, status: u16, headers: &[(impl AsRef<str>, impl AsRef<str>)], body: &[u8]) {
        self.state = State::Query;
        self.delimiter(&self.batch.clone());
        self.part(status, headers, body);
    }

    /// The reply's bytes. Without any operation they hold an empty change set.
    pub fn finish(mut self) -> Vec<u8> {
        if self.state != State::Query {
            self.begin_change_set();
            self.put(&["--", &self.change_set.clone(), "--\r\n"]);
        }
        self.put(&["--", &self.batch.clone(), "--\r\n"]);
        self.out
    }

    fn begin_change_set(&mut self) {
        if self.state == State::Empty {
            self.state = State::InChangeSet;
            self.delimiter(&self.batch.clone());
            let boundary = self.change_set.clone();
            self.put(&["Content-Type: multipart/mixed; boundary=", &boundary, "\r\n\r\n"]);
        }
    }

    fn part(&mut self, status: u16, headers: &[(impl AsRef<str>, impl AsRef<str>)], body: &[u8]) {
        self.put(&["Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"]);
        self.put(&["HTTP/1.1 ", &status.to_string(), " ", reason(status), "\r\n"]);
        for (name, value) in headers {
            self.put(&[name.as_ref(), ": ", value.as_ref(), "\r\n"]);
        }
        self.put(&["\r\n"]);
        self.out.extend_from_slice(body);
        self.put(&["\r\n"]);
    }

    fn delimiter(&mut self, boundary: &str) {
        self.put(&["--", boundary, "\r\n"]);
    }

    fn put(&mut self, texts: &[&str]) {
        for text in texts {
            self.out.extend_from_slice(text.as_bytes());
        }
    }
}

/// The reason phrase of a status. Clients look at the number only.
const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ if status >= 500 => "Internal Server Error",
        _ => "Unknown",
    }
}

//! Entity group transactions on the wire: a multipart body that holds requests.
//!
//! ```text
//!   --batch_X
//!   Content-Type: multipart/mixed; boundary=changeset_Y
//!
//!   --changeset_Y
//!   Content-Type: application/http
//!   Content-Transfer-Encoding: binary
//!
//!   POST https://account.table.core.windows.net/people HTTP/1.1
//!   Content-Type: application/json
//!
//!   {"PartitionKey":"p","RowKey":"r"}
//!   --changeset_Y--
//!   --batch_X--
//! ```
//!
//! A batch holds one change set, or in place of it a single `GET`. This module reads and writes only the
//! envelope. The requests inside are read by the code that reads all other requests.

mod parse;
mod reply;

pub use parse::parse;
pub use reply::BatchReply;

/// The parts of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch<'a> {
    /// The operations in their order. There is at most one more than a batch may have: with it the caller
    /// sees that there are too many.
    pub operations: Vec<Part<'a>>,
    /// Whether the batch is a single read without a change set.
    pub query: bool,
}

/// One request in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// The method, as the client wrote it.
    pub method: &'a str,
    /// The URI, as the client wrote it: absolute, from the root, or relative.
    pub uri: &'a str,
    /// Header names and values in their order, including the `Content-ID` of the envelope.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body, without white space around it.
    pub body: &'a [u8],
}

impl<'a> Part<'a> {
    /// A header's first value. Names match in either case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        find(&self.headers, name)
    }

    /// `Content-ID`, which the reply repeats.
    pub fn content_id(&self) -> Option<&'a str> {
        self.header(CONTENT_ID)
    }
}

const CONTENT_ID: &str = "Content-ID";

fn find<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

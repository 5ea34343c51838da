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
//! A batch holds one change set, or in its place one `GET` alone. What the parts ask for is read by
//! the code that reads requests of their own; here is only the envelope, in and out.

mod parse;
mod reply;

pub use parse::parse;
pub use reply::BatchReply;

/// A batch that was taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch<'a> {
    /// The operations in their order; at most one more than a batch may have, so that one too many
    /// can be told from none.
    pub operations: Vec<Part<'a>>,
    /// Whether the batch is one read, outside of a change set.
    pub query: bool,
}

/// One request in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Method, as written.
    pub method: &'a str,
    /// URI, as written: absolute, or from the root, or relative.
    pub uri: &'a str,
    /// Header names and values in their order, `Content-ID` of the envelope included.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Body, without white space around it.
    pub body: &'a [u8],
}

impl<'a> Part<'a> {
    /// A header's first value. Names match without regard to case.
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

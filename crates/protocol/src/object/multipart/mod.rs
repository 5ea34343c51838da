//! Bodies of several parts: uploads (`multipart/related`), forms of browsers (`multipart/form-data`) and batches
//! (`multipart/mixed`).
//!
//! ```text
//!   --B                                  the delimiter: a line of its own
//!   Content-Type: application/json       the head of a part
//!                                        an empty line
//!   {"name":"n"}                         the data; the newline before the next delimiter is not part of it
//!   --B
//!   ...
//!   --B--                                the end; what follows is ignored, as is what comes before the first delimiter
//! ```
//!
//! A [`Parser`] is given the body in pieces of any size and returns [`Event`]s. It keeps a head, or a few bytes that
//! may be the beginning of a delimiter, and passes on all other bytes at once. So a part can be of any size.
//!
//! Clients differ, and the parser accepts what the official ones send: LF in place of CRLF (Python), a boundary
//! in single quotes (gsutil), heads with more headers than asked for (Rust), no newline after the end.

mod boundary;
mod parser;
mod part;
mod transfer;

pub use self::boundary::Boundary;
pub use self::parser::{Event, Parser};
pub use self::part::PartHead;
pub use self::transfer::TransferDecoder;

/// Bytes of the head of one part.
pub const PART_HEAD_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a boundary. RFC 2046 allows 70; some clients make longer ones.
pub const BOUNDARY_BYTES_MAX: usize = 256;

/// Why a body was refused. All of these are the client's mistakes: 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MultipartError {
    /// The request's content type is another one.
    #[error("the content type is '{found}', and not multipart/{wanted}; send a body of several parts")]
    NotMultipart {
        /// The subtype that this request needs.
        wanted: &'static str,
        /// The content type of the request.
        found: String,
    },
    /// The content type names no boundary that could be used.
    #[error(
        "the content type '{0}' has no boundary of 1 to {max} printable characters; add 'boundary=...'",
        max = BOUNDARY_BYTES_MAX
    )]
    NoBoundary(String),
    /// A line in the head of a part is not a header.
    #[error("the line '{0}' in the head of a part is not a header of the form 'name: value'")]
    NotAHeader(String),
    /// The head of a part is too long.
    #[error("the head of a part has more than {max} bytes", max = PART_HEAD_BYTES_MAX)]
    HeadTooLong,
    /// The body ended before its last delimiter.
    #[error("the body ends before the closing delimiter '--{0}--'")]
    Truncated(String),
}

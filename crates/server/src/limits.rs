//! Every limit on clients that is not the table protocol's own (those are in
//! `rangehold_protocol::table::limits`).

use std::time::Duration;

/// Connections open at once; further ones wait in the listener's backlog.
pub const CONNECTIONS_MAX: usize = 4096;
/// Bytes of a request line and its headers together.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Header fields of a request.
pub const HEADER_FIELDS_MAX: usize = 100;
/// Bytes of a request's URI.
pub const URI_BYTES_MAX: usize = 16 * 1024;
/// From the first byte a client may send to the end of its headers.
pub const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// For the TLS handshake.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Without a byte of a body that is still due.
pub const BODY_IDLE_MAX: Duration = Duration::from_secs(15);
/// A body may be slow for this long; after it, it must have come at [`BODY_BYTES_PER_SECOND_MIN`].
pub const BODY_GRACE: Duration = Duration::from_secs(30);
/// Least rate of a body after its grace.
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 1024;
/// Streams of one HTTP/2 connection at once.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// HTTP/2 streams that a client may open and reset before its connection is closed.
pub const HTTP2_RESETS_MAX: usize = 64;
/// Bytes of request bodies held at once, as a share of the process's memory: one in this many.
pub const BODIES_SHARE_OF_MEMORY: u64 = 8;
/// How long a request waits for room for its body before it gets 503.
pub const BODY_ROOM_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a refused body that are read and forgotten, so that its client reads the refusal.
pub const DRAIN_BYTES_MAX: usize = 64 << 20;
/// How long that may take.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// Pages of queries being built at once; each may hold a body of up to 4 MiB.
pub const PAGES_MAX: usize = 32;
/// How long a query looks for matches before it ends its page with a token. The documented total
/// for a request is 30 s; this leaves room for the answer.
pub const PAGE_WITHIN: Duration = Duration::from_secs(20);
/// Rows that a full page looks at to find the next match for its token.
pub const LOOK_AHEAD_ROWS_MAX: usize = 1000;
/// From the first byte of a write to its answer; then its outcome is unknown to the client.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(30);
/// For requests under way to finish after the signal to stop.
pub const SHUTDOWN_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks at the accounts' configuration.
pub const ACCOUNTS_REREAD_EVERY: Duration = Duration::from_secs(60);
/// Bytes of an admin request's body.
pub const ADMIN_BODY_BYTES_MAX: usize = 64 * 1024;

//! Every limit on clients that is not the table protocol's own (those are in
//! `rangehold_protocol::table::limits`).

use std::time::Duration;

/// Connections open at once; further ones wait in the listener's backlog. Fewer where the system
/// gives the process fewer file descriptors: see [`connections_max`].
pub const CONNECTIONS_MAX: usize = 4096;
/// File descriptors kept back for the store.
pub const STORE_FILES: u64 = 512;
/// Bytes of a request line and its headers together. Looked at between reads from the socket, so
/// that a head of up to twice as many may pass, and none above.
pub const HEADER_BYTES_MAX: usize = 48 * 1024;
/// Header fields of a request.
pub const HEADER_FIELDS_MAX: usize = 100;
/// Bytes of a request's URI. Two keys of 1,024 characters, percent-encoded from three bytes each,
/// fit in.
pub const URI_BYTES_MAX: usize = 24 * 1024;
/// For a request's head to arrive, counted from the connection's begin or the end of the last
/// request: so it is also how long an HTTP/1 connection is kept alive.
pub const HEADERS_WITHIN: Duration = Duration::from_secs(60);
/// A connection on which no request is open ends after this long.
pub const IDLE_MAX: Duration = Duration::from_secs(120);
/// A connection with an open request ends when for this long none began or ended: a reply is not
/// being read.
pub const OPEN_REQUEST_QUIET_MAX: Duration = Duration::from_secs(75);
/// Between two looks at what a connection does.
pub const ACTIVITY_LOOKED_AT_EVERY: Duration = Duration::from_secs(5);
/// For the TLS handshake.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Streams of one HTTP/2 connection at once.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// HTTP/2 streams that a client may open and reset before its connection is closed.
pub const HTTP2_RESETS_MAX: usize = 64;
/// Bytes of request bodies held at once, as a share of the process's memory: one in this many.
pub const BODIES_SHARE_OF_MEMORY: u64 = 8;
/// Room that a body takes at a time, as it arrives.
pub const BODY_ROOM_STEP_BYTES: usize = 64 * 1024;
/// How long a request waits for room for its body, or its reply, before it gets 503.
pub const ROOM_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of replies that clients have not read yet, as a share of the process's memory.
pub const REPLIES_SHARE_OF_MEMORY: u64 = 8;
/// A reply of less than this needs no room.
pub const SMALL_REPLY_BYTES: usize = 64 * 1024;
/// Bytes of a refused body that are read and forgotten, so that its client reads the refusal.
pub const DRAIN_BYTES_MAX: usize = 16 << 20;
/// How long that may take.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(2);
/// Pages of queries being built at once; each may come to 4 MiB.
pub const PAGES_MAX: usize = 32;
/// How long a query looks for matches before it ends its page with a token. The documented total
/// for a request is 30 s; this leaves room for the answer.
pub const PAGE_WITHIN: Duration = Duration::from_secs(20);
/// Rows that a full page looks at to find the next match for its token.
pub const LOOK_AHEAD_ROWS_MAX: usize = 1000;
/// From a request's head to its answer, body included; a write is then of unknown outcome.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(30);
/// For the CORS rules to be read when a reply is ready.
pub const CORS_RULES_WITHIN: Duration = Duration::from_secs(1);
/// For requests under way to finish after the signal to stop.
pub const SHUTDOWN_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks at the accounts' configuration.
pub const ACCOUNTS_REREAD_EVERY: Duration = Duration::from_secs(60);

/// Events that are kept; older ones are forgotten.
pub const EVENTS_KEPT: usize = 4096;
/// How long a request for events waits for the next one. Below [`OPEN_REQUEST_QUIET_MAX`].
pub const EVENTS_WAIT: Duration = Duration::from_secs(30);
/// Changes of ranges that are carried out at the same time; further ones wait.
pub const CHANGES_AT_ONCE: usize = 16;
/// How many of them the manager's own plans may be.
pub const PLANNED_CHANGES_AT_ONCE: usize = 4;
/// How often the manager looks at the ranges.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the manager looks for ranges that nobody serves, or whose change was broken off. It acts on what it found
/// at two looks: most is put right by whoever has it in hand.
pub const MEND_EVERY: Duration = Duration::from_secs(5);
/// Tables whose names are used to write keys; others are written by their ids.
pub const NAMED_TABLES_MAX: usize = 10_000;
/// For the names of tables to be read.
pub const NAMES_WITHIN: Duration = Duration::from_secs(1);
/// Bytes of a request's body to the admin endpoint.
pub const ADMIN_BODY_BYTES_MAX: usize = 64 * 1024;
/// For that body to arrive.
pub const ADMIN_BODY_WITHIN: Duration = Duration::from_secs(10);

/// How often the history counts: its finest column is as long. A clock second.
pub const HISTORY_EVERY: Duration = Duration::from_secs(1);
/// Bytes of memory for the seconds of the history; and again as many for the rest of it where there is no
/// directory.
pub const HISTORY_MEMORY_BYTES_MAX: u64 = 16 << 20;
/// Columns of one answer about the history.
pub const HISTORY_COLUMNS_MAX: usize = 720;
/// Cells that such an answer is made of at most: where the axis has many buckets, an answer has fewer columns.
pub const HISTORY_CELLS_MAX: usize = 1 << 18;
/// Rows of such an answer, and how many there are where it is not said.
pub const HISTORY_ROWS_MAX: usize = 256;
/// See [`HISTORY_ROWS_MAX`].
pub const HISTORY_ROWS: usize = 64;
/// Such questions that are answered at the same time; each holds some MiB. Further ones wait.
pub const HISTORY_ANSWERS_AT_ONCE: usize = 2;

/// Connections that this process can have open at once: the soft limit of file descriptors is
/// raised to the hard one, and what the store needs is kept back.
pub fn connections_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let given = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: given.maximum, maximum: given.maximum };
    // Where it may not be raised, the soft limit stays what it is.
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => given.maximum,
        Err(_) => given.current,
    };
    let spare = files.map_or(u64::MAX, |files| files.saturating_sub(STORE_FILES).max(16));
    CONNECTIONS_MAX.min(usize::try_from(spare).unwrap_or(CONNECTIONS_MAX))
}

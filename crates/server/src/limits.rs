//! Every limit on clients, except those of the table protocol, which are in
//! `rangehold_protocol::table::limits`.

use std::time::Duration;

/// The most connections that are open at once. If more come, idle ones give way. There are fewer if the system gives
/// the process fewer file descriptors: see [`connections_max`].
pub const CONNECTIONS_MAX: usize = 4096;
/// File descriptors that are reserved for the store.
pub const STORE_FILES: u64 = 512;
/// The most bytes of a request line and its headers together. They are counted between reads from the socket, so a
/// head of up to twice as many bytes may pass.
pub const HEADER_BYTES_MAX: usize = 48 * 1024;
/// The most header fields of a request.
pub const HEADER_FIELDS_MAX: usize = 100;
/// The most bytes of a request's URI. It has room for two keys of 1,024 characters of three bytes each,
/// percent-encoded.
pub const URI_BYTES_MAX: usize = 24 * 1024;
/// The time for the head of a request to arrive, counted from the beginning of the connection or the end of the last
/// request. So an HTTP/1 connection without requests is also kept for this time.
pub const HEADERS_WITHIN: Duration = Duration::from_secs(60);
/// A connection without an open request ends after this time.
pub const IDLE_MAX: Duration = Duration::from_secs(120);
/// A connection with an open request ends if no request begins or ends on it for this time: its client does not
/// read the reply.
pub const OPEN_REQUEST_QUIET_MAX: Duration = Duration::from_secs(75);
/// How often it is logged at most that connections were closed because there were too many.
pub const CLOSED_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// The time between two looks at the activity of a connection.
pub const ACTIVITY_LOOKED_AT_EVERY: Duration = Duration::from_secs(5);
/// The time for the TLS handshake.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The most streams of one HTTP/2 connection at once.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// The most HTTP/2 streams that a client may open and reset before its connection is closed.
pub const HTTP2_RESETS_MAX: usize = 64;
/// The bytes of a reply over HTTP/2 that the connection keeps until they are sent, beyond the last piece that it took: at most two
/// pieces of a download.
pub const HTTP2_SEND_BYTES_MAX: usize = 128 * 1024;
/// Request bodies may take this part of the process's memory: one in so many bytes.
pub const BODIES_SHARE_OF_MEMORY: u64 = 8;
/// A body of fewer bytes is small: it does not stand in line behind large ones.
pub const BODY_SMALL_BYTES: usize = 64 * 1024;
/// A body that comes is kept in pieces of at most so many bytes.
pub const BODY_PIECE_BYTES: usize = 64 * 1024;
/// The first piece of a body whose length is not declared.
pub const BODY_PIECE_BYTES_MIN: usize = 4 * 1024;
/// So many bytes of large bodies are worked on at once for each core of the process, and at least for two: as many as the
/// largest batch has. One flush of the log makes all of them durable, and small writes wait for it: with no such limit a
/// small one waited for 200 ms beside 64 clients with batches of 3.2 MB. And each takes three times its bytes of memory
/// meanwhile.
pub const LARGE_BYTES_FOR_CORE: usize = rangehold_protocol::table::limits::BATCH_BYTES_MAX;
/// While bodies wait for room, a body that keeps them waiting must bring so many bytes each second: the rate of the
/// largest body in [`REQUEST_WITHIN`].
pub const BODY_BYTES_PER_SECOND_MIN: f64 = 128.0 * 1024.0;
/// How long such a body may bring nothing before it is too slow. What it brings faster than that rate does not give it
/// more time.
pub const BODY_PATIENCE: Duration = Duration::from_secs(2);
/// The time between two looks for bodies that are too slow.
pub const BODY_PACE_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);
/// So many bytes of an upload are read before they are stored: two blocks of a chunk, so that the blocks of a plain upload go
/// to the disk as they lie in its pieces. With 256 KiB, 64 uploads took 14 MiB more memory, and a single one was not quicker. With
/// 64 KiB, 64 MiB were read back in 60 ms and not in 45 (medians of 30 reads, three runs each); the cause was not looked for.
pub const PIECE_BYTES: usize = 128 * 1024;
/// The room that an upload in gzip takes beside its piece while it is decompressed: 64 KiB each for the name, the comment and the
/// extra field in the head of a member, and 96 KiB for the window, the tables and the buffer of the decoder.
pub const UNPACKING_BYTES: usize = 288 * 1024;
/// A piece that is not complete after this time is stored as it is.
pub const PIECE_WITHIN: Duration = Duration::from_secs(10);
/// An upload of which nothing comes for this time is refused.
pub const PIECE_QUIET_MAX: Duration = Duration::from_secs(60);
/// The most room that a download takes while it is sent: three runs of four blocks of 64 KiB. One is read, one is given to the
/// connection, and of one the connection still has the end.
pub const DOWNLOAD_BYTES: usize = 768 * 1024;
/// A download reads whole blocks, so it reads at most so many bytes more than it sends.
pub const DOWNLOAD_ENDS_BYTES: u64 = 128 * 1024;
/// A resumable upload saves how far it is each time when so many bytes have come in one request.
pub const UPLOAD_SAVED_EACH_BYTES: u64 = 16 << 20;
/// The least room for bodies, and for replies, whatever their share of the memory is.
pub const ROOM_BYTES_MIN: u64 = 16 << 20;
/// How long a query or a large reply waits for room before it gets 503.
pub const ROOM_WITHIN: Duration = Duration::from_secs(5);
/// Pages that are being built, and replies that clients have not read yet, may take this part of the process's memory: one in so many bytes.
pub const REPLIES_SHARE_OF_MEMORY: u64 = 8;
/// A reply of fewer bytes needs no room.
pub const SMALL_REPLY_BYTES: usize = 64 * 1024;
/// The most bytes of a refused body that are read and dropped, so that its client reads the refusal.
pub const DRAIN_BYTES_MAX: usize = 16 << 20;
/// The time for reading and dropping them.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(2);
/// How long a batch is read before it gives its turn at the processor back. The engine has the same time for a scan.
pub const TURN: Duration = Duration::from_micros(500);
/// A turn of at least this time is all that a thread does before it looks for other tasks.
pub const TURN_ALONE: Duration = Duration::from_micros(100);
/// Work that has had so much time at the processor is long: it leaves one core to others. A page of a thousand small entities and a
/// batch of a hundred take less.
pub const LONG_WORK: Duration = Duration::from_millis(4);
/// The steps, in bytes, in which the page of a query takes room for its reply while it is built.
pub const PAGE_STEP_BYTES: usize = 64 * 1024;
/// The time for which a query looks for matches before it ends its page with a token. The documented total for a
/// request is 30 s; the difference is for the answer.
pub const PAGE_WITHIN: Duration = Duration::from_secs(20);
/// What is left of the time of a request when a page of objects or folders ends at the latest: for its answer.
pub const PAGE_ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The most rows that a full page looks at to find the next match for its token.
pub const LOOK_AHEAD_ROWS_MAX: usize = 1000;
/// Rows that a page looks at before it reads the clock again.
pub const ROWS_BY_CLOCK: usize = 64;
/// The time from the head of a request to its answer, including the body. When it is over, the outcome of a write is
/// unknown.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(30);
/// The time to read the CORS rules when a reply is ready.
pub const CORS_RULES_WITHIN: Duration = Duration::from_secs(1);
/// The time for requests under way to finish after the signal to stop.
pub const SHUTDOWN_WITHIN: Duration = Duration::from_secs(3);
/// The time for everything that is done after that signal. Then the store is left as it is, as if the process had been
/// killed: what was acknowledged is in its log.
pub const STOP_WITHIN: Duration = Duration::from_millis(4_500);
/// The time between two looks at the accounts, the certificate, and the issuers of tokens.
pub const SECRETS_READ_AGAIN_EVERY: Duration = Duration::from_secs(60);

/// The most events that are kept; older ones are forgotten.
pub const EVENTS_KEPT: usize = 4096;
/// The longest time that a request for events waits for the next one. Less than [`OPEN_REQUEST_QUIET_MAX`].
pub const EVENTS_WAIT: Duration = Duration::from_secs(30);
/// The most changes of ranges that are carried out at the same time; further ones wait.
pub const CHANGES_AT_ONCE: usize = 16;
/// The most of these that may come from the manager's own plans.
pub const PLANNED_CHANGES_AT_ONCE: usize = 4;
/// How often the manager looks at the ranges.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the manager looks for ranges that no server serves, or whose change was broken off. It acts only on what
/// it finds at two looks in a row, because the change that is under way repairs most of it.
pub const MEND_EVERY: Duration = Duration::from_secs(5);
/// The most tables whose names are used to write keys. Keys of other tables are written with the table's id.
pub const NAMED_TABLES_MAX: usize = 10_000;
/// The time to read the names of tables.
pub const NAMES_WITHIN: Duration = Duration::from_secs(1);
/// The most rows of catalogues, and of buckets, that a status looks at to count tables and buckets.
pub const COUNTED_ROWS_MAX: usize = 10_000;
/// The time for each of these counts. A status comes without a count that takes longer.
pub const COUNTED_WITHIN: Duration = Duration::from_secs(1);
/// The most bytes of a request's body at the admin endpoint.
pub const ADMIN_BODY_BYTES_MAX: usize = 64 * 1024;
/// The time for that body to arrive.
pub const ADMIN_BODY_WITHIN: Duration = Duration::from_secs(10);

/// The most buckets whose rates are kept in memory. The one that was not used for the longest time gives way; its row has
/// what it bore when it last changed.
pub const BUCKETS_WITH_RATES_MAX: usize = 4_096;
/// The most buckets whose names are sampled at once. Each takes up to 400 KiB meanwhile; with names of 50 bytes, 30 KiB.
pub const BUCKETS_WATCHED_MAX: usize = 128;
/// The time between two writes of the row with what a bucket bears, while that does not change.
pub const CAPACITY_STORED_EVERY: Duration = Duration::from_secs(60 * 60);

/// How often the history counts, which is also the length of its finest column.
pub const HISTORY_EVERY: Duration = Duration::from_secs(1);
/// Bytes of memory for the columns of seconds in the history. Without a directory, the other columns may take as many
/// bytes again.
pub const HISTORY_MEMORY_BYTES_MAX: u64 = 16 << 20;
/// The most columns of one answer about the history.
pub const HISTORY_COLUMNS_MAX: usize = 720;
/// The most cells that are read for such an answer. If the axis has many buckets, an answer has fewer columns.
pub const HISTORY_CELLS_MAX: usize = 1 << 18;
/// The most rows of such an answer.
pub const HISTORY_ROWS_MAX: usize = 256;
/// The rows of such an answer if the request does not say how many.
pub const HISTORY_ROWS: usize = 64;
/// The most questions about the history that are answered at the same time; each needs some MiB. Further ones wait.
pub const HISTORY_ANSWERS_AT_ONCE: usize = 2;

/// The bytes of one part in `share` of the memory, but at least [`ROOM_BYTES_MIN`].
pub fn room_bytes(memory_bytes: u64, share: u64) -> usize {
    usize::try_from((memory_bytes / share).max(ROOM_BYTES_MIN)).unwrap_or(usize::MAX)
}

/// The number of connections that this process can have open at once. It raises the soft limit of file descriptors to
/// the hard one, and reserves those that the store needs.
pub fn connections_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let given = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: given.maximum, maximum: given.maximum };
    // If the system does not allow it, the soft limit stays as it is.
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => given.maximum,
        Err(_) => given.current,
    };
    let spare = files.map_or(u64::MAX, |files| files.saturating_sub(STORE_FILES).max(16));
    CONNECTIONS_MAX.min(usize::try_from(spare).unwrap_or(CONNECTIONS_MAX))
}
/// Buckets of one page of their list in the XML API.
pub const XML_BUCKETS_MAX: usize = 10_000;
/// Objects that a request which deletes many of them deletes at once.
pub const DELETES_AT_ONCE: usize = 16;
/// Operations of one bucket that are under way at once.
pub const OPERATIONS_RUNNING_MAX: usize = 10;
/// The time after which operations that failed for now are carried on again.
pub const JOBS_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// How often a request settles changes of several names that it meets at one name, before it gives up.
pub const INTENTS_MET_MAX: usize = 8;
/// How often one write may find its bucket closed by a deletion which then leaves it, as it is not empty. After that the write
/// is answered 503.
pub const BUCKET_OPENED_AGAIN_MAX: usize = 8;
/// How often a request looks for folders that are renamed or deleted at the same time, before it gives up.
pub const FOLDER_TRIES_MAX: usize = 16;
/// How often a move or a composition begins again because its sources were changed at the same time.
pub const NAMES_CHANGE_TRIES_MAX: usize = 5;
/// Folders that one recursive deletion deletes, and objects that it reads at once.
pub const DELETED_AT_ONCE: usize = 1_000;
/// Rows of objects that a page reads first in each folder, in a bucket with folders. Each further batch is twice as large.
pub const WALK_BATCH_ROWS_AT_FIRST: usize = 8;
/// Rows of objects that a page reads at once there.
pub const WALK_BATCH_ROWS: usize = 512;
/// Bytes of such rows after which it reads no more at once.
pub const WALK_BATCH_BYTES: usize = 2 << 20;
/// How often a page of a listing is made again because names were moved at the same time.
pub const PAGE_TRIES_MAX: usize = 8;
/// After so many of these tries moves wait for the page.
pub const PAGE_TRIES_FREE: usize = 3;
/// Heads with intents that the deletion of a bucket looks at. With more of them, the bucket counts as not empty.
pub const INTENTS_IN_BUCKET_MAX: usize = 1_000;
/// The time from the start to the first audit of blobs: clients come first then.
pub const BLOB_AUDIT_AFTER_START: Duration = Duration::from_secs(60);
/// The time between two audits of blobs.
pub const BLOB_AUDIT_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time after which an audit that failed begins again.
pub const BLOB_AUDIT_AGAIN_AFTER: Duration = Duration::from_secs(10 * 60);
/// The time from the start to the first walk over the buckets.
pub const AGEING_AFTER_START: Duration = Duration::from_secs(5 * 60);
/// The time between two walks over the buckets. The real service looks at its lifecycle rules once a day.
pub const AGEING_EVERY: Duration = Duration::from_secs(60 * 60);
/// Rows that the walk reads at once.
pub const AGEING_PAGE_ROWS: usize = 1_000;
/// The shortest pause of the walk after a page.
pub const AGEING_PAUSE_MIN: Duration = Duration::from_millis(20);
/// Changes of one bucket that may fail before the walk leaves the bucket to the next walk.
pub const AGEING_FAILURES_MAX: u64 = 100;

//! Every number of the engine that somebody might ask about, with its reason.
//!
//! Sizes are in bytes. Before you change one, look at the tests that name it.

use std::time::Duration;

use rangehold_map::Timestamp;

// ---- Writing ----

/// Locks by partition in a range. Two partitions share a lock by chance only: 64 busy partitions
/// meet another one 6 % of the time.
pub(crate) const STRIPES: u16 = 1_024;
/// Writes of one range between their admission and the flush that makes them durable. More are refused
/// as busy.
pub(crate) const WRITES_IN_FLIGHT_MAX: usize = 16_384;
/// How often the flush task steps back before it flushes, so that writers whose last write has
/// just become durable get their next one into the same flush. Ten were seen to double throughput
/// and to halve latency with 64 writers; with one writer they cost microseconds.
pub(crate) const FLUSH_YIELDS: usize = 10;
/// How long that may take: where readers keep the processors busy, each step back waits for all of
/// them, and ten were seen to cost a write 60 ms.
pub(crate) const FLUSH_YIELDS_WITHIN: Duration = Duration::from_millis(1);

// ---- Timestamps ----

/// How far ahead of a write's timestamp a reservation reaches.
pub(crate) const RESERVED_TICKS: i64 = 10 * Timestamp::TICKS_PER_SECOND;
/// When less than this is left of the reservation, the next write brings a new one along.
pub(crate) const RESERVATION_LEFT_MIN_TICKS: i64 = 5 * Timestamp::TICKS_PER_SECOND;

// ---- Reading ----

/// What one request to the store fetches at least while a scan goes on: one block. A directory is
/// read by `pread`, where more saves nothing (long scans cost the same, 1.4 us a row) and makes a
/// scan of ten rows up to a fifth dearer. A store far away will want more.
pub(crate) const SCAN_READ_AHEAD_BYTES: usize = 16 << 10;

/// How long a scan goes on before it lets others have the thread. A page of a thousand entities takes
/// ten milliseconds; where requests keep the processors busy everybody else waited for it.
pub(crate) const SCAN_TURN: Duration = Duration::from_micros(500);

// ---- A range's database ----

/// Flushes of the log after which a memtable is written to a sorted file, however
/// small it is. It bounds what has to be replayed when a database is opened: one file a flush,
/// about 0.2 ms each. (The database itself takes no bound below 4,096.)
pub(crate) const LOG_FILES_MAX: usize = 1_024;
/// The same for all ranges of the process together: then the one with the longest log is flushed.
/// After a crash all logs are replayed before the process is ready.
pub(crate) const LOG_FILES_TOTAL_MAX: usize = 16_384;
/// Sorted files that overlap before flushing waits for compaction.
pub(crate) const L0_FILES_MAX: usize = 16;
/// How often a database looks by itself whether its manifest was changed from outside. Nothing
/// depends on it: writing finds out at once that another process has opened the database, reads are
/// guarded by the server's own knowledge of what it holds, and the housekeeper tells a database when
/// it has changed its files. With a thousand databases a shorter time is seen in the idle process.
pub(crate) const MANIFEST_POLL: Duration = Duration::from_secs(600);
/// What ranges counted before they were handed over, until somebody takes it, which is once a second
/// where a history of load is kept: more ranges than are handed over in that time.
pub(crate) const TALLIES_LEFT_MAX: usize = 256;
/// Databases of one process that are opened or closed at the same time. Each waits for the disk a
/// few times; more than this and the disk is the one that is waited for.
pub(crate) const OPENINGS_AT_ONCE_MAX: usize = 32;

// ---- Background work (more in `housekeeping::limits`) ----

/// Nice value of the threads that compact and collect garbage.
pub(crate) const BACKGROUND_NICE: i32 = 10;

// ---- Keeping a database open ----

/// First wait before a database that the engine below has closed is opened again.
pub(crate) const REOPEN_WAIT_MIN: Duration = Duration::from_millis(50);
/// Longest such wait; it doubles up to here.
pub(crate) const REOPEN_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long closing waits for writes that are under way.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(35);
/// How long closing waits for the database to save its memtables. On a full disk that never ends.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(35);

/// Databases below a range that its files may be borrowed from when it is split or merged: more
/// would make each opening and each manifest longer.
pub(crate) const BORROWED_FROM_MAX: usize = 4;
// ---- Memory ----

/// Least `memory_bytes`: below it a memtable would be too small to be worth a file.
pub(crate) const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// What a row costs in a memtable, as a multiple of its encoded size: skip list node, two
/// allocations, the key twice. Measured at 300-byte rows.
pub(crate) const MEMTABLE_OVERHEAD: u64 = 2;
/// Parts into which each cache is cut. Fixed, not by the number of processors, so that a
/// simulation evicts the same blocks everywhere.
pub(crate) const CACHE_SHARDS: usize = 8;
/// How often the memtables of all ranges are compared with their share.
pub(crate) const MEMTABLES_POLL: Duration = Duration::from_millis(250);
/// The same while nothing is written: of a thousand ranges at rest it was a fifth of what the process did.
pub(crate) const MEMTABLES_POLL_AT_REST: Duration = Duration::from_secs(1);
/// Memtables that it has written out, one after the other, before it looks again: a few milliseconds
/// each.
pub(crate) const MEMTABLE_FLUSHES_MAX: usize = 32;

// ---- Dropped tables ----

/// How long a dropped table's id is remembered at least: longer than any request that had looked
/// the id up before can take (30 s).
pub(crate) const DROPPED_REMEMBERED: Duration = Duration::from_secs(60);
/// A dropped table with at most this many rows is erased row by row; a larger one by compaction.
/// Rewriting a whole range for a handful of rows would be the dearer way.
pub(crate) const ERASED_ROW_BY_ROW_MAX: usize = 10_000;
/// Rows erased by one write.
pub(crate) const ERASED_AT_ONCE: usize = 1_000;
/// How long the sweeper waits after a drop before it compacts, so that several drops share one
/// compaction.
pub(crate) const COMPACTION_DEBOUNCE: Duration = Duration::from_secs(5);
/// How often the sweeper reads in the catalogue which tables are dropped: a caller may have given
/// up between the catalogue and the ranges. A scan or two for each account.
pub(crate) const CATALOGUE_POLL: Duration = Duration::from_secs(60);
/// How long the sweeper's own write of the catalogue may take.
pub(crate) const CATALOGUE_WRITE_MAX: Duration = Duration::from_secs(30);
/// How often the sweeper looks at tables that wait for their time, or that could not be swept.
pub(crate) const SWEEP_POLL: Duration = Duration::from_secs(5);

// ---- Copying ----

/// Rows of one write into a copy.
pub(crate) const COPY_BATCH_ROWS_MAX: usize = 1_000;
/// Bytes of one write into a copy.
pub(crate) const COPY_BATCH_BYTES_MAX: usize = 1 << 20;
/// Memory for the database that is written.
pub(crate) const COPY_MEMORY_BYTES: u64 = 256 << 20;
/// What the scan of the source fetches at once.
pub(crate) const COPY_READ_AHEAD_BYTES: usize = 1 << 20;
/// How often a copy that waits for its target looks whether the disk has room.
pub(crate) const COPY_ROOM_POLL: Duration = Duration::from_millis(100);
/// How long a copy that failed waits for its target to close.
pub(crate) const COPY_GIVE_UP_MAX: Duration = Duration::from_secs(1);
/// How long the source keeps the files of a copy that nobody goes on with. Longer than an hour, by
/// which the clocks of two processes may differ after one of them was set back.
pub const CHECKPOINT_LIFETIME: Duration = Duration::from_secs(2 * 3_600);
/// How often a copy that goes on renews its checkpoint.
pub(crate) const CHECKPOINT_RENEWED_EVERY: Duration = Duration::from_secs(600);
/// How often a moment is sought in a range whose manifest keeps changing.
pub(crate) const MOMENT_ATTEMPTS_MAX: u32 = 50;

// ---- Changing hands ----

/// Writes that one range holds while it is split, merged or moved.
pub(crate) const HELD_WRITES_MAX: usize = 1_000;
/// Their bytes.
pub(crate) const HELD_BYTES_MAX: u64 = 32 << 20;
/// Bytes of the held writes of all ranges of a process.
pub(crate) const HELD_BYTES_OF_PROCESS_MAX: u64 = 128 << 20;
/// How long a write is held; then it is refused as busy. A change holds writes for some tens of
/// durable files' time; a slow disk or a busy machine is better waited for than refused.
pub(crate) const HELD_FOR_MAX: Duration = Duration::from_secs(5);
/// How long a server may answer reads after it last saw that its incarnation was not ended.
pub(crate) const LEASE_TERM: Duration = Duration::from_secs(5);
/// How often it looks; and what whoever takes its ranges waits beyond the term, for clocks that
/// run at different speeds.
pub(crate) const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(1);
/// How long a write of the engine's own waits for a range that changes hands.
pub(crate) const OWN_WRITE_WAITS_MAX: Duration = Duration::from_secs(30);
/// Sorted files that must still fit before flushing would wait for compaction.
pub(crate) const FREE_L0_FILES_MIN: usize = 4;
/// Bytes that the last flush may have to save.
pub(crate) const READY_UNFLUSHED_BYTES_MAX: u64 = 256 << 10;
/// Flushes before a range whose writes come faster than they are saved is said not to be ready.
pub(crate) const READY_FLUSHES_MAX: usize = 3;
/// How often a range that is not ready is looked at again.
pub(crate) const READY_POLL: Duration = Duration::from_millis(250);
/// How long a freeze waits for the writes under way to come to the log, and a move then for them to be
/// durable; after that it is given up.
pub(crate) const FREEZE_WITHIN: Duration = Duration::from_millis(500);
/// How long the checkpoint stays that a change clones from. A clone pins what it needs itself, and one
/// that takes longer is tried again; but a retired range is not buried before.
pub(crate) const CLONE_CHECKPOINT_LIFETIME: Duration = Duration::from_secs(120);
/// Attempts to clone; one fails if the memtable was cut in the wrong moment.
pub(crate) const CLONE_ATTEMPTS_MAX: u64 = 5;
/// How often a decision is tried when the store does not answer; SlateDB's own retries are below.
pub(crate) const DECIDE_ATTEMPTS_MAX: u32 = 30;
/// Pause between such tries.
pub(crate) const DECIDE_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Versions of the map that are kept at least: to see what was, and for readers that are slow.
pub(crate) const MAP_VERSIONS_KEPT: u64 = 16;
/// How long a request looks for the owner of its keys. Beyond what a planned change takes it is an
/// owner that crashed: the lease (5 s), the wait for it (1 s) and opening the range.
pub(crate) const ROUTED_WITHIN: Duration = Duration::from_secs(10);
/// How often a front end reads the stored map at most, because owners are not where it believes.
pub(crate) const MAP_READ_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Longest wait for a newer map before the owner is asked again, the first time; up to ten times that.
pub(crate) const ROUTE_WAIT: Duration = Duration::from_millis(10);
/// How long a change waits for its range to get ready, before anything is begun.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);
/// Pause before a map that the store did not take is stored again.
pub(crate) const PUBLISH_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often the requests of every range are folded into its rates.
pub(crate) const LOAD_SECOND: Duration = Duration::from_secs(1);

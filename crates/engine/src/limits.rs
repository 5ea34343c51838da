//! The limits and other numbers of the engine, each with its reason.
//!
//! Sizes are in bytes. Before you change one, look at the tests that name it.

use std::time::Duration;

use rangehold_map::Timestamp;

// ---- Writing ----

/// The number of locks of a range. Each partition has one of them, and two partitions share a lock only by
/// chance: with 64 busy partitions, each shares its lock with another one 6 % of the time.
pub(crate) const STRIPES: u16 = 1_024;
/// How many writes of one range may be between their admission and the flush that makes them durable.
/// Further writes are refused as busy.
pub(crate) const WRITES_IN_FLIGHT_MAX: usize = 16_384;
/// How often the flush task yields before it flushes, so that writers whose last write has just become
/// durable get their next one into the same flush. With 64 writers, ten times were seen to double the
/// throughput and to halve the latency; with one writer they cost microseconds.
pub(crate) const FLUSH_YIELDS: usize = 10;
/// How long the yields may take together: where readers keep the processors busy, each yield waits for all
/// of them, and ten of them were seen to cost a write 60 ms.
pub(crate) const FLUSH_YIELDS_WITHIN: Duration = Duration::from_millis(1);
/// How many refused writes of a row get their turn when a change of the row is durable. With the writer of that change
/// they are three that try: each change then takes about six requests.
pub(crate) const TURNS_AT_ONCE: usize = 2;
/// How many turns a client has before it loses its place in the queue of a row. Of three that try, one wins, so 24 of 25 clients
/// win within eight turns.
pub(crate) const TURNS_OF_PLACE: u32 = 8;
/// After so many refusals of others, a client loses its place in the queue of a row: it went away.
pub(crate) const TURN_PLACES_KEPT: u64 = 1_024;
/// The longest time for which a refusal waits for its turn, after it may be told.
pub(crate) const TURN_MAX: Duration = Duration::from_millis(100);

// ---- Timestamps ----

/// How far a reservation reaches beyond the timestamp of the write that makes it.
pub(crate) const RESERVED_TICKS: i64 = 10 * Timestamp::TICKS_PER_SECOND;
/// When less than this is left of the reservation, the next write makes a new one.
pub(crate) const RESERVATION_LEFT_MIN_TICKS: i64 = 5 * Timestamp::TICKS_PER_SECOND;

// ---- Reading ----

/// How much one request of a scan of the database to the store fetches at least: one block. (A scan that reads sorted files
/// itself fetches one block at a time.) A directory is read by `pread`.
/// There a larger request saves nothing (long scans cost the same, 1.4 us a row) and makes a scan of ten
/// rows up to a fifth more expensive. A store far away will need more.
pub(crate) const SCAN_READ_AHEAD_BYTES: usize = 16 << 10;

/// How long a scan runs before it lets other tasks use the thread. A page of a thousand entities takes ten
/// milliseconds, and where requests keep the processors busy, all other requests waited for it.
pub(crate) const SCAN_TURN: Duration = Duration::from_micros(500);
/// Rows that a scan visits before it reads the clock for the first time.
pub(crate) const SCAN_ROWS_AT_FIRST: usize = 8;
/// Rows that it visits at most before it reads the clock again.
pub(crate) const SCAN_ROWS_BY_CLOCK: usize = 64;

// ---- The cache of rows ----

/// A block of the cache with so many rows, or so many bytes, is cut in two. A change of a row copies the list of the
/// block's rows if a scan holds it. Unit tests have small blocks and chunks, so that a few hundred keys fill many.
pub(crate) const CACHED_BLOCK_ROWS: usize = if cfg!(test) { 8 } else { 64 };
/// See [`CACHED_BLOCK_ROWS`].
pub(crate) const CACHED_BLOCK_BYTES: usize = 32 << 10;
/// Blocks in one chunk. A change of a row copies the list of the chunk's blocks if a scan holds it.
pub(crate) const CACHED_CHUNK_BLOCKS: usize = if cfg!(test) { 8 } else { 256 };
/// A fill hands over what it has read after so many rows or bytes, and needs memory for no more.
pub(crate) const FILL_PIECE_ROWS: usize = 256;
/// See [`FILL_PIECE_ROWS`].
pub(crate) const FILL_PIECE_BYTES: usize = 128 << 10;
/// A fill during which writes touch more keys than this in one piece of it is given up.
pub(crate) const FILL_TOUCHED_MAX: usize = 10_000;
/// Blocks that are looked at for one to evict.
pub(crate) const CACHE_EVICTION_STEPS: usize = 8;
/// Searches for a block to evict that one change of a cache makes.
pub(crate) const CACHE_EVICTIONS_MAX: usize = 1_000;

/// Keys of rows that are not in sorted files yet are kept in generations of so many.
pub(crate) const UNSORTED_GENERATION_KEYS: usize = 4_096;
/// Generations that are kept. A memtable of the default size holds some 70,000 rows of 300 bytes; with more rows than fit here,
/// scans ask the database for all rows until the next memtable is written out.
pub(crate) const UNSORTED_GENERATIONS_MAX: usize = 32;

/// A judge that wants so many rows that are not in the cache reads them by one scan. To open a scan costs as much as two to
/// six reads of single rows.
pub(crate) const SCAN_INSTEAD_OF_GETS: usize = 8;
/// Rows that such a scan may visit for each row that is wanted: a row of a scan costs a sixth of a single read.
pub(crate) const SCAN_ROWS_FOR_A_GET: usize = 4;

/// When a scan is told to go on at a later key, it makes so many steps before it seeks. A listing of objects that were
/// never overwritten steps over one or two rows for each name.
pub(crate) const STEPS_BEFORE_SEEK: usize = 8;

// ---- A range's database ----

/// After this many flushes of the log, a memtable is written to a sorted file, even a small one. This
/// limits what must be replayed when a database is opened: one file for each flush, about 0.2 ms each. (The
/// database itself accepts no limit below 4,096.)
pub(crate) const LOG_FILES_MAX: usize = 1_024;
/// The same for all ranges of the process together: at this number, the range with the longest log is
/// flushed. After a crash all logs are replayed before the process is ready.
pub(crate) const LOG_FILES_TOTAL_MAX: usize = 16_384;
/// With this many overlapping sorted files, flushing waits for compaction.
pub(crate) const L0_FILES_MAX: usize = 16;
/// How often a database checks by itself whether its manifest was changed from outside. Nothing depends on
/// this: a write finds out at once that another process has opened the database, reads are guarded by what
/// the server knows of the ranges it holds, and the housekeeper tells a database when it has changed its
/// files. With a thousand databases, a shorter time would load a process that gets no requests.
pub(crate) const MANIFEST_POLL: Duration = Duration::from_secs(600);
/// How many counts are kept of ranges that were handed over, until they are taken. They are taken once a
/// second where a history of load is kept. This is more than the ranges that are handed over in that time.
pub(crate) const TALLIES_LEFT_MAX: usize = 256;
/// How many databases of one process are opened or closed at the same time. Each waits for the disk a few
/// times. If there were more, they would only wait for each other at the disk.
pub(crate) const OPENINGS_AT_ONCE_MAX: usize = 32;

// ---- Background work (more in `housekeeping::limits`) ----

/// The nice value of the threads that compact and collect garbage.
pub(crate) const BACKGROUND_NICE: i32 = 10;

// ---- Keeping a database open ----

/// The first wait before a database that the engine below has closed is opened again.
pub(crate) const REOPEN_WAIT_MIN: Duration = Duration::from_millis(50);
/// The longest such wait. It doubles up to here.
pub(crate) const REOPEN_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long closing a range waits for writes that are under way.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(35);
/// How long closing a range waits until the database has saved its memtables. On a full disk that never
/// ends.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(35);

/// A range whose files are borrowed from at most this many databases may be split or merged. More would
/// make each opening and each manifest longer.
pub(crate) const BORROWED_FROM_MAX: usize = 4;
// ---- Memory ----

/// The least `memory_bytes`. With less, a memtable would be too small to be worth a file.
pub(crate) const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// The size of a row in a memtable, as a multiple of its encoded size: a skip list node, two allocations,
/// the key twice. Measured with rows of 300 bytes.
pub(crate) const MEMTABLE_OVERHEAD: u64 = 2;
/// The number of parts of each cache. It does not depend on the number of processors, so that a simulation
/// evicts the same blocks on every machine.
pub(crate) const CACHE_SHARDS: usize = 8;
/// How often the memtables of all ranges are compared with their share.
pub(crate) const MEMTABLES_POLL: Duration = Duration::from_millis(250);
/// The same while nothing is written. With a thousand ranges at rest, this comparison was a fifth of all
/// the work of the process.
pub(crate) const MEMTABLES_POLL_AT_REST: Duration = Duration::from_secs(1);
/// How many memtables are written out, one after the other, before the memtables are compared again. Each
/// takes a few milliseconds.
pub(crate) const MEMTABLE_FLUSHES_MAX: usize = 32;

// ---- Dropped tables ----

/// How long the id of a dropped table is remembered at least: longer than any request can take that looked
/// up the id before the drop (30 s).
pub(crate) const DROPPED_REMEMBERED: Duration = Duration::from_secs(60);
/// A dropped table with at most this many rows is erased row by row, a larger one by compaction. To rewrite
/// a whole range for a few rows would be more expensive.
pub(crate) const ERASED_ROW_BY_ROW_MAX: usize = 10_000;
/// The number of rows that one write erases.
pub(crate) const ERASED_AT_ONCE: usize = 1_000;
/// How long the sweeper waits after a drop before it compacts, so that several drops share one
/// compaction.
pub(crate) const COMPACTION_DEBOUNCE: Duration = Duration::from_secs(5);
/// How often the sweeper reads the catalogue to find dropped tables: the caller of a drop may have given up
/// after the catalogue was written and before the ranges knew of it. This takes one or two scans for each
/// account.
pub(crate) const CATALOGUE_POLL: Duration = Duration::from_secs(60);
/// How long the sweeper's own write to the catalogue may take.
pub(crate) const CATALOGUE_WRITE_MAX: Duration = Duration::from_secs(30);
/// How often the sweeper looks at tables that wait until they may be swept, or that could not be swept.
pub(crate) const SWEEP_POLL: Duration = Duration::from_secs(5);

// ---- Copying ----

/// How many rows at most one write puts into a copy.
pub(crate) const COPY_BATCH_ROWS_MAX: usize = 1_000;
/// How many bytes one write puts into a copy.
pub(crate) const COPY_BATCH_BYTES_MAX: usize = 1 << 20;
/// The memory for the database that is written.
pub(crate) const COPY_MEMORY_BYTES: u64 = 256 << 20;
/// How much the scan of the source fetches at once. The scans of all ranges begin at the same time, and each holds this
/// much until its rows are copied.
pub(crate) const COPY_READ_AHEAD_BYTES: usize = 128 << 10;
/// How often a copy that waits for its target checks whether the disk has room.
pub(crate) const COPY_ROOM_POLL: Duration = Duration::from_millis(100);
/// How long a copy that failed waits for its target to close.
pub(crate) const COPY_GIVE_UP_MAX: Duration = Duration::from_secs(1);
/// How long the source keeps the files of a copy that was given up. It is longer than an hour: the clocks
/// of two processes may differ by an hour after one of them was set back.
pub const CHECKPOINT_LIFETIME: Duration = Duration::from_secs(2 * 3_600);
/// How often a running copy renews its checkpoint.
pub(crate) const CHECKPOINT_RENEWED_EVERY: Duration = Duration::from_secs(600);
/// How often a copy tries to find moments of all ranges, while ranges change hands.
pub(crate) const MOMENTS_ATTEMPTS_MAX: u32 = 200;
/// How long a copy waits before it looks again whether a change of ranges has ended.
pub(crate) const MOMENTS_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How often a copy tries to find a moment in a range whose manifest keeps changing.
pub(crate) const MOMENT_ATTEMPTS_MAX: u32 = 50;

// ---- Changing hands ----

/// How many writes one range holds while it is split, merged or moved.
pub(crate) const HELD_WRITES_MAX: usize = 1_000;
/// How many bytes of such writes one range holds.
pub(crate) const HELD_BYTES_MAX: u64 = 32 << 20;
/// How many bytes of held writes all ranges of a process have together.
pub(crate) const HELD_BYTES_OF_PROCESS_MAX: u64 = 128 << 20;
/// How long a write is held before it is refused as busy. A change holds writes for as long as some tens of
/// durable files take. With a slow disk or a busy machine, it is better to wait than to refuse.
pub(crate) const HELD_FOR_MAX: Duration = Duration::from_secs(5);
/// How long a server may answer reads after it last saw that its incarnation was not ended.
pub(crate) const LEASE_TERM: Duration = Duration::from_secs(5);
/// How often the server looks. A process that takes the ranges of the server waits this much beyond the
/// term, since clocks may run at different speeds.
pub(crate) const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(1);
/// How long a write of the engine itself waits for a range that changes hands, and then until it is durable.
pub(crate) const OWN_WRITE_WAITS_MAX: Duration = Duration::from_secs(30);
/// A range is ready for a change if at least this many sorted files still fit before flushing would wait
/// for compaction.
pub(crate) const FREE_L0_FILES_MIN: usize = 4;
/// How many bytes the last flush may have to save.
pub(crate) const READY_UNFLUSHED_BYTES_MAX: u64 = 256 << 10;
/// After this many flushes, a range is said not to be ready, since its writes come faster than they are
/// saved.
pub(crate) const READY_FLUSHES_MAX: usize = 3;
/// How long a step of a change that saves rows may take. On a full disk it would take as long as the disk is full.
pub(crate) const SAVED_WITHIN: Duration = Duration::from_secs(15);
/// How often a range that is not ready is looked at again.
pub(crate) const READY_POLL: Duration = Duration::from_millis(250);
/// How long a freeze waits until the writes under way are in the log, and a move then until they are
/// durable. After that it is given up.
pub(crate) const FREEZE_WITHIN: Duration = Duration::from_millis(500);
/// How long the checkpoint lives that a change clones from. A clone pins what it needs itself, and a clone
/// that takes longer is tried again. But a retired range is not buried before its checkpoint ends.
pub(crate) const CLONE_CHECKPOINT_LIFETIME: Duration = Duration::from_secs(120);
/// How often cloning is tried. An attempt fails if the memtable was cut at the wrong moment.
pub(crate) const CLONE_ATTEMPTS_MAX: u64 = 5;
/// How often a decision is tried when the store does not answer. SlateDB's own retries are in a layer
/// below.
pub(crate) const DECIDE_ATTEMPTS_MAX: u32 = 30;
/// The pause between such tries.
pub(crate) const DECIDE_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How many versions of the map are kept at least: so that people can see earlier states, and for slow
/// readers.
pub(crate) const MAP_VERSIONS_KEPT: u64 = 16;
/// How long a request looks for the owner of its keys. A planned change takes less. If it takes longer, an
/// owner has crashed: then there are the term of its lease (5 s), the wait after it (1 s), and the opening
/// of the range.
pub(crate) const ROUTED_WITHIN: Duration = Duration::from_secs(10);
/// When owners are not where a front end believes, it waits this long between two reads of the stored map.
pub(crate) const MAP_READ_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The longest wait for a newer map before the owner is asked again, the first time. Later waits are up to
/// ten times as long.
pub(crate) const ROUTE_WAIT: Duration = Duration::from_millis(10);
/// How long a change waits until its range is ready, before anything is begun.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);
/// The pause before a map that could not be stored is stored again.
pub(crate) const PUBLISH_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often the requests of every range are added to its rates.
pub(crate) const LOAD_SECOND: Duration = Duration::from_secs(1);

// ---- Blobs ----

/// How long a change of the rows of a blob may take.
pub(crate) const BLOB_ROWS_WITHIN: Duration = Duration::from_secs(30);
/// A chunk of fewer bytes is written at once. A larger one is written in parts: the first has less than twice as many bytes,
/// and each other part at most so many. A writer of a blob keeps less than this of the beginning of a chunk, and later less
/// than a block of 64 KiB.
pub(crate) const BLOB_PART_BYTES: usize = 256 << 10;
/// How many blocks of 64 KiB one read of a download or of a copy has.
pub(crate) const BLOB_BLOCKS_AT_ONCE: u64 = 4;
/// How often dead blobs are looked at that could not be deleted.
pub(crate) const BLOB_BURIAL_POLL: Duration = Duration::from_secs(60);
/// A process remembers the next chunk number of about so many blobs. It never forgets a blob that is being written.
pub(crate) const BLOBS_REMEMBERED_MAX: usize = 10_000;
/// How many rows of blobs a part of an audit looks at.
pub(crate) const AUDITED_ROWS_MAX: usize = 1_000;

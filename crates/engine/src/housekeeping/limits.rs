//! The bounds of housekeeping, each with its reason.

use std::time::Duration;

/// How often the housekeeper looks at all databases.
pub(crate) const HOUSEKEEPING_POLL: Duration = Duration::from_secs(1);
/// Sorted files that overlap at which a database is compacted.
pub(crate) const TIDY_L0_FILES_MIN: usize = 4;
/// Runs of like size at which they are merged into one.
pub(crate) const TIDY_RUNS_MIN: usize = 4;
/// Runs are of like size when the largest has at most this many times the bytes of the smallest.
pub(crate) const TIDY_RUNS_LIKE: u64 = 4;
/// Databases that are tidied at once. All share one thread, and memory for what they read.
pub(crate) const TIDYING_AT_ONCE_MAX: usize = 3;
/// Databases that are rewritten whole at once: there is no hurry, and it takes the disk's space twice.
pub(crate) const REWRITING_AT_ONCE_MAX: usize = 1;
/// What whole compactions of all databases together may read, in bytes a second: about a third of
/// one core, so that they are hardly felt, and 1 GiB is done in half a minute.
pub(crate) const REWRITTEN_BYTES_PER_SECOND: u64 = 32 << 20;
/// After how many bytes a whole compaction asks whether it may go on.
pub(crate) const REWRITTEN_BYTES_AT_ONCE: u64 = 256 << 10;
/// A database of at most this size is rewritten in one go. A larger one would keep its new files
/// waiting: they are made a run of first, for a short while twice on the disk.
pub(crate) const REWRITTEN_IN_ONE_GO_BYTES_MAX: u64 = 64 << 20;
/// How long after its opening a child goes on reading its parent's files before it is rewritten: it
/// may be split or merged again at once. Not waited for when it has sorted files to tidy anyway.
pub(crate) const CHILD_LEFT_ALONE: Duration = Duration::from_secs(5);
/// Bytes over the oldest layer at which a database that is left alone is made one run.
pub(crate) const LAYERED_BYTES_MIN: u64 = 64 << 10;
/// The same as a part of all bytes: what is written again is at most this many times what was written.
pub(crate) const LAYERED_PART_MIN: u64 = 6;
/// At most one of these each: a compactor costs some 20 ms, and there may be a thousand of them.
pub(crate) const LAYERED_EVERY: Duration = Duration::from_secs(2);
/// Size of one file of a compacted run.
pub(crate) const COMPACTED_FILE_BYTES: usize = 64 << 20;
/// What compaction fetches at once, for each file it reads.
pub(crate) const COMPACTION_FETCH_BYTES: usize = 512 << 10;
/// Compactions of one database at a time: a long one of everything must not keep new files waiting.
pub(crate) const COMPACTIONS_AT_ONCE_MAX: usize = 2;
/// How often a compactor looks for its next step. It runs only while there is something to do.
pub(crate) const COMPACTION_POLL: Duration = Duration::from_millis(100);
/// How often a compactor notes that it is still at work.
pub(crate) const COMPACTION_HEARTBEAT: Duration = Duration::from_secs(2);
/// After how long without such a note its work is begun again. A process that was killed leaves such
/// work, and a full level 0, or a range that is to change hands, waits for it.
pub(crate) const COMPACTION_HEARTBEAT_MISSED: Duration = Duration::from_secs(10);
/// Steps without a result after which a compaction has failed, such as on a damaged file.
pub(crate) const COMPACTION_ATTEMPTS_MAX: u32 = 6;
/// First wait after a compaction that failed; it doubles.
pub(crate) const COMPACTION_RETRY_MIN: Duration = Duration::from_secs(1);
/// Longest such wait.
pub(crate) const COMPACTION_RETRY_MAX: Duration = Duration::from_secs(60);
/// How long files that compaction replaced stay for reads that began before: longer than any
/// request may take (30 s).
pub(crate) const REPLACED_FILES_KEPT: Duration = Duration::from_secs(120);
/// How long after a database's last change everything that it replaced can be collected.
pub(crate) const GARBAGE_SETTLED: Duration = Duration::from_secs(125);
/// Garbage of a database that goes on changing is collected at least this often.
pub(crate) const GARBAGE_LATEST: Duration = Duration::from_secs(300);
/// Manifests since the last collection at which a database counts as busy, and garbage is collected
/// each [`GARBAGE_BUSY`].
pub(crate) const GARBAGE_BUSY_MANIFESTS: u64 = 32;
/// How often it is then collected.
pub(crate) const GARBAGE_BUSY: Duration = Duration::from_secs(60);
/// Age below which nothing is garbage.
pub(crate) const GARBAGE_AGE_MIN: Duration = Duration::from_secs(60);
/// Databases at most whose garbage is collected in one look, those in a hurry apart. A collection
/// costs five milliseconds of CPU; after a thousand databases have changed it is spread over minutes.
pub(crate) const GARBAGE_PER_POLL_MAX: usize = 3;
/// How often one is collected that has not changed since it was opened here, which replaces a manifest; there is
/// more only if the process before was killed, and had nothing in the log either. A process that was started with a thousand of them is to be at rest soon.
pub(crate) const GARBAGE_FOUND_EVERY: Duration = Duration::from_secs(2);
/// Files of the log that are no longer needed at which they are collected in a hurry. There are
/// thousands a second under load, and each opening lists them; nobody reads them any more.
pub(crate) const LOG_GARBAGE_FILES: u64 = 256;
/// How often that is done.
pub(crate) const LOG_GARBAGE_POLL: Duration = Duration::from_secs(10);
/// Age below which such files stay.
pub(crate) const LOG_GARBAGE_AGE_MIN: Duration = Duration::from_secs(10);
/// Bytes of garbage that only a newer sorted file would let go at which one is made.
pub(crate) const STUCK_BYTES_MIN: u64 = 64 << 10;
/// The same as a part of the database's own files.
pub(crate) const STUCK_PART_MIN: u64 = 8;
/// How often directories of databases that nobody uses any more are looked for.
pub(crate) const BURIAL_POLL: Duration = Duration::from_secs(20);
/// How long a directory must have been seen unused before it is deleted. The map that says so was
/// read after the directory was seen; this is a second net, for whoever reads the map late.
pub(crate) const UNUSED_BEFORE_BURIAL: Duration = Duration::from_secs(30);

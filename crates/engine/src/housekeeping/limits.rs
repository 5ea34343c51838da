//! The limits of housekeeping, each with its reason.

use std::time::Duration;

/// How often the housekeeper looks at all databases.
pub(crate) const HOUSEKEEPING_POLL: Duration = Duration::from_secs(1);
/// With this many overlapping sorted files, a database is compacted.
pub(crate) const TIDY_L0_FILES_MIN: usize = 4;
/// This many runs of similar size are merged into one.
pub(crate) const TIDY_RUNS_MIN: usize = 4;
/// Runs are of similar size if the largest has at most this many times the bytes of the smallest.
pub(crate) const TIDY_RUNS_LIKE: u64 = 4;
/// How many databases are tidied at the same time. All of them share one thread, and the memory for what
/// they read.
pub(crate) const TIDYING_AT_ONCE_MAX: usize = 3;
/// How many databases are rewritten whole at the same time. It is not urgent, and it takes their space on
/// the disk twice.
pub(crate) const REWRITING_AT_ONCE_MAX: usize = 1;
/// The bytes a second that whole compactions of all databases together may read. This takes about a third
/// of one core, so requests are hardly slowed down, and 1 GiB is done in half a minute.
pub(crate) const REWRITTEN_BYTES_PER_SECOND: u64 = 32 << 20;
/// After this many bytes, a whole compaction asks whether it may go on.
pub(crate) const REWRITTEN_BYTES_AT_ONCE: u64 = 256 << 10;
/// A database of at most this size is rewritten in one compaction. In a larger one, new files would wait
/// for the compaction too long. So there the new files are made a run first, and for a short while they are
/// on the disk twice.
pub(crate) const REWRITTEN_IN_ONE_GO_BYTES_MAX: u64 = 64 << 20;
/// How long a child reads the files of its parents, after it was opened, before it is rewritten. It may be
/// split or merged again soon. If it has sorted files that must be tidied anyway, it does not wait.
pub(crate) const CHILD_LEFT_ALONE: Duration = Duration::from_secs(5);
/// With this many bytes in the layers above the oldest one, a database that is not changing is rewritten
/// into one run.
pub(crate) const LAYERED_BYTES_MIN: u64 = 64 << 10;
/// The same, as a part of all bytes. So at most this many times the bytes that were written are written
/// again.
pub(crate) const LAYERED_PART_MIN: u64 = 6;
/// At most one such database is rewritten in this time: a compactor costs some 20 ms, and there may be a
/// thousand such databases.
pub(crate) const LAYERED_EVERY: Duration = Duration::from_secs(2);
/// The size of one file of a compacted run.
pub(crate) const COMPACTED_FILE_BYTES: usize = 64 << 20;
/// How much a compaction fetches at once, from each file that it reads.
pub(crate) const COMPACTION_FETCH_BYTES: usize = 512 << 10;
/// How many compactions of one database run at the same time: new files must not wait until a long
/// compaction of the whole database ends.
pub(crate) const COMPACTIONS_AT_ONCE_MAX: usize = 2;
/// How often a compactor looks for its next step. It runs only while there is something to do.
pub(crate) const COMPACTION_POLL: Duration = Duration::from_millis(100);
/// How often a compactor notes that it still works.
pub(crate) const COMPACTION_HEARTBEAT: Duration = Duration::from_secs(2);
/// If there is no such note for this long, the work is begun again. A process that was killed leaves such
/// work, and a full level 0, or a range that is to change hands, waits for it.
pub(crate) const COMPACTION_HEARTBEAT_MISSED: Duration = Duration::from_secs(10);
/// After this many steps without a result, for example because of a damaged file, a compaction has failed.
pub(crate) const COMPACTION_ATTEMPTS_MAX: u32 = 6;
/// The first wait after a compaction that failed. It doubles each time.
pub(crate) const COMPACTION_RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest such wait.
pub(crate) const COMPACTION_RETRY_MAX: Duration = Duration::from_secs(60);
/// How long files that a compaction replaced stay, for reads that began before: longer than any request may
/// take (30 s).
pub(crate) const REPLACED_FILES_KEPT: Duration = Duration::from_secs(120);
/// When a database has not changed for this long, everything that it replaced can be collected.
pub(crate) const GARBAGE_SETTLED: Duration = Duration::from_secs(125);
/// The garbage of a database that goes on changing is collected at least this often.
pub(crate) const GARBAGE_LATEST: Duration = Duration::from_secs(300);
/// After this many manifests since the last collection, a database counts as busy, and its garbage is
/// collected every [`GARBAGE_BUSY`].
pub(crate) const GARBAGE_BUSY_MANIFESTS: u64 = 32;
/// How often the garbage of a busy database is collected.
pub(crate) const GARBAGE_BUSY: Duration = Duration::from_secs(60);
/// No file younger than this is garbage.
pub(crate) const GARBAGE_AGE_MIN: Duration = Duration::from_secs(60);
/// How many databases at most are collected at one look; urgent collections do not count. A collection
/// costs five milliseconds of processor time, so after a thousand databases have changed, the collections
/// are spread over minutes.
pub(crate) const GARBAGE_PER_POLL_MAX: usize = 3;
/// How often one database is collected that has not changed since it was opened here. Opening it replaces
/// one manifest. There is more garbage only if the process before was killed, and if it had nothing in the
/// log either. A process that was started with a thousand such databases should be idle soon.
pub(crate) const GARBAGE_FOUND_EVERY: Duration = Duration::from_secs(2);
/// With this many files of the log that are no longer needed, their collection is urgent. There are
/// thousands a second under load, and each opening lists them, although they are not read any more.
pub(crate) const LOG_GARBAGE_FILES: u64 = 256;
/// How often such files are collected at most.
pub(crate) const LOG_GARBAGE_POLL: Duration = Duration::from_secs(10);
/// Such files stay until they are this old.
pub(crate) const LOG_GARBAGE_AGE_MIN: Duration = Duration::from_secs(10);
/// If a database that gets no writes has so many files of earlier processes in its log, they are made needless.
pub(crate) const LOG_FILES_READ_MAX: usize = 16;
/// A newer sorted file is made if this many bytes of garbage cannot be deleted without one.
pub(crate) const STUCK_BYTES_MIN: u64 = 64 << 10;
/// The same, as a part of the bytes of the database's own files.
pub(crate) const STUCK_PART_MIN: u64 = 8;
/// How often the housekeeper looks for directories of databases that no range uses any more.
pub(crate) const BURIAL_POLL: Duration = Duration::from_secs(20);
/// How long a directory must have been seen unused before it is deleted. The map that shows it unused was
/// read after the directory was seen. This wait is a second protection, for a process that reads the map
/// late.
pub(crate) const UNUSED_BEFORE_BURIAL: Duration = Duration::from_secs(30);

//! The limits of the store, each with its reason.

use std::time::Duration;

/// Reads of at most this many bytes are answered by the calling thread. Passing a read to a blocking thread
/// costs 70 us, and where requests keep the processors busy, the wait for a turn after it was seen to take
/// 10 ms. A small read from the page cache takes 10 us, and 30 if the file must be opened first. A larger
/// read may wait for the disk so long that the blocking thread is worth its cost. The same holds for the
/// first read of a sorted file.
pub const INLINE_READ_BYTES_MAX: u64 = 256 * 1024;

/// A directory of at most this many files is listed by the calling thread: that takes a microsecond for
/// each file, while passing the work to a blocking thread costs 70. Directories of the log hold more files,
/// directories of manifests do not.
pub const INLINE_LIST_FILES_MAX: usize = 64;

/// The number of files that are kept open for reading. It is far below the 1,024 descriptors that many
/// systems allow a process.
pub const OPEN_FILES_MAX: usize = 256;

/// A file is synced while it is written, at each multiple of so many bytes. When the chunks of an object of 2 GiB were synced
/// only at their end, a small insert beside the upload waited for up to 75 ms; with this, for 11.
pub const SYNCED_EACH_BYTES: u64 = 1 << 20;

/// Bytes of a large file that are read at once to check it.
pub const CHECKED_PIECE_BYTES: u64 = 1 << 20;

/// How many names are tried for one staging file before a write is given up. Only files of this process's
/// own unfinished writes can have such a name, since those of other processes are swept when the store
/// opens.
pub const STAGING_NAMES_MAX: u32 = 10_000;

/// How many damaged files are remembered for the operator. One already calls for action.
pub const DAMAGED_FILES_MAX: usize = 32;

/// The system is asked for the free space at most this often.
pub const DISK_CHECK_EVERY: Duration = Duration::from_millis(200);

/// The least and the greatest reserve of free space that is chosen when none is configured, in bytes.
/// Between them it is a hundredth of the volume. The log, memtables that are being flushed and compactions
/// may still need the reserve after the first write was refused.
pub const DISK_RESERVE_BYTES: (u64, u64) = (64 << 20, 4 << 30);

/// The default reserve is at most the volume divided by this number, so that a small volume is usable.
pub const DISK_RESERVE_PART_MAX: u64 = 10;

/// Bytes of the file that is kept so that a server can start on a full disk. A start takes some 16 KiB for each range.
pub const SPARE_BYTES: u64 = 4 << 20;

/// With fewer free bytes than this, a volume is full: not even a table can be dropped.
pub const DISK_LAST_BYTES: u64 = 1 << 20;

/// While the disk is low, a sorted file must leave this many bytes free: the last bytes, and as much again for the log and
/// the manifests.
pub const SORTED_FILE_LEAVES: u64 = 2 * DISK_LAST_BYTES;

/// With fewer free inodes than this, a volume counts as full.
pub const DISK_INODES_MIN: u64 = 64;

/// How many files are deleted at once by one call.
pub const DELETES_AT_ONCE: usize = 10;

/// The length of a full segment of the journal.
pub const JOURNAL_SEGMENT_BYTES: u64 = 16 << 20;

/// The largest file of a log that goes into the journal. Above this, the bytes cost so much that the cost of a file of its own does not
/// matter.
pub const JOURNAL_RECORD_BYTES_MAX: u64 = 1 << 20;

/// A new segment grows by this many bytes at a time. A small store stays small, and a sync rarely has to note a new length.
pub const JOURNAL_GROWS_BY: u64 = 256 << 10;

/// Objects are moved out of the oldest segment only if there are more segments than this.
pub const JOURNAL_SEGMENTS_MIN: usize = 4;

/// With more segments than this, the objects of the oldest one are moved out, however many they are: a gibibyte.
pub const JOURNAL_SEGMENTS_MAX: usize = 64;

/// The oldest segment is cold if its objects take at most the segment's length divided by this number.
pub const JOURNAL_COLD_PART: u64 = 8;

/// Segments without objects that are kept, to be written over.
pub const JOURNAL_DEAD_SEGMENTS_MAX: usize = 2;

/// How often a process tries to take over the journal, or to read it beside its owner, while others change its names.
pub const JOURNAL_TAKE_OVERS_MAX: usize = 100;

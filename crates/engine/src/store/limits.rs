//! The bounds of the store, each with its reason.

use std::time::Duration;

/// Reads of at most this many bytes are answered on the spot; a hand-over to a blocking thread costs
/// 70 us, and where requests keep the processors busy the wait for a turn after it was seen to take
/// 10 ms; such a read from the page cache takes 10 us, and 30 if the file is to be opened. Larger ones
/// may wait for a disk long enough to be worth the hand-over, and so may the first of a sorted file.
pub const INLINE_READ_BYTES_MAX: u64 = 256 * 1024;

/// A directory of at most this many files is listed on the spot: a microsecond each, where a hand-over
/// to a blocking thread costs 70. Log directories hold more, those of manifests do not.
pub const INLINE_LIST_FILES_MAX: usize = 64;

/// Files kept open for reading. Far below the 1,024 descriptors that many systems allow a process.
pub const OPEN_FILES_MAX: usize = 256;

/// Names tried for one staging file before a write is given up. Only leftovers of this process's
/// own unfinished writes can be in the way, since those of others are swept when the store opens.
pub const STAGING_NAMES_MAX: u32 = 10_000;

/// Damaged files that are remembered for the operator; one already calls for action.
pub const DAMAGED_FILES_MAX: usize = 32;

/// Free space is asked for at most this often.
pub const DISK_CHECK_EVERY: Duration = Duration::from_millis(200);

/// The least and the greatest reserve of free space that is chosen when none is configured, in
/// bytes; between them it is a hundredth of the volume. The reserve is what log, memtables that are
/// being flushed and compactions may still need after the first write was refused.
pub const DISK_RESERVE_BYTES: (u64, u64) = (64 << 20, 4 << 30);

/// The default reserve is never more than this part of the volume, so that a small one is usable.
pub const DISK_RESERVE_PART_MAX: u64 = 10;

/// Free inodes below which a volume counts as full.
pub const DISK_INODES_MIN: u64 = 64;

//! The limits of the commands for objects. Together they bound the memory of a copy, of any number of files of any size, to
//! about 150 MiB. Each file beyond [`AT_ONCE`] that `--parallel` allows adds up to 1 MiB.

use std::time::Duration;

/// Files and objects that are moved at the same time, unless `--parallel` says otherwise.
pub(super) const AT_ONCE: usize = 32;
/// The largest number for `--parallel`.
pub(super) const AT_ONCE_MAX: u16 = 256;
/// Files up to this size go up in one request, from memory.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// Bytes of a chunk of a larger file.
pub(super) const CHUNK_BYTES: usize = 8 << 20;
/// Larger files that are moved at the same time.
pub(super) const LARGE_AT_ONCE: usize = 4;
/// Jobs among which the next one is drawn by chance.
pub(super) const WINDOW: usize = 100_000;
/// Files that were found in a folder and are not yet looked at.
pub(super) const FOUND_AHEAD: usize = 1_024;
/// Folders that are listed before they are deleted.
pub(super) const FOLDERS_AT_ONCE: usize = 100_000;
/// How often the line that shows the progress is drawn while nothing ends.
pub(super) const LINE_EVERY: Duration = Duration::from_millis(200);
/// Failures that are named at the end; all are counted.
pub(super) const FAILURES_NAMED: usize = 20;

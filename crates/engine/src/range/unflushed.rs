//! How much of a range is not yet in sorted files.
//!
//! The database does not tell the number of bytes. But it tells the sequence number up to which rows are in sorted
//! files. So we count the bytes that are written. At each flush of the log we note the count together with
//! the newest sequence number. To find the bytes that are not in sorted files yet, we take the last note whose rows
//! are all in sorted files, and count the bytes written after it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// What a database holds that is not yet in sorted files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unsorted {
    /// Encoded bytes in memtables.
    pub(crate) bytes: u64,
    /// Files of the log that the next opening of the database would replay. Files that were already there at the
    /// last opening are not counted.
    pub(crate) log_files: usize,
}

/// The count since a database was opened.
#[derive(Debug, Default)]
pub(crate) struct Unflushed {
    /// Bytes put into the log since the opening.
    written: AtomicU64,
    newest_sequence: AtomicU64,
    /// (sequence number, bytes written up to it), ascending.
    marks: Mutex<VecDeque<(u64, u64)>>,
}

impl Unflushed {
    /// A batch of `bytes` has entered the log as `sequence`.
    pub(crate) fn add(&self, sequence: u64, bytes: u64) {
        self.newest_sequence.fetch_max(sequence, Ordering::AcqRel);
        self.written.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Notes the count; called at each flush of the log. `sorted` is the sequence number up to which rows are
    /// in sorted files.
    pub(crate) fn mark(&self, sorted: u64) {
        let mut marks = self.marks.lock();
        // Read the bytes first: `add` changes them last. A batch that is added between the two reads is then counted
        // as not sorted for too long, which does no harm; the other order could leave it out.
        let written = self.written.load(Ordering::Acquire);
        marks.push_back((self.newest_sequence.load(Ordering::Acquire), written));
        // The last mark at or below `sorted` is the one to count from.
        while marks.len() > 1 && marks[1].0 <= sorted {
            marks.pop_front();
        }
    }

    /// What is only in memtables and the log. Each flush of the log with a row that is not in sorted files counts as
    /// one file to be replayed.
    pub(crate) fn unsorted(&self, sorted: u64) -> Unsorted {
        let marks = self.marks.lock();
        let done = marks.partition_point(|(sequence, _)| *sequence <= sorted);
        let done_bytes = done.checked_sub(1).map_or(0, |last| marks[last].1);
        Unsorted {
            bytes: self.written.load(Ordering::Relaxed).saturating_sub(done_bytes),
            log_files: marks.len() - done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_their_sequence_number_is_in_sorted_files() {
        let count = Unflushed::default();
        for sequence in 1..=10 {
            count.add(sequence, 100);
            count.mark(0);
        }
        assert_eq!(count.unsorted(0), Unsorted { bytes: 1_000, log_files: 10 });
        assert_eq!(count.unsorted(4), Unsorted { bytes: 600, log_files: 6 });
        count.mark(10);
        assert_eq!(count.unsorted(10), Unsorted::default());
        count.add(11, 5);
        assert_eq!(count.unsorted(10), Unsorted { bytes: 5, log_files: 0 });
    }
}

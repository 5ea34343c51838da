//! How much a range holds in memory that is not yet in sorted files.
//!
//! The database does not say. But it says up to which sequence number its sorted files reach, so
//! it is enough to note now and then which sequence number stood at which count of bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The count of one opening of a database.
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

    /// Notes where the count stands; called at each flush of the log. `sorted` is the sequence
    /// number up to which rows are in sorted files.
    pub(crate) fn mark(&self, sorted: u64) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        // Bytes before the number, the reverse of `add`: a row between the two is counted as
        // flushed too late, never too early.
        let written = self.written.load(Ordering::Acquire);
        marks.push_back((self.newest_sequence.load(Ordering::Acquire), written));
        // The last mark at or below `sorted` is the one to count from.
        while marks.len() > 1 && marks[1].0 <= sorted {
            marks.pop_front();
        }
    }

    /// Flushes of the log whose rows are not all in sorted files: as many files would be replayed.
    pub(crate) fn log_files(&self, sorted: u64) -> usize {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.iter().filter(|(sequence, _)| *sequence > sorted).count()
    }

    /// Encoded bytes that are in memtables only.
    pub(crate) fn bytes(&self, sorted: u64) -> u64 {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let done = marks
            .iter()
            .take_while(|(sequence, _)| *sequence <= sorted)
            .last()
            .map_or(0, |(_, bytes)| *bytes);
        self.written.load(Ordering::Relaxed).saturating_sub(done)
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
        assert_eq!(count.bytes(0), 1_000);
        assert_eq!(count.bytes(4), 600);
        assert_eq!(count.log_files(4), 6);
        count.mark(10);
        assert_eq!(count.bytes(10), 0);
        count.add(11, 5);
        assert_eq!(count.bytes(10), 5);
    }
}

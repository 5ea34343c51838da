//! The keys of rows that are durable and not yet in sorted files. Pure.
//!
//! A scan may read sorted files without the memtable up to the first of these keys. They are kept in generations, in the order
//! in which they were written. A generation goes when all of its rows are in sorted files, so nothing is looked at
//! key by key for that. A key whose row came into sorted files before the others of its generation is named a little longer.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;

use bytes::Bytes;

use crate::limits::{UNSORTED_GENERATION_KEYS, UNSORTED_GENERATIONS_MAX};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnsortedKeys {
    /// The oldest first.
    generations: VecDeque<Generation>,
    /// Keys were forgotten whose rows have sequence numbers up to this one.
    forgotten: u64,
}

/// Keys that were written one after another. To drop one takes a while, so it is not done under a lock.
#[derive(Debug, Default)]
pub(super) struct Generation {
    keys: BTreeSet<Bytes>,
    /// The greatest sequence number of its rows.
    newest: u64,
}

impl UnsortedKeys {
    /// A durable write with this sequence number has changed a row.
    pub(super) fn add(&mut self, key: Bytes, sequence: u64) {
        if self.generations.back().is_none_or(|last| last.keys.len() >= UNSORTED_GENERATION_KEYS) {
            if self.generations.len() >= UNSORTED_GENERATIONS_MAX
                && let Some(oldest) = self.generations.pop_front()
            {
                self.forgotten = self.forgotten.max(oldest.newest);
            }
            self.generations.push_back(Generation::default());
        }
        if let Some(last) = self.generations.back_mut() {
            last.keys.insert(key);
            last.newest = last.newest.max(sequence);
        }
    }

    /// All rows up to this sequence number are in sorted files. Returns the generations that are not needed any more.
    #[must_use]
    pub(super) fn sorted(&mut self, sequence: u64) -> Vec<Generation> {
        std::iter::from_fn(|| self.generations.pop_front_if(|oldest| oldest.newest <= sequence)).collect()
    }

    /// Whether all keys are known whose rows may not be in sorted files, when those up to this sequence number are.
    pub(super) fn are_known(&self, sorted: u64) -> bool {
        self.forgotten <= sorted
    }

    /// The first of them from `low` on, when the rows up to this sequence number are in sorted files.
    pub(super) fn first_from(&self, low: &[u8], sorted: u64) -> Option<&Bytes> {
        let from = (Bound::Included(low), Bound::Unbounded);
        let unsorted = self.generations.iter().filter(|generation| generation.newest > sorted);
        unsorted.filter_map(|generation| generation.keys.range::<[u8], _>(from).next()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Bytes {
        Bytes::from(format!("{number:08}"))
    }

    #[test]
    fn a_key_is_named_until_its_row_is_in_sorted_files() {
        let mut keys = UnsortedKeys::default();
        assert!(keys.are_known(0));
        let count = UNSORTED_GENERATION_KEYS + 1;
        (0..count).for_each(|number| keys.add(key(number), number as u64 + 1));
        let count = count as u64;
        assert_eq!(keys.first_from(&key(7), 0), Some(&key(7)));
        assert_eq!(
            keys.first_from(&key(7), count - 2),
            Some(&key(7)),
            "its generation has a row that is not sorted"
        );
        assert_eq!(keys.first_from(&key(7), count - 1), Some(&key(UNSORTED_GENERATION_KEYS)));
        assert_eq!(keys.first_from(b"", count), None);
        assert_eq!(keys.sorted(count - 2).len(), 0);
        assert_eq!(keys.sorted(count - 1).len(), 1);
        assert_eq!(keys.first_from(&key(7), 0), Some(&key(UNSORTED_GENERATION_KEYS)));
        assert_eq!(keys.sorted(count).len(), 1);
        assert_eq!(keys.first_from(b"", 0), None);
    }

    #[test]
    fn what_is_forgotten_is_not_known_until_it_is_sorted() {
        let mut keys = UnsortedKeys::default();
        let most = UNSORTED_GENERATION_KEYS * UNSORTED_GENERATIONS_MAX;
        (0..=most).for_each(|number| keys.add(key(number), number as u64 + 1));
        let forgotten = UNSORTED_GENERATION_KEYS as u64;
        assert!(!keys.are_known(forgotten - 1) && keys.are_known(forgotten));
        assert_eq!(keys.first_from(b"", forgotten), Some(&key(UNSORTED_GENERATION_KEYS)));
    }
}

//! Entries with intervals of keys, in the order of their keys: the layer below every map.
//!
//! The service's [`RangeMap`](crate::RangeMap) and users' [`ShardMap`](crate::shard::ShardMap) differ in
//! their entries and in their rules for changes. In both, the intervals do not overlap, so each key has at most
//! one entry: the one with the greatest low bound that is not above the key.

use std::ops::{Deref, DerefMut, RangeBounds};

use crate::range::KeyRange;

/// An entry with an interval of keys.
pub trait Keyed {
    /// The interval.
    fn keys(&self) -> &KeyRange;
}

impl<E: Keyed> Keyed for &E {
    fn keys(&self) -> &KeyRange {
        (*self).keys()
    }
}

/// Entries sorted by low key. The caller makes sure that they do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered<E>(Vec<E>);

impl<E: Keyed> Ordered<E> {
    /// Sorts the entries.
    pub fn new(mut entries: Vec<E>) -> Self {
        entries.sort_by(|a, b| a.keys().low().cmp(b.keys().low()));
        Self(entries)
    }

    /// The entries in the order of their keys.
    pub fn into_vec(self) -> Vec<E> {
        self.0
    }

    /// The entry that holds `key`; `None` in a gap.
    pub fn lookup(&self, key: &[u8]) -> Option<&E> {
        let after = self.0.partition_point(|entry| entry.keys().low() <= key);
        self.0[..after].last().filter(|entry| entry.keys().contains(key))
    }

    /// The entries that hold some of `keys`.
    pub fn overlapping(&self, keys: &KeyRange) -> &[E] {
        if keys.is_empty() {
            return &[];
        }
        // Intervals that do not overlap have their ends in order, as their beginnings.
        let ends_below = |entry: &E| entry.keys().high().is_some_and(|high| high <= keys.low());
        let begins_below = |entry: &E| keys.high().is_none_or(|high| entry.keys().low() < high);
        let from = self.0.partition_point(ends_below);
        let to = self.0.partition_point(begins_below);
        &self.0[from..to.max(from)]
    }

    /// Replaces the entries at `at` by others.
    pub fn splice(&mut self, at: impl RangeBounds<usize>, with: impl IntoIterator<Item = E>) {
        self.0.splice(at, with);
    }
}

impl<E> Deref for Ordered<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        &self.0
    }
}

impl<E> DerefMut for Ordered<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        &mut self.0
    }
}

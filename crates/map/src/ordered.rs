//! Entries with intervals of keys, in the order of their keys: what every map stands on.
//!
//! The service's [`RangeMap`](crate::RangeMap) and users' [`ShardMap`](crate::shard::ShardMap) differ in
//! what an entry says and in the rules of its changes. They are alike in this: intervals do not overlap,
//! so each key has at most one entry, found by the greatest low bound that is not above it.

use std::ops::{Deref, DerefMut, RangeBounds};

use crate::range::KeyRange;

/// Something that stands for an interval of keys.
pub trait Keyed {
    /// The interval.
    fn keys(&self) -> &KeyRange;
}

/// Entries sorted by low key. That they do not overlap is their owner's care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered<E>(Vec<E>);

impl<E: Keyed> Ordered<E> {
    /// The entries, sorted.
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
        // Where intervals do not overlap their ends are in order, as their beginnings are.
        let ends_below = |entry: &E| entry.keys().high().is_some_and(|high| high <= keys.low());
        let begins_below = |entry: &E| keys.high().is_none_or(|high| entry.keys().low() < high);
        let from = self.0.partition_point(ends_below);
        let to = self.0.partition_point(begins_below);
        &self.0[from..to.max(from)]
    }

    /// Puts other entries in the place of some.
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

//! The axis of keys: where the key space is cut into buckets.

use std::sync::Arc;

use super::boundaries::Boundaries;
use super::column::Cells;
use crate::load::{Counts, Place, Tally};
use crate::range::KeyRange;

/// An axis whose keys are known: the one that is used for counting now. Clones share their data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    keys: Arc<[Vec<u8>]>,
    boundaries: Arc<Boundaries>,
}

impl Axis {
    /// The axis with these boundaries, in any order. The least key of all is always a boundary too. `name`
    /// hashes a boundary.
    pub fn new(mut keys: Vec<Vec<u8>>, name: impl Fn(&[u8]) -> u64) -> Self {
        keys.push(KeyRange::whole().low().to_vec());
        keys.retain(|key| key.as_slice() >= KeyRange::whole().low());
        keys.sort_unstable();
        keys.dedup();
        let names = keys.iter().map(|key| name(key)).collect();
        let keys: Arc<[Vec<u8>]> = keys.into();
        Self { boundaries: Arc::new(Boundaries { names, keys: Some(Arc::clone(&keys)) }), keys }
    }

    /// The boundaries, in order.
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }

    /// What is kept of this axis with the columns that were counted by it.
    pub fn boundaries(&self) -> &Arc<Boundaries> {
        &self.boundaries
    }

    /// How many buckets there are; at least one.
    pub fn buckets(&self) -> usize {
        self.keys.len()
    }

    /// The keys of a bucket.
    pub fn bucket(&self, bucket: usize) -> KeyRange {
        KeyRange::new(self.keys[bucket].clone(), self.keys.get(bucket + 1).cloned())
    }

    /// The bucket that holds `key`. Keys below all buckets belong to the first one.
    pub fn bucket_of(&self, key: &[u8]) -> usize {
        self.keys.partition_point(|low| low.as_slice() <= key).saturating_sub(1)
    }

    /// The buckets that hold keys from `low` (inclusive) to `high` (exclusive), or to the end without a
    /// `high`. At least the bucket that holds `low`.
    pub fn buckets_of(&self, low: &[u8], high: Option<&[u8]>) -> std::ops::Range<usize> {
        let first = self.bucket_of(low);
        let end = high.map_or(self.keys.len(), |high| self.keys.partition_point(|key| key.as_slice() < high));
        first..end.max(first + 1)
    }

    /// Adds the tally of a range with these keys to `cells`. Counts without a known place are spread evenly
    /// over all buckets of the range.
    pub fn place(&self, keys: &KeyRange, tally: &Tally, cells: &mut Cells) {
        let mut rest = tally.total;
        // Found once for all places of the range.
        let range = self.buckets_of(keys.low(), keys.high());
        for (place, counts) in &tally.places {
            rest = rest - *counts;
            match place {
                Place::Partition(partition) => {
                    let before = self.keys[range.clone()].partition_point(|low| low <= partition);
                    add(cells, range.start + before.saturating_sub(1), *counts);
                }
                Place::Span(low, high) => {
                    let high = high.as_deref().or(keys.high());
                    spread(cells, self.buckets_of(low, high), *counts);
                }
            }
        }
        if !rest.is_nothing() {
            spread(cells, range, rest);
        }
    }
}

fn add(cells: &mut Cells, bucket: usize, counts: Counts) {
    *cells.entry(bucket as u32).or_default() += counts;
}

/// Adds `counts` to these buckets evenly. The remainder is spread over the buckets too.
pub(super) fn spread(cells: &mut Cells, buckets: std::ops::Range<usize>, counts: Counts) {
    let parts = buckets.len() as u64;
    for (index, bucket) in buckets.enumerate() {
        let part = counts.part(index as u64, parts);
        if !part.is_nothing() {
            add(cells, bucket, part);
        }
    }
}

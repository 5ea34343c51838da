//! What is kept of an axis with the columns that were counted by it.

use std::sync::Arc;

/// The boundaries of an axis, in the order of their keys. Bucket `i` reaches from boundary `i` to the next one;
/// the last bucket has no end. The keys themselves are not always known: where a service does not store keys in
/// its history, a later process has only the hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundaries {
    /// A hash of each boundary, by which it is recognised.
    pub names: Vec<u64>,
    /// The boundaries themselves, as many as `names`; `None` where they are not known.
    pub keys: Option<Arc<[Vec<u8>]>>,
}

impl Boundaries {
    /// How many buckets there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no buckets. An [`Axis`](super::Axis) always has one; only a damaged file has none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

//! The mappings of one map by their low bounds, so that the mapping of a key is found at once.
//!
//! With a million mappings, nearly every access to another piece of memory has to wait for it. So a search compares
//! only one number, the first eight bytes of a bound, and the tree itself holds the data that routing needs. Bounds
//! that begin with the same eight bytes, as texts often do, share a place, and have a tree of their own there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use rangehold_map::KeyRange;
use rangehold_map::shard::{Lock, MappingId, ShardId, ShardMapping};
use smallvec::SmallVec;

use super::Cached;
use crate::rows::ShardRow;

/// How many bytes of a bound are in the tree itself. Only long texts and long byte strings do not fit.
const INLINE_BYTES: usize = 16;

/// The mappings of one map.
#[derive(Debug, Default)]
pub(super) struct Tree {
    places: BTreeMap<u64, Place>,
    len: usize,
}

/// The mappings whose low bounds begin with the same eight bytes.
#[derive(Debug)]
enum Place {
    One(Leaf),
    Many(BTreeMap<Vec<u8>, Leaf>),
}

/// A mapping in the tree. The tree holds millions of them, so it has the bounds in place, and not what is rare or can be
/// found in the shard.
#[derive(Debug)]
pub(super) struct Leaf {
    low: Bytes,
    /// `None` if there is no high bound.
    high: Option<Bytes>,
    id: MappingId,
    fence: i64,
    shard: Arc<ShardRow>,
    lock: Option<Box<Lock>>,
    online: bool,
}

type Bytes = SmallVec<[u8; INLINE_BYTES]>;

/// The first eight bytes of a bound as a number. If two bounds have different numbers, the numbers are in the order
/// of the bounds.
fn first_bytes(bound: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(bound) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}

impl Leaf {
    pub(super) fn new(Cached { mapping, shard }: Cached) -> Self {
        Self {
            low: mapping.keys.low().into(),
            high: mapping.keys.high().map(Bytes::from),
            id: mapping.id,
            fence: mapping.fence,
            shard,
            lock: mapping.lock.map(Box::new),
            online: mapping.online,
        }
    }

    pub(super) fn low(&self) -> &[u8] {
        &self.low
    }

    pub(super) fn id(&self) -> MappingId {
        self.id
    }

    pub(super) fn shard(&self) -> &Arc<ShardRow> {
        &self.shard
    }

    pub(super) fn cached(&self) -> Cached {
        let mapping = ShardMapping {
            id: self.id,
            keys: KeyRange::new(self.low.to_vec(), self.high.as_ref().map(|high| high.to_vec())),
            shard: ShardId(self.shard.id),
            online: self.online,
            fence: self.fence,
            lock: self.lock.as_deref().cloned(),
        };
        Cached { mapping, shard: Arc::clone(&self.shard) }
    }

    /// Whether a key that is not below its low bound is one of its keys.
    fn reaches(&self, key: &[u8]) -> bool {
        // A mapping is never empty, so its low bound is one of its keys.
        *self.low == *key || self.high.as_ref().is_none_or(|high| *key < **high)
    }
}

impl Place {
    /// The last mapping whose low bound is not above the key.
    fn at_or_below(&self, key: &[u8]) -> Option<&Leaf> {
        match self {
            Self::One(leaf) => (*leaf.low <= *key).then_some(leaf),
            Self::Many(leaves) => {
                let below = leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
                below.map(|(_, leaf)| leaf).next_back()
            }
        }
    }

    /// The mappings whose low bounds are above `low` and below `high`.
    fn between(&self, low: &[u8], high: Option<&[u8]>) -> impl Iterator<Item = &Leaf> {
        let is_between = |leaf: &&Leaf| *leaf.low > *low && high.is_none_or(|high| *leaf.low < *high);
        let to = high.map_or(Bound::Unbounded, Bound::Excluded);
        let (one, many) = match self {
            Self::One(leaf) => (Some(leaf).filter(is_between), None),
            Self::Many(leaves) => (None, Some(leaves.range::<[u8], _>((Bound::Excluded(low), to)))),
        };
        one.into_iter().chain(many.into_iter().flatten().map(|(_, leaf)| leaf))
    }

    fn leaves(&self) -> impl DoubleEndedIterator<Item = &Leaf> {
        let (one, many) = match self {
            Self::One(leaf) => (Some(leaf), None),
            Self::Many(leaves) => (None, Some(leaves)),
        };
        one.into_iter().chain(many.into_iter().flat_map(BTreeMap::values))
    }
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The mapping that holds a key.
    pub(super) fn lookup(&self, key: &[u8]) -> Option<&Leaf> {
        let first = first_bytes(key);
        let mut below = self.places.range(..=first).rev();
        let (begin, place) = below.next()?;
        // If the first bytes differ, all bounds in this place are below the key.
        let same = if *begin == first { place.at_or_below(key) } else { place.leaves().next_back() };
        let leaf = same.or_else(|| below.next()?.1.leaves().next_back())?;
        leaf.reaches(key).then_some(leaf)
    }

    /// Inserts a mapping. It replaces a mapping with the same low bound.
    pub(super) fn insert(&mut self, leaf: Leaf) {
        let place = match self.places.entry(first_bytes(&leaf.low)) {
            Entry::Vacant(free) => {
                free.insert(Place::One(leaf));
                self.len += 1;
                return;
            }
            Entry::Occupied(taken) => taken.into_mut(),
        };
        let mut many = match std::mem::replace(place, Place::Many(BTreeMap::new())) {
            Place::One(other) => BTreeMap::from([(other.low.to_vec(), other)]),
            Place::Many(many) => many,
        };
        self.len += usize::from(many.insert(leaf.low.to_vec(), leaf).is_none());
        *place = Place::Many(many);
    }

    /// Removes the mapping with this low bound. Returns false if there is none.
    pub(super) fn remove(&mut self, low: &[u8]) -> bool {
        let Entry::Occupied(mut taken) = self.places.entry(first_bytes(low)) else { return false };
        let (removed, is_empty) = match taken.get_mut() {
            Place::One(leaf) => (*leaf.low == *low, *leaf.low == *low),
            Place::Many(many) => (many.remove(low).is_some(), many.is_empty()),
        };
        if is_empty {
            taken.remove();
        }
        self.len -= usize::from(removed);
        removed
    }

    /// Removes the mapping with the least low bound.
    pub(super) fn pop_first(&mut self) {
        let least = self.places.first_key_value().and_then(|(_, place)| place.leaves().next());
        if let Some(low) = least.map(|leaf| leaf.low.clone()) {
            self.remove(&low);
        }
    }

    /// Removes all mappings that hold a key of `of`. Returns how many there were.
    pub(super) fn drop_overlapping(&mut self, of: &ShardMapping) -> usize {
        let (low, high) = (of.keys.low(), of.keys.high());
        let to = high.map_or(Bound::Unbounded, |high| Bound::Included(first_bytes(high)));
        let near = self.places.range((Bound::Included(first_bytes(low)), to));
        let inside = near.flat_map(|(_, place)| place.between(low, high));
        let gone: Vec<_> = self.lookup(low).into_iter().chain(inside).map(|leaf| leaf.low.clone()).collect();
        gone.iter().filter(|low| self.remove(low)).count()
    }

    /// Builds the tree again. A tree that grew key by key has half-empty nodes, and a search in it reads twice as
    /// much memory.
    pub(super) fn pack(&mut self) {
        self.places = std::mem::take(&mut self.places).into_iter().collect();
    }
}

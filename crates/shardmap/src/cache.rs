//! What a process remembers of the global map, so that finding a key's shard costs no IO.
//!
//! A cache may be old: the shard decides. Mappings of one map lie in a tree by their low bounds. The first
//! eight bytes of a bound stand in the tree itself, so that nearly every comparison on the way down is one
//! of two numbers and touches no other memory.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use rangehold_map::shard::ShardMapping;
use smallvec::SmallVec;
use uuid::Uuid;

use crate::limits::CACHED_MAPPINGS_MAX;
use crate::metrics::Metrics;
use crate::rows::{MapRow, ShardRow};

/// A mapping that is remembered, with its shard.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) mapping: ShardMapping,
    pub(crate) shard: Arc<ShardRow>,
}

/// What a manager remembers.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By name in lower case.
    maps: RwLock<HashMap<String, Arc<MapRow>>>,
    mappings: RwLock<HashMap<Uuid, Arc<RwLock<Tree>>>>,
}

/// The mappings of one map that are remembered.
#[derive(Debug, Default)]
struct Tree(BTreeMap<Low, Arc<Cached>>);

/// Bytes of a bound that lie in the tree with it: all of a key's but of long texts and byte strings.
const INLINE_BYTES: usize = 16;

/// A low bound: its first eight bytes as a number, and all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Low {
    first: u64,
    whole: SmallVec<[u8; INLINE_BYTES]>,
}

impl Low {
    fn new(bytes: &[u8]) -> Self {
        let mut first = [0; 8];
        for (to, from) in first.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self { first: u64::from_be_bytes(first), whole: bytes.into() }
    }
}

impl Ord for Low {
    fn cmp(&self, other: &Self) -> Ordering {
        self.first.cmp(&other.first).then_with(|| self.whole.cmp(&other.whole))
    }
}

impl PartialOrd for Low {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Tree {
    fn lookup(&self, key: &[u8]) -> Option<&Arc<Cached>> {
        let below = self.0.range(..=Low::new(key)).next_back();
        below.map(|(_, cached)| cached).filter(|cached| cached.mapping.keys.contains(key))
    }

    /// Forgets all that holds a key of `of`; gives how many that were.
    fn drop_overlapping(&mut self, of: &ShardMapping) -> usize {
        let low = Low::new(of.keys.low());
        let to = of.keys.high().map_or(Bound::Unbounded, |high| Bound::Excluded(Low::new(high)));
        let reaches_in = self.0.range(..&low).next_back();
        let reaches_in = reaches_in.filter(|(_, cached)| cached.mapping.keys.contains(of.keys.low()));
        let before: Vec<Low> = reaches_in.into_iter().map(|(low, _)| low.clone()).collect();
        let inside = self.0.range((Bound::Included(low), to)).map(|(low, _)| low.clone());
        let gone: Vec<Low> = before.into_iter().chain(inside).collect();
        gone.iter().filter(|low| self.0.remove(low).is_some()).count()
    }
}

impl Cache {
    /// The map of this name, if it is remembered.
    pub(crate) fn map(&self, name_key: &str, metrics: &Metrics) -> Option<Arc<MapRow>> {
        let found = self.maps.read().unwrap_or_else(PoisonError::into_inner).get(name_key).cloned();
        if found.is_some() {
            metrics.map_hits.one()
        } else {
            metrics.map_misses.one()
        }
        found
    }

    pub(crate) fn put_map(&self, name_key: String, map: &Arc<MapRow>) {
        self.maps.write().unwrap_or_else(PoisonError::into_inner).insert(name_key, map.clone());
    }

    /// Forgets a map and its mappings.
    pub(crate) fn drop_map(&self, name_key: &str) {
        let gone = self.maps.write().unwrap_or_else(PoisonError::into_inner).remove(name_key);
        if let Some(gone) = gone {
            self.mappings.write().unwrap_or_else(PoisonError::into_inner).remove(&gone.id);
        }
    }

    fn tree(&self, map: Uuid) -> Arc<RwLock<Tree>> {
        let found = self.mappings.read().unwrap_or_else(PoisonError::into_inner).get(&map).cloned();
        found.unwrap_or_else(|| {
            self.mappings.write().unwrap_or_else(PoisonError::into_inner).entry(map).or_default().clone()
        })
    }

    /// The mapping of a key, if it is remembered.
    pub(crate) fn lookup(&self, map: Uuid, key: &[u8], metrics: &Metrics) -> Option<Arc<Cached>> {
        let trees = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        let found = trees
            .get(&map)
            .and_then(|tree| tree.read().unwrap_or_else(PoisonError::into_inner).lookup(key).cloned());
        if found.is_some() {
            metrics.cache_hits.one()
        } else {
            metrics.cache_misses.one()
        }
        found
    }

    /// Remembers mappings, and forgets those that held some of their keys.
    pub(crate) fn put(&self, map: Uuid, mappings: impl IntoIterator<Item = Cached>, metrics: &Metrics) {
        let tree = self.tree(map);
        let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
        for cached in mappings {
            metrics.mappings_dropped.add(tree.drop_overlapping(&cached.mapping) as u64);
            if tree.0.len() >= CACHED_MAPPINGS_MAX {
                // Which one goes does not matter: what is asked for again comes back.
                tree.0.pop_first();
                metrics.mappings_dropped.one();
            }
            metrics.mappings_cached.one();
            tree.0.insert(Low::new(cached.mapping.keys.low()), Arc::new(cached));
        }
    }

    /// Forgets whatever holds a key of these mappings.
    pub(crate) fn forget(&self, map: Uuid, mappings: &[ShardMapping], metrics: &Metrics) {
        let tree = self.tree(map);
        let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
        for mapping in mappings {
            metrics.mappings_dropped.add(tree.drop_overlapping(mapping) as u64);
        }
    }

    /// Forgets whatever holds a key.
    pub(crate) fn forget_key(&self, map: Uuid, key: &[u8], metrics: &Metrics) {
        let tree = self.tree(map);
        let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
        let low = tree.lookup(key).map(|cached| Low::new(cached.mapping.keys.low()));
        if low.is_some_and(|low| tree.0.remove(&low).is_some()) {
            metrics.mappings_dropped.one();
        }
    }

    /// How many mappings of a map are remembered.
    pub(crate) fn count(&self, map: Uuid) -> usize {
        self.tree(map).read().unwrap_or_else(PoisonError::into_inner).0.len()
    }
}

//! What a process remembers of the global map, so that finding a key's shard costs no IO.
//!
//! A cache may be old: the shard decides. Mappings of one map lie in a tree by their low bounds. With a million of
//! them nearly every look at another piece of memory has to wait for it, so what routing needs lies in the tree
//! itself: the bounds' first eight bytes, by which nearly every comparison is one of two numbers, and where to go.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use rangehold_map::shard::{MappingId, ShardMapping};
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
struct Tree(BTreeMap<Low, Leaf>);

/// A mapping in the tree, with copies of what is asked for most.
#[derive(Debug)]
struct Leaf {
    /// The first bytes of its high bound; `None` if it has none.
    high: Option<u64>,
    id: MappingId,
    shard: Arc<ShardRow>,
    cached: Arc<Cached>,
}

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
        Self { first: first_bytes(bytes), whole: bytes.into() }
    }
}

/// The first eight bytes of a bound as a number: numbers that differ are in the order of their bounds.
fn first_bytes(bound: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(bound) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}

impl Leaf {
    fn new(cached: Cached) -> Self {
        Self {
            high: cached.mapping.keys.high().map(first_bytes),
            id: cached.mapping.id,
            shard: Arc::clone(&cached.shard),
            cached: Arc::new(cached),
        }
    }

    /// Whether a key at or above its low bound is one of its keys.
    fn reaches(&self, key: &Low) -> bool {
        match self.high {
            Some(high) if high == key.first => self.cached.mapping.keys.contains(&key.whole),
            Some(high) => key.first < high,
            None => true,
        }
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
    fn lookup(&self, key: &[u8]) -> Option<&Leaf> {
        let key = Low::new(key);
        let (low, leaf) = self.0.range(..=&key).next_back()?;
        // No mapping is empty, so each holds its low bound.
        (*low == key || leaf.reaches(&key)).then_some(leaf)
    }

    /// Forgets all that holds a key of `of`; gives how many that were.
    fn drop_overlapping(&mut self, of: &ShardMapping) -> usize {
        let low = Low::new(of.keys.low());
        let to = of.keys.high().map_or(Bound::Unbounded, |high| Bound::Excluded(Low::new(high)));
        let reaches_in = self.0.range(..&low).next_back();
        let reaches_in = reaches_in.filter(|(_, leaf)| leaf.reaches(&low));
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
        self.look(map, key, metrics, |leaf| Arc::clone(&leaf.cached))
    }

    /// The mapping of a key and its shard, if they are remembered.
    pub(crate) fn route(
        &self,
        map: Uuid,
        key: &[u8],
        metrics: &Metrics,
    ) -> Option<(MappingId, Arc<ShardRow>)> {
        self.look(map, key, metrics, |leaf| (leaf.id, Arc::clone(&leaf.shard)))
    }

    fn look<T>(&self, map: Uuid, key: &[u8], metrics: &Metrics, take: impl Fn(&Leaf) -> T) -> Option<T> {
        let trees = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        let found = trees
            .get(&map)
            .and_then(|tree| tree.read().unwrap_or_else(PoisonError::into_inner).lookup(key).map(take));
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
            tree.0.insert(Low::new(cached.mapping.keys.low()), Leaf::new(cached));
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
        let low = tree.lookup(key).map(|leaf| Low::new(leaf.cached.mapping.keys.low()));
        if low.is_some_and(|low| tree.0.remove(&low).is_some()) {
            metrics.mappings_dropped.one();
        }
    }

    /// How many mappings of a map are remembered.
    pub(crate) fn count(&self, map: Uuid) -> usize {
        self.tree(map).read().unwrap_or_else(PoisonError::into_inner).0.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::KeyRange;
    use rangehold_map::shard::ShardId;

    use super::*;
    use crate::location::Location;

    /// Bounds that share their first eight bytes, differ there, or are shorter.
    fn bound() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0..3u8, 0..4),
            prop::collection::vec(0..3u8, 0..3).prop_map(|end| [vec![1; 8], end].concat()),
        ]
    }

    fn cached((mut a, mut b): (Vec<u8>, Vec<u8>), open: bool, number: u128) -> Option<Cached> {
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        let keys = KeyRange::new(a.clone(), (!open).then_some(b.clone()));
        let id = Uuid::from_u128(number);
        let mapping =
            ShardMapping { id: MappingId(id), keys, shard: ShardId(id), online: true, fence: 1, lock: None };
        let location = Location::sqlite("shard").unwrap();
        let shard = Arc::new(ShardRow { id, version: id, location, online: true });
        (open || a < b).then_some(Cached { mapping, shard })
    }

    proptest! {
        /// Against a list of mappings that is searched from its end.
        #[test]
        fn the_newest_mapping_of_a_key_is_found(
            steps in prop::collection::vec((bound(), bound(), prop::bool::weighted(0.1), prop::bool::weighted(0.2)), 1..12),
            keys in prop::collection::vec(bound(), 1..12),
        ) {
            let (cache, metrics, map) = (Cache::default(), Metrics::default(), Uuid::nil());
            let mut model: Vec<ShardMapping> = Vec::new();
            for (number, (a, b, open, forget)) in steps.into_iter().enumerate() {
                let Some(new) = cached((a, b), open, number as u128) else { continue };
                let mapping = new.mapping.clone();
                model.retain(|old| old.keys.intersect(&mapping.keys).is_empty());
                if forget {
                    cache.forget(map, &[mapping], &metrics);
                } else {
                    model.push(mapping);
                    cache.put(map, [new], &metrics);
                }
            }
            prop_assert_eq!(cache.count(map), model.len());
            for key in keys {
                let expected = model.iter().find(|mapping| mapping.keys.contains(&key)).map(|mapping| mapping.id);
                let found = cache.lookup(map, &key, &metrics).map(|cached| cached.mapping.id);
                let routed = cache.route(map, &key, &metrics).map(|(id, _)| id);
                prop_assert_eq!((found, routed), (expected, expected));
            }
        }
    }
}

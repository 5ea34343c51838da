//! The cache of the global map in a process, so that the shard of a key is found without IO.
//!
//! A cache may be old; the shard itself decides. The mappings of one map are in a [tree], in the order of their low
//! bounds.

mod tree;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rangehold_map::shard::{MappingId, ShardMapping};
use uuid::Uuid;

use self::tree::{Leaf, Tree};
use crate::limits::CACHED_MAPPINGS_MAX;
use crate::metrics::Metrics;
use crate::rows::{MapRow, ShardRow};

/// A cached mapping with its shard.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    pub(crate) mapping: ShardMapping,
    pub(crate) shard: Arc<ShardRow>,
}

/// The cache of a manager.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// The maps, by name in lower case.
    maps: RwLock<HashMap<String, Arc<MapRow>>>,
    mappings: RwLock<HashMap<Uuid, Arc<RwLock<Tree>>>>,
}

impl Cache {
    /// The map of this name, if it is cached.
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

    /// The mapping of a key, if it is cached.
    pub(crate) fn lookup(&self, map: Uuid, key: &[u8], metrics: &Metrics) -> Option<Cached> {
        self.look(map, key, metrics, Leaf::cached)
    }

    /// The mapping of a key and its shard, if they are cached.
    pub(crate) fn route(
        &self,
        map: Uuid,
        key: &[u8],
        metrics: &Metrics,
    ) -> Option<(MappingId, Arc<ShardRow>)> {
        self.look(map, key, metrics, |leaf| (leaf.id(), Arc::clone(leaf.shard())))
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

    /// Caches mappings. They replace those that hold some of the same keys.
    pub(crate) fn put(&self, map: Uuid, mappings: impl IntoIterator<Item = Cached>, metrics: &Metrics) {
        let tree = self.tree(map);
        let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
        let mut put = 0;
        for cached in mappings {
            put += 1;
            metrics.mappings_dropped.add(tree.drop_overlapping(&cached.mapping) as u64);
            if tree.len() >= CACHED_MAPPINGS_MAX {
                // It does not matter which mapping goes, because one that is needed again is cached again.
                tree.pop_first();
                metrics.mappings_dropped.one();
            }
            metrics.mappings_cached.one();
            tree.insert(Leaf::new(cached));
        }
        if put > 1 && put > tree.len() / 2 {
            tree.pack();
        }
    }

    /// Packs the mappings of a map, after all of them were put.
    pub(crate) fn pack(&self, map: Uuid) {
        self.tree(map).write().unwrap_or_else(PoisonError::into_inner).pack();
    }

    /// Forgets all mappings that hold a key of these mappings.
    pub(crate) fn forget(&self, map: Uuid, mappings: &[ShardMapping], metrics: &Metrics) {
        let tree = self.tree(map);
        let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
        for mapping in mappings {
            metrics.mappings_dropped.add(tree.drop_overlapping(mapping) as u64);
        }
    }

    /// Forgets the mapping that holds a key.
    pub(crate) fn forget_key(&self, map: Uuid, key: &[u8], metrics: &Metrics) {
        let tree = self.tree(map);
        let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
        let low = tree.lookup(key).map(|leaf| leaf.low().to_vec());
        if low.is_some_and(|low| tree.remove(&low)) {
            metrics.mappings_dropped.one();
        }
    }

    /// How many mappings of a map are cached.
    pub(crate) fn count(&self, map: Uuid) -> usize {
        self.tree(map).read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::KeyRange;
    use rangehold_map::shard::ShardId;

    use super::*;
    use crate::location::Location;

    /// Some of these bounds have the same first eight bytes, some differ there, and some are shorter.
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

    #[test]
    fn mappings_that_begin_alike_are_found_when_they_are_put_at_once() {
        const COUNT: u128 = 20_000;
        let (cache, metrics, map) = (Cache::default(), Metrics::default(), Uuid::nil());
        let key = |number: u128| format!("customer-{number:06}").into_bytes();
        let all = || (0..COUNT).filter_map(|number| cached((key(number), key(number + 1)), false, number));
        for _ in 0..2 {
            cache.put(map, all(), &metrics);
            assert_eq!(cache.count(map), COUNT as usize);
        }
        for number in 0..COUNT {
            let found = cache.route(map, &[key(number), vec![0]].concat(), &metrics).map(|(id, _)| id.0);
            assert_eq!(found, Some(Uuid::from_u128(number)));
        }
        assert_eq!(cache.route(map, b"customer-", &metrics), None);
        assert_eq!(cache.route(map, &key(COUNT), &metrics), None);
    }

    proptest! {
        /// Compares the cache with a plain list of the mappings.
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

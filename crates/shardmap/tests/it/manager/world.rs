//! What the tests of the manager have in common: a range map on three shards, told as text, and checks that
//! the places of truth agree.

use rangehold_shardmap::{
    Error, KindOfMap, Location, ManagerOptions, Mapping, RangeShardMap, Shard, ShardKeyValue, ShardMap,
    ShardMapManager,
};

use crate::support::stores::{World, letter};

/// A range map over the shards A, B and C.
pub(crate) struct Ranges {
    pub(crate) places: [Location; 3],
    pub(crate) shards: Vec<Shard>,
    pub(crate) manager: ShardMapManager,
    pub(crate) map: RangeShardMap<i32>,
}

impl Ranges {
    pub(crate) async fn new(world: &World) -> Self {
        Self::with(world, world.options()).await
    }

    pub(crate) async fn with(world: &World, options: ManagerOptions) -> Self {
        let places = world.shards::<3>();
        let manager = world.manager_with(options).await;
        let map = manager.create_range_map::<i32>("ranges").await.unwrap();
        let mut shards = Vec::new();
        for place in &places {
            shards.push(map.create_shard(place).await.unwrap());
        }
        Self { places, shards, manager, map }
    }

    pub(crate) async fn told(&self) -> String {
        told(&self.map, &self.places).await
    }

    /// The three places of truth agree, and nothing is under way.
    pub(crate) async fn check(&self) {
        check(&self.manager, &self.places).await;
        check_sizes(&self.map).await;
    }
}

/// A map in words: `0-10 A, 10-20 B offline`.
pub(crate) async fn told<M: KindOfMap>(map: &ShardMap<i32, M>, places: &[Location]) -> String {
    let line = |m: &Mapping<i32>| {
        let status = if m.is_online() { "" } else { " offline" };
        let high = m.high().map_or(String::new(), i32::to_string);
        format!("{}-{high} {}{status}", m.low(), letter(m.shard(), places))
    };
    map.mappings().await.unwrap().iter().map(line).collect::<Vec<_>>().join(", ")
}

/// No operation is under way, and every shard says what the global map says.
pub(crate) async fn check(manager: &ShardMapManager, places: &[Location]) {
    assert_eq!(manager.pending_operations().await.unwrap(), []);
    let in_maps = manager.shard_locations().await.unwrap();
    for place in places.iter().filter(|place| in_maps.contains(place)) {
        for found in manager.recovery().detect(place, None).await.unwrap() {
            assert!(found.is_empty(), "{place}: {:?}", found.differences().unwrap());
        }
    }
}

/// Each shard has as many mappings as its size says. All operations must be at their end.
pub(crate) async fn check_sizes<K: ShardKeyValue, M: KindOfMap>(map: &ShardMap<K, M>) {
    let mappings = map.mappings().await.unwrap();
    for size in map.sizes().await.unwrap() {
        let there = mappings.iter().filter(|mapping| mapping.shard().location() == size.shard.location());
        assert_eq!(size.mappings, there.count(), "{}", size.shard.location());
    }
}

/// What an error is, in two words.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    format!("{:?}/{}", error.category(), error.code())
}

/// A key's shard, asked in the global map.
pub(crate) async fn shard_of<K: ShardKeyValue, M: KindOfMap>(map: &ShardMap<K, M>, key: K) -> Location {
    map.get(&key).await.unwrap().shard().location().clone()
}

//! Shards with many mappings: they are moved in few round trips.

use rangehold_shardmap::{ListShardMap, Location, ManagerOptions, Shard, ShardMapManager, ShardUpdate};
use rangehold_testkit::needs;

use super::world::check;
use crate::support::proxy::Proxy;
use crate::support::stores::World;

const MAPPINGS: i32 = 1_000;

/// A list map with many keys on one shard. Key 7 is offline.
struct Large {
    manager: ShardMapManager,
    map: ListShardMap<i32>,
    shard: Shard,
    place: Location,
}

impl Large {
    async fn new(world: &World, options: ManagerOptions) -> Self {
        let place = world.database("shard_a");
        let manager = world.manager_with(options).await;
        let map = manager.create_list_map::<i32>("tenants").await.unwrap();
        let shard = map.create_shard(&place).await.unwrap();
        let keys: Vec<i32> = (0..MAPPINGS).collect();
        map.add_many(keys.iter().map(|key| (key, &shard)).collect()).await.unwrap();
        map.offline(&map.get(&7).await.unwrap()).await.unwrap();
        Self { manager, map, shard, place }
    }
}

fn to(location: &Location) -> ShardUpdate {
    ShardUpdate { online: None, location: Some(location.clone()) }
}

/// A shard opens with many rows of its local map gone and come, and the server is asked for many at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_shard_is_opened_in_few_round_trips() {
    needs!(PostgreSql);
    let world = World::postgres();
    let large = Large::new(&world, world.options()).await;
    let Location::Postgres { database, .. } = world.copy(&large.place, "copy") else { unreachable!() };
    let proxy = Proxy::start(world.server().unwrap().port()).await;
    let copy = Location::postgres("127.0.0.1", proxy.port(), &database).unwrap();
    large.map.update_shard(&large.shard, &to(&copy)).await.unwrap();
    assert!(proxy.round_trips() < 100, "{} round trips", proxy.round_trips());
    check(&large.manager, &[copy]).await;
}

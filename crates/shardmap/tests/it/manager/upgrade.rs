//! Stores of version 1.0, which had fewer tables and functions.

use rangehold_shardmap::query::Readers;
use rangehold_shardmap::{Location, ShardUpdate};

use super::world::{Ranges, check};
use crate::support::stores::World;

/// Makes the stores as version 1.0 made them.
fn make_old(world: &World, global: &Location, shards: &[Location]) {
    world.sql(global, "drop table @global_lost_shards; update @global_meta set version_minor = 0");
    for shard in shards {
        world.sql(shard, "drop table @local_closed_mappings; update @local_meta set version_minor = 0");
        if world.is_postgres() {
            world.sql(shard, "drop function @shard_version(uuid)");
        }
    }
}

fn versions(world: &World, global: &Location, shards: &[Location]) -> Vec<String> {
    let mut all = vec![world.sql(global, "select version_minor from @global_meta")];
    all.extend(shards.iter().map(|shard| world.sql(shard, "select version_minor from @local_meta")));
    all
}

on_both_stores! {
    /// An old store serves changes and queries as before, and lets a shard change its place.
    async fn a_store_of_version_1_0_goes_on_working(world) {
        let ranges = Ranges::new(world).await;
        let mapping = ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        make_old(world, ranges.manager.location(), &ranges.places);
        let manager = world.second().await;
        let map = manager.range_map::<i32>("ranges").await.unwrap();
        map.online(&map.offline(&mapping).await.unwrap()).await.unwrap();
        let readers = Readers::new(world.options().postgres);
        let mut rows = map.query("select note from orders").run(&readers).await.unwrap();
        assert_eq!(rows.all().await.unwrap().len(), 6);
        drop(rows);
        let copy = world.copy(&ranges.places[0], "copy");
        let to = ShardUpdate { online: None, location: Some(copy.clone()) };
        map.update_shard(&map.shard(&ranges.places[0]).await.unwrap(), &to).await.unwrap();
        check(&manager, &[copy, ranges.places[1].clone(), ranges.places[2].clone()]).await;
    }

    /// The upgrade brings the tables and the functions, and may be done again.
    async fn an_upgrade_brings_what_is_new(world) {
        let ranges = Ranges::new(world).await;
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let global = ranges.manager.location();
        make_old(world, global, &ranges.places);
        for _ in 0..2 {
            let done = ranges.manager.upgrade().await.unwrap();
            assert_eq!(done.len(), 3);
            assert!(done.iter().all(|(_, upgraded)| upgraded.is_ok()), "{done:?}");
            assert_eq!(versions(world, global, &ranges.places), ["1"; 4]);
        }
        world.sql(&ranges.places[0], "select count(*) from @local_closed_mappings");
        ranges.manager.recovery().detach_lost(&ranges.places[2], None).await.unwrap();
        check(&ranges.manager, &ranges.places[..2]).await;
    }
}

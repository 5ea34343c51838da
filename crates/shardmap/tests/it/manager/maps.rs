//! The set of shard maps.

use rangehold_shardmap::{MapKind, ShardKey, ShardKeyType};

use super::world::{Ranges, code};

on_both_stores! {
    /// Acceptance 21, 22, 26, 27: a map that was made is in the cache. Deleting it removes it, and deleting it again is not an error.
    async fn maps_come_and_go(world) {
        let manager = world.manager().await;
        manager.create_list_map::<i32>("list").await.unwrap();
        manager.create_range_map::<i64>("range").await.unwrap();
        let hits = || (manager.metrics().map_hits.get(), manager.metrics().map_misses.get());
        let (hits_before, misses_before) = hits();
        manager.list_map::<i32>("list").await.unwrap();
        manager.range_map::<i64>("RANGE").await.unwrap();
        assert_eq!(hits(), (hits_before + 2, misses_before));
        manager.delete_map("list").await.unwrap();
        assert!(manager.try_list_map::<i32>("list").await.unwrap().is_none());
        assert_eq!(hits(), (hits_before + 2, misses_before + 1));
        manager.delete_map("list").await.unwrap();
        assert_eq!(code(manager.list_map::<i32>("list").await), "Manager/ShardMapLookupFailure");
    }

    /// Acceptance 23, 24: one name, one map, of whatever kind.
    async fn names_are_given_once(world) {
        let manager = world.manager().await;
        manager.create_list_map::<i32>("Customers").await.unwrap();
        assert_eq!(code(manager.create_list_map::<i32>("customers").await), "Manager/ShardMapAlreadyExists");
        assert_eq!(code(manager.create_range_map::<i32>("CUSTOMERS").await), "Manager/ShardMapAlreadyExists");
        // In lower case the first letter has two characters.
        manager.create_list_map::<i32>("İller").await.unwrap();
        manager.list_map::<i32>("İLLER").await.unwrap();
        assert_eq!(code(manager.create_list_map::<i32>("İlleR").await), "Manager/ShardMapAlreadyExists");
        assert_eq!(code(manager.create_range_map::<i32>("a b").await), "General/InvalidArgument");
        assert_eq!(code(manager.create_range_map::<i32>(&"x".repeat(51)).await), "General/InvalidArgument");
        assert_eq!(code(manager.create_range_map::<ShardKey>("any").await), "General/InvalidArgument");
    }

    /// Acceptance 25: the list has exactly the maps that were made.
    async fn maps_are_listed(world) {
        let manager = world.manager().await;
        manager.create_range_map::<i64>("b").await.unwrap();
        manager.create_shard_map("a", MapKind::List, ShardKeyType::Guid).await.unwrap();
        let all = manager.shard_maps().await.unwrap();
        let told: Vec<_> = all.iter().map(|map| (map.name.as_str(), map.kind, map.key_type)).collect();
        assert_eq!(told, [("a", MapKind::List, ShardKeyType::Guid), ("b", MapKind::Range, ShardKeyType::Int64)]);
    }

    /// Acceptance 28: a map is not opened as another kind, or with other keys; as any keys it is.
    async fn kinds_and_types_are_checked(world) {
        let manager = world.manager().await;
        manager.create_list_map::<i32>("list").await.unwrap();
        manager.create_range_map::<i32>("range").await.unwrap();
        assert_eq!(code(manager.range_map::<i32>("list").await), "Manager/ShardMapTypeConversion");
        assert_eq!(code(manager.list_map::<i32>("range").await), "Manager/ShardMapTypeConversion");
        assert_eq!(code(manager.list_map::<i64>("list").await), "Manager/ShardMapTypeConversion");
        let any = manager.list_map::<ShardKey>("list").await.unwrap();
        let wrong = ShardKey::min(ShardKeyType::Int64);
        assert_eq!(code(any.get(&wrong).await), "General/InvalidArgument");
    }

    /// Acceptance 29, 30, 34: a cache that is old serves the name; the store decides.
    async fn another_manager_deletes_a_map(world) {
        let manager = world.manager().await;
        let map = manager.create_list_map::<i32>("list").await.unwrap();
        let other = world.second().await;
        other.list_map::<i32>("list").await.unwrap();
        other.delete_map("list").await.unwrap();
        manager.list_map::<i32>("list").await.unwrap();
        let place = &world.shards::<1>()[0];
        assert_eq!(code(map.create_shard(place).await), "ShardMap/ShardMapDoesNotExist");
        assert_eq!(code(map.get(&1).await), "ListShardMap/ShardMapDoesNotExist");
    }

    /// Acceptance 31, 32, 33: a store that fails changes nothing.
    async fn a_failing_store_changes_no_map(world) {
        let manager = world.manager().await;
        manager.create_list_map::<i32>("kept").await.unwrap();
        world.break_table(manager.location(), "global_maps");
        assert_eq!(code(manager.create_list_map::<i32>("list").await), "Manager/StorageOperationFailure");
        assert_eq!(code(manager.create_range_map::<i32>("range").await), "Manager/StorageOperationFailure");
        assert_eq!(code(manager.delete_map("kept").await), "Manager/StorageOperationFailure");
        world.mend(manager.location(), "global_maps");
        let names: Vec<_> = manager.shard_maps().await.unwrap().into_iter().map(|map| map.name).collect();
        assert_eq!(names, ["kept"]);
    }

    /// A map with shards is not deleted.
    async fn a_map_with_shards_stays(world) {
        let ranges = Ranges::new(world).await;
        assert_eq!(code(ranges.manager.delete_map("ranges").await), "Manager/ShardMapHasShards");
        for shard in ranges.map.shards().await.unwrap() {
            ranges.map.delete_shard(&shard).await.unwrap();
        }
        ranges.manager.delete_map("ranges").await.unwrap();
    }
}

//! List maps.

use rangehold_shardmap::{
    DateTime, DateTimeOffset, LookIn, MappingChange, ShardKeyValue, ShardMapManager, TimeSpan,
};
use uuid::Uuid;

use super::world::{Ranges, check, code};

/// Adds every key to a map of its type and finds each again, from another manager too.
async fn all_are_found<K: ShardKeyValue + PartialEq + std::fmt::Debug>(
    manager: &ShardMapManager,
    other: &ShardMapManager,
    name: &str,
    place: &rangehold_shardmap::Location,
    keys: Vec<K>,
) {
    let map = manager.create_list_map::<K>(name).await.unwrap();
    let shard = map.create_shard(place).await.unwrap();
    let added = map.add_many(keys.iter().map(|key| (key, &shard)).collect()).await.unwrap();
    assert_eq!(added.len(), keys.len());
    let other = other.list_map::<K>(name).await.unwrap();
    for key in &keys {
        let found = other.get(key).await.unwrap();
        assert_eq!((found.value(), found.shard()), (key, &shard));
        assert_eq!(code(map.add(key, &shard).await), "ListShardMap/MappingPointAlreadyMapped");
    }
}

on_both_stores! {
    /// Acceptance 52, 53, 68: keys of every type, extremes too, are mapped once and found.
    async fn keys_of_every_type(world) {
        let (manager, place) = (world.manager().await, &world.shards::<1>()[0]);
        let other = &world.second().await;
        let manager = &manager;
        all_are_found(manager, other, "int32", place, vec![i32::MIN, -1, 0, 1, i32::MAX]).await;
        all_are_found(manager, other, "int64", place, vec![i64::MIN, -1, 0, 1, i64::MAX]).await;
        all_are_found(manager, other, "guid", place, vec![Uuid::nil(), Uuid::from_u128(7), Uuid::max()]).await;
        all_are_found(manager, other, "binary", place, vec![vec![], vec![0, 1], vec![255; 128]]).await;
        let day = DateTime::from_date(2026, 2, 28).unwrap();
        all_are_found(manager, other, "date", place, vec![DateTime::MIN, day, DateTime::MAX]).await;
        all_are_found(manager, other, "span", place, vec![TimeSpan(i64::MIN), TimeSpan(0), TimeSpan(i64::MAX)]).await;
        let at = |utc| DateTimeOffset::new(utc, TimeSpan(0));
        all_are_found(manager, other, "offset", place, vec![at(DateTime::MIN), at(day), at(DateTime::MAX)]).await;
        all_are_found(manager, other, "text", place, vec![String::new(), "a".into(), "z\u{10ffff}".into()]).await;
        check(manager, std::slice::from_ref(place)).await;
    }

    /// Acceptance 54, 66, 85, 97: where a key is looked up. What a cache holds stays until a look into the store.
    async fn caches_are_old_until_the_store_is_asked(world) {
        let (first, place) = (world.manager().await, &world.shards::<1>()[0]);
        let map = first.create_list_map::<i32>("list").await.unwrap();
        let shard = map.create_shard(place).await.unwrap();
        let mapping = map.add(&1, &shard).await.unwrap();
        let second = world.second().await;
        let seen = second.list_map::<i32>("list").await.unwrap();
        assert_eq!(code(seen.lookup(&1, LookIn::Cache).await), "ListShardMap/MappingNotFoundForKey");
        assert_eq!(seen.lookup(&1, LookIn::CacheThenStore).await.unwrap(), mapping);
        assert_eq!(seen.lookup(&1, LookIn::Cache).await.unwrap(), mapping);
        let offline = map.offline(&mapping).await.unwrap();
        map.delete(&offline).await.unwrap();
        assert_eq!(seen.lookup(&1, LookIn::CacheThenStore).await.unwrap(), mapping);
        assert!(seen.try_lookup(&1, LookIn::Store).await.unwrap().is_none());
        assert!(seen.try_lookup(&1, LookIn::Cache).await.unwrap().is_none());
        assert!(map.try_lookup(&1, LookIn::Cache).await.unwrap().is_none());
    }

    /// Acceptance 55, 67: all three; two within an interval; two on a shard; one of both.
    async fn mappings_are_listed_by_keys_and_shard(world) {
        let (manager, places) = (world.manager().await, world.shards::<2>());
        let map = manager.create_list_map::<i32>("list").await.unwrap();
        let a = map.create_shard(&places[0]).await.unwrap();
        let b = map.create_shard(&places[1]).await.unwrap();
        map.add_many(vec![(&1, &a), (&2, &a), (&3, &b)]).await.unwrap();
        assert_eq!(map.mappings().await.unwrap().len(), 3);
        assert_eq!(map.mappings_between(&2, None, None).await.unwrap().len(), 2);
        assert_eq!(map.mappings_between(&1, Some(&3), None).await.unwrap().len(), 2);
        assert_eq!(map.mappings_on(&a).await.unwrap().len(), 2);
        assert_eq!(map.mappings_between(&2, Some(&9), Some(&a)).await.unwrap().len(), 1);
    }

    /// Acceptance 56, 57, 58, 69, 70: deleted when offline, once, and only by a handle of today.
    async fn points_are_deleted(world) {
        let (manager, place) = (world.manager().await, &world.shards::<1>()[0]);
        let map = manager.create_list_map::<DateTime>("list").await.unwrap();
        let shard = map.create_shard(place).await.unwrap();
        let day = DateTime::from_date(2026, 1, 1).unwrap();
        let online = map.add(&day, &shard).await.unwrap();
        assert_eq!(code(map.delete(&online).await), "ListShardMap/MappingIsNotOffline");
        let offline = map.offline(&online).await.unwrap();
        assert_eq!(code(map.delete(&online).await), "ListShardMap/MappingDoesNotExist");
        map.delete(&offline).await.unwrap();
        assert_eq!(code(map.delete(&offline).await), "ListShardMap/MappingDoesNotExist");
        let misses = manager.metrics().cache_misses.get();
        let missing = map.lookup(&day, LookIn::CacheThenStore).await.unwrap_err();
        assert_eq!(manager.metrics().cache_misses.get(), misses + 1);
        assert!(missing.to_string().contains("provision"), "{missing}");
        check(&manager, std::slice::from_ref(place)).await;
    }

    /// Acceptance 59, 60, 64, 65: status and place change, each in a new mapping; the helpers do the same.
    async fn points_are_updated_and_moved(world) {
        let (manager, places) = (world.manager().await, world.shards::<2>());
        let map = manager.create_list_map::<i32>("list").await.unwrap();
        let a = map.create_shard(&places[0]).await.unwrap();
        let b = map.create_shard(&places[1]).await.unwrap();
        let first = map.add(&1, &a).await.unwrap();
        let same = map.update(&first, MappingChange::default()).await.unwrap();
        assert_eq!(same.id(), first.id());
        let off = map.offline(&first).await.unwrap();
        assert!(!off.is_online() && off.id() != first.id());
        let moved = map.update(&off, MappingChange { online: None, shard: Some(&b) }).await.unwrap();
        assert_eq!(map.get(&1).await.unwrap(), moved);
        assert_eq!(moved.shard(), &b);
        assert_eq!(world.sql(&places[0], "select count(*) from @local_mappings"), "0");
        assert_eq!(world.sql(&places[1], "select count(*) from @local_mappings"), "1");
        let on = map.with_grace(std::time::Duration::ZERO).online(&moved).await.unwrap();
        assert!(map.get(&1).await.unwrap().is_online());
        assert_eq!(map.get(&1).await.unwrap(), on);
        check(&manager, &places).await;
    }

    /// Acceptance 61, 82: of all changes of status and place at once only online, moved, online is refused.
    async fn only_online_moves_are_refused(world) {
        let (manager, places) = (world.manager().await, world.shards::<2>());
        let map = manager.create_list_map::<i32>("list").await.unwrap();
        let a = map.create_shard(&places[0]).await.unwrap();
        let b = map.create_shard(&places[1]).await.unwrap();
        let mut key = 0;
        for before in [true, false] {
            for after in [true, false] {
                for moved in [true, false] {
                    key += 1;
                    let mapping = map.add(&key, &a).await.unwrap();
                    let mapping = if before { mapping } else { map.offline(&mapping).await.unwrap() };
                    let to = MappingChange { online: Some(after), shard: moved.then_some(&b) };
                    let updated = map.update(&mapping, to).await;
                    if before && after && moved {
                        assert_eq!(code(updated), "ListShardMap/MappingIsNotOffline");
                    } else {
                        let updated = updated.unwrap();
                        assert_eq!((updated.is_online(), updated.shard() == &b), (after, moved));
                    }
                }
            }
        }
        check(&manager, &places).await;
    }

    /// Many mappings are one operation: all of them or none.
    async fn many_are_added_at_once(world) {
        let ranges = Ranges::new(world).await;
        let map = ranges.manager.create_list_map::<i32>("list").await.unwrap();
        let a = map.create_shard(&ranges.places[0]).await.unwrap();
        let b = map.create_shard(&ranges.places[1]).await.unwrap();
        let keys: Vec<i32> = (0..1000).collect();
        let global = ranges.manager.transactions_begun(ranges.manager.location());
        let all = keys.iter().map(|key| (key, if key % 2 == 0 { &a } else { &b })).collect();
        assert_eq!(map.add_many(all).await.unwrap().len(), 1000);
        assert_eq!(ranges.manager.transactions_begun(ranges.manager.location()), global + 2);
        let clash = vec![(&2000, &a), (&500, &a)];
        assert_eq!(code(map.add_many(clash).await), "ListShardMap/MappingPointAlreadyMapped");
        assert_eq!(code(map.add_many(vec![(&7000, &a), (&7000, &b)]).await), "ListShardMap/MappingPointAlreadyMapped");
        assert_eq!(map.mappings().await.unwrap().len(), 1000);
        ranges.check().await;
    }

    /// Acceptance 154: what the cache and the operations do is counted.
    async fn counters_count(world) {
        let (manager, place) = (world.manager().await, &world.shards::<1>()[0]);
        let map = manager.create_list_map::<i32>("list").await.unwrap();
        let shard = map.create_shard(place).await.unwrap();
        let mapping = map.add(&1, &shard).await.unwrap();
        let metrics = manager.metrics();
        assert_eq!((map.cached(), metrics.mappings_cached.get(), metrics.mappings_dropped.get()), (1, 1, 0));
        map.lookup(&1, LookIn::CacheThenStore).await.unwrap();
        assert_eq!((metrics.cache_hits.get(), metrics.cache_misses.get(), metrics.global_lookups.get()), (1, 0, 0));
        assert!(map.try_lookup(&2, LookIn::CacheThenStore).await.unwrap().is_none());
        assert_eq!((metrics.cache_hits.get(), metrics.cache_misses.get(), metrics.global_lookups.get()), (1, 1, 1));
        let offline = map.offline(&mapping).await.unwrap();
        map.delete(&offline).await.unwrap();
        assert_eq!((map.cached(), metrics.mappings_cached.get(), metrics.mappings_dropped.get()), (0, 2, 2));
        assert_eq!((metrics.operations_done.get(), metrics.operations_undone.get()), (4, 0));
    }

    /// The database itself refuses keys that are mapped, whoever writes.
    async fn the_database_refuses_overlap(world) {
        let ranges = Ranges::new(world).await;
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        ranges.map.add(&20, None, &ranges.shards[0]).await.unwrap();
        for table in ["global_mappings", "local_mappings"] {
            let place = if table.starts_with('g') { ranges.manager.location() } else { &ranges.places[0] };
            for (low, high) in [("80000005", Some("80000007")), ("7fffffff", Some("80000001")), ("80000030", None)] {
                let inserted = raw_insert(world, place, table, low, high);
                assert!(inserted.is_err(), "{table} {low} {high:?}");
            }
            raw_insert(world, place, table, "8000000a", Some("80000014")).unwrap();
        }
    }
}

/// Inserts a mapping like the first one that is there, with other keys.
fn raw_insert(
    world: &crate::support::stores::World,
    place: &rangehold_shardmap::Location,
    table: &str,
    low: &str,
    high: Option<&str>,
) -> std::thread::Result<String> {
    let (digits, id): (fn(&str) -> String, _) = if world.is_postgres() {
        (|hex| format!("'\\x{hex}'::bytea"), "gen_random_uuid()".to_owned())
    } else {
        (|hex| format!("x'{hex}'"), format!("'{low}'"))
    };
    let high = high.map_or("null".to_owned(), digits);
    let (more, values) = if table == "global_mappings" { (", readable", ", readable") } else { ("", "") };
    let sql = format!(
        "insert into @{table} (mapping_id, map_id, shard_id, low, high, online, fence, epoch{more})
        select {id}, map_id, shard_id, {}, {high}, online, fence, epoch{values} from @{table} order by low limit 1",
        digits(low)
    );
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.sql(place, &sql)))
}

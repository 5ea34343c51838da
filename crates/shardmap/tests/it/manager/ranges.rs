//! Range maps.

use rangehold_shardmap::{Location, MappingChange, ShardKeyValue, ShardMapManager, TimeSpan};
use uuid::Uuid;

use super::world::{Ranges, check, code, shard_of};
use crate::support::roles::APPLICATION;

/// Adds the intervals between neighbouring keys, the last without an end, and finds their bounds.
async fn consecutive<K: ShardKeyValue + PartialEq + std::fmt::Debug>(
    manager: &ShardMapManager,
    name: &str,
    place: &rangehold_shardmap::Location,
    keys: Vec<K>,
) {
    let map = manager.create_range_map::<K>(name).await.unwrap();
    let shard = map.create_shard(place).await.unwrap();
    let highs = keys.iter().skip(1).map(Some).chain([None]);
    let ranges: Vec<_> = keys.iter().zip(highs).collect();
    map.add_many(ranges.iter().map(|(low, high)| (*low, *high, &shard)).collect()).await.unwrap();
    for (low, high) in ranges {
        let found = map.get(low).await.unwrap();
        assert_eq!((found.low(), found.high()), (low, high));
    }
}

on_both_stores! {
    /// Acceptance 71, 73, 74: intervals of every type, from the least key to beyond the greatest.
    async fn intervals_of_every_type(world) {
        let (manager, place) = (world.manager().await, &world.shards::<1>()[0]);
        let ends = vec![i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX];
        consecutive(&manager, "int32", place, ends).await;
        consecutive(&manager, "int64", place, vec![i64::MIN, 0, i64::MAX]).await;
        consecutive(&manager, "guid", place, vec![Uuid::nil(), Uuid::max()]).await;
        consecutive(&manager, "binary", place, vec![vec![], vec![1u8], vec![255; 128]]).await;
        consecutive(&manager, "span", place, vec![TimeSpan(i64::MIN), TimeSpan(i64::MAX)]).await;
        consecutive(&manager, "text", place, vec![String::new(), "m".to_owned()]).await;
        let whole = manager.create_range_map::<i32>("whole").await.unwrap();
        let shard = whole.create_shard(place).await.unwrap();
        whole.add(&i32::MIN, None, &shard).await.unwrap();
        assert!(whole.get(&i32::MAX).await.is_ok() && whole.get(&i32::MIN).await.is_ok());
        check(&manager, std::slice::from_ref(place)).await;
    }

    /// Acceptance 72, 75: what touches a mapping is refused, what fits between is not.
    async fn intervals_do_not_overlap(world) {
        let ranges = Ranges::new(world).await;
        let (map, shard) = (&ranges.map, &ranges.shards[0]);
        map.add(&0, Some(&10), shard).await.unwrap();
        map.add(&20, Some(&30), shard).await.unwrap();
        for (low, high) in [(5, 15), (5, 7), (-5, 5), (-5, 15), (15, 25), (i32::MIN, i32::MAX), (0, 10)] {
            let added = map.add(&low, Some(&high), &ranges.shards[1]).await;
            assert_eq!(code(added), "RangeShardMap/MappingRangeAlreadyMapped", "[{low}, {high})");
        }
        assert_eq!(code(map.add(&12, Some(&12), shard).await), "General/InvalidArgument".replace("General", "RangeShardMap"));
        map.add(&10, Some(&20), &ranges.shards[1]).await.unwrap();
        assert_eq!(ranges.told().await, "0-10 A, 10-20 B, 20-30 A");
        ranges.check().await;
    }

    /// Acceptance 78, 79, 80, 81: stale handles are refused; an update gives another mapping; a move another shard.
    async fn ranges_are_updated_moved_and_deleted(world) {
        let ranges = Ranges::new(world).await;
        let map = &ranges.map;
        let first = map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let off = map.offline(&first).await.unwrap();
        assert_ne!(off.id(), first.id());
        assert_eq!(code(map.online(&first).await), "RangeShardMap/MappingDoesNotExist");
        assert_eq!(code(map.split(&first, &5).await), "RangeShardMap/MappingDoesNotExist");
        let to_b = MappingChange { online: None, shard: Some(&ranges.shards[1]) };
        let moved = map.update(&off, to_b).await.unwrap();
        assert_eq!(shard_of(map, 5).await, ranges.places[1]);
        assert_eq!(code(map.delete(&off).await), "RangeShardMap/MappingDoesNotExist");
        map.delete(&moved).await.unwrap();
        assert_eq!(code(map.delete(&moved).await), "RangeShardMap/MappingDoesNotExist");
        assert_eq!(ranges.told().await, "");
        ranges.check().await;
    }

    /// Acceptance 86: all, within an interval, on a shard, both.
    async fn ranges_are_listed(world) {
        let ranges = Ranges::new(world).await;
        let (map, a, b) = (&ranges.map, &ranges.shards[0], &ranges.shards[1]);
        map.add_many(vec![(&1, Some(&10), a), (&10, Some(&20), a), (&20, Some(&30), b)]).await.unwrap();
        assert_eq!(map.mappings().await.unwrap().len(), 3);
        assert_eq!(map.mappings_between(&1, Some(&15), None).await.unwrap().len(), 2);
        assert_eq!(map.mappings_on(a).await.unwrap().len(), 2);
        assert_eq!(map.mappings_between(&1, Some(&10), Some(a)).await.unwrap().len(), 1);
    }

    /// Acceptance 88, 89, 91, 92: a split must be inside, a merge of neighbours on one shard; nothing changes.
    async fn splits_and_merges_are_checked(world) {
        let ranges = Ranges::new(world).await;
        let (map, shards) = (&ranges.map, &ranges.shards);
        let left = map.add(&0, Some(&10), &shards[0]).await.unwrap();
        let other = map.add(&10, Some(&20), &shards[1]).await.unwrap();
        let far = map.add(&30, Some(&40), &shards[0]).await.unwrap();
        for at in [-5, 0, 10, 15] {
            assert_eq!(code(map.split(&left, &at).await), "RangeShardMap/InvalidArgument");
        }
        for right in [&other, &far, &left] {
            assert_eq!(code(map.merge(&left, right).await), "RangeShardMap/InvalidArgument");
        }
        assert_eq!(ranges.told().await, "0-10 A, 10-20 B, 30-40 A");
        assert_eq!(map.get(&5).await.unwrap(), left);
        ranges.check().await;
    }

    /// Each new interval has a fence of its own, and the shard remembers those that were before until a
    /// drain.
    async fn fences_are_new_and_remembered(world) {
        let ranges = Ranges::new(world).await;
        let map = &ranges.map.without_drain();
        let whole = map.add(&0, None, &ranges.shards[0]).await.unwrap();
        let [left, right] = map.split(&whole, &10).await.unwrap();
        let [middle, end] = map.split(&right, &20).await.unwrap();
        let merged = map.merge(&left, &middle).await.unwrap();
        let mut fences = vec![whole.fence(), left.fence(), right.fence(), middle.fence(), end.fence(), merged.fence()];
        fences.sort_unstable();
        fences.dedup();
        assert_eq!(fences.len(), 6);
        let sql = "select former_fences from @local_mappings where low = ";
        let sql = if world.is_postgres() {
            "select array_to_string(former_fences, ',') from @local_mappings where low = '\\x80000000'".to_owned()
        } else {
            format!("{sql} x'80000000'")
        };
        let told = world.sql(&ranges.places[0], &sql);
        let mut former: Vec<i64> = told.trim_matches(['[', ']']).split(',').map(|n| n.trim().parse().unwrap()).collect();
        former.sort_unstable();
        let mut before = vec![whole.fence(), left.fence(), right.fence(), middle.fence()];
        before.sort_unstable();
        assert_eq!(former, before);
        let drained = ranges.map.offline(&merged).await.unwrap();
        assert_eq!(drained.fence(), merged.fence());
        assert_eq!(world.sql(&ranges.places[0], &sql).trim_matches(['[', ']']), "");
    }

    /// Acceptance 63, 84: taken offline without a drain, nobody's transaction is ended; the next is refused.
    async fn without_a_drain_nobody_is_disturbed(world) {
        let ranges = Ranges::new(world).await;
        let mapping = ranges.map.add(&0, None, &ranges.shards[0]).await.unwrap();
        let open = match &ranges.places[0] {
            Location::Postgres { port, database, .. } => {
                let address = format!("host=127.0.0.1 port={port} user={APPLICATION} dbname={database}");
                Some(crate::support::local::connect_to(&address).await)
            }
            Location::Sqlite { .. } => None,
        };
        let map_id = ranges.map.info().id;
        if let Some(client) = &open {
            client.batch_execute("begin").await.unwrap();
            crate::support::local::enter(client, map_id, "80000005").await.unwrap();
        }
        let offline = ranges.map.without_drain().offline(&mapping).await.unwrap();
        assert!(!offline.is_online());
        if let Some(client) = &open {
            client.batch_execute("insert into orders values (5, 'in time'); commit; begin").await.unwrap();
            let refused = crate::support::local::enter(client, map_id, "80000005").await;
            assert_eq!(refused, Err("RH002".to_owned()));
        }
    }

    /// Acceptance 153: split, shrink, move [50,55) to another shard: an old cache names the old one, and the
    /// store the new one.
    async fn a_tenant_moves(world) {
        let ranges = Ranges::new(world).await;
        let other = world.second().await;
        let seen = other.range_map::<i32>("ranges").await.unwrap();
        let map = &ranges.map;
        let all = map.add(&0, Some(&100), &ranges.shards[0]).await.unwrap();
        assert_eq!(seen.get(&52).await.unwrap(), all);
        let [_, high] = map.split(&all, &50).await.unwrap();
        let [middle, _] = map.split(&high, &55).await.unwrap();
        let to_b = MappingChange { online: Some(false), shard: Some(&ranges.shards[1]) };
        let moved = map.online(&map.update(&middle, to_b).await.unwrap()).await.unwrap();
        let cached = seen.lookup(&52, rangehold_shardmap::LookIn::CacheThenStore).await.unwrap();
        assert_eq!(cached, all);
        assert_eq!(code(seen.offline(&cached).await), "RangeShardMap/MappingDoesNotExist");
        assert_eq!(seen.get(&52).await.unwrap(), moved);
        assert_eq!(ranges.told().await, "0-50 A, 50-55 B, 55-100 A");
        ranges.check().await;
    }
}

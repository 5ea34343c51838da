//! Recovery: the places of truth are made to differ behind the manager's back, and brought together again.

use rangehold_shardmap::limits::INTERVALS_ASKED_ALONE_MAX;
use rangehold_shardmap::recovery::{MappedBy, Resolution};
use rangehold_shardmap::{CreateMode, ListShardMap, Location, MappingChange, ShardKeyValue, ShardMapManager};

use super::world::{Ranges, check, code, told};
use crate::support::stores::World;

/// The differences of a shard, told: `5- both` of a list map's key, `10-20 shard` of an interval.
async fn differences(manager: &ShardMapManager, place: &Location) -> Vec<String> {
    let mut all = Vec::new();
    for found in manager.recovery().detect(place, None).await.unwrap() {
        for one in found.differences().unwrap() {
            let by = match one.mapped_by {
                MappedBy::GlobalOnly => "global",
                MappedBy::ShardOnly => "shard",
                MappedBy::Both => "both",
            };
            let high = one.high.map_or(String::new(), |high| high.to_string());
            all.push(format!("{}-{high} {by}", one.low));
        }
    }
    all
}

async fn resolve(manager: &ShardMapManager, place: &Location, how: Resolution) {
    for found in manager.recovery().detect(place, None).await.unwrap() {
        manager.recovery().resolve(found, how).await.unwrap();
    }
}

/// A key as SQL writes it.
fn in_sql(world: &World, key: i32) -> String {
    let digits: String =
        key.to_key().unwrap().raw().to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    if world.is_postgres() { format!("'\\x{digits}'") } else { format!("x'{digits}'") }
}

/// Other keys for a mapping of an `i32` map, in one table.
fn set_keys(world: &World, place: &Location, table: &str, from: i32, low: i32, high: i32) {
    let hex = |key| in_sql(world, key);
    if !world.is_postgres() {
        world.sql(place, &format!("drop trigger if exists @{table}_keep_their_keys"));
    }
    world.sql(
        place,
        &format!("update @{table} set low = {}, high = {} where low = {}", hex(low), hex(high), hex(from)),
    );
}

/// Another id for every mapping of a shard's local map: as after a change that was lost.
fn other_ids(world: &World, place: &Location) {
    let new = if world.is_postgres() {
        "gen_random_uuid()"
    } else {
        "substr('00000000-0000-4000-8000-', 1, 24) || substr(mapping_id, 25)"
    };
    world.sql(place, &format!("update @local_mappings set mapping_id = {new}"));
}

/// Two intervals on A, one on B.
async fn three(world: &World) -> Ranges {
    let ranges = Ranges::new(world).await;
    let (map, shards) = (&ranges.map, &ranges.shards);
    map.add(&0, Some(&10), &shards[0]).await.unwrap();
    map.add(&10, Some(&20), &shards[0]).await.unwrap();
    map.add(&20, Some(&30), &shards[1]).await.unwrap();
    ranges
}

/// A list map with 1 and 2 on A and 3 on B.
async fn points(world: &World) -> (ShardMapManager, ListShardMap<i32>, [Location; 2]) {
    let (manager, places) = (world.manager().await, world.shards::<2>());
    let map = manager.create_list_map::<i32>("points").await.unwrap();
    let a = map.create_shard(&places[0]).await.unwrap();
    let b = map.create_shard(&places[1]).await.unwrap();
    map.add_many(vec![(&1, &a), (&2, &a), (&3, &b)]).await.unwrap();
    (manager, map, places)
}

on_both_stores! {
    /// Acceptance 123, 124: a shard is forgotten and known again; its mappings come back with its word.
    async fn a_shard_is_detached_and_attached(world) {
        let ranges = three(world).await;
        let (recovery, a) = (ranges.manager.recovery(), &ranges.places[0]);
        assert_eq!(differences(&ranges.manager, a).await, Vec::<String>::new());
        recovery.detach(a, None).await.unwrap();
        assert_eq!(ranges.told().await, "20-30 B");
        assert_eq!(code(recovery.detach(a, None).await), "Recovery/ShardDoesNotExist");
        let attached = recovery.attach(a, Some("ranges")).await.unwrap();
        assert_eq!(attached.len(), 1);
        assert_eq!(attached[0].location(), a);
        assert_eq!(code(recovery.attach(a, None).await), "Recovery/ShardLocationAlreadyExists");
        assert_eq!(differences(&ranges.manager, a).await, ["0-10 shard", "10-20 shard"]);
        resolve(&ranges.manager, a, Resolution::KeepShard).await;
        assert_eq!(ranges.told().await, "0-10 A, 10-20 A, 20-30 B");
        ranges.check().await;
        let plain = world.database("plain");
        assert_eq!(code(recovery.attach(&plain, None).await), "Recovery/ShardNotValid");
        assert_eq!(code(recovery.detect(&plain, None).await), "Recovery/ShardNotValid");
    }

    /// Acceptance 125, 132, 133: the same keys by other mappings; either word may be kept.
    async fn other_ids_are_a_difference(world) {
        for how in [Resolution::KeepGlobal, Resolution::KeepShard, Resolution::Ignore] {
            let world = &world.again();
            let ranges = three(world).await;
            let (manager, a) = (&ranges.manager, &ranges.places[0]);
            other_ids(world, a);
            assert_eq!(differences(manager, a).await, ["0-10 both", "10-20 both"]);
            resolve(manager, a, how).await;
            let left = differences(manager, a).await.len();
            assert_eq!(left, if how == Resolution::Ignore { 2 } else { 0 });
            assert_eq!(ranges.told().await, "0-10 A, 10-20 A, 20-30 B");
            let mapping = ranges.map.get(&5).await.unwrap();
            if how != Resolution::Ignore {
                ranges.map.offline(&mapping).await.unwrap();
                ranges.check().await;
            }
        }
    }

    /// Acceptance 126, 127, 128, 130: wider, narrower, more and elsewhere: each piece is told once.
    async fn differences_are_told_in_pieces(world) {
        let ranges = three(world).await;
        let (manager, [a, b, _]) = (&ranges.manager, &ranges.places);
        set_keys(world, a, "local_mappings", 0, -5, 10);
        assert_eq!(differences(manager, a).await, ["-5-0 shard"]);
        set_keys(world, a, "local_mappings", -5, 2, 8);
        assert_eq!(differences(manager, a).await, ["0-2 global", "8-10 global"]);
        set_keys(world, b, "local_mappings", 20, 40, 50);
        assert_eq!(differences(manager, b).await, ["20-30 global", "40-50 shard"]);
        resolve(manager, a, Resolution::KeepGlobal).await;
        resolve(manager, b, Resolution::KeepShard).await;
        assert_eq!(ranges.told().await, "0-10 A, 10-20 A, 40-50 B");
        ranges.check().await;
    }

    /// Acceptance 131: keys that the global map has on a third shard show too, and are taken from there.
    async fn keys_of_a_third_shard_show(world) {
        let ranges = three(world).await;
        let (manager, a) = (&ranges.manager, &ranges.places[0]);
        set_keys(world, a, "local_mappings", 10, 10, 25);
        assert_eq!(differences(manager, a).await, ["20-25 both"]);
        resolve(manager, a, Resolution::KeepShard).await;
        assert_eq!(ranges.told().await, "0-10 A, 10-25 A");
        assert_eq!(differences(manager, &ranges.places[1]).await, ["20-25 both", "25-30 shard"]);
        resolve(manager, &ranges.places[1], Resolution::KeepGlobal).await;
        ranges.check().await;
    }

    /// Acceptance 129, 140, 141, 142: the same for single keys.
    async fn points_differ_too(world) {
        let (manager, map, [a, b]) = &points(world).await;
        world.sql(a, "delete from @local_mappings");
        assert_eq!(differences(manager, a).await, ["1- global", "2- global"]);
        resolve(manager, a, Resolution::KeepGlobal).await;
        check(manager, std::slice::from_ref(a)).await;
        world.sql(manager.location(), "delete from @global_mappings");
        assert_eq!(differences(manager, a).await, ["1- shard", "2- shard"]);
        manager.recovery().rebuild_global(&[a.clone(), b.clone()], None).await.unwrap();
        assert_eq!(told(map, &[a.clone(), b.clone()]).await, "1- A, 2- A, 3- B");
        other_ids(world, b);
        assert_eq!(differences(manager, b).await, ["3- both"]);
        manager.recovery().rebuild_shards(&[a.clone(), b.clone()], Some("points")).await.unwrap();
        check(manager, &[a.clone(), b.clone()]).await;
    }

    /// A shard with more single keys than the global map is asked for one by one: mappings of others that lie between them
    /// stay, also if an operation holds one of them.
    async fn the_keys_of_others_stay_beside_many_that_are_kept(world) {
        let (manager, map, [a, b]) = &points(world).await;
        let shards = [map.shard(a).await.unwrap(), map.shard(b).await.unwrap()];
        let keys: Vec<i32> = (10..10 + 3 * i32::try_from(INTERVALS_ASKED_ALONE_MAX).unwrap()).collect();
        map.add_many(keys.iter().map(|key| (key, &shards[usize::from(key % 2 != 0)])).collect()).await.unwrap();
        let before = told(map, &[a.clone(), b.clone()]).await;
        other_ids(world, a);
        world.sql(a, &format!("delete from @local_mappings where low = {}", in_sql(world, 12)));
        let hold = format!("update @global_mappings set operation_id = map_id where low = {}", in_sql(world, 15));
        world.sql(manager.location(), &hold);
        resolve(manager, a, Resolution::KeepShard).await;
        assert_eq!(told(map, &[a.clone(), b.clone()]).await, before.replace(", 12- A,", ","));
        let free = "update @global_mappings set operation_id = null";
        world.sql(manager.location(), free);
        check(manager, &[a.clone(), b.clone()]).await;
    }

    /// Acceptance 134, 135, 136, 137: a global map that is lost, or holds garbage, is made again from the shards.
    async fn a_global_map_is_made_of_its_shards(world) {
        let ranges = three(world).await;
        let map = ranges.manager.create_list_map::<i32>("points").await.unwrap();
        let shard = map.create_shard(&ranges.places[2]).await.unwrap();
        map.add(&7, &shard).await.unwrap();
        let told_before = ranges.told().await;
        let place = world.place("global");
        let mode = CreateMode::ReplaceExisting;
        let fresh = ShardMapManager::create(place.clone(), mode, world.options()).await.unwrap();
        assert_eq!(fresh.shard_maps().await.unwrap(), []);
        fresh.recovery().rebuild_global(&ranges.places, None).await.unwrap();
        let rebuilt = fresh.range_map::<i32>("ranges").await.unwrap();
        assert_eq!(told(&rebuilt, &ranges.places).await, told_before);
        check(&fresh, &ranges.places).await;
        // Shards heard of greater epochs than the new global map has given; it goes on above them.
        let [left, _] = rebuilt.split(&rebuilt.get(&5).await.unwrap(), &5).await.unwrap();
        rebuilt.offline(&left).await.unwrap();
        // Garbage: intervals that no shard knows, and others in the way.
        set_keys(world, &place, "global_mappings", 20, 20, 99);
        fresh.recovery().rebuild_global(&ranges.places, None).await.unwrap();
        assert_eq!(told(&rebuilt, &ranges.places).await, "0-5 A offline, 5-10 A, 10-20 A, 20-30 B");
        assert_eq!(fresh.list_map::<i32>("points").await.unwrap().get(&7).await.unwrap().value(), &7);
        check(&fresh, &ranges.places).await;
    }

    /// Acceptance 138, 139: a shard is given intervals, with new ids, and then the two are resolved.
    async fn a_shard_is_rebuilt_from_the_global_map(world) {
        let ranges = three(world).await;
        let (manager, a) = (&ranges.manager, &ranges.places[0]);
        world.sql(a, "delete from @local_mappings");
        let key = |value: i32| value.to_key().unwrap();
        let keep = [(key(0), Some(key(5))), (key(5), Some(key(10)))];
        let found = manager.recovery().detect(a, None).await.unwrap().pop().unwrap();
        manager.recovery().rebuild_shard(found.clone(), &keep).await.unwrap();
        assert_eq!(differences(manager, a).await, ["0-5 both", "5-10 both", "10-20 global"]);
        let overlap = [(key(0), Some(key(5))), (key(4), None)];
        let refused = manager.recovery().rebuild_shard(found, &overlap).await;
        assert_eq!(code(refused), "General/InvalidArgument");
        resolve(manager, a, Resolution::KeepShard).await;
        assert_eq!(ranges.told().await, "0-5 A, 5-10 A, 20-30 B");
        ranges.check().await;
    }

    /// Acceptance 143: a database that was moved is detached and attached where it is now, and told so.
    async fn a_shard_comes_back_elsewhere(world) {
        let ranges = three(world).await;
        let a = &ranges.places[0];
        let now = match a {
            Location::Postgres { port, database, .. } => {
                let renamed = format!("{database}_renamed");
                ranges.manager.recovery().detach(a, None).await.unwrap();
                let fresh = world.second().await;
                drop(fresh);
                world.server().unwrap().rename_database(database, &renamed);
                Location::postgres("127.0.0.1", *port, &renamed).unwrap()
            }
            Location::Sqlite { path } => {
                ranges.manager.recovery().detach(a, None).await.unwrap();
                world.sql(a, "select 1");
                let renamed = format!("{path}-renamed");
                std::fs::rename(path.as_ref(), &renamed).unwrap();
                for extra in ["-wal", "-shm"] {
                    let _ = std::fs::rename(format!("{path}{extra}"), format!("{renamed}{extra}"));
                }
                Location::sqlite(&renamed).unwrap()
            }
        };
        let manager = world.second().await;
        manager.recovery().attach(&now, None).await.unwrap();
        resolve(&manager, &now, Resolution::KeepShard).await;
        assert_eq!(world.sql(&now, "select database from @local_shards"), match &now {
            Location::Postgres { database, .. } => database.to_string(),
            Location::Sqlite { path } => path.to_string(),
        });
        let map = manager.range_map::<i32>("ranges").await.unwrap();
        assert_eq!(map.get(&5).await.unwrap().shard().location(), &now);
        check(&manager, &[now]).await;
    }

    /// An old global map has keys on a shard that gave them away to a shard that it does not have. The shards are right,
    /// in whichever order they are named.
    async fn an_old_global_map_is_made_of_its_shards(world) {
        let ranges = Ranges::new(world).await;
        let [a, b, _] = &ranges.places;
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        ranges.map.delete_shard(&ranges.shards[1]).await.unwrap();
        let old = world.copy(ranges.manager.location(), "old");
        let added = ranges.map.create_shard(b).await.unwrap();
        let offline = ranges.map.offline(&ranges.map.get(&5).await.unwrap()).await.unwrap();
        let to = MappingChange { online: Some(true), shard: Some(&added) };
        ranges.map.update(&offline, to).await.unwrap();
        let old = ShardMapManager::open(old, world.options()).await.unwrap();
        old.recovery().rebuild_global(&[b.clone(), a.clone()], None).await.unwrap();
        let map = old.range_map::<i32>("ranges").await.unwrap();
        assert_eq!(told(&map, &ranges.places).await, "0-10 B");
        check(&old, &[a.clone(), b.clone()]).await;
    }
}

//! Which shard a database is: other names of a database, copies, and databases at the place of another.

use rangehold_shardmap::query::{Policy, Readers};
use rangehold_shardmap::recovery::{Identity, Resolution};
use rangehold_shardmap::{Location, ShardMapManager};

use super::world::{Ranges, code};
use crate::support::stores::World;

async fn identity(manager: &ShardMapManager, place: &Location) -> Identity {
    manager.recovery().detect(place, None).await.unwrap().remove(0).identity().clone()
}

fn mapping_count(world: &World, place: &Location) -> String {
    world.sql(place, "select count(*) from @local_mappings")
}

/// The shard of another database is written at this place in the global map, as an earlier version allowed it.
fn add_second_name(world: &World, manager: &ShardMapManager, of: &Location, name: &Location) {
    let (server, database) = match name {
        Location::Postgres { server, database, .. } => (server.to_string(), database.to_string()),
        Location::Sqlite { path } => (String::new(), path.to_string()),
    };
    let place = match of {
        Location::Postgres { database, .. } => database.to_string(),
        Location::Sqlite { path } => path.to_string(),
    };
    let columns = "map_id, version, protocol, port, online, readable, epoch";
    let id = "00000000-0000-4000-8000-00000000000b";
    let sql = format!(
        "insert into @global_shards (shard_id, server, database, {columns})
            select '{id}', '{server}', '{database}', {columns} from @global_shards where database = '{place}'"
    );
    world.sql(manager.location(), &sql);
}

on_both_stores! {
    /// The same database by a second name is refused, and the message has the first name. Its keys stay served.
    async fn a_second_name_of_a_shard_is_refused(world) {
        let ranges = Ranges::new(world).await;
        let a = &ranges.places[0];
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let error = ranges.map.create_shard(&world.other_name(a)).await.unwrap_err();
        assert_eq!(error.code().to_string(), "ShardNotValid");
        assert!(error.to_string().contains(&a.to_string()), "{error}");
        let not_a_copy = ranges.map.create_shard_from_copy(&world.other_name(a)).await;
        assert_eq!(code(not_a_copy), "ShardMap/ShardNotValid");
        let other = ranges.manager.create_list_map::<i64>("other").await.unwrap();
        assert_eq!(code(other.create_shard(&world.other_name(a)).await), "ShardMap/ShardNotValid");
        other.create_shard(a).await.unwrap();
        assert_eq!(mapping_count(world, a), "1");
        ranges.check().await;
    }

    /// A map that has one database by two names, from an earlier version: removing the wrong name leaves the local
    /// map as it is.
    async fn the_second_name_of_a_shard_is_removed_alone(world) {
        let ranges = Ranges::new(world).await;
        let (a, name) = (&ranges.places[0], world.other_name(&ranges.places[0]));
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        add_second_name(world, &ranges.manager, a, &name);
        assert_eq!(identity(&ranges.manager, &name).await, Identity::AtOtherPlace(a.clone()));
        let second = ranges.map.shard(&name).await.unwrap();
        assert_eq!(code(ranges.map.add(&10, None, &second).await), "RangeShardMap/ShardNotValid");
        ranges.map.delete_shard(&second).await.unwrap();
        assert_eq!(mapping_count(world, a), "1");
        assert_eq!(ranges.told().await, "0-10 A");
        ranges.check().await;
    }

    /// Keys were mapped by both names. The finding says what to do: the second name is detached, and the shard is right.
    async fn keys_of_a_second_name_go_to_the_first(world) {
        let ranges = Ranges::new(world).await;
        let (a, name) = (&ranges.places[0], world.other_name(&ranges.places[0]));
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        ranges.map.add(&10, Some(&20), &ranges.shards[0]).await.unwrap();
        add_second_name(world, &ranges.manager, a, &name);
        let second = ranges.map.shard(&name).await.unwrap().id().0;
        let low = if world.is_postgres() { "'\\x8000000a'" } else { "x'8000000a'" };
        let sql = |table: &str| format!("update @{table} set shard_id = '{second}' where low = {low}");
        world.sql(ranges.manager.location(), &sql("global_mappings"));
        world.sql(a, &sql("local_mappings"));
        let found = identity(&ranges.manager, &name).await;
        assert_eq!(found, Identity::AtOtherPlace(a.clone()));
        let commands = ["recover --detach", &format!("recover --shard {a} --keep shard")];
        assert!(commands.iter().all(|command| found.to_string().contains(command)), "{found}");
        let recovery = ranges.manager.recovery();
        recovery.detach(&name, None).await.unwrap();
        let found = recovery.detect(a, None).await.unwrap().remove(0);
        recovery.resolve(found, Resolution::KeepShard).await.unwrap();
        assert_eq!(ranges.told().await, "0-10 A, 10-20 A");
        ranges.map.offline(&ranges.map.get(&15).await.unwrap()).await.unwrap();
        ranges.check().await;
    }

    /// A copy of a shard owns nothing: it is refused until the caller says that it is a new shard.
    async fn a_copy_of_a_shard_is_refused_until_it_is_new(world) {
        let ranges = Ranges::new(world).await;
        let a = &ranges.places[0];
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let copy = world.copy(a, "copy");
        assert_eq!(code(ranges.map.create_shard(&copy).await), "ShardMap/ShardNotValid");
        assert_eq!(mapping_count(world, &copy), "1");
        let added = ranges.map.create_shard_from_copy(&copy).await.unwrap();
        assert_eq!(mapping_count(world, &copy), "0");
        assert_eq!(mapping_count(world, a), "1");
        ranges.map.add(&10, None, &added).await.unwrap();
        ranges.check().await;
        // The copy of a shard that was removed has mappings that no shard may have.
        let third = world.copy(&ranges.places[0], "third");
        ranges.map.delete(&ranges.map.offline(&ranges.map.get(&5).await.unwrap()).await.unwrap()).await.unwrap();
        ranges.map.delete_shard(&ranges.map.shard(a).await.unwrap()).await.unwrap();
        assert_eq!(code(ranges.map.create_shard(&third).await), "ShardMap/ShardNotValid");
        ranges.map.create_shard_from_copy(&third).await.unwrap();
        assert_eq!(mapping_count(world, &third), "0");
    }

    /// Another shard's database at the place of a shard: operations, `detect` and queries notice.
    async fn another_database_at_the_place_of_a_shard_is_noticed(world) {
        let ranges = Ranges::new(world).await;
        let (map, a, b) = (&ranges.map, &ranges.places[0], &ranges.places[1]);
        let mapping = map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let of_b = world.sql(b, "select shard_id from @local_shards");
        let of_a = world.sql(a, "select shard_id from @local_shards");
        world.sql(a, &format!("update @local_shards set shard_id = '{of_b}'"));
        assert_eq!(code(map.offline(&mapping).await), "RangeShardMap/ShardNotValid");
        assert_eq!(identity(&ranges.manager, a).await, Identity::AtOtherPlace(b.clone()));
        let found = ranges.manager.recovery().detect(a, None).await.unwrap().remove(0);
        let resolved = ranges.manager.recovery().resolve(found, Resolution::KeepGlobal).await;
        assert_eq!(code(resolved), "Recovery/ShardNotValid");
        // An older state of the shard itself.
        let older = "00000000-0000-4000-8000-000000000001";
        world.sql(a, &format!("update @local_shards set shard_id = '{of_a}', version = '{older}'"));
        assert_eq!(code(map.offline(&mapping).await), "RangeShardMap/ShardNotValid");
        let readers = Readers::new(world.options().postgres);
        let error = map.query("select note from orders").run(&readers).await.unwrap_err();
        assert!(error.to_string().contains("another shard, or a copy"), "{error}");
        let partial = map.query("select note from orders").policy(Policy::Partial);
        assert_eq!(partial.run(&readers).await.unwrap().failures().len(), 1);
        assert_eq!(identity(&ranges.manager, a).await, Identity::OtherVersion);
        let found = ranges.manager.recovery().detect(a, None).await.unwrap().remove(0);
        ranges.manager.recovery().resolve(found, Resolution::KeepGlobal).await.unwrap();
        map.offline(&map.get(&5).await.unwrap()).await.unwrap();
        ranges.check().await;
        world.sql(a, &format!("update @local_shards set version = '{older}'"));
        let found = ranges.manager.recovery().detect(a, None).await.unwrap().remove(0);
        ranges.manager.recovery().resolve(found, Resolution::KeepShard).await.unwrap();
        ranges.check().await;
    }
}

/// A path is stored as an absolute one, and a path of an earlier version is found by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_path_of_a_sqlite_shard_is_absolute() {
    let world = World::sqlite();
    let here = std::env::current_dir().unwrap();
    let place = Location::sqlite("shop.db").unwrap();
    assert_eq!(place.to_string(), format!("sqlite:{}", here.join("shop.db").display()));
    assert_eq!(Location::parse("sqlite:./shop.db").unwrap(), place);
    let ranges = Ranges::new(&world).await;
    let a = world.sql(&ranges.places[0], "select database from @local_shards");
    world.sql(
        ranges.manager.location(),
        &format!("update @global_shards set database = 'shop.db' where database = '{a}'"),
    );
    assert_eq!(ranges.map.shard(&place).await.unwrap().location(), &place);
    assert_eq!(
        ranges.map.shards().await.unwrap().iter().filter(|shard| shard.location() == &place).count(),
        1
    );
}

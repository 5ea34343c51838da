//! Stores of version 1.0, which had fewer tables and other functions, and stores of a version that is not known yet.

use rangehold_shardmap::query::Readers;
use rangehold_shardmap::{Location, ShardMapManager, ShardUpdate};
use rangehold_testkit::needs;

use super::world::{Ranges, check, check_sizes, code};
use crate::support::local::manage;
use crate::support::roles::{APPLICATION, MANAGER};
use crate::support::stores::World;

/// The SQL with which version 1.0 made a global map in PostgreSQL.
const GLOBAL_1_0: &str = concat!(
    include_str!("../../store-1.0/global.sql"),
    include_str!("../../store-1.0/keys.sql"),
    include_str!("../../store-1.0/locate.sql")
);
/// The same for a shard.
const LOCAL_1_0: &str = concat!(
    include_str!("../../store-1.0/local.sql"),
    include_str!("../../store-1.0/fence.sql"),
    include_str!("../../store-1.0/keys.sql"),
    include_str!("../../store-1.0/values.sql"),
    include_str!("../../store-1.0/guard.sql")
);
/// The tables that have rows, each after those that it refers to.
const OF_GLOBAL: &[&str] = &[
    "global_meta",
    "global_maps",
    "global_shards",
    "global_mappings",
    "global_operations",
    "global_schema_infos",
];
const OF_LOCAL: &[&str] = &["local_meta", "local_epochs", "local_maps", "local_shards", "local_mappings"];

/// The schema of the tables and functions of ours.
const OURS: &str = "__shard_management";

/// Everything of ours in a PostgreSQL database. The functions of a type come and go with it, and each guarded table has one.
const IN_POSTGRES: &str = "
    select 'function ' || pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '') from pg_proc p
        where p.pronamespace = '__shard_management'::regnamespace and p.proname !~ '^guard_[0-9a-f]{32}$'
            and not exists (select from pg_depend d
                where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'i')
    union all select 'trigger ' || pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = '__shard_management'::regnamespace and not t.tgisinternal
    union all select 'index ' || pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indrelid
        where c.relnamespace = '__shard_management'::regnamespace
    union all select 'check ' || n.conname || pg_get_constraintdef(n.oid) from pg_constraint n
        where n.connamespace = '__shard_management'::regnamespace
    union all select 'column ' || a.attrelid::regclass || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || ' ' || a.attnotnull from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = '__shard_management'::regnamespace and c.relkind = 'r' and a.attnum > 0
    order by 1";
const IN_SQLITE: &str = "select sql from sqlite_master where name like '@%' and sql is not null order by 1";

/// Everything of ours in a database, as text.
fn schema(world: &World, place: &Location) -> String {
    world.sql(place, if world.is_postgres() { IN_POSTGRES } else { IN_SQLITE })
}

/// Makes the stores as version 1.0 made them. They keep their rows.
fn make_old(world: &World, global: &Location, shards: &[Location]) {
    let parts = [global].into_iter().map(|place| (place, GLOBAL_1_0, OF_GLOBAL, "global"));
    let shards = shards.iter().map(|place| (place, LOCAL_1_0, OF_LOCAL, "local"));
    for (place, sql, tables, part) in parts.chain(shards) {
        if world.is_postgres() {
            let all =
                |line: &dyn Fn(&str) -> String| tables.iter().map(|table| line(table)).collect::<String>();
            let keep =
                all(&|table| format!("create temp table kept_{table} as select * from {OURS}.{table};\n"));
            let back = all(&|table| format!("insert into {OURS}.{table} select * from kept_{table};\n"));
            let Location::Postgres { database, .. } = place else { unreachable!("a server") };
            let drop = format!("drop schema {OURS} cascade;\n");
            world.server().unwrap().sql_as(MANAGER, database, &(keep + &drop + sql + &back));
        } else {
            // In SQLite the two versions differ by one table each.
            let table = if part == "global" { "global_lost_shards" } else { "local_closed_mappings" };
            world.sql(place, &format!("drop table @{table}"));
        }
        world.sql(place, &format!("update @{part}_meta set version_minor = 0"));
    }
}

fn versions(world: &World, global: &Location, shards: &[Location]) -> Vec<String> {
    let mut all = vec![world.sql(global, "select version_minor from @global_meta")];
    all.extend(shards.iter().map(|shard| world.sql(shard, "select version_minor from @local_meta")));
    all
}

async fn upgrade(manager: &ShardMapManager) {
    let done = manager.upgrade().await.unwrap();
    assert!(done.len() == 3 && done.iter().all(|(_, upgraded)| upgraded.is_ok()), "{done:?}");
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

    /// After the upgrade every table, index, function and trigger is as in a new store, and the sizes of shards are right. It
    /// may be done again.
    async fn an_upgrade_brings_what_is_new(world) {
        let ranges = Ranges::new(world).await;
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let global = ranges.manager.location();
        let places = || [global].into_iter().chain(&ranges.places);
        let new: Vec<String> = places().map(|place| schema(world, place)).collect();
        make_old(world, global, &ranges.places);
        assert_eq!(versions(world, global, &ranges.places), ["0"; 4]);
        for (place, new) in places().zip(&new) {
            assert!(!new.is_empty());
            assert_ne!(&schema(world, place), new, "{place}");
        }
        for again in [false, true] {
            if again && world.is_postgres() {
                // As after rows that were restored by hand.
                world.sql(global, "insert into @global_shard_sizes select shard_id, 7 from @global_shards");
            }
            upgrade(&ranges.manager).await;
            check_sizes(&ranges.map).await;
            assert_eq!(versions(world, global, &ranges.places), ["1"; 4]);
            for (place, new) in places().zip(&new) {
                assert_eq!(&schema(world, place), new, "{place}");
            }
        }
        ranges.map.offline(&ranges.map.get(&5).await.unwrap()).await.unwrap();
        ranges.manager.recovery().detach_lost(&ranges.places[2], None).await.unwrap();
        check(&ranges.manager, &ranges.places[..2]).await;
    }

    /// A transaction that stays open keeps the constraint of version 1.0, and the rest is upgraded.
    async fn an_open_transaction_keeps_only_the_old_constraint(world) {
        if !world.is_postgres() {
            return;
        }
        let ranges = Ranges::new(world).await;
        make_old(world, ranges.manager.location(), &ranges.places);
        let Location::Postgres { database, .. } = &ranges.places[0] else { unreachable!("a server") };
        let client = manage(world.server().unwrap(), database).await;
        client.batch_execute("begin; select count(*) from __shard_management.local_mappings").await.unwrap();
        let upgraded = ranges.manager.upgrade_local_store(&ranges.places[0]).await;
        let error = upgraded.unwrap_err();
        assert!(error.retry() && error.to_string().contains("Upgrade again"), "{error}");
        assert_eq!(world.sql(&ranges.places[0], "select version_minor from @local_meta"), "1");
        let mapping = ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        client.batch_execute("commit").await.unwrap();
        upgrade(&ranges.manager).await;
        ranges.map.delete(&ranges.map.offline(&mapping).await.unwrap()).await.unwrap();
        ranges.check().await;
    }

    /// A shard of another major version is neither changed nor compared nor upgraded.
    async fn a_shard_of_another_major_version_is_refused(world) {
        let ranges = Ranges::new(world).await;
        let (manager, a) = (&ranges.manager, &ranges.places[0]);
        let mapping = ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let other = manager.create_range_map::<i32>("other").await.unwrap();
        let before = schema(world, a);
        world.sql(a, "update @local_meta set version_major = 2");
        assert_eq!(code(ranges.map.offline(&mapping).await), "RangeShardMap/StoreVersionMismatch");
        assert_eq!(code(other.create_shard(a).await), "ShardMap/StoreVersionMismatch");
        let error = manager.recovery().detect(a, None).await.unwrap_err();
        assert!(error.to_string().contains("is of version 2.1, and this program writes 1.1"), "{error}");
        let of_a = manager.upgrade().await.unwrap().into_iter().find(|(place, _)| place == a).unwrap();
        assert_eq!(code(of_a.1), "Manager/StoreVersionMismatch");
        assert_eq!(schema(world, a), before);
        world.sql(a, "update @local_meta set version_major = 1");
        assert_eq!(ranges.told().await, "0-10 A");
        assert!(other.shards().await.unwrap().is_empty());
        ranges.check().await;
    }
}

/// A guard that version 1.0 made goes on after the upgrade, and can be made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_of_version_1_0_goes_on() {
    needs!(PostgreSql);
    let world = World::postgres();
    let ranges = Ranges::new(&world).await;
    let a = &ranges.places[0];
    ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
    make_old(&world, ranges.manager.location(), &ranges.places);
    let guard = "select __shard_management.guard('orders', 'tenant', 'ranges')";
    let Location::Postgres { database, .. } = a else { unreachable!("a server") };
    let server = world.server().unwrap();
    server.sql_as(MANAGER, database, guard);
    upgrade(&ranges.manager).await;
    for _ in 0..2 {
        server.sql_as(APPLICATION, database, "insert into orders values (7, 'here')");
        let elsewhere = server.psql(APPLICATION, database, "insert into orders values (70, 'elsewhere')");
        let told = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
        assert!(told.contains("RH001"), "{told}");
        server.sql_as(MANAGER, database, guard);
    }
}

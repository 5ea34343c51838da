//! Roles with the grants of `docs/shards/roles.md` and no others: a manager, an application, a reader of the map.

use std::time::Duration;

use rangehold_shardmap::operation::{Step, When};
use rangehold_shardmap::postgres::{Credentials, PostgresAccess, Tls};
use rangehold_shardmap::{Drain, Location, ManagerOptions, RangeShardMap, Shard, ShardMapManager};
use rangehold_testkit::needs;
use tokio_postgres::{Client, NoTls};

use super::world::code;
use crate::support::faults::Faults;
use crate::support::stores::World;

/// The grants of each role.
const GLOBAL_GRANTS: &str = include_str!("../../../../../docs/shards/grants/global.sql");
const SHARD_GRANTS: &str = include_str!("../../../../../docs/shards/grants/shard.sql");

struct Plain {
    world: World,
    global: Location,
    place: Location,
    map: RangeShardMap<i32>,
    shard: Shard,
}

impl Plain {
    /// A map that the plain manager made, with one shard.
    async fn new(options: impl FnOnce(ManagerOptions) -> ManagerOptions) -> Self {
        let world = World::postgres();
        let (global, place) = (world.database("global"), world.database("shard_a"));
        let roles =
            "do $$ begin create role map_manager login; exception when duplicate_object then null; end $$;
            do $$ begin create role map_app login; exception when duplicate_object then null; end $$;
            do $$ begin create role map_reader login; exception when duplicate_object then null; end $$";
        world.sql(&global, roles);
        world.sql(&global, &before_tables(GLOBAL_GRANTS, &global));
        world.sql(&place, &before_tables(SHARD_GRANTS, &place));
        let options = options(as_role(&world, "map_manager"));
        let manager = ShardMapManager::create(global.clone(), Default::default(), options).await.unwrap();
        world.sql(&global, &after_tables(GLOBAL_GRANTS));
        let map = manager.create_range_map::<i32>("ranges").await.unwrap();
        let shard = map.create_shard(&place).await.unwrap();
        map.add(&0, Some(&10), &shard).await.unwrap();
        Self { world, global, place, map, shard }
    }

    /// A transaction of the application on key 5, which stays open.
    async fn inside(&self) -> Client {
        let Location::Postgres { port, database, .. } = &self.place else { unreachable!("a server") };
        let address =
            format!("host=127.0.0.1 port={port} dbname={database} user=map_app application_name=shop");
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("begin; select __shard_management.enter('ranges', 5)").await.unwrap();
        client
    }
}

fn as_role(world: &World, role: &str) -> ManagerOptions {
    let credentials = Credentials { user: role.to_owned(), password: None };
    ManagerOptions { postgres: Some(PostgresAccess::new(credentials, &Tls::Off).unwrap()), ..world.options() }
}

/// What a superuser runs before the manager makes its tables, and after.
fn before_tables(grants: &str, place: &Location) -> String {
    let Location::Postgres { database, .. } = place else { unreachable!("a server") };
    grants.split_once("-- after the tables").unwrap().0.replace("DATABASE_NAME", database)
}

fn after_tables(grants: &str) -> String {
    grants.split_once("-- after the tables").unwrap().1.to_owned()
}

/// The drain of a plain manager ends the transaction of a plain application, although `pg_stat_activity` hides it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_manager_ends_the_transactions_of_a_plain_application() {
    needs!(PostgreSql);
    let plain = Plain::new(|options| options).await;
    let inside = plain.inside().await;
    let map = plain.map.with_grace(Duration::from_millis(100));
    map.offline(&map.get(&5).await.unwrap()).await.unwrap();
    inside.batch_execute("select 1").await.unwrap_err();
}

/// Transactions that cannot be ended are named: a session of a role that may not be signalled, and a prepared
/// transaction, which has no session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_cannot_be_ended_are_named() {
    needs!(PostgreSql);
    let plain = Plain::new(|options| options).await;
    let inside = plain.inside().await;
    inside.batch_execute("prepare transaction 'half done'").await.unwrap();
    let map = plain.map.with_grace(Duration::from_millis(100));
    let error = map.offline(&map.get(&5).await.unwrap()).await.unwrap_err();
    assert_eq!(error.code().to_string(), "MappingDrainFailure");
    assert!(error.to_string().contains("half done"), "{error}");
    assert!(map.get(&5).await.unwrap().is_online());
    inside.batch_execute("rollback prepared 'half done'").await.unwrap();
    let _inside = plain.inside().await;
    let error = map.without_drain().delete(&map.get(&5).await.unwrap()).await;
    assert_eq!(code(error), "RangeShardMap/MappingIsNotOffline");
    map.without_drain().offline(&map.get(&5).await.unwrap()).await.unwrap();
    let error = map.without_drain().delete(&map.get(&5).await.unwrap()).await.unwrap_err();
    assert_eq!(error.code().to_string(), "MappingDrainFailure");
    assert!(error.to_string().contains("map_app") && error.to_string().contains("shop"), "{error}");
}

/// By this policy no transaction is ended, and the change is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_may_give_up_instead_of_ending_transactions() {
    needs!(PostgreSql);
    let plain = Plain::new(|options| options).await;
    let inside = plain.inside().await;
    let map = plain.map.draining(Drain::GiveUp(Duration::from_millis(200)));
    let error = map.offline(&map.get(&5).await.unwrap()).await.unwrap_err();
    assert_eq!(error.code().to_string(), "MappingDrainFailure");
    assert!(error.to_string().contains("map_app") && error.to_string().contains("shop"), "{error}");
    assert!(map.get(&5).await.unwrap().is_online());
    inside.batch_execute("select 1; commit").await.unwrap();
    map.offline(&map.get(&5).await.unwrap()).await.unwrap();
}

/// While a transaction keeps a mapping from going offline, others on the same keys pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_queues_behind_a_change_that_waits() {
    needs!(PostgreSql);
    let plain = Plain::new(|options| options).await;
    let inside = plain.inside().await;
    let map = plain.map.draining(Drain::GiveUp(Duration::from_secs(600)));
    let mapping = map.get(&5).await.unwrap();
    let offline = map.offline(&mapping);
    let others = async {
        // The change is at work when its first attempt holds others up, and gives way.
        for _ in 0..20 {
            let other = plain.inside().await;
            other.batch_execute("commit").await.unwrap();
        }
        inside.batch_execute("commit").await.unwrap();
    };
    let (offline, ()) = tokio::join!(offline, others);
    assert!(!offline.unwrap().is_online());
}

/// A role that only reads the global map finds a key while the key is being changed: as it was before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_finds_a_key_that_is_being_changed() {
    needs!(PostgreSql);
    let faults = Faults::default();
    let plain = Plain::new(|options| ManagerOptions {
        hook: faults.hook(),
        lease: Duration::from_millis(1),
        ..options
    })
    .await;
    let reader =
        ShardMapManager::open(plain.global.clone(), as_role(&plain.world, "map_reader")).await.unwrap();
    let map = reader.range_map::<i32>("ranges").await.unwrap();
    faults.stop(Step::GlobalBegin, When::After);
    let mapping = plain.map.get(&5).await.unwrap();
    assert!(faults.until_death(plain.map.offline(&mapping)).await.is_none());
    let found = map.get(&5).await.unwrap();
    assert!(found.is_online());
    assert_eq!(found.shard(), &plain.shard);
}

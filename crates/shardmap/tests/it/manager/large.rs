//! Shards with many mappings: they are moved, closed and repaired in few round trips, and with few of the server's locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rangehold_shardmap::limits::FENCES_CLOSED_AT_ONCE_MAX as LOCKS_MAX;
use rangehold_shardmap::operation::{Step, StepFault, StepHook, When};
use rangehold_shardmap::recovery::Resolution;
use rangehold_shardmap::{
    Drain, ListShardMap, Location, ManagerOptions, Shard, ShardMapManager, ShardUpdate,
};
use rangehold_testkit::needs;
use tokio_postgres::Client;

use super::world::{check, code};
use crate::support::faults::Faults;
use crate::support::local::connect_to;
use crate::support::proxy::Proxy;
use crate::support::roles::{APPLICATION, MANAGER};
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

    /// The keys that a place serves, and those that are offline there.
    fn served(&self, world: &World, place: &Location) -> String {
        world.sql(place, "select count(*) || ' ' || count(*) filter (where not online) from @local_mappings")
    }
}

fn to(location: &Location) -> ShardUpdate {
    ShardUpdate { online: None, location: Some(location.clone()) }
}

async fn client(place: &Location) -> Client {
    let Location::Postgres { port, database, .. } = place else { unreachable!("a server") };
    connect_to(&format!("host=127.0.0.1 port={port} dbname={database} user={APPLICATION}")).await
}

/// A transaction on a key, which stays open.
async fn inside(place: &Location, begin: &str, key: i32) -> Client {
    let client = client(place).await;
    let sql = format!("{begin}; select __shard_management.enter('tenants', {key})");
    client.batch_execute(&sql).await.unwrap();
    client
}

/// How a transaction is refused that enters a key.
async fn refusal(client: &Client, key: i32) -> String {
    let entered = client.batch_execute(&format!("select __shard_management.enter('tenants', {key})")).await;
    entered.unwrap_err().code().unwrap().code().to_owned()
}

/// How many locks of fences a database has.
fn locks(world: &World, place: &Location) -> usize {
    let sql = "select count(*) from pg_locks where locktype = 'advisory' and classid = 1380469828
        and database = (select oid from pg_database where datname = current_database())";
    world.sql_as(MANAGER, place, sql).parse().unwrap()
}

/// Counts the locks of fences before each commit, and keeps the greatest count. If told so, lets the last step fail.
#[derive(Default)]
struct Most {
    locks: AtomicUsize,
    fails: std::sync::atomic::AtomicBool,
}

impl Most {
    fn hook(self: &Arc<Self>, world: &Arc<World>, place: Location) -> StepHook {
        let (most, world) = (self.clone(), world.clone());
        StepHook::new(move |moment| {
            if moment.when == When::Before && matches!(moment.step, Step::LocalSource | Step::UndoSource) {
                most.locks.fetch_max(locks(&world, &place), Ordering::SeqCst);
            }
            let fails = moment.step == Step::GlobalEnd && most.fails.load(Ordering::SeqCst);
            async move { if fails { Err(StepFault::Stays) } else { Ok(()) } }
        })
    }

    fn take(&self) -> usize {
        self.locks.swap(0, Ordering::SeqCst)
    }
}

/// The server has a few thousand locks for all of its transactions. A change of a large shard leaves most of them to
/// others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_a_large_shard_takes_few_locks() {
    needs!(PostgreSql);
    let (world, most) = (Arc::new(World::postgres()), Arc::new(Most::default()));
    let hook = most.hook(&world, world.place("shard_a"));
    let large = Large::new(&world, ManagerOptions { hook, ..world.options() }).await;
    let (place, recovery) = (&large.place, large.manager.recovery());
    most.take();
    // Adding is undone.
    most.fails.store(true, Ordering::SeqCst);
    let keys: Vec<i32> = (MAPPINGS..2 * MAPPINGS).collect();
    let added = large.map.add_many(keys.iter().map(|key| (key, &large.shard)).collect()).await;
    assert_eq!(code(added), "ListShardMap/StorageOperationFailure");
    most.fails.store(false, Ordering::SeqCst);
    assert!(most.take() <= LOCKS_MAX, "locks of an undone addition");
    assert_eq!(large.served(&world, place), format!("{MAPPINGS} 1"));
    // The shard is closed.
    recovery.detach(place, None).await.unwrap();
    assert!(most.take() <= LOCKS_MAX, "locks of a detachment");
    assert_eq!(large.served(&world, place), "0 0");
    recovery.attach(place, None).await.unwrap();
    assert_eq!(large.served(&world, place), format!("{MAPPINGS} 1"));
    // All keys leave.
    let found = recovery.detect(place, None).await.unwrap().remove(0);
    recovery.resolve(found, Resolution::KeepGlobal).await.unwrap();
    assert!(most.take() <= LOCKS_MAX, "locks of a repair");
    assert_eq!(large.served(&world, place), "0 0");
    check(&large.manager, std::slice::from_ref(place)).await;
}

/// Transactions inside a large shard that moves are ended, also one that has locked its mapping's row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_inside_a_large_shard_are_ended() {
    needs!(PostgreSql);
    let world = World::postgres();
    let large = Large::new(&world, world.options()).await;
    let copy = world.copy(&large.place, "copy");
    // A change that was undone: from now on the row is locked at REPEATABLE READ.
    world.sql(&large.place, "begin; update @local_mappings set online = false; rollback");
    let plain = inside(&large.place, "begin", 3).await;
    let locked = inside(&large.place, "begin isolation level repeatable read", 900).await;
    let map = large.map.with_grace(Duration::from_millis(100));
    map.update_shard(&large.shard, &to(&copy)).await.unwrap();
    plain.batch_execute("select 1").await.unwrap_err();
    locked.batch_execute("select 1").await.unwrap_err();
    assert_eq!(large.served(&world, &large.place), "0 0");
    assert_eq!(large.served(&world, &copy), format!("{MAPPINGS} 1"));
    check(&large.manager, &[copy]).await;
}

/// A transaction inside does not end in time: the move is undone, and the shard serves its keys as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_shard_that_does_not_close_is_opened_again() {
    needs!(PostgreSql);
    let world = World::postgres();
    let large = Large::new(&world, world.options()).await;
    let copy = world.copy(&large.place, "copy");
    let held = inside(&large.place, "begin", 3).await;
    let map = large.map.draining(Drain::GiveUp(Duration::from_millis(200)));
    let moved = map.update_shard(&large.shard, &to(&copy)).await;
    assert_eq!(code(moved), "ShardMap/MappingDrainFailure");
    assert_eq!(large.served(&world, &large.place), format!("{MAPPINGS} 1"));
    held.batch_execute("commit").await.unwrap();
    drop(inside(&large.place, "begin", 3).await);
    check(&large.manager, std::slice::from_ref(&large.place)).await;
}

/// The process dies after the keys of a large shard are refused, and before all transactions inside have ended. The next
/// process waits for those.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_dies_while_a_large_shard_closes() {
    needs!(PostgreSql);
    let (world, faults) = (World::postgres(), Faults::default());
    let large = Large::new(&world, ManagerOptions { hook: faults.hook(), ..world.options() }).await;
    let copy = world.copy(&large.place, "copy");
    let held = inside(&large.place, "begin", 3).await;
    let old = client(&large.place).await;
    old.batch_execute("begin isolation level repeatable read; select count(*) from pg_class").await.unwrap();
    faults.stop(Step::LocalSource, When::After);
    let (map, update) = (large.map.with_grace(Duration::from_millis(100)), to(&copy));
    assert!(faults.until_death(map.update_shard(&large.shard, &update)).await.is_none());
    held.batch_execute("select 1").await.unwrap();
    assert_eq!(refusal(&client(&large.place).await, 3).await, "RH001");
    assert_eq!(refusal(&old, 3).await, "40001");
    world.sql(large.manager.location(), "update @global_operations set lease_until = 0");
    let other = world.second().await;
    assert_eq!(other.recover_pending().await.unwrap().0, 1);
    held.batch_execute("select 1").await.unwrap_err();
    assert_eq!(large.served(&world, &copy), format!("{MAPPINGS} 1"));
    check(&other, &[copy]).await;
}

/// After many splits and merges, a mapping has the fences of those from which it was made. A change that waits in vain for a
/// transaction that holds one of them is undone, and the mapping keeps them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mapping_with_many_fences_keeps_them_when_a_change_is_undone() {
    needs!(PostgreSql);
    let world = World::postgres();
    let large = Large::new(&world, world.options()).await;
    let key = "low = '\\x80000005'";
    let many = format!(
        "update @local_mappings set former_fences = array(select generate_series(5000, 5999)) where {key}"
    );
    world.sql(&large.place, &many);
    let held = client(&large.place).await;
    held.batch_execute("begin; select pg_advisory_xact_lock_shared(1380469828, 5500)").await.unwrap();
    let map = large.map.draining(Drain::GiveUp(Duration::from_millis(200)));
    let offline = map.offline(&map.get(&5).await.unwrap()).await;
    assert_eq!(code(offline), "ListShardMap/MappingDrainFailure");
    let fences =
        format!("select cardinality(former_fences) || ' ' || online from @local_mappings where {key}");
    assert_eq!(world.sql(&large.place, &fences), "1000 true");
    assert_eq!(world.sql(&large.place, "select count(*) from @local_closed_mappings"), "0");
    held.batch_execute("commit").await.unwrap();
    map.offline(&map.get(&5).await.unwrap()).await.unwrap();
    assert_eq!(world.sql(&large.place, &fences), "0 false");
    check(&large.manager, std::slice::from_ref(&large.place)).await;
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

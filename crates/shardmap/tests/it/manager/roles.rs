//! Roles with the grants of `docs/shards/roles.md` and no others: a manager, an application, a reader of the map.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rangehold_shardmap::operation::{Step, StepHook, When};
use rangehold_shardmap::query::{QueryError, Readers};
use rangehold_shardmap::{
    Code, CreateMode, Drain, Error, Location, ManagerOptions, RangeShardMap, Shard, ShardMapManager,
    ShardUpdate,
};
use rangehold_testkit::needs;
use tokio::sync::Notify;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::world::code;
use crate::support::faults::Faults;
use crate::support::local::connect_to;
use crate::support::roles::{APPLICATION, MANAGER, READER};
use crate::support::stores::World;

struct Plain {
    world: World,
    global: Location,
    place: Location,
    map: RangeShardMap<i32>,
    shard: Shard,
}

impl Plain {
    /// A map that the manager made, with one shard.
    async fn new(options: impl FnOnce(ManagerOptions) -> ManagerOptions) -> Self {
        let world = World::postgres();
        let place = world.database("shard_a");
        let manager = world.manager_with(options(world.options())).await;
        let global = manager.location().clone();
        let map = manager.create_range_map::<i32>("ranges").await.unwrap();
        let shard = map.create_shard(&place).await.unwrap();
        map.add(&0, Some(&10), &shard).await.unwrap();
        Self { world, global, place, map, shard }
    }

    /// A transaction of the application on key 5, which stays open.
    async fn inside(&self) -> Client {
        self.inside_at(&self.place).await
    }

    /// The same where the shard is now.
    async fn inside_at(&self, place: &Location) -> Client {
        inside_as(APPLICATION, place).await
    }
}

/// A transaction of a role on key 5, which stays open.
async fn inside_as(role: &str, place: &Location) -> Client {
    let Location::Postgres { port, database, .. } = place else { unreachable!("a server") };
    let address = format!("host=127.0.0.1 port={port} dbname={database} user={role} application_name=shop");
    let client = connect_to(&address).await;
    client.batch_execute("begin; select __shard_management.enter('ranges', 5)").await.unwrap();
    client
}

fn at(place: &Location) -> ShardUpdate {
    ShardUpdate { online: None, location: Some(place.clone()) }
}

/// The session was ended by the server, and not only a statement or a transaction of it.
async fn assert_ended(client: &Client) {
    let error = client.batch_execute("select 1").await.expect_err("the session goes on");
    assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
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

/// A shard that leaves its place takes no transaction along: the session of one that is inside is ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_transactions_at_a_place_that_a_shard_leaves_are_ended() {
    needs!(PostgreSql);
    let drain_grace = Duration::from_millis(100);
    let plain = Plain::new(|options| ManagerOptions { drain_grace, ..options }).await;
    let copy = plain.world.copy(&plain.place, "copy");
    let inside = plain.inside().await;
    plain.map.update_shard(&plain.shard, &at(&copy)).await.unwrap();
    assert_ended(&inside).await;
    let inside = plain.inside_at(&copy).await;
    plain.map.manager().recovery().detach(&copy, None).await.unwrap();
    assert_ended(&inside).await;
}

/// By the policy that ends no transaction, a move of a shard's place is given up, and the old place serves as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_may_stay_at_its_place_instead_of_ending_transactions() {
    needs!(PostgreSql);
    let plain = Plain::new(|options| options).await;
    let copy = plain.world.copy(&plain.place, "copy");
    let inside = plain.inside().await;
    let map = plain.map.draining(Drain::GiveUp(Duration::from_millis(200)));
    let error = map.update_shard(&plain.shard, &at(&copy)).await.unwrap_err();
    assert_eq!(error.code().to_string(), "MappingDrainFailure");
    assert!(error.to_string().contains(APPLICATION) && error.to_string().contains("shop"), "{error}");
    inside.batch_execute("select 1; commit").await.unwrap();
    assert_eq!(map.get(&5).await.unwrap().shard().location(), &plain.place);
    plain.inside().await.batch_execute("commit").await.unwrap();
    map.update_shard(&map.shard(&plain.place).await.unwrap(), &at(&copy)).await.unwrap();
    plain.inside_at(&copy).await.batch_execute("commit").await.unwrap();
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
    assert!(error.to_string().contains(APPLICATION) && error.to_string().contains("shop"), "{error}");
}

/// Any role can take a fence by its number, and so keep keys from going offline. It is named, and its session is ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_takes_a_fence_by_its_number_is_ended() {
    needs!(PostgreSql);
    let plain = Plain::new(|options| options).await;
    let number = "select fence & 2147483647 from __shard_management.local_mappings";
    let number = plain.world.sql_as(MANAGER, &plain.place, number);
    let holder = plain.inside().await;
    holder.batch_execute(&format!("commit; select pg_advisory_lock(1380469828, {number})")).await.unwrap();
    let map = plain.map.draining(Drain::GiveUp(Duration::from_millis(200)));
    let error = map.offline(&map.get(&5).await.unwrap()).await.unwrap_err();
    assert_eq!(error.code().to_string(), "MappingDrainFailure");
    assert!(error.to_string().contains(APPLICATION) && error.to_string().contains("shop"), "{error}");
    holder.batch_execute("select 1").await.unwrap();
    let map = plain.map.with_grace(Duration::from_millis(100));
    map.offline(&map.get(&5).await.unwrap()).await.unwrap();
    assert_ended(&holder).await;
}

/// A manager that may not end the sessions of others ends its own, and waits for the others. Then it names them and the
/// right that it does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_without_the_right_to_end_sessions_names_them() {
    const WEAK: &str = "weak_manager";
    needs!(PostgreSql);
    let world = World::postgres();
    let places = [world.database("global"), world.database("shard_a")];
    let server = world.server().unwrap();
    server.sql("postgres", &format!("create role {WEAK} login"));
    for place in &places {
        let Location::Postgres { database, .. } = place else { unreachable!("a server") };
        server.sql("postgres", &format!("grant create on database \"{database}\" to {WEAK}"));
    }
    let [global, place] = places;
    let manager =
        ShardMapManager::create(global, CreateMode::KeepExisting, world.options_of(WEAK)).await.unwrap();
    let map = manager.create_range_map::<i32>("ranges").await.unwrap();
    let shard = map.create_shard(&place).await.unwrap();
    map.add(&0, Some(&10), &shard).await.unwrap();
    let own = inside_as(WEAK, &place).await;
    let map = map.with_grace(Duration::from_millis(100));
    let mapping = map.offline(&map.get(&5).await.unwrap()).await.unwrap();
    assert_ended(&own).await;
    map.online(&mapping).await.unwrap();
    let other = inside_as(APPLICATION, &place).await;
    let error = map.offline(&map.get(&5).await.unwrap()).await.unwrap_err();
    assert_eq!(error.code().to_string(), "MappingDrainFailure");
    let told = error.to_string();
    assert!(told.contains(APPLICATION) && told.contains("grant pg_signal_backend"), "{told}");
    other.batch_execute("select 1; commit").await.unwrap();
    map.offline(&map.get(&5).await.unwrap()).await.unwrap();
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
    assert!(error.to_string().contains(APPLICATION) && error.to_string().contains("shop"), "{error}");
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
    let options = plain.world.options_of(READER);
    let reader = ShardMapManager::open(plain.global.clone(), options).await.unwrap();
    let map = reader.range_map::<i32>("ranges").await.unwrap();
    faults.stop(Step::GlobalBegin, When::After);
    let mapping = plain.map.get(&5).await.unwrap();
    assert!(faults.until_death(plain.map.offline(&mapping)).await.is_none());
    let found = map.get(&5).await.unwrap();
    assert!(found.is_online());
    assert_eq!(found.shard(), &plain.shard);
}

/// Stops an operation before its local step, from the moment when it is armed until it may go on.
#[derive(Default)]
struct Gate {
    armed: AtomicBool,
    reached: Notify,
    goes_on: Notify,
}

impl Gate {
    fn hook(self: &Arc<Self>) -> StepHook {
        let gate = self.clone();
        StepHook::new(move |moment| {
            let gate = gate.clone();
            async move {
                let here = moment.step == Step::LocalSource && moment.when == When::Before;
                if here && gate.armed.swap(false, Ordering::SeqCst) {
                    gate.reached.notify_one();
                    gate.goes_on.notified().await;
                }
                Ok(())
            }
        })
    }
}

/// The map, for a role that only reads.
async fn read_only(plain: &Plain) -> (ShardMapManager, RangeShardMap<i32>, Readers) {
    let options = plain.world.options_of(READER);
    let readers = Readers::new(options.postgres.clone());
    let manager = ShardMapManager::open(plain.global.clone(), options).await.unwrap();
    let map = manager.range_map::<i32>("ranges").await.unwrap();
    (manager, map, readers)
}

/// A role that only reads waits for the change of a living process as others do: with a query, and for a key that is being
/// added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_waits_for_a_change() {
    needs!(PostgreSql);
    let gate = Arc::new(Gate::default());
    let plain = Plain::new(|options| ManagerOptions { hook: gate.hook(), ..options }).await;
    let (manager, map, readers) = read_only(&plain).await;
    gate.armed.store(true, Ordering::SeqCst);
    let query = map.query("select 1");
    let adding = plain.map.add(&10, Some(&20), &plain.shard);
    let reading = async {
        gate.reached.notified().await;
        let going_on = async {
            while manager.metrics().operations_met.get() < 2 {
                tokio::task::yield_now().await;
            }
            gate.goes_on.notify_one();
        };
        tokio::join!(map.get(&15), query.run(&readers), going_on)
    };
    let (added, (found, rows, ())) = tokio::join!(adding, reading);
    added.unwrap();
    assert_eq!(found.unwrap().shard(), &plain.shard);
    assert_eq!(rows.unwrap().all().await.unwrap().len(), 1);
}

/// The process that made the change is dead, and this role may not end its operation: it is told to try again, and not that
/// it lacks a right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_is_told_to_try_again() {
    needs!(PostgreSql);
    let faults = Faults::default();
    let plain = Plain::new(|options| ManagerOptions {
        hook: faults.hook(),
        lease: Duration::from_millis(1),
        ..options
    })
    .await;
    let (_manager, map, readers) = read_only(&plain).await;
    let pending = |error: Error| {
        assert_eq!((error.code(), error.retry()), (Code::PendingOperation, true), "{error}");
        assert!(error.to_string().contains("rangehold shards recover"), "{error}");
    };
    faults.stop(Step::GlobalBegin, When::After);
    let adding = plain.map.add(&10, Some(&20), &plain.shard);
    assert!(faults.until_death(adding).await.is_none());
    pending(map.get(&15).await.unwrap_err());
    assert!(map.get(&5).await.unwrap().is_online());
    let QueryError::Map(error) = map.query("select 1").run(&readers).await.unwrap_err() else { panic!() };
    pending(error);
    let place = plain.world.database("shard_b");
    faults.stop(Step::GlobalBegin, When::After);
    assert!(faults.until_death(plain.map.create_shard(&place)).await.is_none());
    pending(map.try_shard(&place).await.unwrap_err());
}

/// A role that may change the maps, but may not end the sessions of the role that stopped inside a transaction, names them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sessions_of_a_former_owner_that_may_not_be_ended_are_named() {
    needs!(PostgreSql);
    let plain = Arc::new(Plain::new(|options| options).await);
    let grant = format!("grant all on all tables in schema __shard_management to {APPLICATION}");
    plain.world.sql_as(MANAGER, &plain.global, &grant);
    let (reached, of_hook) = (Arc::new(tokio::sync::Notify::new()), plain.clone());
    let tells = reached.clone();
    let hook = StepHook::new(move |moment| {
        if moment.when == When::After {
            of_hook.world.sql(&of_hook.global, "update @global_operations set lease_until = 0");
        }
        let stops = moment.step == Step::GlobalEnd;
        let tells = tells.clone();
        async move {
            if stops {
                tells.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    });
    let options = ManagerOptions { hook, lease: Duration::from_secs(3600), ..plain.world.options() };
    let map = plain.world.second_with(options).await.range_map::<i32>("ranges").await.unwrap();
    let stopped = tokio::spawn(async move { map.offline(&map.get(&5).await.unwrap()).await });
    reached.notified().await;
    let options = plain.world.options_of(APPLICATION);
    let other = ShardMapManager::open(plain.global.clone(), options).await.unwrap();
    let (ended, failed) = other.recover_pending().await.unwrap();
    assert_eq!(ended, 0);
    let told = failed[0].to_string();
    assert!(told.contains(MANAGER) && told.contains("grant pg_signal_backend"), "{told}");
    stopped.abort();
}

//! A manager that stops inside a transaction without dying, as by SIGSTOP: its thread stands still, with its
//! connections open and its locks held.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures::future::BoxFuture;
use rangehold_shardmap::operation::{Step, StepFault, StepHook, When};
use rangehold_shardmap::recovery::Resolution;
use rangehold_shardmap::{
    Error, Location, LookIn, ManagerOptions, MappingChange, RangeShardMap, ShardMapManager, ShardUpdate,
};
use rangehold_testkit::needs;

use super::world::{Ranges, check};
use crate::support::faults::Faults;
use crate::support::local::manage;
use crate::support::proxy::Proxy;
use crate::support::roles::MANAGER;
use crate::support::stores::World;

const LEASE: Duration = Duration::from_secs(1);

const FORWARD: [Step; 4] = [Step::GlobalBegin, Step::LocalSource, Step::LocalTarget, Step::GlobalEnd];
const BACK: [Step; 4] = [Step::TurnBack, Step::UndoTarget, Step::UndoSource, Step::UndoEnd];

/// A manager that moves key 5 to the second shard, and stands still before the commit of a step.
struct Stopped {
    resume: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Stopped {
    /// Returns when it stands still. After each commit it calls `after`.
    async fn at(
        step: Step,
        ranges: &Ranges,
        options: ManagerOptions,
        after: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (stopped, has_stopped) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let hook = standing_still(step, stopped, resumed, after);
        let options = ManagerOptions { hook, ..options };
        let (place, b) = (ranges.manager.location().clone(), ranges.places[1].clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let manager = ShardMapManager::open(place, options).await.unwrap();
                let map = manager.range_map::<i32>("ranges").await.unwrap();
                let (mapping, shard) = (map.get(&5).await.unwrap(), map.shard(&b).await.unwrap());
                let change = MappingChange { online: None, shard: Some(&shard) };
                let _ = map.update(&mapping, change).await;
            });
        });
        tokio::task::spawn_blocking(move || has_stopped.recv().unwrap()).await.unwrap();
        Self { resume, thread }
    }

    /// Lets it go on, to its end.
    async fn goes_on(self) {
        drop(self.resume);
        tokio::task::spawn_blocking(move || self.thread.join().unwrap()).await.unwrap();
    }
}

/// A hook that stands still before the commit of a step, until the sender of `resumed` is dropped. If the step belongs to
/// an operation that is undone, the last step forward fails.
fn standing_still(
    step: Step,
    stopped: mpsc::Sender<()>,
    resumed: mpsc::Receiver<()>,
    after: impl Fn() + Send + Sync + 'static,
) -> StepHook {
    let resumed = Arc::new(Mutex::new(resumed));
    StepHook::new(move |moment| {
        let fails = BACK.contains(&step) && moment.step == Step::GlobalEnd && moment.when == When::Before;
        if moment.when == When::After {
            after();
        } else if moment.step == step && stopped.send(()).is_ok() {
            // Blocks the only thread of the runtime, so that nothing of this manager goes on.
            let _ = resumed.lock().unwrap().recv();
        }
        async move { if fails { Err(StepFault::Stays) } else { Ok(()) } }
    })
}

/// Keys 0 to 10 are on the first shard, offline.
async fn scene(world: &World, options: ManagerOptions) -> Ranges {
    let ranges = Ranges::with(world, options).await;
    let mapping = ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
    ranges.map.offline(&mapping).await.unwrap();
    ranges
}

/// The keys are served in one place, also after the stopped manager went on.
async fn nothing_is_left(step: Step, other: &ShardMapManager, ranges: &Ranges, stopped: Stopped) {
    let map = other.range_map::<i32>("ranges").await.unwrap();
    let found = map.get(&5).await.unwrap();
    map.online(&found).await.unwrap();
    check(other, &ranges.places).await;
    stopped.goes_on().await;
    assert!(map.get(&5).await.unwrap().is_online(), "{step:?}");
    check(other, &ranges.places).await;
}

/// Its locks are free when its lease is over: another map is changed, the operation is ended, and the keys are served
/// in one place. The stopped manager goes on afterwards, and changes nothing any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_manager_holds_its_locks_for_its_lease() {
    needs!(PostgreSql);
    for step in FORWARD.into_iter().chain(BACK) {
        let world = World::postgres();
        let options = ManagerOptions { lease: LEASE, ..world.options() };
        let ranges = scene(&world, options.clone()).await;
        let stopped = Stopped::at(step, &ranges, options.clone(), || ()).await;
        let other = world.second_with(options).await;
        other.create_list_map::<i64>("other").await.unwrap();
        nothing_is_left(step, &other, &ranges, stopped).await;
    }
}

/// The server would end the sessions of the stopped manager only after an hour. The process that takes its operation over
/// ends them at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sessions_of_a_former_owner_are_ended() {
    needs!(PostgreSql);
    for step in FORWARD.into_iter().skip(1).chain(BACK) {
        let world = Arc::new(World::postgres());
        let ranges = scene(&world, world.options()).await;
        let options = ManagerOptions { lease: Duration::from_secs(3600), ..world.options() };
        let (global, at) = (world.place("global"), world.clone());
        // The log row may be locked when the manager stands still, so its lease is ended before.
        let stopped = Stopped::at(step, &ranges, options, move || {
            at.sql(&global, "update @global_operations set lease_until = 0");
        })
        .await;
        let other = world.second().await;
        assert_eq!(other.recover_pending().await.unwrap().0, 1, "{step:?}");
        nothing_is_left(step, &other, &ranges, stopped).await;
    }
}

/// A long change locks its own map while it begins, and the counter of all maps only for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_change_holds_up_no_other_map() {
    needs!(PostgreSql);
    let world = World::postgres();
    let faults = Faults::default();
    let (ranges, other) = many(&world, faults.hook()).await;
    let (map, recovery, a) = (&ranges.map, ranges.manager.recovery(), &ranges.places[0]);
    let copy = world.copy(a, "copy");
    let bounds: Vec<(i32, i32)> = (2000..2100).map(|low| (low, low + 1)).collect();
    let more = bounds.iter().map(|(low, high)| (low, Some(high), &ranges.shards[0])).collect();
    let update = ShardUpdate { online: None, location: Some(copy) };
    let found = recovery.detect(a, Some("ranges")).await.unwrap().remove(0);
    let changes: [BoxFuture<'_, bool>; 3] = [
        Box::pin(async { map.add_many(more).await.is_ok() }),
        Box::pin(async { map.update_shard(&ranges.shards[0], &update).await.is_ok() }),
        Box::pin(async { recovery.resolve(found, Resolution::KeepGlobal).await.is_ok() }),
    ];
    for (low, mut long) in (0..).zip(changes) {
        faults.stop(Step::GlobalBegin, When::Before);
        assert!(faults.until_death(&mut long).await.is_none());
        // Its first transaction is open.
        other.add(&low, Some(&(low + 1)), &other.shard(a).await.unwrap()).await.unwrap();
        drop(long);
        faults.clear();
    }
    assert!(map.try_lookup(&2000, LookIn::Store).await.unwrap().is_none());
}

/// The same for long changes of the global map alone, which wait here for the row of a mapping.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_change_of_the_global_map_holds_up_no_other_map() {
    needs!(PostgreSql);
    let world = World::postgres();
    let (ranges, other) = many(&world, StepHook::default()).await;
    let (a, global) = (&ranges.places[0], ranges.manager.location());
    let (recovery, of) = (ranges.manager.recovery(), Some("ranges"));
    let found = recovery.detect(a, of).await.unwrap().remove(0);
    let changes: [BoxFuture<'static, Result<(), Error>>; 2] = [
        Box::pin({
            let recovery = recovery.clone();
            async move { recovery.resolve(found, Resolution::KeepShard).await }
        }),
        Box::pin({
            let (recovery, a) = (recovery.clone(), a.clone());
            async move { recovery.detach_lost(&a, of).await }
        }),
    ];
    let Location::Postgres { database, .. } = global else { unreachable!("a server") };
    let blocker = manage(world.server().unwrap(), database).await;
    let waiting = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    for (low, change) in (0..).zip(changes) {
        let lock =
            "begin; select 1 from __shard_management.global_mappings where low = '\\x800003e8' for update";
        blocker.batch_execute(lock).await.unwrap();
        let change = tokio::spawn(change);
        while world.sql_as(MANAGER, global, waiting) == "0" {}
        other.add(&low, Some(&(low + 1)), &other.shard(a).await.unwrap()).await.unwrap();
        assert!(!change.is_finished(), "it was given up before the other map was changed");
        blocker.batch_execute("rollback").await.unwrap();
        change.await.unwrap().unwrap();
    }
}

/// A map with 100 mappings on the first shard, and another map with the same shard. The server does not end the sessions of
/// the first map's manager.
async fn many(world: &World, hook: StepHook) -> (Ranges, RangeShardMap<i32>) {
    let lease = Duration::from_secs(3600);
    let ranges = Ranges::with(world, ManagerOptions { hook, lease, ..world.options() }).await;
    let bounds: Vec<(i32, i32)> = (1000..1100).map(|low| (low, low + 1)).collect();
    let all = bounds.iter().map(|(low, high)| (low, Some(high), &ranges.shards[0])).collect();
    ranges.map.add_many(all).await.unwrap();
    let other = world.second().await.create_range_map::<i32>("other").await.unwrap();
    other.create_shard(&ranges.places[0]).await.unwrap();
    (ranges, other)
}

/// A manager stops while the server sends it a large answer. It is not idle then, because the server waits for the
/// network. It still holds its locks only for its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_stops_reading_holds_its_locks_for_its_lease() {
    needs!(PostgreSql);
    const ANSWER_BYTES: u64 = 1 << 20;
    let world = World::postgres();
    let options = ManagerOptions { lease: LEASE, ..world.options() };
    let ranges = Ranges::with(&world, options.clone()).await;
    let (a, global) = (&ranges.places[0], ranges.manager.location());
    let found = ranges.manager.recovery().detect(a, None).await.unwrap().remove(0);
    // More than the server and the proxy keep in their buffers.
    let key = |number: &str| format!("int4send(({number}) # (-2147483648)::int)");
    let sql = format!(
        "insert into @global_mappings (mapping_id, map_id, shard_id, low, high, online, fence, readable, epoch)
            select gen_random_uuid(), map_id, shard_id, {}, {}, true, n, true, 1
            from @global_shards, generate_series(1000, 101000) n where shard_id = '{}'",
        key("n"),
        key("n + 1"),
        ranges.shards[0].id().0
    );
    world.sql(global, &sql);
    let Location::Postgres { database, .. } = global else { unreachable!("a server") };
    let proxy = Proxy::until(world.server().unwrap().port(), ANSWER_BYTES).await;
    let by_proxy = Location::postgres("127.0.0.1", proxy.port(), database).unwrap();
    let stopped = ShardMapManager::open(by_proxy, options).await.unwrap();
    let stopped =
        tokio::spawn(async move { stopped.recovery().resolve(found, Resolution::KeepGlobal).await });
    let writes = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event = 'ClientWrite'";
    while world.sql_as(MANAGER, global, writes) == "0" {
        assert!(!stopped.is_finished(), "the answer was smaller than the buffers");
    }
    ranges.map.add(&20, Some(&30), &ranges.shards[1]).await.unwrap();
    stopped.abort();
}

//! A manager that stops inside a transaction without dying, as by SIGSTOP: its thread stands still, with its
//! connections open and its locks held.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rangehold_shardmap::operation::{Step, StepFault, StepHook, When};
use rangehold_shardmap::{LookIn, ManagerOptions, MappingChange, ShardMapManager};
use rangehold_testkit::needs;

use super::world::{Ranges, check};
use crate::support::faults::Faults;
use crate::support::stores::World;

const LEASE: Duration = Duration::from_secs(1);

const FORWARD: [Step; 4] = [Step::GlobalBegin, Step::LocalSource, Step::LocalTarget, Step::GlobalEnd];
const BACK: [Step; 4] = [Step::TurnBack, Step::UndoTarget, Step::UndoSource, Step::UndoEnd];

/// A hook that stands still before the commit of a step, until the sender of `resumed` is dropped. If the step belongs to
/// an operation that is undone, the last step forward fails.
fn standing_still(step: Step, stopped: mpsc::Sender<()>, resumed: mpsc::Receiver<()>) -> StepHook {
    let resumed = Arc::new(Mutex::new(resumed));
    StepHook::new(move |moment| {
        let fails = BACK.contains(&step) && moment.step == Step::GlobalEnd && moment.when == When::Before;
        if moment.step == step && moment.when == When::Before && stopped.send(()).is_ok() {
            // Blocks the only thread of the runtime, so that nothing of this manager goes on.
            let _ = resumed.lock().unwrap().recv();
        }
        async move { if fails { Err(StepFault::Stays) } else { Ok(()) } }
    })
}

/// Its locks are free when its lease is over: another map is changed, the operation is ended, and the keys are served
/// in one place. The stopped manager goes on afterwards, and changes nothing any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_manager_holds_its_locks_for_its_lease() {
    needs!(PostgreSql);
    for step in FORWARD.into_iter().chain(BACK) {
        let world = World::postgres();
        let options = ManagerOptions { lease: LEASE, ..world.options() };
        let ranges = Ranges::with(&world, options.clone()).await;
        let mapping = ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        ranges.map.offline(&mapping).await.unwrap();
        let (stopped, has_stopped) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let hook = standing_still(step, stopped, resumed);
        let (place, b) = (world.place("global"), ranges.places[1].clone());
        let of_stopped = ManagerOptions { hook, ..options.clone() };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let manager = ShardMapManager::open(place, of_stopped).await.unwrap();
                let map = manager.range_map::<i32>("ranges").await.unwrap();
                let (mapping, shard) = (map.get(&5).await.unwrap(), map.shard(&b).await.unwrap());
                let change = MappingChange { online: None, shard: Some(&shard) };
                let _ = map.update(&mapping, change).await;
            });
        });
        tokio::task::spawn_blocking(move || has_stopped.recv().unwrap()).await.unwrap();
        let other = world.second_with(options).await;
        other.create_list_map::<i64>("other").await.unwrap();
        let map = other.range_map::<i32>("ranges").await.unwrap();
        let found = map.get(&5).await.unwrap();
        map.online(&found).await.unwrap();
        check(&other, &ranges.places).await;
        drop(resume);
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
        assert!(map.get(&5).await.unwrap().is_online(), "{step:?}");
        check(&other, &ranges.places).await;
    }
}

/// A long change locks its own map while it begins, and the counter of all maps only for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_change_holds_up_no_other_map() {
    needs!(PostgreSql);
    let world = World::postgres();
    let faults = Faults::default();
    let ranges = Ranges::with(&world, ManagerOptions { hook: faults.hook(), ..world.options() }).await;
    let other = world.second().await.create_range_map::<i32>("other").await.unwrap();
    let shard = other.create_shard(&ranges.places[0]).await.unwrap();
    let bounds: Vec<(i32, i32)> = (1000..1100).map(|low| (low, low + 1)).collect();
    let many = bounds.iter().map(|(low, high)| (low, Some(high), &ranges.shards[0])).collect();
    let mut long = Box::pin(ranges.map.add_many(many));
    faults.stop(Step::GlobalBegin, When::Before);
    assert!(faults.until_death(&mut long).await.is_none());
    // Its first transaction is open.
    other.add(&0, Some(&10), &shard).await.unwrap();
    drop(long);
    faults.clear();
    assert!(ranges.map.try_lookup(&1000, LookIn::Store).await.unwrap().is_none());
}

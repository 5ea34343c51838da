//! Steps that fail: nothing changes, or the next one repairs it.

use rangehold_shardmap::operation::{Moment, Step, StepFault, When};
use rangehold_shardmap::{ManagerOptions, MappingChange, RetryPolicy, ShardUpdate};

use super::world::{Ranges, code};
use crate::support::faults::Faults;
use crate::support::roles::MANAGER;
use crate::support::stores::World;

/// A map of its own with three mappings, [`BEFORE`], and the faults of its steps.
pub(crate) struct Scene {
    pub(crate) ranges: Ranges,
    pub(crate) faults: Faults,
    pub(crate) world: World,
}

impl Scene {
    pub(crate) async fn new(world: &World) -> Self {
        let (world, faults) = (world.again(), Faults::default());
        let options = ManagerOptions { hook: faults.hook(), ..world.options() };
        let ranges = Ranges::with(&world, options).await;
        let (map, shards) = (&ranges.map, &ranges.shards);
        map.add(&0, Some(&10), &shards[0]).await.unwrap();
        map.add(&10, Some(&20), &shards[0]).await.unwrap();
        let last = map.add(&20, Some(&30), &shards[1]).await.unwrap();
        map.offline(&last).await.unwrap();
        faults.clear();
        Self { ranges, faults, world }
    }
}

/// Every change of a mapping, by number; each leaves the map another.
pub(crate) async fn change(ranges: &Ranges, number: usize) -> Result<(), rangehold_shardmap::Error> {
    let map = &ranges.map;
    let shard = |n: usize| &ranges.shards[n];
    match number {
        0 => map.add(&40, Some(&50), shard(0)).await.map(|_| ()),
        1 => map.delete(&map.get(&25).await?).await,
        2 => map.offline(&map.get(&5).await?).await.map(|_| ()),
        3 => {
            let to = MappingChange { online: Some(true), shard: Some(shard(2)) };
            map.update(&map.get(&25).await?, to).await.map(|_| ())
        }
        4 => map.split(&map.get(&5).await?, &5).await.map(|_| ()),
        5 => map.merge(&map.get(&5).await?, &map.get(&15).await?).await.map(|_| ()),
        6 => {
            let to = MappingChange { online: Some(false), shard: Some(shard(1)) };
            map.update(&map.get(&5).await?, to).await.map(|_| ())
        }
        _ => map.add_many(vec![(&50, Some(&60), shard(0)), (&60, None, shard(2))]).await.map(|_| ()),
    }
}

pub(crate) const CHANGES: usize = 8;

/// What the map is after each change.
const AFTER: [&str; CHANGES] = [
    "0-10 A, 10-20 A, 20-30 B offline, 40-50 A",
    "0-10 A, 10-20 A",
    "0-10 A offline, 10-20 A, 20-30 B offline",
    "0-10 A, 10-20 A, 20-30 C",
    "0-5 A, 5-10 A, 10-20 A, 20-30 B offline",
    "0-20 A, 20-30 B offline",
    "0-10 B offline, 10-20 A, 20-30 B offline",
    "0-10 A, 10-20 A, 20-30 B offline, 50-60 A, 60- C",
];

pub(crate) fn after(number: usize) -> &'static str {
    AFTER[number]
}

pub(crate) const BEFORE: &str = "0-10 A, 10-20 A, 20-30 B offline";

on_both_stores! {
    /// Acceptance 102 to 109: a step that fails for good, in the global map or in a shard, for every change:
    /// the old state stays, nothing is left behind, and the same change succeeds afterwards.
    async fn a_failing_step_changes_nothing(world) {
        for number in 0..CHANGES {
            let Scene { ranges, faults, world: _world } = Scene::new(world).await;
            for step in [Step::GlobalBegin, Step::LocalSource, Step::LocalTarget, Step::GlobalEnd] {
                faults.break_step(step);
                let done = change(&ranges, number).await;
                faults.clear();
                if step == Step::LocalTarget && done.is_ok() {
                    break;
                }
                let error = done.unwrap_err();
                assert_eq!(error.code(), rangehold_shardmap::Code::StorageOperationFailure, "{number} {step:?}");
                assert!(error.retry());
                assert_eq!(ranges.told().await, BEFORE, "{number} {step:?}");
                ranges.check().await;
            }
            if ranges.told().await == BEFORE {
                change(&ranges, number).await.unwrap();
            }
            assert_eq!(ranges.told().await, after(number));
            ranges.check().await;
        }
    }

    /// Acceptance 110 to 115, 120 to 122: the step fails, and undoing it fails too: the operation stays in the
    /// log, and the next writer or reader brings it to an end before it goes on.
    async fn a_failing_undo_is_repaired_by_the_next(world) {
        for number in 0..CHANGES {
            for (step, undo) in [
                (Step::LocalSource, Step::TurnBack),
                (Step::LocalTarget, Step::UndoSource),
                (Step::GlobalEnd, Step::UndoEnd),
                (Step::GlobalEnd, Step::TurnBack),
            ] {
                let Scene { ranges, faults, world: _world } = Scene::new(world).await;
                faults.break_step(step);
                faults.break_step(undo);
                let done = change(&ranges, number).await;
                faults.clear();
                if step == Step::LocalTarget && done.is_ok() {
                    continue;
                }
                assert!(done.is_err(), "{number} {step:?}");
                let pending = ranges.manager.pending_operations().await.unwrap();
                assert_eq!(pending.len(), 1, "{number} {step:?} {undo:?}");
                assert!(pending[0].abandoned && pending[0].map == "ranges", "{pending:?}");
                // A turn back that was not made lets the operation go forward.
                let forward = undo == Step::TurnBack;
                if !forward {
                    change(&ranges, number).await.unwrap();
                } else {
                    let again = change(&ranges, number).await;
                    assert!(again.is_err() || ranges.told().await != BEFORE, "{number} {step:?}");
                    assert_eq!(ranges.manager.recover_pending().await.unwrap().0, 0);
                }
                if number != 2 && number != 6 && number != 4 {
                    assert_eq!(ranges.told().await, after(number), "{number} {step:?} {undo:?}");
                }
                ranges.check().await;
            }
        }
    }

    /// Acceptance 116, 117, 118, 119: a failure that passes is hidden by trying again, before the commit and
    /// after it; one that lasts is an error, and the same call succeeds later.
    async fn passing_failures_are_hidden(world) {
        for when in [When::Before, When::After] {
            for step in [Step::GlobalBegin, Step::LocalSource, Step::GlobalEnd] {
                let Scene { ranges, faults, world: _world } = Scene::new(world).await;
                faults.fail(step, when, StepFault::MayPass, 1);
                change(&ranges, 0).await.unwrap();
                assert_eq!(ranges.told().await, after(0), "{step:?} {when:?}");
                ranges.check().await;
            }
        }
        let Scene { ranges, faults, world: _world } = Scene::new(world).await;
        faults.fail(Step::GlobalEnd, When::Before, StepFault::MayPass, 100);
        assert_eq!(code(change(&ranges, 0).await), "RangeShardMap/StorageOperationFailure");
        let tried = faults.seen().iter().filter(|m| m.step == Step::GlobalEnd && m.when == When::Before).count();
        assert_eq!(tried, 6);
        faults.clear();
        change(&ranges, 0).await.unwrap();
        ranges.check().await;
    }

    /// The options say how often a step is tried again.
    async fn the_retries_of_a_step_are_set(world) {
        let (world, faults) = (world.again(), Faults::default());
        let retries = RetryPolicy { times_max: 1, ..RetryPolicy::default() };
        let options = ManagerOptions { hook: faults.hook(), retries, ..world.options() };
        let ranges = Ranges::with(&world, options).await;
        for (times, succeeds) in [(1, true), (2, false)] {
            faults.clear();
            faults.fail(Step::LocalSource, When::Before, StepFault::MayPass, times);
            let low = 10 * i32::try_from(times).unwrap();
            let done = ranges.map.add(&low, Some(&(low + 10)), &ranges.shards[0]).await;
            assert_eq!(done.is_ok(), succeeds, "{times}");
            let is_attempt = |m: &&Moment| m.step == Step::LocalSource && m.when == When::Before;
            assert_eq!(faults.seen().iter().filter(is_attempt).count(), 2, "{times}");
        }
        assert_eq!(ranges.told().await, "10-20 A");
        ranges.check().await;
    }

    /// Acceptance 46 to 51: the same for shards: added, removed, updated.
    async fn failing_changes_of_shards(world) {
        let Scene { ranges, faults, world } = Scene::new(world).await;
        let (map, place) = (&ranges.map, world.database("shard_d"));
        for undo in [None, Some(Step::UndoEnd), Some(Step::UndoSource)] {
            for step in [Step::LocalSource, Step::GlobalEnd] {
                let break_all = || {
                    faults.break_step(step);
                    if let Some(undo) = undo {
                        faults.break_step(undo);
                    }
                };
                break_all();
                let failed = map.create_shard(&place).await;
                faults.clear();
                assert_eq!(code(failed), "ShardMap/StorageOperationFailure");
                assert_eq!(map.shards().await.unwrap().len(), 3);
                let shard = map.create_shard(&place).await.unwrap();
                break_all();
                let off = ShardUpdate { online: Some(false), location: None };
                assert_eq!(code(map.update_shard(&shard, &off).await), "ShardMap/StorageOperationFailure");
                faults.clear();
                assert!(map.shard(&place).await.unwrap().is_online());
                let shard = map.update_shard(&shard, &off).await.unwrap();
                break_all();
                assert_eq!(code(map.delete_shard(&shard).await), "ShardMap/StorageOperationFailure");
                faults.clear();
                assert_eq!(map.shards().await.unwrap().len(), 4);
                map.delete_shard(&shard).await.unwrap();
                ranges.check().await;
            }
        }
    }

    /// A shard whose local map has other rows where keys shall come refuses, and the operation is undone.
    async fn a_shard_that_differs_refuses(world) {
        let Scene { ranges, world, .. } = Scene::new(world).await;
        let other = ranges.manager.create_range_map::<i32>("other").await.unwrap();
        other.create_shard(&ranges.places[2]).await.unwrap();
        let keys = if world.is_postgres() { "'\\x80000028', '\\x80000030'" } else { "x'80000028', x'80000030'" };
        let id = "'00000000-0000-0000-0000-000000000001'";
        let sql = format!(
            "insert into @local_mappings (mapping_id, map_id, shard_id, low, high, online, fence, epoch)
            values ({id}, '{}', {id}, {keys}, {}, 1, 1)",
            ranges.map.info().id, if world.is_postgres() { "true" } else { "1" }
        );
        world.sql(&ranges.places[0], &sql);
        assert_eq!(code(change(&ranges, 0).await), "RangeShardMap/StorageOperationFailure");
        assert_eq!(ranges.told().await, BEFORE);
        assert_eq!(ranges.manager.pending_operations().await.unwrap(), []);
    }
}

/// A call that is dropped at any moment leaves no session inside a transaction, which the pool would give to the next call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_leaves_no_transaction_behind() {
    const LOOKS_MAX: usize = 200;
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let ranges = Ranges::new(&world).await;
    let inside = "select count(*) from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'";
    let left = || world.sql_as(MANAGER, ranges.manager.location(), inside);
    for polls in 1..20 {
        let mut call = Box::pin(ranges.map.mappings());
        for _ in 0..polls {
            if futures::poll!(&mut call).is_ready() {
                break;
            }
            // So that the next poll finds the answer of the server.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        drop(call);
        // A connection that is closed is gone a moment later.
        assert!((0..LOOKS_MAX).any(|_| left() == "0"), "a session stays inside a transaction");
    }
}

//! A shard that changes its place, is detached, or is lost: it is closed where it was.

use rangehold_shardmap::operation::{Step, When};
use rangehold_shardmap::recovery::{Identity, Resolution};
use rangehold_shardmap::{Location, LookIn, ManagerOptions, ShardMapManager, ShardUpdate};

use super::world::{Ranges, check, code, told};
use crate::support::faults::Faults;
use crate::support::stores::World;

pub(super) fn mapping_count(world: &World, place: &Location) -> String {
    world.sql(place, "select count(*) from @local_mappings")
}

pub(super) fn to(location: &Location) -> ShardUpdate {
    ShardUpdate { online: None, location: Some(location.clone()) }
}

/// What a client sees that still asks the shard at the place: whether the shard serves key 5.
pub(super) async fn serves(world: &World, ranges: &Ranges, place: &Location) -> bool {
    if world.is_postgres() {
        let map = world.sql(ranges.manager.location(), "select map_id from @global_maps");
        let sql = format!("select case when @owns('{map}'::uuid, '\\x80000005') then 1 else 0 end");
        return world.sql(place, &sql) == "1";
    }
    mapping_count(world, place) != "0"
}

pub(super) async fn one(world: &World, options: ManagerOptions) -> Ranges {
    let ranges = Ranges::with(world, options).await;
    ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
    ranges.map.add(&10, Some(&20), &ranges.shards[1]).await.unwrap();
    ranges
}

on_both_stores! {
    /// The copy serves the keys afterwards, and the old place does not, also for a client with an old cache. A later
    /// look at the old place says which shard it was.
    async fn a_shard_that_moves_is_closed_at_its_old_place(world) {
        let ranges = one(world, world.options()).await;
        let (map, a) = (&ranges.map, ranges.places[0].clone());
        let copy = world.copy(&a, "copy");
        let other = world.second().await.range_map::<i32>("ranges").await.unwrap();
        assert_eq!(other.get(&5).await.unwrap().shard().location(), &a);
        let moved = map.update_shard(&ranges.shards[0], &to(&copy)).await.unwrap();
        assert_eq!(moved.location(), &copy);
        assert!(!serves(world, &ranges, &a).await);
        assert!(serves(world, &ranges, &copy).await);
        assert_eq!(other.lookup(&5, LookIn::Cache).await.unwrap().shard().location(), &a, "an old cache");
        let places = [copy.clone(), ranges.places[1].clone()];
        assert_eq!(told(map, &places).await, "0-10 A, 10-20 B");
        check(&ranges.manager, &places).await;
        map.offline(&map.get(&5).await.unwrap()).await.unwrap();
        let error = map.create_shard(&a).await.unwrap_err();
        assert!(error.to_string().contains(&copy.to_string()), "{error}");
        assert_eq!(code(ranges.manager.recovery().attach(&a, None).await), "Recovery/ShardLocationAlreadyExists");
    }

    /// Two names of one database: it is closed and opened again in the same operation.
    async fn a_shard_moves_to_another_name_of_its_database(world) {
        let ranges = one(world, world.options()).await;
        let name = world.other_name(&ranges.places[0]);
        let moved = ranges.map.update_shard(&ranges.shards[0], &to(&name)).await.unwrap();
        assert!(serves(world, &ranges, &name).await);
        check(&ranges.manager, &[name]).await;
        ranges.map.offline(&ranges.map.get(&5).await.unwrap()).await.unwrap();
        ranges.map.update_shard(&moved, &to(&ranges.places[0])).await.unwrap();
        ranges.check().await;
    }

    /// A copy that is older than the last change of the map gets the mappings of the global map.
    async fn an_old_copy_gets_the_present_mappings(world) {
        let ranges = one(world, world.options()).await;
        let (map, a) = (&ranges.map, ranges.places[0].clone());
        let copy = world.copy(&a, "copy");
        map.delete(&map.offline(&map.get(&5).await.unwrap()).await.unwrap()).await.unwrap();
        map.add(&0, Some(&5), &ranges.shards[1]).await.unwrap();
        map.add(&5, Some(&7), &ranges.shards[0]).await.unwrap();
        map.update_shard(&ranges.shards[0], &to(&copy)).await.unwrap();
        let places = [copy, ranges.places[1].clone()];
        assert_eq!(told(map, &places).await, "0-5 B, 5-7 A, 10-20 B");
        check(&ranges.manager, &places).await;
    }

    /// The process dies at each step of the move, to a copy and to another name. The next process ends the operation,
    /// and exactly one place serves the keys.
    async fn a_process_dies_while_a_shard_moves(world) {
        for step in [Step::GlobalBegin, Step::LocalSource, Step::LocalTarget, Step::GlobalEnd] {
            for (when, is_copy) in [(When::Before, true), (When::After, true), (When::After, false)] {
                let world = &world.again();
                let faults = Faults::default();
                let lease = std::time::Duration::from_millis(50);
                let ranges = one(world, ManagerOptions { hook: faults.hook(), lease, ..world.options() }).await;
                let a = &ranges.places[0];
                let new = if is_copy { world.copy(a, "copy") } else { world.other_name(a) };
                faults.stop(step, when);
                let update = to(&new);
                let moving = ranges.map.update_shard(&ranges.shards[0], &update);
                assert!(faults.until_death(moving).await.is_none(), "{step:?} {when:?}");
                let other = world.second_with(ManagerOptions { lease, ..world.options() }).await;
                while !other.pending_operations().await.unwrap().is_empty() {
                    other.recover_pending().await.unwrap();
                }
                let map = other.range_map::<i32>("ranges").await.unwrap();
                let at = map.get(&5).await.unwrap().shard().location().clone();
                check(&other, &[at.clone(), ranges.places[1].clone()]).await;
                if is_copy && at == new {
                    assert!(!serves(world, &ranges, a).await, "{step:?} {when:?}");
                }
            }
        }
    }

    /// A step of the move fails for good: the shard is served at its old place as before.
    async fn a_move_that_fails_leaves_the_shard_open(world) {
        for step in [Step::LocalSource, Step::LocalTarget, Step::GlobalEnd] {
            for is_copy in [true, false] {
                let world = &world.again();
                let faults = Faults::default();
                let ranges = one(world, ManagerOptions { hook: faults.hook(), ..world.options() }).await;
                let a = &ranges.places[0];
                let new = if is_copy { world.copy(a, "copy") } else { world.other_name(a) };
                faults.break_step(step);
                let failed = ranges.map.update_shard(&ranges.shards[0], &to(&new)).await;
                assert_eq!(code(failed), "ShardMap/StorageOperationFailure");
                faults.clear();
                assert!(serves(world, &ranges, a).await, "{step:?}");
                ranges.check().await;
            }
        }
    }

    /// The old place is gone. Without being told so, the move fails; and when it is seen again, it is refused.
    async fn an_old_place_that_is_gone_is_given_up_as_lost(world) {
        let ranges = one(world, world.options()).await;
        let a = ranges.places[0].clone();
        let copy = world.copy(&a, "copy");
        let hidden = world.hide(&a);
        // A manager without connections to the old place.
        let map = &world.second().await.range_map::<i32>("ranges").await.unwrap();
        let error = map.update_shard(&ranges.shards[0], &to(&copy)).await.unwrap_err();
        assert!(error.to_string().contains("--lost"), "{error}");
        map.move_lost_shard(&map.shard(&a).await.unwrap(), &copy).await.unwrap();
        let places = [copy, ranges.places[1].clone()];
        check(&ranges.manager, &places).await;
        hidden.show();
        assert_eq!(code(map.create_shard(&a).await), "ShardMap/ShardNotValid");
        assert_eq!(code(ranges.manager.recovery().attach(&a, None).await), "Recovery/ShardLocationAlreadyExists");
    }

    /// A living shard that is detached serves nothing, and comes back with its mappings.
    async fn a_living_shard_that_is_detached_is_closed(world) {
        let ranges = one(world, world.options()).await;
        let (recovery, a) = (ranges.manager.recovery(), &ranges.places[0]);
        recovery.detach(a, None).await.unwrap();
        assert!(!serves(world, &ranges, a).await);
        assert_eq!(ranges.told().await, "10-20 B");
        recovery.attach(a, None).await.unwrap();
        assert!(serves(world, &ranges, a).await);
    }

    /// A lost shard is refused when it is seen again, until the caller says what it is.
    async fn a_lost_shard_is_refused_when_it_is_seen_again(world) {
        let ranges = one(world, world.options()).await;
        let a = &ranges.places[0];
        // A global map of an earlier version has no table of lost shards.
        world.sql(ranges.manager.location(), "drop table @global_lost_shards");
        let hidden = world.hide(a);
        // A manager without connections to the lost shard.
        let recovery = world.second().await.recovery();
        assert_eq!(code(recovery.detach(a, None).await), "Recovery/StorageOperationFailure");
        recovery.detach_lost(a, None).await.unwrap();
        ranges.map.add(&0, Some(&10), &ranges.shards[1]).await.unwrap();
        hidden.show();
        assert_eq!(code(recovery.attach(a, None).await), "Recovery/ShardNotValid");
        assert_eq!(code(ranges.map.create_shard(a).await), "ShardMap/ShardNotValid");
        recovery.attach_lost(a, None).await.unwrap();
        let found = recovery.detect(a, None).await.unwrap().remove(0);
        recovery.resolve(found, rangehold_shardmap::recovery::Resolution::KeepGlobal).await.unwrap();
        assert_eq!(ranges.told().await, "0-10 B, 10-20 B");
        ranges.check().await;
    }

    /// Keys of a detached shard were given to another shard. The detached one does not serve them again: it is refused,
    /// or comes back without the mappings that hold them.
    async fn a_shard_comes_back_without_keys_that_are_elsewhere(world) {
        let ranges = one(world, world.options()).await;
        let (recovery, [a, b, _]) = (ranges.manager.recovery(), &ranges.places);
        ranges.map.add(&20, Some(&30), &ranges.shards[0]).await.unwrap();
        recovery.detach(a, None).await.unwrap();
        ranges.map.add(&4, Some(&6), &ranges.shards[1]).await.unwrap();
        let error = recovery.attach(a, None).await.unwrap_err();
        assert_eq!(error.code().to_string(), "ShardNotValid");
        let told_why = error.to_string();
        assert!(["key 4", &b.to_string(), "--clone keep"].iter().all(|word| told_why.contains(word)), "{told_why}");
        assert_eq!(mapping_count(world, a), "0");
        recovery.attach_lost(a, None).await.unwrap();
        assert_eq!(mapping_count(world, a), "1");
        let found = recovery.detect(a, None).await.unwrap().remove(0);
        recovery.resolve(found, Resolution::KeepShard).await.unwrap();
        assert_eq!(ranges.told().await, "4-6 B, 10-20 B, 20-30 A");
        ranges.check().await;
    }

    /// The same when a step fails, or the process dies: the shard stays closed with all its mappings, or comes back
    /// without those.
    async fn a_shard_that_does_not_come_back_stays_closed(world) {
        let faults = Faults::default();
        let ranges = one(world, ManagerOptions { hook: faults.hook(), ..world.options() }).await;
        let (recovery, a) = (ranges.manager.recovery(), &ranges.places[0]);
        ranges.map.add(&20, Some(&30), &ranges.shards[0]).await.unwrap();
        recovery.detach(a, None).await.unwrap();
        let other = ranges.map.add(&4, Some(&6), &ranges.shards[1]).await.unwrap();
        for step in [Step::LocalSource, Step::GlobalEnd] {
            faults.break_step(step);
            assert_eq!(code(recovery.attach_lost(a, None).await), "Recovery/StorageOperationFailure");
            faults.clear();
            assert_eq!(mapping_count(world, a), "0", "{step:?}");
            assert_eq!(world.sql(a, "select count(*) from @local_closed_mappings"), "2", "{step:?}");
        }
        faults.stop(Step::GlobalBegin, When::After);
        assert!(faults.until_death(recovery.attach_lost(a, None)).await.is_none());
        world.sql(ranges.manager.location(), "update @global_operations set lease_until = 0");
        assert_eq!(world.second().await.recover_pending().await.unwrap().0, 1);
        assert_eq!(mapping_count(world, a), "1");
        // What left is not kept for later.
        recovery.detach(a, None).await.unwrap();
        ranges.map.delete(&ranges.map.offline(&other).await.unwrap()).await.unwrap();
        recovery.attach(a, None).await.unwrap();
        assert_eq!(mapping_count(world, a), "1");
    }

    /// A global map that was restored from before a detachment still has the shard, which is closed.
    async fn a_closed_shard_that_the_global_map_still_has_is_opened(world) {
        let ranges = one(world, world.options()).await;
        let a = &ranges.places[0];
        let old = world.copy(ranges.manager.location(), "old");
        ranges.manager.recovery().detach(a, None).await.unwrap();
        let old = ShardMapManager::open(old, world.options()).await.unwrap();
        let found = || async { old.recovery().detect(a, None).await.unwrap().remove(0) };
        assert_eq!(found().await.identity(), &Identity::Closed);
        assert!(Identity::Closed.to_string().contains("--keep global"));
        let kept = old.recovery().resolve(found().await, Resolution::KeepShard).await;
        assert_eq!(code(kept), "Recovery/ShardNotValid");
        assert!(!serves(world, &ranges, a).await);
        old.recovery().resolve(found().await, Resolution::KeepGlobal).await.unwrap();
        assert!(serves(world, &ranges, a).await);
        check(&old, std::slice::from_ref(a)).await;
    }
}

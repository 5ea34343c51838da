//! An owner dies at each step of each kind of operation, forward and while it is undone. The next
//! reader, writer or janitor brings the operation to an end: the map is as before or as after, and the
//! places of truth agree.

use std::time::Duration;

use rangehold_shardmap::operation::{Step, When};
use rangehold_shardmap::recovery::Resolution;
use rangehold_shardmap::{Code, Error, ManagerOptions, ShardMapManager, ShardUpdate};

use super::failures::{BEFORE, CHANGES, Scene, after, change};
use super::world::{Ranges, check, told};
use crate::support::faults::Faults;
use crate::support::stores::World;

/// The time of every lease passes.
fn leases_end(world: &World) {
    world.sql(&world.place("global"), "update @global_operations set lease_until = 0");
}

impl Scene {
    /// After the owner's death: another process comes, as a reader, a janitor, or a writer.
    async fn somebody_comes(&self, who: usize) -> ShardMapManager {
        let manager = self.somebody_ends(who).await;
        check(&manager, &self.ranges.places).await;
        manager
    }

    /// The same, where a shard differed before.
    async fn somebody_ends(&self, who: usize) -> ShardMapManager {
        leases_end(&self.world);
        let manager = self.world.second().await;
        let map = manager.range_map::<i32>("ranges").await.unwrap();
        match who % 3 {
            0 => {
                for key in [5, 15, 25, 45, 55] {
                    let looked = map.get(&key).await;
                    assert!(looked.is_ok() || looked.unwrap_err().code() == Code::MappingNotFoundForKey);
                }
            }
            1 => assert!(manager.recover_pending().await.unwrap().1.is_empty()),
            _ => {
                for (index, shard) in map.shards().await.unwrap().iter().enumerate() {
                    let low = -1000 + 10 * i32::try_from(index).unwrap();
                    let added = map.add(&low, Some(&(low + 10)), shard).await.unwrap();
                    map.delete(&map.offline(&added).await.unwrap()).await.unwrap();
                }
            }
        }
        // A reader ends an operation that holds its key. One that holds only a shard waits for a writer or the janitor.
        assert!(manager.recover_pending().await.unwrap().1.is_empty());
        for (index, place) in self.ranges.places.iter().enumerate() {
            assert_eq!(self.world.users_tables(place), format!("1 one of {index}\n50 fifty"));
        }
        manager
    }
}

/// Lets an owner die at a moment. Returns whether it reached that moment.
async fn dies(scene: &Scene, broken: Option<Step>, at: (Step, When), number: usize) -> bool {
    if let Some(step) = broken {
        scene.faults.break_step(step);
    }
    scene.faults.stop(at.0, at.1);
    let died = scene.faults.until_death(change(&scene.ranges, number)).await.is_none();
    scene.faults.clear();
    died
}

const FORWARD: [Step; 4] = [Step::GlobalBegin, Step::LocalSource, Step::LocalTarget, Step::GlobalEnd];
const BACK: [Step; 4] = [Step::TurnBack, Step::UndoTarget, Step::UndoSource, Step::UndoEnd];

on_both_stores! {
    /// Acceptance 110 to 115, 120 to 122: forward.
    async fn an_owner_dies_going_forward(world) {
        let mut deaths = 0;
        for number in 0..CHANGES {
            for (index, step) in FORWARD.into_iter().enumerate() {
                for when in [When::Before, When::After] {
                    let scene = Scene::new(world).await;
                    if !dies(&scene, None, (step, when), number).await {
                        continue;
                    }
                    deaths += 1;
                    let manager = scene.somebody_comes(number + index + usize::from(when == When::After)).await;
                    let map = manager.range_map::<i32>("ranges").await.unwrap();
                    // What was logged goes forward, and nothing hinders it.
                    let logged = (step, when) != (Step::GlobalBegin, When::Before);
                    let expected = if logged { after(number) } else { BEFORE };
                    assert_eq!(told(&map, &scene.ranges.places).await, expected, "{number} {step:?} {when:?}");
                }
            }
        }
        assert_eq!(deaths, CHANGES * 6 + 3 * 2);
    }

    /// The same while the operation is undone: what turned back goes back, whoever goes on.
    async fn an_owner_dies_going_back(world) {
        let mut deaths = 0;
        for number in 0..CHANGES {
            for (index, step) in BACK.into_iter().enumerate() {
                for when in [When::Before, When::After] {
                    let scene = Scene::new(world).await;
                    if !dies(&scene, Some(Step::GlobalEnd), (step, when), number).await {
                        continue;
                    }
                    deaths += 1;
                    let manager = scene.somebody_comes(number + index + usize::from(when == When::After)).await;
                    let map = manager.range_map::<i32>("ranges").await.unwrap();
                    let turned = (step, when) != (Step::TurnBack, When::Before);
                    let expected = if turned { BEFORE } else { after(number) };
                    assert_eq!(told(&map, &scene.ranges.places).await, expected, "{number} {step:?} {when:?}");
                }
            }
        }
        assert_eq!(deaths, CHANGES * 6 + 3 * 2);
    }

    /// Changes of shards, attachment, repair and detachment, at each step.
    async fn an_owner_dies_at_a_shard(world) {
        for number in 0..6 {
            for step in [Step::GlobalBegin, Step::LocalSource, Step::GlobalEnd, Step::TurnBack, Step::UndoSource, Step::UndoEnd] {
                for when in [When::Before, When::After] {
                    let scene = Scene::new(world).await;
                    let prepared = prepare(&scene, number).await;
                    if BACK.contains(&step) {
                        scene.faults.break_step(Step::GlobalEnd);
                    }
                    scene.faults.stop(step, when);
                    let died = scene.faults.until_death(change_shard(&scene, number, &prepared)).await.is_none();
                    scene.faults.clear();
                    assert!(died, "{number} {step:?}");
                    let manager = scene.somebody_ends(1).await;
                    if number != 4 {
                        check(&manager, &scene.ranges.places).await;
                    }
                    let logged = (step, when) != (Step::GlobalBegin, When::Before);
                    let turned = BACK.contains(&step) && (step, when) != (Step::TurnBack, When::Before);
                    let done = is_done(&scene, &manager, number).await;
                    assert_eq!(done, logged && !turned, "{number} {step:?} {when:?}");
                }
            }
        }
    }

    /// A reader that meets the operation of a dead owner ends it with at most three transactions in each
    /// database, beside those that only read: its look before and after, and its look at the operation.
    async fn a_reader_needs_three_transactions(world) {
        for (broken, step) in [(None, Step::GlobalBegin), (None, Step::LocalTarget), (Some(Step::GlobalEnd), Step::TurnBack)] {
            let scene = Scene::new(world).await;
            assert!(dies(&scene, broken, (step, When::After), 6).await);
            leases_end(&scene.world);
            let reader = scene.world.second().await;
            let map = reader.range_map::<i32>("ranges").await.unwrap();
            let begun = |place| reader.transactions_begun(place);
            let global = begun(reader.location());
            let found = map.get(&5).await.unwrap();
            let expected = if broken.is_some() { &scene.ranges.places[0] } else { &scene.ranges.places[1] };
            assert_eq!(found.shard().location(), expected);
            assert!(begun(reader.location()) - global <= 3 + 3);
            for place in &scene.ranges.places {
                assert!(begun(place) <= 3, "{place}");
            }
            check(&reader, &scene.ranges.places).await;
        }
    }

    /// Where a shard refuses what would come, the one who takes over goes back; at most three transactions too.
    async fn what_cannot_go_forward_goes_back(world) {
        let scene = Scene::new(world).await;
        assert!(dies(&scene, None, (Step::LocalSource, When::After), 6).await);
        let target = &scene.ranges.places[1];
        scene.world.break_table(target, "local_mappings");
        leases_end(&scene.world);
        let reader = scene.world.second().await;
        let map = reader.range_map::<i32>("ranges").await.unwrap();
        // Undoing has nothing to write there, so a statement trigger alone hinders it, too.
        let stuck = map.get(&5).await;
        scene.world.mend(target, "local_mappings");
        if let Err(error) = &stuck {
            assert_eq!((error.code(), error.retry()), (Code::PendingOperation, true));
        }
        let found = map.get(&5).await.unwrap();
        assert_eq!(found.shard().location(), &scene.ranges.places[0]);
        assert_eq!(told(&map, &scene.ranges.places).await, BEFORE);
        check(&reader, &scene.ranges.places).await;
    }

    /// While the owner lives, a reader waits at most for the owner's lease, and is told to try again.
    async fn a_living_owner_is_waited_for(world) {
        let (world, faults) = (world.again(), Faults::default());
        let lease = Duration::from_secs(3);
        let options = ManagerOptions { hook: faults.hook(), lease, ..world.options() };
        let ranges = Ranges::with(&world, options).await;
        ranges.map.add(&0, None, &ranges.shards[0]).await.unwrap();
        faults.clear();
        faults.stop(Step::LocalSource, When::Before);
        let owner = {
            let map = ranges.map.clone();
            tokio::spawn(async move { map.offline(&map.get(&5).await?).await })
        };
        while !faults.seen().iter().any(|moment| moment.step == Step::LocalSource) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let reader = world.second().await;
        let map = reader.range_map::<i32>("ranges").await.unwrap();
        let error = map.get(&5).await.unwrap_err();
        assert_eq!((error.code(), error.retry()), (Code::PendingOperation, true));
        let pending = reader.pending_operations().await.unwrap();
        assert!(!pending[0].abandoned && !pending[0].undoing);
        // The owner dies, and its lease runs out. A renewal that it had sent before may still arrive. Then the reader is
        // told to try again, once at most.
        owner.abort();
        let mut found = map.get(&5).await;
        if found.as_ref().is_err_and(Error::retry) {
            found = map.get(&5).await;
        }
        assert!(!found.unwrap().is_online());
        check(&reader, &ranges.places).await;
    }

    /// An owner that stood still until its operation was taken over writes late: the shards and the global map
    /// refuse the write, and the owner learns how the operation ended.
    async fn an_owner_that_was_given_up_is_refused(world) {
        for step in [Step::GlobalBegin, Step::LocalSource, Step::LocalTarget] {
            let (world, faults) = (world.again(), Faults::default());
            let options = ManagerOptions { hook: faults.hook(), lease: Duration::from_secs(3600), ..world.options() };
            let ranges = Ranges::with(&world, options).await;
            let map = &ranges.map;
            map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
            let gate = std::sync::Arc::new(tokio::sync::Notify::new());
            let reached = std::sync::Arc::new(tokio::sync::Notify::new());
            let (waits, tells) = (gate.clone(), reached.clone());
            let slow = rangehold_shardmap::operation::StepHook::new(move |moment| {
                let here = moment.step == step && moment.when == When::After;
                let (waits, tells) = (waits.clone(), tells.clone());
                async move {
                    if here {
                        tells.notify_one();
                        waits.notified().await;
                    }
                    Ok(())
                }
            });
            let options = ManagerOptions { hook: slow, lease: Duration::from_secs(3600), ..world.options() };
            let owner = world.second_with(options).await;
            let task = tokio::spawn(async move {
                let map = owner.range_map::<i32>("ranges").await?;
                let b = map.shards().await?.remove(1);
                let to = rangehold_shardmap::MappingChange { online: Some(false), shard: Some(&b) };
                map.update(&map.get(&5).await?, to).await
            });
            reached.notified().await;
            leases_end(&world);
            let other = world.second().await;
            assert_eq!(other.recover_pending().await.unwrap().0, 1);
            // Somebody changes it further, so that a late write would show.
            let map = other.range_map::<i32>("ranges").await.unwrap();
            let moved = map.get(&5).await.unwrap();
            let back = rangehold_shardmap::MappingChange { online: None, shard: Some(&ranges.shards[2]) };
            map.online(&map.update(&moved, back).await.unwrap()).await.unwrap();
            gate.notify_one();
            let _ = task.await.unwrap();
            assert_eq!(told(&map, &ranges.places).await, "0-10 C");
            check(&other, &ranges.places).await;
        }
    }
}

/// What a change of shards needs before it.
async fn prepare(scene: &Scene, number: usize) -> rangehold_shardmap::Location {
    let place = scene.world.database("shard_d");
    let (map, manager) = (&scene.ranges.map, &scene.ranges.manager);
    match number {
        1 | 2 => {
            map.create_shard(&place).await.unwrap();
        }
        3 => {
            map.create_shard(&place).await.unwrap();
            manager.recovery().detach(&place, None).await.unwrap();
        }
        4 => {
            scene.world.sql(&scene.ranges.places[0], "delete from @local_mappings");
        }
        5 => {
            let shard = map.create_shard(&place).await.unwrap();
            map.add(&2000, Some(&2010), &shard).await.unwrap();
        }
        _ => {}
    }
    scene.faults.clear();
    place
}

async fn change_shard(
    scene: &Scene,
    number: usize,
    place: &rangehold_shardmap::Location,
) -> Result<(), Error> {
    let map = &scene.ranges.map;
    match number {
        0 => map.create_shard(place).await.map(|_| ()),
        1 => map.delete_shard(&map.shard(place).await?).await,
        2 => {
            let off = ShardUpdate { online: Some(false), location: None };
            map.update_shard(&map.shard(place).await?, &off).await.map(|_| ())
        }
        3 => scene.ranges.manager.recovery().attach(place, None).await.map(|_| ()),
        5 => scene.ranges.manager.recovery().detach(place, None).await,
        _ => {
            let recovery = scene.ranges.manager.recovery();
            for found in recovery.detect(&scene.ranges.places[0], None).await? {
                recovery.resolve(found, Resolution::KeepGlobal).await?;
            }
            Ok(())
        }
    }
}

async fn is_done(scene: &Scene, manager: &ShardMapManager, number: usize) -> bool {
    let map = manager.range_map::<i32>("ranges").await.unwrap();
    let place = scene.world.place("shard_d");
    let shard = map.try_shard(&place).await.unwrap();
    match number {
        0 | 3 => {
            if let Some(shard) = &shard {
                map.validate_shard(shard).await.unwrap();
            }
            shard.is_some()
        }
        1 => shard.is_none(),
        2 => !shard.unwrap().is_online(),
        5 => {
            let held = scene.world.sql(&place, "select count(*) from @local_mappings");
            assert_eq!(
                (held.as_str(), map.get(&2005).await.is_ok()),
                if shard.is_some() { ("1", true) } else { ("0", false) }
            );
            if let Some(shard) = &shard {
                map.validate_shard(shard).await.unwrap();
            }
            shard.is_none()
        }
        _ => manager
            .recovery()
            .detect(&scene.ranges.places[0], None)
            .await
            .unwrap()
            .iter()
            .all(|d| d.is_empty()),
    }
}

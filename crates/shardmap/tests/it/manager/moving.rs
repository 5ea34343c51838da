//! A move of a shard that is undone by another process, and copies that the caller takes for the shard itself.

use std::time::Duration;

use rangehold_shardmap::operation::{Step, When};
use rangehold_shardmap::{Location, ManagerOptions, ShardMapManager};

use super::places::{mapping_count, one, serves, to};
use super::world::{Ranges, check, code, told};
use crate::support::faults::Faults;
use crate::support::stores::World;

/// A move of the first shard whose last step fails. The process dies while it undoes the move, and another one comes.
async fn undone_by_another(
    world: &World,
    at: (Step, When),
    is_copy: bool,
) -> (Ranges, Location, ShardMapManager) {
    let (faults, lease) = (Faults::default(), Duration::from_millis(50));
    let ranges = one(world, ManagerOptions { hook: faults.hook(), lease, ..world.options() }).await;
    let a = &ranges.places[0];
    let new = if is_copy { world.copy(a, "copy") } else { world.other_name(a) };
    faults.break_step(Step::GlobalEnd);
    faults.stop(at.0, at.1);
    let update = to(&new);
    let moving = ranges.map.update_shard(&ranges.shards[0], &update);
    assert!(faults.until_death(moving).await.is_none(), "{at:?}");
    let other = world.second_with(ManagerOptions { lease, ..world.options() }).await;
    while !other.pending_operations().await.unwrap().is_empty() {
        other.recover_pending().await.unwrap();
    }
    (ranges, new, other)
}

on_both_stores! {
    /// The process dies at each step of undoing a move, to a copy and to another name. What turned back goes back, and the
    /// shard is served at its old place. If the process died before that, the move is done.
    async fn a_process_dies_while_a_move_is_undone(world) {
        for step in [Step::TurnBack, Step::UndoTarget, Step::UndoSource, Step::UndoEnd] {
            for (when, is_copy) in [(When::Before, true), (When::After, true), (When::Before, false), (When::After, false)] {
                let world = &world.again();
                let (ranges, new, other) = undone_by_another(world, (step, when), is_copy).await;
                let turned = (step, when) != (Step::TurnBack, When::Before);
                let at = if turned { &ranges.places[0] } else { &new };
                let map = other.range_map::<i32>("ranges").await.unwrap();
                assert_eq!(map.get(&5).await.unwrap().shard().location(), at, "{step:?} {when:?}");
                assert!(serves(world, &ranges, at).await, "{step:?} {when:?}");
                if is_copy && !turned {
                    assert!(!serves(world, &ranges, &ranges.places[0]).await);
                }
                let places = [at.clone(), ranges.places[1].clone()];
                assert_eq!(told(&map, &places).await, "0-10 A, 10-20 B");
                map.offline(&map.get(&5).await.unwrap()).await.unwrap();
                check(&other, &places).await;
            }
        }
    }

    /// A copy that is kept is the shard from then on, and the first place is closed. A database that is not a copy of a
    /// shard is refused.
    async fn a_copy_that_is_kept_is_the_shard(world) {
        let ranges = one(world, world.options()).await;
        let (map, a) = (&ranges.map, &ranges.places[0]);
        let plain = world.database("plain");
        assert_eq!(code(map.keep_copy(&plain).await), "ShardMap/ShardNotValid");
        let copy = world.copy(a, "copy");
        let kept = map.keep_copy(&copy).await.unwrap();
        assert_eq!((kept.location(), kept.id()), (&copy, ranges.shards[0].id()));
        assert!(serves(world, &ranges, &copy).await);
        assert!(!serves(world, &ranges, a).await);
        assert_eq!(mapping_count(world, a), "0");
        let places = [copy, ranges.places[1].clone()];
        assert_eq!(told(map, &places).await, "0-10 A, 10-20 B");
        check(&ranges.manager, &places).await;
    }
}

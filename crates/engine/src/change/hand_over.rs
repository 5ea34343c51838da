//! A move: the source hands a range over, the target takes it.
//!
//! The database stays where it is. What changes is which server has it open. Opening raises the epoch, so the
//! store itself decides who may write. The target serves only after the source answers no more reads.

use std::sync::Arc;
use std::time::Duration;

use rangehold_map::{Generation, RangeEntry, RangeMap, Timestamp};

use super::intent::NotPublished;
use super::parents::slow;
use super::{ChangeError, Changed, StepError, intent};
use crate::limits::FREEZE_WITHIN;
use crate::map_store::Maps;
use crate::partition_server::PartitionServer;
use crate::range::{Frozen, Range, WarmRows};
use crate::steps::Step;

/// A range that its source is about to hand over: frozen, saved, still read.
struct HandOver {
    range: Arc<Range>,
    frozen: Frozen,
    warm: WarmRows,
    epoch: u64,
    high_water: Timestamp,
}

/// Makes a move whose intent is in the map.
pub(crate) async fn hand_over(
    maps: &Maps,
    source: &PartitionServer,
    target: &PartitionServer,
    begun: &RangeEntry,
) -> Result<Changed, ChangeError> {
    let range = begun.id;
    let mut hand_over = match release(source, begun).await {
        Ok(hand_over) => hand_over,
        Err(error) => return Err(undo(maps, source, begun, error).await),
    };
    let taken = match take(target, begun, &hand_over).await {
        Ok(taken) => taken,
        Err(error) => {
            restore(source, hand_over).await?;
            return Err(undo(maps, source, begun, error).await);
        }
    };
    hand_over.range.let_go();
    source.after(Step::LetGo, range).await;
    let taken = [taken];
    std::mem::take(&mut hand_over.warm).hand_over(&taken);
    target.replace_in_set(&[], &taken);
    target.after(Step::Served, range).await;
    let published = intent::publish(maps, begun, |map: &RangeMap| map.move_done(range)).await;
    if matches!(published, Err(NotPublished::Overtaken)) {
        target.withdraw(&[range], &maps.current());
    }
    let held_for = pass_on(source, hand_over);
    let map = published.map_err(|why| why.of(range))?;
    target.after(Step::Published, range).await;
    Ok(Changed { map_version: map.version(), ranges: vec![range], held_for })
}

/// Undoes a move that was broken off. The database is one, and the server that the map names opens it next. If that
/// server still holds the range, perhaps without its database, it holds the next generation now.
///
/// The move itself may still wait here for a target that has died. If it has sealed the range, the range is let go,
/// and is opened like one that nobody serves. If it has not, [`release`] finds the later generation, and gives up.
pub(crate) async fn undo_broken_off(
    maps: &Maps,
    server: &PartitionServer,
    begun: &RangeEntry,
) -> Result<(), ChangeError> {
    let published = intent::publish_undone(maps, begun).await;
    let map = published.map_err(|why| why.of(begun.id))?;
    let generation = renumber(server, begun, &map);
    server.drop_sealed(begun.id, generation);
    server.after(Step::UndoPublished, begun.id).await;
    Ok(())
}

/// Takes the intent of a move that failed out of the map; the source serves the range. Returns the error to tell.
async fn undo(maps: &Maps, source: &PartitionServer, begun: &RangeEntry, why: StepError) -> ChangeError {
    match intent::publish_undone(maps, begun).await {
        Ok(map) => {
            renumber(source, begun, &map);
            source.after(Step::UndoPublished, begun.id).await;
            why.undone(begun.id)
        }
        Err(why) => why.of(begun.id),
    }
}

/// The source of a move that was undone goes on with the generation that the range has in the map since, which is returned.
fn renumber(source: &PartitionServer, begun: &RangeEntry, map: &RangeMap) -> Generation {
    let entry = map.get(begun.id).filter(|entry| entry.place.server == source.id());
    let generation = entry.map_or(begun.generation, |entry| entry.generation);
    source.renumber(begun.id, generation);
    generation
}

/// The source's first step: holds writes and saves what is there. On an error the range goes on.
async fn release(source: &PartitionServer, begun: &RangeEntry) -> Result<HandOver, StepError> {
    let range = source.held(begun.id, begun.generation)?;
    let _alone = range.change_alone().await;
    let not_ready = |waits_for| StepError::NotReady { range: begun.id, waits_for };
    range.get_ready(Duration::ZERO).await.map_err(not_ready)?;
    let mut frozen = range.freeze().await.ok_or_else(|| slow(begun.id))?;
    source.after(Step::Frozen, begun.id).await;
    range.save().await?;
    // Everything is durable. The writes that wait for that are answered before the database is closed.
    if !frozen.settled(FREEZE_WITHIN).await {
        return Err(slow(begun.id));
    }
    let (epoch, warm) = (range.epoch()?, WarmRows::of(std::slice::from_ref(&range)));
    // The target may have opened it by the time that something fails.
    frozen.seal();
    // The undo may have looked before the seal, and left the range here. So the move must not keep it closed.
    if range.generation() != begun.generation {
        frozen.unseal();
        return Err(StepError::UndoneElsewhere);
    }
    source.after(Step::Saved, begun.id).await;
    let high_water = range.inheritance().high_water;
    Ok(HandOver { range, frozen, warm, epoch, high_water })
}

/// The target's step, and the commit point: opens the database, unless anybody has opened it since the source saved
/// it. It is not served yet.
async fn take(
    target: &PartitionServer,
    begun: &RangeEntry,
    from: &HandOver,
) -> Result<Arc<Range>, StepError> {
    let generation: Generation = begun.generation.next();
    let range = target
        .open_range(begun, generation, Some(from.epoch))
        .await
        .map_err(|source| StepError::NotTaken { server: target.id(), source })?;
    range.resume_at(from.high_water);
    target.after(Step::Taken, begun.id).await;
    Ok(range)
}

/// The source's last step: sends on what it held. Returns how long that was.
fn pass_on(source: &PartitionServer, hand_over: HandOver) -> Duration {
    source.replace_in_set(&[Arc::clone(&hand_over.range)], &[]);
    let held_for = hand_over.frozen.pass_on();
    source.abandon(vec![hand_over.range]);
    held_for
}

/// The target did not open it: the source goes on, in a new epoch.
async fn restore(source: &PartitionServer, hand_over: HandOver) -> Result<(), ChangeError> {
    let range = hand_over.range.id();
    let opened = hand_over.range.open_again().await;
    opened.map_err(|error| ChangeError::BrokenOff { range, source: error.into() })?;
    source.after(Step::Restored, range).await;
    hand_over.frozen.open();
    Ok(())
}

//! The two sides of a move: the source hands a range over, the target takes it.
//!
//! The database stays where it is; what changes is who has it open. Opening raises the epoch, and so
//! the store itself decides who may write. The order between the sides is the caller's (the
//! manager's): the target serves only after the source has let go.

use std::sync::Arc;
use std::time::Duration;

use rangehold_map::{Generation, RangeEntry, RangeId, Timestamp};

use super::{ChangeError, undone};
use crate::error::OpenError;
use crate::limits::FREEZE_WITHIN;
use crate::mutants::{self, Mutant};
use crate::partition_server::PartitionServer;
use crate::range::{Frozen, Range};
use crate::steps::Step;

/// A range that its source is about to hand over: frozen, saved, still read.
pub(crate) struct HandOver {
    range: Arc<Range>,
    frozen: Frozen,
    epoch: u64,
    high_water: Timestamp,
}

/// A range that was opened and is not served yet.
pub(crate) struct Standby(pub(crate) Arc<Range>);

impl PartitionServer {
    /// The source's first step: holds writes and saves what is there. On an error the range goes on.
    pub(crate) async fn release(
        &self,
        range: RangeId,
        generation: Generation,
    ) -> Result<HandOver, ChangeError> {
        let held = self.held(range, generation)?;
        let _alone = held.change_alone().await;
        let not_yet = |waits_for| ChangeError::NotYet { range, waits_for };
        held.get_ready(Duration::ZERO).await.map_err(not_yet)?;
        let slow = || not_yet("the writes under way did not end in time".to_owned());
        let mut frozen = held.freeze().await.ok_or_else(slow)?;
        self.after(Step::Frozen, range).await;
        held.save().await.map_err(undone(range))?;
        // Everything is durable; whoever waits for that has to be told before the database is closed.
        if !frozen.settled(FREEZE_WITHIN).await {
            return Err(slow());
        }
        let epoch = held.epoch().map_err(undone(range))?;
        // The target may have opened it by the time that something fails.
        frozen.seal();
        self.after(Step::Saved, range).await;
        let high_water = held.inheritance().high_water;
        Ok(HandOver { range: Arc::clone(&held), frozen, epoch, high_water })
    }

    /// The target's step: opens the database, unless anybody has opened it since the source saved it.
    pub(crate) async fn take(
        &self,
        entry: &RangeEntry,
        generation: Generation,
        from: &HandOver,
    ) -> Result<Standby, OpenError> {
        let range = self.open_range(entry, generation, Some(from.epoch)).await?;
        range.resume_at(from.high_water);
        self.after(Step::Taken, entry.id).await;
        Ok(Standby(range))
    }

    /// Serves what was taken.
    pub(crate) async fn serve(&self, standby: Standby) {
        let id = standby.0.id();
        self.replace_in_set(&[], &[standby.0]);
        self.after(Step::Served, id).await;
    }

    /// The source's confirmation that it answers no read any more.
    pub(crate) async fn let_go(&self, hand_over: &HandOver) {
        hand_over.range.let_go();
        self.after(Step::LetGo, hand_over.range.id()).await;
    }

    /// The source's last step: sends on what it held. Says how long that was.
    pub(crate) fn pass_on(&self, hand_over: HandOver) -> Duration {
        if mutants::active(Mutant::GenerationCheckSkipped) {
            return hand_over.frozen.pass_on();
        }
        self.replace_in_set(&[Arc::clone(&hand_over.range)], &[]);
        let held_for = hand_over.frozen.pass_on();
        self.abandon(vec![hand_over.range]);
        held_for
    }

    /// The target did not open it: the source goes on, in a new epoch.
    pub(crate) async fn restore(&self, hand_over: HandOver) -> Result<(), ChangeError> {
        let range = hand_over.range.id();
        hand_over
            .range
            .open_anew()
            .await
            .map_err(|error| ChangeError::BrokenOff { range, why: error.to_string() })?;
        self.after(Step::Restored, range).await;
        hand_over.frozen.open();
        Ok(())
    }
}

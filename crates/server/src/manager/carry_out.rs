//! Carries a change out: waits for its turn, marks the ranges, reports events, and brings the change to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use rangehold_engine::{ChangeError, Changed, PartitionServer, with_causes};
use rangehold_map::script::{Asked, Command, Names, Step};
use rangehold_map::{Change, RangeId};
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{info, warn};

use super::Manager;
use super::events::{EventKind, Happened};
use crate::limits::CHANGES_AT_ONCE;

/// Why a change was not made.
#[derive(Debug, Error)]
pub enum NotDone {
    /// The executor did not make it, for this reason.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The process is about to stop, and begins no more changes.
    #[error("the process is being stopped: ask again when it runs")]
    Stopping,
    /// A bug: the task of the change panicked. The manager brings the change to its end ([`Manager::run`]).
    #[error(
        "the change was broken off by a fault of this program, which will finish or undo it: see the events"
    )]
    Panicked,
}

impl Manager {
    /// Carries a change out, to its end or not at all, even if the caller gives up meanwhile. At most
    /// [`CHANGES_AT_ONCE`] changes are under way; further ones wait for their turn.
    pub async fn carry_out(&self, change: Change, names: Arc<Names>) -> Result<Changed, NotDone> {
        let places = Arc::clone(&self.0.places);
        let place = places.acquire_owned().await.map_err(|_| NotDone::Stopping)?;
        let task = tokio::spawn(self.clone().bring_to_its_end(change, names, place));
        task.await.unwrap_or(Err(NotDone::Panicked))
    }

    pub(super) async fn bring_to_its_end(
        self,
        change: Change,
        names: Arc<Names>,
        _place: OwnedSemaphorePermit,
    ) -> Result<Changed, NotDone> {
        let _busy = Busy::mark(&self, &change);
        let asked = Command::Change { step: Step::Whole, asked: Asked::of(&change, &names) }.to_string();
        self.tell(EventKind::Asked, &change, asked.clone());
        // A move that is refused at once moved nothing. Then clients must not see the effects of a move.
        if let Some(range) = self.moved_by(&change) {
            self.0.rehearsals.range_moves(range);
        }
        match self.0.executor.carry_out(&change).await {
            Ok(changed) => {
                info!(map_version = changed.map_version, held_for = ?changed.held_for, "{asked}: done");
                self.0.events.add(Happened {
                    kind: EventKind::Done,
                    ranges: changed.ranges.clone(),
                    text: asked,
                    map_version: Some(changed.map_version),
                    held_for: Some(changed.held_for),
                });
                Ok(changed)
            }
            Err(error) => {
                let why = sentence(&error, &names);
                warn!("{asked}: {why}");
                if kind_of(&error) == EventKind::BrokenOff {
                    self.0.in_doubt.store(true, Ordering::Relaxed);
                }
                self.tell(kind_of(&error), &change, format!("{asked}: {why}"));
                Err(error.into())
            }
        }
    }

    /// The range that a change moves to another server; `None` if it moves none, or if the map refuses the change.
    fn moved_by(&self, change: &Change) -> Option<RangeId> {
        let map = self.0.executor.maps().current();
        map.begin(change).ok()?;
        match change {
            Change::Move { range, to, .. } => {
                let is_there = |server: &PartitionServer| server.id() == to.server;
                self.0.executor.servers().iter().any(is_there).then_some(*range)
            }
            Change::Merge { left, right, .. } => {
                let server = |range| map.get(range).map(|entry| entry.place.server);
                (server(*left) != server(*right)).then_some(*right)
            }
            Change::Split { .. } | Change::Offline { .. } | Change::Online { .. } => None,
        }
    }

    fn tell(&self, kind: EventKind, change: &Change, text: String) {
        let ranges = ranges_of(change);
        self.0.events.add(Happened { kind, ranges, text, map_version: None, held_for: None });
    }

    /// Begins no more changes, and waits for those under way.
    pub(crate) async fn finish(&self) {
        let all = u32::try_from(CHANGES_AT_ONCE).expect("a small number");
        // This fails only if it was closed before, and then nothing is under way.
        let _all = self.0.places.acquire_many(all).await;
        self.0.places.close();
    }

    pub(super) fn busy(&self) -> MutexGuard<'_, BTreeMap<RangeId, u32>> {
        self.0.busy.lock()
    }
}

/// Marks ranges as being changed, until it is dropped.
struct Busy {
    manager: Manager,
    ranges: Vec<RangeId>,
}

impl Busy {
    fn mark(manager: &Manager, change: &Change) -> Self {
        let ranges = ranges_of(change);
        let mut busy = manager.busy();
        for range in &ranges {
            *busy.entry(*range).or_default() += 1;
        }
        drop(busy);
        Self { manager: manager.clone(), ranges }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut busy = self.manager.busy();
        for range in &self.ranges {
            if let Some(count) = busy.get_mut(range) {
                *count -= 1;
            }
        }
        busy.retain(|_, count| *count > 0);
    }
}

fn ranges_of(change: &Change) -> Vec<RangeId> {
    match change {
        Change::Merge { left, right, .. } => vec![*left, *right],
        Change::Split { range, .. }
        | Change::Move { range, .. }
        | Change::Offline { range, .. }
        | Change::Online { range, .. } => vec![*range],
    }
}

fn kind_of(error: &ChangeError) -> EventKind {
    match error {
        ChangeError::Refused(_)
        | ChangeError::NotHeld(_)
        | ChangeError::NoServer(_)
        | ChangeError::NoLease(_)
        | ChangeError::NotYet { .. } => EventKind::Refused,
        ChangeError::Undone { .. } => EventKind::Undone,
        // It is not known whether the map was stored, or what it says by now.
        ChangeError::BrokenOff { .. }
        | ChangeError::Overtaken { .. }
        | ChangeError::Map(_)
        | ChangeError::MapTooOld(..)
        | ChangeError::Database(_)
        | ChangeError::Lease(_)
        | ChangeError::Catalogue(_) => EventKind::BrokenOff,
    }
}

/// Why a change was not made, for people.
pub(crate) fn sentence(error: &ChangeError, names: &Names) -> String {
    match error {
        ChangeError::Refused(refused) => refused.sentence(|key| names.name(key).to_string()),
        ChangeError::NotYet { .. } => format!("{error}; nothing was changed, ask again"),
        ChangeError::NotHeld(_) => format!("{error}: look at the map and ask again"),
        other => with_causes(other),
    }
}

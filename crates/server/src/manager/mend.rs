//! Opens ranges that no server serves, and ends changes that were broken off.
//!
//! A change is broken off, neither done nor undone, if the store gives no answer at the wrong moment or if the task
//! of the change panics. From then on its ranges hold their writes. And a server loses a range when another process
//! opens the range's database. A restart would repair both cases with the map and the change records. This module
//! does the same without a restart ([`rangehold_engine::Executor::mend`]).
//!
//! The process that opened a database may be the successor of one of our servers, and we must not open the database
//! again and shut that process out. So in that case nothing is done. Nothing is done either while one of our servers
//! has lost its lease.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rangehold_engine::with_causes;
use rangehold_map::RangeId;
use tracing::warn;

use super::Manager;
use super::events::{EventKind, Happened};
use super::memory::Memory;

/// The most ranges that one log line names.
const NAMED_MAX: usize = 10;

impl Manager {
    /// Begins to mend, unless mending is already under way. There are two causes: ranges that also needed it at the
    /// last look, and a change about which it is not known what the store says.
    pub(super) fn mend(&self, memory: &mut Memory) {
        let ranges = memory.still_unserved(self.0.executor.unserved());
        if ranges.is_empty() && !self.0.in_doubt.load(Ordering::Relaxed) {
            return;
        }
        let Ok(alone) = Arc::clone(&self.0.mending).try_acquire_owned() else { return };
        let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else { return };
        let manager = self.clone();
        // The task is not joined: its end is an event, and `finish` waits until it gives its place back.
        tokio::spawn(async move {
            manager.open_again(ranges).await;
            drop((alone, place));
        });
    }

    async fn open_again(&self, ranges: Vec<RangeId>) {
        let named = listed(&ranges);
        // This mark is cleared before the map is read. A change that becomes doubtful later may not be in that map,
        // and must set the mark again.
        let in_doubt = self.0.in_doubt.swap(false, Ordering::Relaxed);
        if let Err(error) = self.0.executor.mend().await {
            self.0.in_doubt.fetch_or(in_doubt, Ordering::Relaxed);
            let why = with_causes(&error);
            warn!(ranges = named, "not everything that nobody serves could be opened, trying again: {why}");
        } else if !ranges.is_empty() {
            let text =
                format!("nobody served {named}, or a change was broken off: opened again, as the store says");
            let map_version = Some(self.0.executor.maps().current().version());
            self.0.events.add(Happened {
                kind: EventKind::Mended,
                ranges,
                text,
                map_version,
                held_for: None,
            });
        }
    }
}

fn listed(ranges: &[RangeId]) -> String {
    let mut names: Vec<String> = ranges.iter().take(NAMED_MAX).map(RangeId::to_string).collect();
    if let more @ 1.. = ranges.len().saturating_sub(NAMED_MAX) {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

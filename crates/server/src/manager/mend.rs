//! What has no owner gets one, and what was broken off comes to its end.
//!
//! A change ends neither done nor undone if the store gives no answer at the wrong moment, or if its task panics; its
//! ranges hold their writes from then on. And a range is lost when somebody opens its database elsewhere. A restart
//! would put both right, by the map and the change records; so the same is done here, without one
//! ([`rangehold_engine::Executor::mend`]).
//!
//! The process that opened a database elsewhere may be the next life of one of our servers, and must not be shut out
//! again. So nothing is done then, and nothing while a server has lost its lease.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rangehold_map::RangeId;
use tracing::warn;

use super::Manager;
use super::events::{EventKind, Happened};
use super::memory::Memory;

/// Ranges that are named in one line.
const NAMED_MAX: usize = 10;

impl Manager {
    /// Begins to mend, if nothing is being mended, where something was to be mended at the last look, too, or where
    /// it is not known what the store says.
    pub(super) fn mend(&self, memory: &mut Memory) {
        let ranges = memory.still_unserved(self.0.executor.unserved());
        if ranges.is_empty() && !self.0.in_doubt.load(Ordering::Relaxed) {
            return;
        }
        let Ok(alone) = Arc::clone(&self.0.mending).try_acquire_owned() else { return };
        let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else { return };
        let manager = self.clone();
        // Not joined: its end is an event, and `finish` waits for its place.
        tokio::spawn(async move {
            manager.open_again(ranges).await;
            drop((alone, place));
        });
    }

    async fn open_again(&self, ranges: Vec<RangeId>) {
        let named = listed(&ranges);
        // Before the map is read: what is in doubt from now on, that may not tell.
        let in_doubt = self.0.in_doubt.swap(false, Ordering::Relaxed);
        if let Err(error) = self.0.executor.mend().await {
            self.0.in_doubt.fetch_or(in_doubt, Ordering::Relaxed);
            warn!(ranges = named, "not everything that nobody serves could be opened, trying again: {error}");
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

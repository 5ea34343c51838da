//! What has no owner gets one, and what was broken off comes to its end.
//!
//! A change ends neither done nor undone if the store gives no answer at the wrong moment, or if its task panics; its
//! ranges hold their writes from then on. And a range is lost when somebody opens its database elsewhere. A restart
//! would put both right, by the map and the change records; so the same is done here, without one.
//!
//! Who opened a database elsewhere may be the next life of one of our servers, and must not be shut out again. He
//! has ended our lease before; so nothing is done but for ranges that were unserved for longer than a lease lasts,
//! while all leases hold.

use std::sync::Arc;

use rangehold_engine::PartitionServer;
use rangehold_map::RangeId;
use tracing::warn;

use super::Manager;
use super::events::{EventKind, Happened};
use super::memory::Memory;

impl Manager {
    /// Begins to mend what was to be mended at the last look, too, if nothing is being mended.
    pub(super) fn mend(&self, memory: &mut Memory) {
        let ranges = memory.still_unserved(self.0.executor.unserved());
        let have_leases = || self.0.executor.servers().iter().all(PartitionServer::has_lease);
        if ranges.is_empty() || !have_leases() {
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
        warn!(
            ranges = listed(&ranges),
            "a change was broken off, or nobody serves them: opening them by the map"
        );
        let opened = self.0.executor.open_all().await;
        let left = self.0.executor.unserved();
        let (left, mended): (Vec<RangeId>, _) = ranges.into_iter().partition(|range| left.contains(range));
        if let Err(error) = opened {
            warn!(ranges = listed(&left), "not all could be opened, trying again: {error}");
        }
        if mended.is_empty() {
            return;
        }
        let text = format!(
            "nobody served {}, or a change of them was broken off: they were opened again, as the store says",
            listed(&mended)
        );
        let map_version = Some(self.0.executor.maps().current().version());
        self.0.events.add(Happened {
            kind: EventKind::Mended,
            ranges: mended,
            text,
            map_version,
            held_for: None,
        });
    }
}

fn listed(ranges: &[RangeId]) -> String {
    ranges.iter().map(RangeId::to_string).collect::<Vec<_>>().join(", ")
}

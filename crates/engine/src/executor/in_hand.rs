//! The changes that an executor has in hand. They are not broken off, so the code that brings broken-off changes to
//! their end leaves them alone.
//!
//! A change counts as in hand only while the executor still has the servers with which it was begun, in the same life.
//! If one of them has died, or was started again, the change may wait for an answer that never comes.

use std::sync::{Mutex, PoisonError};

use rangehold_map::RangeId;

use crate::partition_server::PartitionServer;

/// See the module.
#[derive(Default)]
pub(super) struct InHand(Mutex<Vec<Entry>>);

struct Entry {
    number: u64,
    ranges: Vec<RangeId>,
    servers: Vec<PartitionServer>,
}

/// Keeps a change in hand until it is dropped.
pub(super) struct Hold<'a> {
    of: &'a InHand,
    number: u64,
}

impl InHand {
    pub(super) fn take(&self, ranges: Vec<RangeId>, servers: Vec<PartitionServer>) -> Hold<'_> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = entries.iter().map(|entry| entry.number + 1).max().unwrap_or(0);
        entries.push(Entry { number, ranges, servers });
        Hold { of: self, number }
    }

    /// Whether a change of the range is in hand, if `servers` are all that the executor has now.
    pub(super) fn has(&self, range: RangeId, servers: &[PartitionServer]) -> bool {
        let is_there = |server: &PartitionServer| servers.iter().any(|there| there.is_same(server));
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|entry| entry.ranges.contains(&range) && entry.servers.iter().all(is_there))
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut entries = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.number != self.number);
    }
}

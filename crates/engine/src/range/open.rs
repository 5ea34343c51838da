//! All ranges that are open in the process.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rangehold_map::KeyRange;
use rangehold_map::load::Tally;

use super::Range;
use crate::limits::TALLIES_LEFT_MAX;

/// The ranges that are open in the process, served or not.
#[derive(Default)]
pub(crate) struct OpenRanges {
    ranges: Mutex<Vec<Weak<Range>>>,
    /// The counts of ranges that were handed over or closed, until they are taken. At most the newest
    /// [`TALLIES_LEFT_MAX`] are kept.
    left: Mutex<VecDeque<(KeyRange, Tally)>>,
}

impl OpenRanges {
    /// Keeps what a range has counted when it is handed over or closed: after that nothing reads it from the range.
    pub(crate) fn keep_tally(&self, range: &Range) {
        let Some(tally) = range.take_tally() else { return };
        let mut left = self.left.lock();
        if left.len() == TALLIES_LEFT_MAX {
            left.pop_front();
        }
        left.push_back((range.keys().clone(), tally));
    }

    /// What [`Self::keep_tally`] has kept since this was last called.
    pub(crate) fn take_left(&self) -> VecDeque<(KeyRange, Tally)> {
        std::mem::take(&mut *self.left.lock())
    }

    pub(crate) fn add(&self, range: &Arc<Range>) {
        let mut ranges = self.ranges.lock();
        ranges.retain(|range| range.strong_count() > 0);
        ranges.push(Arc::downgrade(range));
    }

    pub(crate) fn list(&self) -> Vec<Arc<Range>> {
        let ranges = self.ranges.lock();
        ranges.iter().filter_map(Weak::upgrade).collect()
    }
}

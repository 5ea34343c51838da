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
    /// What ranges counted that are about to go, until it is taken; the newest [`TALLIES_LEFT_MAX`].
    left: Mutex<VecDeque<(KeyRange, Tally)>>,
}

impl OpenRanges {
    /// Keeps what a range has counted when it was handed over: nobody asks it any more.
    pub(crate) fn keep_tally(&self, range: &Range) {
        let Some(tally) = range.take_tally() else { return };
        let mut left = self.left.lock();
        if left.len() == TALLIES_LEFT_MAX {
            left.pop_front();
        }
        left.push_back((range.keys().clone(), tally));
    }

    /// What was kept by [`Self::keep_tally`] since this was last asked.
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

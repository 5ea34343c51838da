//! Ids of ranges are given once. A change that was undone may leave a directory behind that bears the id it was to
//! make. A range that got the id again would find files that are not its own, or lose its own when those are buried.

use rangehold_map::{RangeId, RangeMap};

/// The ids that a map allows to be given although an earlier version had given them, or passed them by.
pub fn given_again(before: &RangeMap, after: &RangeMap) -> Vec<RangeId> {
    (after.next_range().0..before.next_range().0).map(RangeId).collect()
}

//! The id of a range is given only once. A change that was undone may leave a directory with the id that it would have
//! used. If another range got this id, it would find foreign files, or lose its own files when the foreign ones are
//! removed.

use rangehold_map::{RangeId, RangeMap};

/// The ids that a map may give out although an earlier version has given them out or skipped them.
pub fn given_again(before: &RangeMap, after: &RangeMap) -> Vec<RangeId> {
    (after.next_range().0..before.next_range().0).map(RangeId).collect()
}

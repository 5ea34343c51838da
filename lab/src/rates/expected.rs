//! What must be seen of a story, as its words and numbers. `judge` compares it with what was seen.

use std::ops::{Range, RangeInclusive};

/// What must hold in each of some minutes.
#[derive(Clone)]
pub(super) struct Expected {
    /// In words.
    pub(super) what: &'static str,
    pub(super) minutes: Range<u64>,
    pub(super) of: Of,
    /// The least and the most at a minute, in requests each second.
    pub(super) within: fn(u64) -> RangeInclusive<f64>,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Writes of all sorts of names that were let in.
    Writes,
    /// Those of the sort of names with this index.
    Sort(usize),
    /// Reads of all sorts of names that were let in.
    Reads,
    /// Writes that the bucket bears at the end of the minute.
    Borne,
}

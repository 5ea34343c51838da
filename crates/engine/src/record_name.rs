//! The name of a change record.
//!
//! A retired range holds this name in its database. The record itself is created by the change that retired
//! the range ([`crate::change`]).

use std::fmt;

use object_store::path::Path;
use rangehold_map::{Generation, RangeId};

/// The prefix of all change records.
pub const CHANGES_PREFIX: &str = "changes";

/// The name of a change record: a range, and the generation that the change would give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// The range; for a merge, the left one.
    pub range: RangeId,
    /// The generation that the range would have.
    pub generation: Generation,
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CHANGES_PREFIX}/{}/{}", self.range.0, self.generation.0)
    }
}

impl RecordName {
    /// The path of the record.
    pub(crate) fn path(self) -> Path {
        Path::from(self.to_string())
    }
}

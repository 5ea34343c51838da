//! The name of a change record.
//!
//! A retired range holds this name in its database, and the change that retired it creates the record itself
//! ([`crate::change`]).

use std::fmt;

use object_store::path::Path;
use rangehold_map::{Generation, RangeId};

/// Where the change records are.
pub const CHANGES_PREFIX: &str = "changes";

/// Names a change record: a range, and the generation into which the change would bring it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// The range; of a merge the left one.
    pub range: RangeId,
    /// The generation it would be in.
    pub generation: Generation,
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CHANGES_PREFIX}/{}/{}", self.range.0, self.generation.0)
    }
}

impl RecordName {
    /// Where the record is.
    pub(crate) fn path(self) -> Path {
        Path::from(self.to_string())
    }
}

//! What a write asks for, and what its judge decides.

use rangehold_map::PartitionPrefix;
use tokio::time::Instant;

/// Rows to put (with a value) and to delete (without).
pub type RowChanges = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// A write, but for what it changes: that the judge decides.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    /// The partition in which it changes rows.
    pub partition: &'a PartitionPrefix,
    /// The rows, all of the partition, that the judge wants to see.
    pub keys: &'a [Vec<u8>],
    /// What it weighs while it is held, about: the size of the request's body.
    pub bytes: u64,
    /// When the answer is no longer waited for.
    pub deadline: Instant,
    /// It gives space back, as the drop of a table does. Such writes are let in until half of the
    /// disk's reserve is gone, so that whoever is refused for want of space can make some.
    pub gives_space_back: bool,
}

impl<'a> WriteRequest<'a> {
    /// A write that weighs nothing.
    pub fn new(partition: &'a PartitionPrefix, keys: &'a [Vec<u8>], deadline: Instant) -> Self {
        Self { partition, keys, bytes: 0, deadline, gives_space_back: false }
    }
}

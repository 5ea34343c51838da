//! What a write asks for, and what its judge decides.

use std::net::SocketAddr;

use bytes::Bytes;
use rangehold_map::{PartitionPrefix, Timestamp};
use tokio::time::Instant;

use crate::store::Space;

/// Rows to put (with a value) and to delete (without).
pub type RowChanges = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Decides a write from the newest rows that it asked for and from its timestamp. `Err` refuses the write; the judge keeps
/// the reason. It is a trait object, so that the way of a write is compiled once, and not for each kind of write.
pub type Judge<'a> = dyn FnMut(&[Option<Bytes>], Timestamp) -> Result<RowChanges, ()> + Send + 'a;

/// A write without its changes, which the judge decides.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    /// The partition in which it changes rows.
    pub partition: &'a PartitionPrefix,
    /// The rows that the judge wants to see. All of them lie in the partition.
    pub keys: &'a [Vec<u8>],
    /// About how many bytes it takes in memory while it is held: the size of the request's body.
    pub bytes: u64,
    /// After this moment the caller does not wait for the answer any more.
    pub deadline: Instant,
    /// What it does to the space of the disk. Writes that give space back are let in longer, so that a client whose
    /// writes are refused on a full disk can make space.
    pub space: Space,
    /// Whether it is made although the bucket is closed: it removes what a deleted bucket has left.
    pub of_closed: bool,
    /// The last change of the bucket's folders that the sender has seen when it chose the partition. A range refuses the
    /// write if a later one was announced to it ([`Router::fence_bucket`](crate::Router::fence_bucket)). `None` for a
    /// write that folders have no part in.
    pub seen: Option<u64>,
    /// The client, if it will read the row and try again when its write is refused: the address of its connection. If others
    /// change the row at the same time, its refusal may then wait a little for its turn.
    pub tried_again_by: Option<SocketAddr>,
}

impl<'a> WriteRequest<'a> {
    /// A write that counts no bytes while it is held, takes space, and is not tried again.
    pub fn new(partition: &'a PartitionPrefix, keys: &'a [Vec<u8>], deadline: Instant) -> Self {
        Self {
            partition,
            keys,
            bytes: 0,
            deadline,
            space: Space::Takes,
            of_closed: false,
            seen: None,
            tried_again_by: None,
        }
    }
}

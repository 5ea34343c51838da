//! Room for replies: a budget of bytes for what clients have not read yet.
//!
//! A reply takes all its room at once and keeps it until its client has read it. Request bodies have room of their
//! own, see [`body`](crate::body).

use std::sync::Arc;

use rangehold_protocol::error::{ErrorCode, TableError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits;

const UNIT_BYTES: usize = 1024;

/// A budget of bytes that replies share.
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS))))
    }

    /// Takes room for `bytes`. Fails with `ServerBusy` if there is none in time.
    pub(crate) async fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, TableError> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        match timeout(limits::ROOM_WITHIN, self.0.clone().acquire_many_owned(units)).await {
            Ok(Ok(room)) => Ok(room),
            _ => Err(TableError::new(
                ErrorCode::ServerBusy,
                "The server is busy: too many bytes of requests and replies are under way.",
            )),
        }
    }
}

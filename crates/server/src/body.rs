//! Request bodies: read whole, within limits of size, time and the process's memory.
//!
//! All bodies under way share one budget ([`Room`]), and so do all replies that clients have not read yet. A
//! body takes room as it arrives, so a slow client holds no more than it sent. Without room a request waits
//! for some time and is then refused with 503. A body that is not complete when the time of its request is over
//! is refused too.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use rangehold_protocol::error::{ErrorCode, TableError};

use crate::limits;

const UNIT_BYTES: usize = 1024;
/// The least budget: one body, or reply, of the largest size must fit.
const ROOM_BYTES_MIN: u64 = 16 << 20;

/// A budget of bytes that requests share.
#[derive(Clone)]
pub(crate) struct Room(Arc<Semaphore>);

/// A body, and the room that it takes until it is dropped.
pub(crate) struct HeldBody {
    /// All bytes of the body.
    pub(crate) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// A budget of the `share`-th part of the memory of a process.
    pub(crate) fn new(memory_bytes: u64, share: u64) -> Self {
        let units = (memory_bytes / share).max(ROOM_BYTES_MIN) / UNIT_BYTES as u64;
        Self(Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(Semaphore::MAX_PERMITS))))
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

    /// Reads `body`, which may have at most `bytes_max`, until `deadline`.
    ///
    /// Fails with `RequestBodyTooLarge`, `ServerBusy` when there is no room in time,
    /// `RequestTimedOut` for a slow client, `InvalidInput` for a body that breaks off.
    pub(crate) async fn read(
        &self,
        body: &mut Incoming,
        bytes_max: usize,
        deadline: Instant,
    ) -> Result<HeldBody, TableError> {
        let declared = body.size_hint().exact();
        if declared.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        let mut room: Option<OwnedSemaphorePermit> = None;
        let mut bytes = BytesMut::new();
        loop {
            let frame = match timeout_at(deadline, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => {
                    return Err(TableError::invalid_input("The request body broke off before its end."));
                }
                Ok(None) => break,
                Err(_) => {
                    return Err(ErrorCode::RequestTimedOut.into());
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > bytes_max {
                return Err(ErrorCode::RequestBodyTooLarge.into());
            }
            let held = room.as_ref().map_or(0, |room| room.num_permits() * UNIT_BYTES);
            if bytes.len() + data.len() > held {
                let more = self.take(data.len().max(limits::BODY_ROOM_STEP_BYTES)).await?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
            }
            bytes.extend_from_slice(&data);
        }
        Ok(HeldBody { bytes: bytes.freeze(), _room: room })
    }
}

/// Reads the rest of a body that was refused, and drops it. A client that still sends when the connection closes
/// never sees the reply, so it gets some time to finish.
pub(crate) async fn drain(mut body: Incoming) {
    let mut bytes = 0;
    let finish = async {
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > limits::DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // A client that is slower than this, or sends more, may see a broken connection.
    let _ = timeout(limits::DRAIN_WITHIN, finish).await;
}

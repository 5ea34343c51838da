//! Request bodies: read whole, within limits of size, time and the process's memory.
//!
//! Bodies under way share one budget ([`BodyRoom`]). A request takes room for its declared length
//! before it reads a byte, so a thousand clients with 4 MiB each wait, or are refused with 503,
//! and never exhaust memory. A client that trickles its body is cut off.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use rangehold_protocol::table::error::{ErrorCode, TableError};

use crate::limits;

const UNIT_BYTES: u64 = 1024;

/// The room for request bodies of one process.
#[derive(Clone)]
pub(crate) struct BodyRoom(Arc<Semaphore>);

/// A body, and the room it takes until it is dropped.
pub(crate) struct HeldBody {
    /// All its bytes.
    pub(crate) bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl BodyRoom {
    /// Room for bodies in a process that may use `memory_bytes`; at least for one of each size.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let bytes = (memory_bytes / limits::BODIES_SHARE_OF_MEMORY).max(16 << 20);
        Self(Arc::new(Semaphore::new(
            usize::try_from(bytes / UNIT_BYTES).unwrap_or(1 << 20),
        )))
    }

    /// Reads `body`, of at most `bytes_max`.
    ///
    /// Fails with `RequestBodyTooLarge`, `ServerBusy` when there is no room in time,
    /// `RequestTimedOut` for a slow client, `InvalidInput` for a body that breaks off.
    pub(crate) async fn read(&self, body: &mut Incoming, bytes_max: usize) -> Result<HeldBody, TableError> {
        let declared = body.size_hint().exact();
        if declared.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        let units = declared.unwrap_or(bytes_max as u64).div_ceil(UNIT_BYTES) as u32;
        let room = timeout(limits::BODY_ROOM_WITHIN, self.0.clone().acquire_many_owned(units)).await;
        let Ok(Ok(room)) = room else {
            return Err(TableError::new(
                ErrorCode::ServerBusy,
                "The server is busy: too many request bodies are under way.",
            ));
        };
        let mut bytes = BytesMut::with_capacity(declared.unwrap_or(0) as usize);
        let begun = Instant::now();
        loop {
            let frame = match timeout(limits::BODY_IDLE_MAX, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => {
                    return Err(TableError::invalid_input(
                        "The request body broke off before its end.",
                    ));
                }
                Ok(None) => break,
                Err(_) => return Err(too_slow()),
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > bytes_max {
                return Err(ErrorCode::RequestBodyTooLarge.into());
            }
            bytes.extend_from_slice(&data);
            let late = begun.elapsed().saturating_sub(limits::BODY_GRACE);
            if late.as_secs() * limits::BODY_BYTES_PER_SECOND_MIN > bytes.len() as u64 {
                return Err(too_slow());
            }
        }
        Ok(HeldBody {
            bytes: bytes.freeze(),
            _room: room,
        })
    }
}

fn too_slow() -> TableError {
    ErrorCode::RequestTimedOut.into()
}

/// Reads on what a client still sends whose reply is ready, and forgets it. A connection that is
/// closed with bytes unread is reset, and then many clients never see why they were refused.
///
/// A client that asked whether to send its body (`Expect`) must not be read from: that would say
/// yes.
pub(crate) async fn discard(body: &mut Incoming) {
    if body.is_end_stream() {
        return;
    }
    let mut left = limits::DISCARDED_BYTES_MAX;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    let _ = timeout(limits::DISCARD_WITHIN, reading).await;
}

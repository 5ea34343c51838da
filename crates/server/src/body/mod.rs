//! Request bodies: read whole, or piece by piece, within limits of size, time and the process's memory.
//!
//! All bodies share one budget. A body that is stored while it comes, as an upload of objects, is read in pieces
//! ([`piece`]). Each piece is a body of its own for the budget, and its room is given back when it is stored. Bytes ask
//! for room before they are copied out of the frame in which they came. [`packed`] does the same for a body in gzip.
//! Which body may grow is decided in [`growth`], which is pure; this module reads, waits and refuses. A body that waits
//! for room is not read from its socket, so its client is slowed down and sees no error. Only at the deadline of its
//! request it is refused: with 503 if it waited, with 408 if its client was slow.

mod gathered;
mod growth;
mod packed;
mod piece;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use parking_lot::Mutex;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::limits::{BATCH_BYTES_MAX, BODY_BYTES_MAX};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use self::gathered::Gathered;
use self::growth::{Growth, State};
pub(crate) use self::packed::Packed;
pub(crate) use self::piece::Piece;
use crate::fair::{Tenant, Ticket};
use crate::limits;
use crate::room::no_room;

/// The largest body, for which there is always room.
const RESERVE_BYTES: usize = if BATCH_BYTES_MAX > BODY_BYTES_MAX { BATCH_BYTES_MAX } else { BODY_BYTES_MAX };

/// All request bodies of a process. Clones are the same.
#[derive(Clone)]
pub(crate) struct Bodies(Arc<Inner>);

struct Inner {
    begun: Instant,
    state: Mutex<(Growth, HashMap<Ticket, Arc<Notify>>)>,
}

/// A body, and the room that it takes until it is dropped.
pub(crate) struct HeldBody {
    /// All bytes of the body.
    pub(crate) bytes: Bytes,
    _place: Place,
}

/// The place of one body among the others. It ends when this is dropped, even in the middle of reading.
pub(crate) struct Place {
    bodies: Bodies,
    ticket: Ticket,
    told: Arc<Notify>,
}

impl Bodies {
    /// A budget of so many bytes, of which one largest body is kept in reserve.
    pub(crate) fn new(bytes: usize) -> Self {
        assert!(
            bytes >= 2 * RESERVE_BYTES,
            "a budget of {bytes} bytes leaves nothing to share beside the reserve"
        );
        let growth = Growth::new(bytes - RESERVE_BYTES, RESERVE_BYTES);
        Self(Arc::new(Inner { begun: Instant::now(), state: Mutex::new((growth, HashMap::new())) }))
    }

    /// Reads a `body` of `tenant`, which may have at most `bytes_max`, until `deadline`.
    ///
    /// Fails with `RequestBodyTooLarge`, `ServerBusy` if there is no room in time, `RequestTimedOut` for a slow
    /// client, `InvalidInput` for a body that breaks off.
    pub(crate) async fn read(
        &self,
        body: &mut Incoming,
        bytes_max: usize,
        tenant: Tenant,
        deadline: Instant,
    ) -> Result<HeldBody, TableError> {
        let declared = body.size_hint().exact();
        if declared.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        let is_small = declared.is_some_and(|bytes| bytes < limits::BODY_SMALL_BYTES as u64);
        // Small bodies do not stand in line behind the large ones of their tenant: they count as another tenant.
        let place = self.begin(Tenant { member: tenant.member ^ u64::from(is_small), ..tenant });
        let mut gathered = Gathered::default();
        while let Some(frame) = place.next_frame(body, deadline).await? {
            let Ok(data) = frame.into_data() else { continue };
            if gathered.length + data.len() > bytes_max {
                return Err(ErrorCode::RequestBodyTooLarge.into());
            }
            place.wait_for_room(data.len(), deadline).await?;
            gathered.put(&data, declared);
        }
        self.change(|growth, _| growth.complete(place.ticket));
        Ok(HeldBody { bytes: gathered.whole(), _place: place })
    }

    /// A place for bytes that come and go while a stream of messages lasts.
    pub(crate) fn begin(&self, tenant: Tenant) -> Place {
        let told = Arc::new(Notify::new());
        let now = self.0.begun.elapsed();
        let (growth, waiters) = &mut *self.0.state.lock();
        let ticket = growth.begin(now, tenant);
        waiters.insert(ticket, Arc::clone(&told));
        Place { bodies: self.clone(), ticket, told }
    }

    /// Makes a change, and tells the bodies that it lets go on or refuses.
    fn change(&self, change: impl FnOnce(&mut Growth, Duration)) {
        let now = self.0.begun.elapsed();
        let (growth, waiters) = &mut *self.0.state.lock();
        change(growth, now);
        let going_on = growth.decide(now);
        for ticket in going_on.into_iter().chain(growth.refuse_slow(now)) {
            if let Some(told) = waiters.get(&ticket) {
                told.notify_one();
            }
        }
    }

    /// For bodies that wait: time alone may have made another body too slow.
    fn look_for_slow(&self) {
        let (growth, waiters) = &mut *self.0.state.lock();
        if let Some(told) = growth.refuse_slow(self.0.begun.elapsed()).and_then(|slow| waiters.get(&slow)) {
            told.notify_one();
        }
    }
}

impl Place {
    /// The next bytes of a body, as soon as there are some; `None` at its end. The place has room for them until it ends.
    ///
    /// Fails as [`Bodies::read`] does, and with `RequestTimedOut` if nothing comes until `deadline`.
    pub(crate) async fn more(
        &self,
        body: &mut Incoming,
        deadline: Instant,
    ) -> Result<Option<Bytes>, TableError> {
        while let Some(frame) = self.next_frame(body, deadline).await? {
            let Ok(data) = frame.into_data() else { continue };
            if !data.is_empty() {
                self.wait_for_room(data.len(), Instant::now() + limits::REQUEST_WITHIN).await?;
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    fn state(&self) -> State {
        self.bodies.0.state.lock().0.state(self.ticket)
    }

    /// The next frame of a body; `None` at its end. Fails if the body breaks off, or the client is too slow.
    async fn next_frame(
        &self,
        body: &mut Incoming,
        deadline: Instant,
    ) -> Result<Option<Frame<Bytes>>, TableError> {
        loop {
            tokio::select! {
                // In this order always, or a simulation would not run the same way twice.
                biased;
                () = self.told.notified() => if self.state() == State::TooSlow {
                    return Err(ErrorCode::RequestTimedOut.into());
                },
                frame = timeout_at(deadline, body.frame()) => return match frame {
                    Ok(Some(Ok(frame))) => Ok(Some(frame)),
                    Ok(None) => Ok(None),
                    Ok(Some(Err(_))) => {
                        Err(TableError::invalid_input("The request body broke off before its end."))
                    }
                    Err(_) => Err(ErrorCode::RequestTimedOut.into()),
                },
            }
        }
    }

    /// Waits until the body may keep `bytes` more.
    async fn wait_for_room(&self, bytes: usize, deadline: Instant) -> Result<(), TableError> {
        self.bodies.change(|growth, now| growth.ask(now, self.ticket, bytes));
        loop {
            match self.state() {
                State::Waits(_) => {}
                State::Read(_) | State::Complete => return Ok(()),
                State::TooSlow => return Err(ErrorCode::RequestTimedOut.into()),
            }
            if Instant::now() >= deadline {
                return Err(no_room());
            }
            let look_at = deadline.min(Instant::now() + limits::BODY_PACE_LOOKED_AT_EVERY);
            if timeout_at(look_at, self.told.notified()).await.is_err() {
                self.bodies.look_for_slow();
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.bodies.0.state.lock().1.remove(&self.ticket);
        self.bodies.change(|growth, _| growth.end(self.ticket));
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

//! What requests share: bytes for replies, and what comes back soon, as [turns at the processor](crate::turns).
//!
//! This is the shell around the fair queue ([`fair`](crate::fair)), which decides. A request enters a [`Room`] in
//! the name of its tenant and holds a [`Place`] there, which ends when it is dropped.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use rangehold_protocol::error::{ErrorCode, TableError};
use tokio::time::{Instant, timeout_at};

use crate::fair::{Queue, Tenant, Ticket};
use crate::limits::ROOM_WITHIN;

/// A resource that requests share. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    queue: Queue,
    /// What to wake when a request that waits is served.
    wakers: BTreeMap<Ticket, Waker>,
}

/// The place of one request. What it has is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Room,
    ticket: Ticket,
    /// Whether it asks for a turn again as soon as the one that it has ends. Used only while the room is locked.
    asks_again: AtomicBool,
}

/// The error for a request that waited too long for its share of what requests share.
pub(crate) fn no_room() -> TableError {
    TableError::new(
        ErrorCode::ServerBusy,
        "The server is busy: too many bytes of requests and replies are under way.",
    )
}

impl Room {
    /// So many bytes. A part of them always stays free for newcomers.
    pub(crate) fn of_bytes(bytes: usize) -> Self {
        Self::new(Queue::for_room(bytes))
    }

    /// So many units of something that comes back soon.
    pub(crate) fn of_turns(units: usize) -> Self {
        Self::new(Queue::for_turns(units))
    }

    fn new(queue: Queue) -> Self {
        Self(Arc::new(Mutex::new(Shared { queue, wakers: BTreeMap::new() })))
    }

    /// Enters in the name of `tenant`, and waits for `units`. Fails if the place does not have them at `until`.
    pub(crate) async fn place(
        &self,
        tenant: Tenant,
        units: usize,
        until: Instant,
    ) -> Result<Place, TableError> {
        let place = self.enter(tenant);
        timeout_at(until, place.take(units)).await.map_err(|_| no_room())?;
        Ok(place)
    }

    /// A place for a reply of so many bytes, until its client has read it. Fails without room if the reply is that to a read,
    /// since its client can ask again; the reply to a write is sent even without room.
    pub(crate) async fn place_of_reply(
        &self,
        tenant: Tenant,
        bytes: usize,
        is_read: bool,
    ) -> Result<Option<Place>, TableError> {
        match self.place(tenant, bytes, Instant::now() + ROOM_WITHIN).await {
            Ok(place) => Ok(Some(place)),
            Err(no_room) if is_read => Err(no_room),
            Err(_) => Ok(None),
        }
    }

    /// Makes a change, and serves the requests whose turn it is then. They are woken when the room is no longer locked: what is
    /// woken may use a room itself.
    fn change<R>(&self, change: impl FnOnce(&mut Shared) -> R) -> R {
        let (result, served) = {
            let shared = &mut *self.0.lock();
            (change(shared), shared.serve())
        };
        served.into_iter().for_each(Waker::wake);
        result
    }

    /// Enters in the name of `tenant`. The place has nothing yet.
    pub(crate) fn enter(&self, tenant: Tenant) -> Place {
        let ticket = self.0.lock().queue.enter(tenant);
        Place { room: self.clone(), ticket, asks_again: AtomicBool::new(false) }
    }
}

impl Place {
    /// Waits until the place has `units`. It must have nothing before.
    async fn take(&self, units: usize) {
        poll_fn(|context| self.poll_take(context, units)).await;
    }

    /// Takes `units` more if its tenant may have them now.
    pub(crate) fn grow(&self, units: usize) -> bool {
        self.room.0.lock().queue.grow(self.ticket, units)
    }

    /// Gives back all but `units`.
    pub(crate) fn keep(&self, units: usize) {
        self.room.change(|shared| shared.queue.keep(self.ticket, units));
    }

    /// Waits until the place has `units`, if it has nothing.
    pub(crate) fn poll_take(&self, context: &Context<'_>, units: usize) -> Poll<()> {
        let has_some = self.room.change(|shared| {
            let has_some = shared.queue.held_by(self.ticket) > 0;
            if !has_some {
                shared.ask(self.ticket, units);
            }
            has_some
        });
        if has_some {
            return Poll::Ready(());
        }
        let shared = &mut *self.room.0.lock();
        if !shared.queue.waits(self.ticket) {
            return Poll::Ready(());
        }
        shared.wakers.insert(self.ticket, context.waker().clone());
        Poll::Pending
    }

    /// Asks for a turn, and has `waker` woken when it comes. If the place has its turn now, it asks when that ends.
    pub(crate) fn ask_for_turn(&self, waker: Waker) {
        self.room.change(|shared| {
            if shared.queue.held_by(self.ticket) > 0 {
                self.asks_again.store(true, Ordering::Relaxed);
            } else {
                shared.ask(self.ticket, 1);
                shared.wakers.insert(self.ticket, waker);
            }
        });
    }

    /// Gives the turn back, which took so much time. Asks for the next one, if that is wanted by now: `asks`, or by
    /// [`Place::ask_for_turn`].
    pub(crate) fn end_turn(&self, took: Duration, waker: &Waker, asks: bool) {
        let cost = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.room.change(|shared| {
            shared.queue.charge(self.ticket, cost);
            shared.queue.keep(self.ticket, 0);
            if self.asks_again.swap(false, Ordering::Relaxed) || asks {
                shared.ask(self.ticket, 1);
                shared.wakers.insert(self.ticket, waker.clone());
            }
        });
    }
}

impl Shared {
    /// A request that has nothing begins to wait, unless it waits already.
    fn ask(&mut self, ticket: Ticket, units: usize) {
        if !self.queue.waits(ticket) {
            self.queue.ask(ticket, units);
        }
    }

    /// Serves the requests whose turn it is, and returns what is to be woken.
    fn serve(&mut self) -> Vec<Waker> {
        let mut served = Vec::new();
        while let Some(ticket) = self.queue.next() {
            served.extend(self.wakers.remove(&ticket));
        }
        served
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.change(|shared| {
            shared.wakers.remove(&self.ticket);
            shared.queue.leave(self.ticket);
        });
    }
}

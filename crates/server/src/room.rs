//! What requests share: bytes for replies, and turns at the processor for work that takes long.
//!
//! This is the shell around the fair queue ([`fair`](crate::fair)), which decides. A request enters a [`Room`] in
//! the name of its tenant and holds a [`Place`] there, which ends when it is dropped.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use rangehold_protocol::error::{ErrorCode, TableError};
use tokio::time::Instant;

use crate::fair::{Queue, Tenant, Ticket};

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

    /// So many turns at the processor at once.
    pub(crate) fn of_turns(turns: usize) -> Self {
        Self::new(Queue::for_turns(turns))
    }

    fn new(queue: Queue) -> Self {
        Self(Arc::new(Mutex::new(Shared { queue, wakers: BTreeMap::new() })))
    }

    /// Enters in the name of `tenant`. The place has nothing yet.
    pub(crate) fn enter(&self, tenant: Tenant) -> Place {
        let ticket = self.0.lock().queue.enter(tenant);
        Place { room: self.clone(), ticket }
    }

    /// Runs `work` in turns. Each time `work` gives way, or waits for something, its turn goes to the tenant that
    /// has had the least time.
    pub(crate) async fn in_turns<T>(&self, tenant: Tenant, work: impl Future<Output = T>) -> T {
        let place = self.enter(tenant);
        let mut work = pin!(work);
        poll_fn(|context| {
            ready!(place.poll_take(context, 1));
            let begun = Instant::now();
            let result = work.as_mut().poll(context);
            place.end_turn(begun);
            result
        })
        .await
    }
}

impl Place {
    /// Waits until the place has `units`. It must have nothing before.
    pub(crate) async fn take(&self, units: usize) {
        poll_fn(|context| self.poll_take(context, units)).await;
    }

    /// Takes `units` more if its tenant may have them now.
    pub(crate) fn grow(&self, units: usize) -> bool {
        self.room.0.lock().queue.grow(self.ticket, units)
    }

    /// Gives back all but `units`.
    pub(crate) fn keep(&self, units: usize) {
        let shared = &mut *self.room.0.lock();
        shared.queue.keep(self.ticket, units);
        shared.serve();
    }

    fn poll_take(&self, context: &Context<'_>, units: usize) -> Poll<()> {
        let shared = &mut *self.room.0.lock();
        if shared.queue.held_by(self.ticket) == 0 && !shared.queue.waits(self.ticket) {
            shared.queue.ask(self.ticket, units);
            shared.serve();
        }
        if shared.queue.waits(self.ticket) {
            shared.wakers.insert(self.ticket, context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn end_turn(&self, begun: Instant) {
        let cost = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let shared = &mut *self.room.0.lock();
        shared.queue.charge(self.ticket, cost);
        shared.queue.keep(self.ticket, 0);
        shared.serve();
    }
}

impl Shared {
    /// Serves the requests whose turn it is, and wakes them.
    fn serve(&mut self) {
        while let Some(ticket) = self.queue.next() {
            if let Some(waker) = self.wakers.remove(&ticket) {
                waker.wake();
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let shared = &mut *self.room.0.lock();
        shared.wakers.remove(&self.ticket);
        shared.queue.leave(self.ticket);
        shared.serve();
    }
}

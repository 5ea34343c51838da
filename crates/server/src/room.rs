//! What requests share: bytes for replies, and turns at the processor for work that takes long.
//!
//! This is the shell around the fair queue ([`fair`](crate::fair)), which decides. A request enters a [`Room`] in
//! the name of its tenant and holds a [`Place`] there, which ends when it is dropped.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use parking_lot::Mutex;
use rangehold_protocol::error::{ErrorCode, TableError};
use tokio::time::{Instant, timeout_at};

use crate::fair::{Queue, Tenant, Ticket};
use crate::limits::{LONG_WORK, ROOM_WITHIN};

/// A resource that requests share. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    queue: Queue,
    /// What to wake when a request that waits is served.
    wakers: BTreeMap<Ticket, Waker>,
}

/// Turns at the processor for work that takes long. Clones are the same.
///
/// As many turns are under way at once as there are cores. But work that has taken [`LONG_WORK`] already leaves one core
/// to all other requests: on cores that were always taken, a point read waited for the scheduler of the system as well, some
/// milliseconds at each of its steps.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    all: Room,
    /// For work that has taken long already, in addition.
    long: Room,
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

    /// Enters in the name of `tenant`. The place has nothing yet.
    fn enter(&self, tenant: Tenant) -> Place {
        let ticket = self.0.lock().queue.enter(tenant);
        Place { room: self.clone(), ticket }
    }
}

impl Turns {
    /// The turns of so many cores.
    pub(crate) fn of_cores(cores: usize) -> Self {
        let cores = cores.max(1);
        Self { all: Room::of_turns(cores), long: Room::of_turns((cores - 1).max(1)) }
    }

    /// Runs `work` in turns. Each time `work` gives way, or waits for something, its turn goes to the tenant that
    /// has had the least time.
    pub(crate) async fn run<T>(&self, tenant: Tenant, work: impl Future<Output = T>) -> T {
        let place = self.all.enter(tenant);
        let mut place_of_long = None;
        let mut taken = Duration::ZERO;
        let mut work = pin!(work);
        poll_fn(|context| {
            if taken >= LONG_WORK {
                let place = place_of_long.get_or_insert_with(|| self.long.enter(tenant));
                ready!(place.poll_take(context, 1));
            }
            ready!(place.poll_take(context, 1));
            let begun = Instant::now();
            let result = work.as_mut().poll(context);
            let took = begun.elapsed();
            taken += took;
            place.end_turn(took);
            if let Some(place) = &place_of_long {
                place.end_turn(took);
            }
            result
        })
        .await
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

    fn end_turn(&self, took: Duration) {
        let cost = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
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

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_has_taken_long_waits_until_a_core_is_left_to_others() {
        let turns = Turns::of_cores(2);
        let tenant = |group| Tenant { group, member: 0 };
        let other = turns.long.enter(tenant(1));
        other.take(1).await;
        let short = turns.run(tenant(2), async {
            yield_now().await;
            "short"
        });
        assert_eq!(short.await, "short");
        let mut long = pin!(turns.run(tenant(2), async {
            advance(LONG_WORK).await;
            yield_now().await;
            "long"
        }));
        assert!(timeout(Duration::from_secs(1), &mut long).await.is_err());
        drop(other);
        assert_eq!(long.await, "long");
    }
}

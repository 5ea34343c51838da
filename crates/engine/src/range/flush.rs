//! The flush task: makes rows durable as soon as a write waits for it, and with as few flushes as possible.
//!
//! A flush writes one file and syncs it. That costs some 0.4 ms of CPU, whatever the file holds, so the number of
//! writes that share a flush decides the throughput. A timer would make a single writer wait for no
//! reason. Instead, a writer that has put its batch into the log takes a ticket. The task flushes
//! while there are tickets, and each flush settles all tickets that were taken before it began.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use slatedb::Db;
use slatedb::config::FlushType;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::database::flush;
use crate::error::Reason;
use crate::limits::{FLUSH_YIELDS, FLUSH_YIELDS_WITHIN};

/// A ticket is settled when everything that was in the log when it was taken is durable, or else with the reason
/// why that cannot be known.
pub(crate) type Ticket = oneshot::Receiver<Result<(), Reason>>;

/// Tickets of writers that wait.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    queue: Mutex<Queue>,
    wake: Notify,
    flushes: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Why the flush task ended, once it has.
    ended: Option<Reason>,
}

/// A write that waits for a flush, with its place among the writes of the range. The place becomes free when the
/// write is durable, even if its writer has given up waiting.
#[derive(Debug)]
struct Waiting {
    settle: oneshot::Sender<Result<(), Reason>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Flusher {
    /// A ticket for everything that is in the log by now. The flush takes place even if the caller drops the
    /// ticket. The place is given back when the ticket is settled.
    pub(crate) fn ticket(&self, place: Option<OwnedSemaphorePermit>) -> Ticket {
        let (settle, ticket) = oneshot::channel();
        let mut queue = self.queue.lock();
        if let Some(why) = &queue.ended {
            let _ = settle.send(Err(why.clone()));
        } else {
            queue.waiting.push(Waiting { settle, _place: place });
            drop(queue);
            self.wake.notify_one();
        }
        ticket
    }

    /// Flushes while there are tickets. Returns when the database has failed.
    /// While more writers `may_come`, it waits for them a little.
    pub(crate) async fn run(&self, db: &Db, may_come: impl Fn() -> bool, mut flushed: impl FnMut()) {
        loop {
            self.wake.notified().await;
            let begun = Instant::now();
            for _ in 0..FLUSH_YIELDS {
                // When many tasks are ready, each yield takes long.
                if !may_come() || begun.elapsed() >= FLUSH_YIELDS_WITHIN {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let tickets = mem::take(&mut self.queue.lock().waiting);
            if tickets.is_empty() {
                continue;
            }
            let result = flush(db, FlushType::Wal).await.map_err(Reason::failed);
            self.flushes.fetch_add(1, Ordering::Relaxed);
            flushed();
            for ticket in tickets {
                let _ = ticket.settle.send(result.clone());
            }
            if result.is_err() {
                return;
            }
        }
    }

    /// Settles all tickets that wait, and all that are taken later, with the error `why`.
    pub(crate) fn end(&self, why: &Reason) {
        let mut queue = self.queue.lock();
        queue.ended.get_or_insert_with(|| why.clone());
        for ticket in mem::take(&mut queue.waiting) {
            let _ = ticket.settle.send(Err(why.clone()));
        }
    }

    /// Flushes so far.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }
}

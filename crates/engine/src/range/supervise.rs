//! The supervisor of a range's database: flushes it, and opens it again when the database closed by itself.
//!
//! The engine below closes a database for good when a step fails that it cannot repeat. If
//! the reason is that another server opened the database, that server has the range now. For any other reason
//! the range opens the database again ([`reopen`](super::reopen)), unless another server has the range by then.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slatedb::CloseReason;
use slatedb::config::CloseOptions;
use tokio::time::timeout;

use super::{Opening, Range, State};
use crate::error::{ReadError, Reason, with_causes};
use crate::limits::{CLOSE_MAX, DRAIN_MAX};

/// Why an opening ended.
enum Ended {
    /// It was closed on purpose.
    Closed,
    Fenced,
    Failed(Reason),
}

impl Ended {
    /// The error that the writes that waited for a flush get.
    fn reason(&self) -> Reason {
        match self {
            Self::Closed => Reason::Found("the database was closed"),
            Self::Fenced => Reason::Found("the database was opened again, here or elsewhere"),
            Self::Failed(why) => why.clone(),
        }
    }
}

impl Range {
    /// Keeps the range open until it is closed or lost. Run it as a task, once.
    pub(crate) async fn supervise(self: Arc<Self>) {
        let _left = Left(Arc::clone(&self));
        loop {
            let Ok(opening) = self.open_now() else {
                return;
            };
            // While the gate is held no more writes come, and the change waits for those under way: so do not delay
            // the flush then.
            let ended = opening.serve(|| !self.gate.is_held()).await;
            // No flush of this opening will come any more. Tell the writers that wait for one at once, before the
            // reason is known.
            opening.flusher.end(&ended.reason());
            // This server may have opened the database again itself. It then closed the old opening, or the new
            // opening shut the old one out and is not yet the range's state. The lock waits for that.
            let judging = self.opening_again.lock().await;
            if self.open_now().is_ok_and(|now| now.number != opening.number) {
                continue;
            }
            let why = match ended {
                Ended::Closed => return,
                Ended::Fenced if matches!(self.open_now(), Err(ReadError::NotOwned)) => return,
                Ended::Fenced => {
                    tracing::warn!(range = %self.identity.id, "another server has opened the range");
                    self.change_state(State::Fenced);
                    drop(judging);
                    self.abandon(&opening).await;
                    return;
                }
                Ended::Failed(why) => why,
            };
            let (range, error) = (self.identity.id, with_causes(&why));
            tracing::error!(%range, error, "the database closed itself; opening it again");
            let go_on = self.change_state(State::Reopening(why));
            drop(judging);
            if !go_on || !self.reopen(&opening).await {
                return;
            }
        }
    }

    /// Serves from a new opening, unless the range was closed while the opening was made.
    pub(super) async fn take(&self, opening: Opening) -> bool {
        let opening = Arc::new(opening);
        if !self.change_state(State::Open(Arc::clone(&opening))) {
            self.close_database(&opening).await;
            return false;
        }
        self.counts.reopenings.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Lets the writes under way finish, refuses new ones, saves everything and closes.
    pub(crate) async fn close(&self) {
        let drained = self.gate.drain(DRAIN_MAX).await;
        let opening = self.open_now();
        self.change_state(State::Closed);
        if !drained {
            tracing::warn!(range = %self.identity.id, "closing while writes are still under way");
        }
        if let Ok(opening) = opening {
            self.close_database(&opening).await;
        }
    }

    /// Answers no read any more, because the range was handed over. The database stays open until [`Range::end`].
    pub(crate) fn let_go(&self) {
        let last = self.open_now().ok();
        self.change_state(State::Gone { last });
    }

    /// Whether its freeze is sealed: it must not take writes as it is.
    pub(crate) fn is_sealed(&self) -> bool {
        self.gate.is_sealed()
    }

    /// Answers nothing any more. Writes that are held go to the server that the map names.
    pub(crate) fn turn_away(&self) {
        self.let_go();
        self.gate.close();
    }

    /// Ends a range that was handed over: closes its database without saving anything.
    pub(crate) async fn end(&self) {
        let opening = match &*self.state.read() {
            State::Gone { last: Some(opening) } => Arc::clone(opening),
            _ => return,
        };
        self.abandon(&opening).await;
    }

    /// Closes an opening of the database without saving anything, because the database belongs to another server
    /// now, or is not used any more.
    pub(crate) async fn abandon(&self, opening: &Opening) {
        opening.flusher.end(&Reason::Found("the range was handed over"));
        let closing = opening.db.close_with_options(CloseOptions::default().with_flush_type(None));
        let _ = timeout(CLOSE_MAX, closing).await;
    }

    /// Saves what an opening holds and closes it. Gives up after a while, because on a full disk the
    /// database would try without end. What was acknowledged is then still in the log, and is replayed.
    async fn close_database(&self, opening: &Opening) {
        let range = self.identity.id;
        let closing = async {
            // If a compaction is broken off here, the next process that opens the database takes it up at once.
            self.databases.housekeeper.leave(&self.place.path).await;
            opening.db.close().await
        };
        match timeout(CLOSE_MAX, closing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%range, %error, "closing the database failed"),
            Err(_) => tracing::warn!(
                %range,
                "the database could not save its memory in time (a full disk?); its log will be replayed"
            ),
        }
    }
}

/// Guards against a panic of the supervisor, since without a supervisor nothing becomes durable any more. After a
/// panic the requests that wait get an error, and those that come later are refused.
struct Left(Arc<Range>);

impl Drop for Left {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(opening) = self.0.open_now()
        {
            let why = "the task that supervises it panicked; the process has to be started again";
            self.0.change_state(State::Reopening(Reason::Found(why)));
            opening.flusher.end(&Reason::Found(why));
        }
    }
}

impl Opening {
    /// Flushes for the writes that wait, until the database is closed.
    async fn serve(&self, may_come: impl Fn() -> bool) -> Ended {
        let flushed = || {
            let sorted = self.sorted_sequence();
            self.unflushed.mark(sorted);
            self.rows.sorted(sorted);
            self.rows.durable(self.durable_sequence());
        };
        tokio::select! {
            _ = self.flusher.run(&self.db, may_come, flushed) => {}
            () = self.closed() => {}
        }
        // A failed flush and the close that it causes may be reported in either order.
        let _ = timeout(Duration::from_secs(1), self.closed()).await;
        let reason = self.status.borrow().close_reason;
        match reason {
            Some(CloseReason::Clean) => Ended::Closed,
            Some(CloseReason::Fenced) => Ended::Fenced,
            // Any call on the closed database returns the reason why it was closed.
            _ => Ended::Failed(match self.db.snapshot() {
                Err(error) => Reason::failed(error),
                Ok(_) => Reason::Found("its log could not be flushed"),
            }),
        }
    }

    async fn closed(&self) {
        let mut status = self.status.clone();
        // An error means that the database itself is gone.
        let _ = status.wait_for(|status| status.close_reason.is_some()).await;
    }
}

#[cfg(test)]
mod tests {
    use slatedb::WriteBatch;
    use tokio::time::sleep;

    use super::*;
    use crate::database;

    #[tokio::test]
    async fn a_range_that_was_closed_stays_closed() {
        let range = Range::in_memory().await;
        let supervisor = tokio::spawn(Arc::clone(&range).supervise());
        range.close().await;
        // The supervisor found the database failed before it was closed, and opened it again after.
        assert!(!range.change_state(State::Reopening(Reason::Found("it failed"))));
        let db = database::open(&range.databases, &range.place, None).await.unwrap();
        let late = db.clone();
        assert!(!range.take(range.opening(2, db)).await);
        assert_eq!(late.status().close_reason, Some(CloseReason::Clean));
        match range.open_now().err() {
            Some(ReadError::Unavailable(why)) => assert!(why.to_string().contains("shut down"), "{why}"),
            other => panic!("{other:?}"),
        }
        supervisor.await.unwrap();
    }

    /// Seed 300,387 of the simulation found this, with a slow store and a move that was undone. The supervisor found
    /// that its opening was shut out by the next opening of the same range, said that another server has the range,
    /// and ended. What was written to the new opening was then never flushed.
    #[tokio::test]
    async fn a_supervisor_that_is_shut_out_by_the_next_opening_of_its_range_goes_on_with_that_one() {
        let range = Range::in_memory().await;
        let supervisor = tokio::spawn(Arc::clone(&range).supervise());
        let before = range.open_now().unwrap();
        let opening_again = range.opening_again.lock().await;
        let db = database::open(&range.databases, &range.place, None).await.unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"\x20key", b"value");
        assert!(range.write_ungated(batch.clone()).await.is_err(), "somebody has opened it after");
        before.closed().await;
        // Give the supervisor time to change the state, if it wrongly does so.
        sleep(Duration::from_millis(50)).await;
        assert!(!range.is_lost());
        assert!(range.change_state(State::Open(Arc::new(range.opening(2, db)))));
        drop(opening_again);
        let written = timeout(Duration::from_secs(10), range.write_ungated(batch)).await;
        assert!(written.is_ok_and(|written| written.is_ok()), "nobody flushes");
        range.close().await;
        supervisor.await.unwrap();
    }
}

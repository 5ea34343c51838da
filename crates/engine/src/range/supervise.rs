//! The supervisor of a range's database: flushes it, and opens it again when the database closed by itself.
//!
//! The engine below closes a database for good when something fails that it cannot repeat. If
//! that is because somebody else opened the database, the range is there now. For any other reason
//! the range opens it again, in the epoch that follows its own: should anybody else have opened it
//! meanwhile, that fails too, and the range is there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slatedb::CloseReason;
use slatedb::config::{CloseOptions, FlushType};
use tokio::time::{sleep, timeout};

use super::{Opening, Range, State};
use crate::database::{self, flush};
use crate::error::{Damaged, OpenError, ReadError, with_causes};
use crate::limits::{CLOSE_MAX, DRAIN_MAX, REOPEN_WAIT_MAX, REOPEN_WAIT_MIN};

/// Why an opening ended.
enum Ended {
    /// It was closed on purpose.
    Closed,
    Fenced,
    Failed(String),
}

impl Ended {
    /// What those are told who waited for a flush.
    fn sentence(&self) -> &str {
        match self {
            Self::Closed => "the database was closed",
            Self::Fenced => "the database was opened again, here or elsewhere",
            Self::Failed(why) => why,
        }
    }
}

impl Range {
    /// Keeps the range open until it is closed or lost. To be run as a task, once.
    pub(crate) async fn supervise(self: Arc<Self>) {
        let _left = Left(Arc::clone(&self));
        loop {
            let Ok(opening) = self.open_now() else {
                return;
            };
            // While the range changes hands writes are held, and somebody waits for those under way.
            let ended = opening.serve(|| !self.gate.is_held()).await;
            // A writer that waits for a flush of this opening waits in vain: it is told now, before the reason is known.
            opening.flusher.end(ended.sentence());
            // It may have been opened again, and the old opening closed: or shut out, while nobody says so yet.
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
            tracing::error!(range = %self.identity.id, %why, "the database closed itself; opening it again");
            let go_on = self.change_state(State::Reopening(why.clone()));
            drop(judging);
            if !go_on || !self.reopen(&opening).await {
                return;
            }
        }
    }

    /// Opens the database again, however long that takes. False if it is somebody else's now, or
    /// was closed meanwhile.
    async fn reopen(&self, before: &Opening) -> bool {
        // Frees what the old one still holds. It has nothing to save: it is closed.
        let _ = timeout(CLOSE_MAX, before.db.close()).await;
        let epoch = before.db.manifest().writer_epoch();
        let mut wait = REOPEN_WAIT_MIN;
        let mut attempt_epoch = Some(epoch);
        loop {
            let error = match database::open(&self.databases, &self.place, attempt_epoch).await {
                Ok(db) => return self.take(Opening::new(before.number + 1, db)).await,
                Err(error) => error,
            };
            let state = match &error {
                OpenError::Fenced { .. } => State::Fenced,
                OpenError::Damaged(damage) => State::Damaged(damage.clone()),
                OpenError::MissingDatabase { .. } => State::Damaged(Damaged(error.to_string())),
                other => State::Reopening(other.to_string()),
            };
            let lost = matches!(state, State::Fenced);
            tracing::error!(range = %self.identity.id, %error, "the database could not be opened again");
            if !self.change_state(state) || lost {
                return false;
            }
            // A failed attempt may have taken the epoch already, and it was ours. Damage is tried
            // again too: somebody may bring the file back.
            attempt_epoch = None;
            sleep(wait).await;
            wait = REOPEN_WAIT_MAX.min(wait * 2);
        }
    }

    /// Serves from a new opening, unless the range was closed while it was made.
    async fn take(&self, opening: Opening) -> bool {
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

    /// Answers no read any more: the range was handed over. The database is left as it is; see
    /// [`Range::abandon`].
    pub(crate) fn let_go(&self) {
        let last = self.open_now().ok();
        self.change_state(State::Gone { last });
    }

    /// Ends a range that was handed over: its database is closed without saving anything.
    pub(crate) async fn end(&self) {
        let opening = match &*self.state.read() {
            State::Gone { last: Some(opening) } => Arc::clone(opening),
            _ => return,
        };
        self.abandon(&opening).await;
    }

    /// Closes the database of a range that was handed over, without saving anything: it is
    /// somebody else's, or nobody's.
    pub(crate) async fn abandon(&self, opening: &Opening) {
        opening.flusher.end("the range was handed over");
        let closing = opening.db.close_with_options(CloseOptions::default().with_flush_type(None));
        let _ = timeout(CLOSE_MAX, closing).await;
    }

    /// Saves what an opening holds and closes it. Gives up after a while: on a full disk the
    /// database tries forever. What was acknowledged is in the log then, and is replayed.
    async fn close_database(&self, opening: &Opening) {
        let range = self.identity.id;
        let closing = async {
            // A compaction that is broken off here is taken up at once by the next who opens it.
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

    /// Moves the memtable into a sorted file.
    pub(crate) async fn flush_memtable(&self) -> Result<(), String> {
        let opening = self.open_now().map_err(|error| error.to_string())?;
        flush(&opening.db, FlushType::MemTable).await
    }
}

/// Without its supervisor nothing becomes durable any more. Should it end by a panic, those who wait
/// are told so, and those who come are refused.
struct Left(Arc<Range>);

impl Drop for Left {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(opening) = self.0.open_now()
        {
            let why = "the task that supervises it panicked; the process has to be started again";
            self.0.change_state(State::Reopening(why.to_owned()));
            opening.flusher.end(why);
        }
    }
}

impl Opening {
    /// Flushes for those who wait, until the database is closed.
    async fn serve(&self, may_come: impl Fn() -> bool) -> Ended {
        let flushed = || self.unflushed.mark(self.sorted_sequence());
        tokio::select! {
            _ = self.flusher.run(&self.db, may_come, flushed) => {}
            () = self.closed() => {}
        }
        // A failed flush and the closing that it causes are told in either order.
        let _ = timeout(Duration::from_secs(1), self.closed()).await;
        let reason = self.status.borrow().close_reason;
        match reason {
            Some(CloseReason::Clean) => Ended::Closed,
            Some(CloseReason::Fenced) => Ended::Fenced,
            // Any call is answered with what the database was closed for.
            _ => Ended::Failed(match self.db.snapshot() {
                Err(error) => with_causes(&error),
                Ok(_) => "its log could not be flushed".to_owned(),
            }),
        }
    }

    async fn closed(&self) {
        let mut status = self.status.clone();
        // An error means that the database is gone altogether.
        let _ = status.wait_for(|status| status.close_reason.is_some()).await;
    }
}

#[cfg(test)]
mod tests {
    use slatedb::WriteBatch;

    use super::*;

    #[tokio::test]
    async fn a_range_that_was_closed_stays_closed() {
        let range = Range::in_memory().await;
        let supervisor = tokio::spawn(Arc::clone(&range).supervise());
        range.close().await;
        // The supervisor found the database failed before it was closed, and opened it again after.
        assert!(!range.change_state(State::Reopening("it failed".to_owned())));
        let db = database::open(&range.databases, &range.place, None).await.unwrap();
        let late = db.clone();
        assert!(!range.take(Opening::new(2, db)).await);
        assert_eq!(late.status().close_reason, Some(CloseReason::Clean));
        match range.open_now().err() {
            Some(ReadError::Unavailable(why)) => assert!(why.contains("shut down"), "{why}"),
            other => panic!("{other:?}"),
        }
        supervisor.await.unwrap();
    }

    /// Seed 300,387 of the simulation: a slow store, and a move that was undone. The supervisor found its opening
    /// shut out by the one that was to follow it, said that another server has the range, and left: what was
    /// written to the new opening was never flushed.
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
        // The supervisor has its say, if it has one.
        sleep(Duration::from_millis(50)).await;
        assert!(!range.is_lost());
        assert!(range.change_state(State::Open(Arc::new(Opening::new(2, db)))));
        drop(opening_again);
        let written = timeout(Duration::from_secs(10), range.write_ungated(batch)).await;
        assert!(written.is_ok_and(|written| written.is_ok()), "nobody flushes");
        range.close().await;
        supervisor.await.unwrap();
    }
}

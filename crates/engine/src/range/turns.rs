//! Turns at a row that many clients change at the same time, each under the condition that nobody else has.
//!
//! Each round of such clients has one winner. If all others were refused at once, all would read the row again and
//! try again, and again one would win: with 64 clients, 128 requests for each change, and one that is unlucky
//! for seconds. So the refusals of a round wait in a queue of the row. When a change of the row is durable, those that
//! have waited longest are told that they were refused. They and the last winner are then the only ones that try,
//! and each client has its turn.
//!
//! A refusal is never held for longer than [`TURN_MAX`] beyond the moment at which it may be told: the clients
//! whose turn it is may have gone away.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::{TURN_MAX, TURNS_AT_ONCE};

/// The queues of all rows of a range.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<BTreeMap<Vec<u8>, VecDeque<oneshot::Sender<()>>>>);

/// A place in the queue of a row. Its turn has come when the other end is dropped.
#[derive(Debug)]
pub(super) struct Turn(oneshot::Receiver<()>);

impl Turns {
    /// Takes a place in the queue of a row that is being changed, or for which others wait. Otherwise `None`: the
    /// refusal need not wait.
    pub(super) fn enter(&self, key: &[u8], is_changing: bool) -> Option<Turn> {
        let mut queues = self.0.lock();
        if !is_changing && !queues.contains_key(key) {
            return None;
        }
        let (waiting, turn) = oneshot::channel();
        let queue = queues.entry(key.to_vec()).or_default();
        // Those that gave up waiting are mostly the oldest.
        while queue.front().is_some_and(oneshot::Sender::is_closed) {
            queue.pop_front();
        }
        queue.push_back(waiting);
        Some(Turn(turn))
    }

    /// A change of these rows is durable: those that have waited longest get their turn.
    pub(super) fn next<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let mut queues = self.0.lock();
        if queues.is_empty() {
            return;
        }
        for key in keys {
            let Some(queue) = queues.get_mut(key) else { continue };
            let mut given = 0;
            while given < TURNS_AT_ONCE
                && let Some(waiting) = queue.pop_front()
            {
                given += usize::from(waiting.send(()).is_ok());
            }
            queue.retain(|waiting| !waiting.is_closed());
            if queue.is_empty() {
                queues.remove(key);
            }
        }
    }
}

impl Turn {
    /// Waits until it is its turn, for a limited time.
    pub(super) async fn come(self) {
        let _ = timeout(TURN_MAX, self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const ROW: &[u8] = b"row";

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_longest_have_their_turn_first() {
        let turns = Turns::default();
        assert!(turns.enter(ROW, false).is_none(), "nobody else changes the row");
        let mut waiting: VecDeque<Turn> = (0..5).map(|_| turns.enter(ROW, true).unwrap()).collect();
        waiting.push_back(turns.enter(ROW, false).unwrap());
        assert!(turns.enter(b"another row", false).is_none());
        while !waiting.is_empty() {
            turns.next([ROW]);
            let begun = Instant::now();
            for turn in waiting.drain(..TURNS_AT_ONCE) {
                turn.come().await;
            }
            assert_eq!(begun.elapsed(), std::time::Duration::ZERO);
        }
        assert!(turns.enter(ROW, false).is_none(), "the queue is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_does_not_come_ends_the_wait_in_time_and_is_given_to_the_next() {
        let turns = Turns::default();
        let begun = Instant::now();
        turns.enter(ROW, true).unwrap().come().await;
        assert_eq!(begun.elapsed(), TURN_MAX);
        let [gone, second, third] = [(); 3].map(|()| turns.enter(ROW, true).unwrap());
        drop(gone);
        turns.next([ROW]);
        let begun = Instant::now();
        tokio::join!(second.come(), third.come());
        assert_eq!(begun.elapsed(), std::time::Duration::ZERO);
    }
}

//! Turns at a row that many clients change at the same time, each under the condition that nobody else has.
//!
//! Each round of such clients has one winner. If all others were refused at once, all would read the row again and
//! try again, and again one would win: with 64 clients, 128 requests for each change, and one that is unlucky
//! for seconds. So the refusals of a round wait in a queue of the row. When a change of the row is durable, those that
//! have tried longest are told that they were refused. They and the last winner are then the only ones that try,
//! and each client has its turn.
//!
//! Of those that have their turn at the same time, one wins. The others come back with another refusal, and keep their place:
//! the queue is ordered by the first refusal that a client met since it last changed the row. Without that, a client would
//! have to be lucky at the end of each wait, and one of a hundred waited seven times as long as the others.
//!
//! A refusal is never held for longer than [`TURN_MAX`] beyond the moment at which it may be told: the clients
//! whose turn it is may have gone away.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::{TURN_MAX, TURN_PLACES_KEPT, TURNS_AT_ONCE};

/// The queues of all rows of a range.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<BTreeMap<Vec<u8>, Queue>>);

/// The refusals of one row.
#[derive(Debug, Default)]
struct Queue {
    refusals: u64,
    /// The first refusal of each client since it last changed the row.
    places: BTreeMap<SocketAddr, u64>,
    /// Those that wait, by their client's first refusal and their own.
    waiting: BTreeMap<(u64, u64), (SocketAddr, oneshot::Sender<()>)>,
}

/// A place in the queue of a row. Its turn has come when the other end is dropped.
#[derive(Debug)]
pub(super) struct Turn(oneshot::Receiver<()>);

impl Turns {
    /// Takes a place for a client in the queue of a row that is being changed, or for which others wait. Otherwise `None`:
    /// the refusal need not wait.
    pub(super) fn enter(&self, key: &[u8], client: SocketAddr, is_changing: bool) -> Option<Turn> {
        let mut queues = self.0.lock();
        if !is_changing && !queues.contains_key(key) {
            return None;
        }
        let (waiting, turn) = oneshot::channel();
        queues.entry(key.to_vec()).or_default().push(client, waiting);
        Some(Turn(turn))
    }

    /// A change of these rows by this client is durable: those that have tried longest get their turn.
    pub(super) fn next<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>, winner: Option<SocketAddr>) {
        let mut queues = self.0.lock();
        if queues.is_empty() {
            return;
        }
        for key in keys {
            let Some(queue) = queues.get_mut(key) else { continue };
            if let Some(winner) = winner {
                queue.places.remove(&winner);
            }
            queue.next();
            if queue.waiting.is_empty() {
                queues.remove(key);
            }
        }
    }
}

impl Queue {
    fn push(&mut self, client: SocketAddr, waiting: oneshot::Sender<()>) {
        self.refusals += 1;
        let first = *self.places.entry(client).or_insert(self.refusals);
        self.waiting.insert((first, self.refusals), (client, waiting));
        if self.places.len() > self.waiting.len() + TURN_PLACES_KEPT {
            self.forget_those_away();
        }
    }

    fn next(&mut self) {
        self.waiting.retain(|_, (_, waiting)| !waiting.is_closed());
        let mut given = 0;
        while given < TURNS_AT_ONCE
            && let Some((_, (_, waiting))) = self.waiting.pop_first()
        {
            given += usize::from(waiting.send(()).is_ok());
        }
    }

    /// Takes the places of clients that do not wait. Most of them went away.
    fn forget_those_away(&mut self) {
        let waiting: BTreeSet<_> = self.waiting.values().map(|(client, _)| *client).collect();
        self.places.retain(|client, _| waiting.contains(client));
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
    use std::collections::VecDeque;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    const ROW: &[u8] = b"row";

    fn client(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    async fn comes_at_once(turn: Turn) {
        let begun = Instant::now();
        turn.come().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_longest_have_their_turn_first() {
        let turns = Turns::default();
        assert!(turns.enter(ROW, client(0), false).is_none(), "nobody else changes the row");
        let enter = |port| turns.enter(ROW, client(port), true).unwrap();
        let mut waiting: VecDeque<Turn> = (0..5).map(enter).collect();
        waiting.push_back(turns.enter(ROW, client(5), false).unwrap());
        assert!(turns.enter(b"another row", client(6), false).is_none());
        while !waiting.is_empty() {
            turns.next([ROW], None);
            for turn in waiting.drain(..TURNS_AT_ONCE) {
                comes_at_once(turn).await;
            }
        }
        assert!(turns.enter(ROW, client(0), false).is_none(), "the queue is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_lost_its_turn_has_the_next_one_and_the_winner_the_last() {
        let turns = Turns::default();
        let enter = |port| turns.enter(ROW, client(port), true).unwrap();
        let ports = 0..6;
        let mut waiting: Vec<(u16, Turn)> = ports.clone().map(|port| (port, enter(port))).collect();
        for round in ports {
            // In each round the client wins that has tried longest; those that had their turn with it lose.
            turns.next([ROW], round.checked_sub(1).map(client));
            let first: Vec<(u16, Turn)> = waiting.drain(..TURNS_AT_ONCE).collect();
            assert_eq!(first[0].0, round, "the one that has tried longest");
            for (port, turn) in first {
                comes_at_once(turn).await;
                if port != round {
                    waiting.insert(0, (port, enter(port)));
                }
            }
            // The winner of the round before has tried too, and lost.
            if let Some(winner) = round.checked_sub(1) {
                waiting.push((winner, enter(winner)));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_does_not_come_ends_the_wait_in_time_and_is_given_to_the_next() {
        let turns = Turns::default();
        let begun = Instant::now();
        turns.enter(ROW, client(0), true).unwrap().come().await;
        assert_eq!(begun.elapsed(), TURN_MAX);
        let [gone, second, third] = [1, 2, 3].map(|port| turns.enter(ROW, client(port), true).unwrap());
        drop(gone);
        turns.next([ROW], None);
        tokio::join!(comes_at_once(second), comes_at_once(third));
    }

    #[tokio::test(start_paused = true)]
    async fn places_of_clients_that_went_away_are_forgotten() {
        let turns = Turns::default();
        let stays = turns.enter(ROW, client(0), true).unwrap();
        for port in 1..3_000 {
            drop(turns.enter(ROW, client(port), true));
            turns.next([ROW], None);
            let queues = turns.0.lock();
            let kept = queues.get(ROW).map_or(0, |queue| queue.places.len());
            assert!(kept <= TURN_PLACES_KEPT + 2, "{kept} places");
        }
        drop(stays);
    }
}

//! Turns at a row that many clients change at the same time, each under the condition that nobody else has.
//!
//! Each round of such clients has one winner. If all others were refused at once, all would read the row again and
//! try again, and again one would win: with 64 clients, 128 requests for each change, and one that is unlucky
//! for seconds. So the refusals of a round wait in a queue of the row. When a change of the row is durable, those that
//! have tried longest are told that they were refused. They and the last winner are then the only ones that try,
//! and each client has its turn.
//!
//! Of those that have their turn at the same time, one wins. The others come back with another refusal, and keep their place:
//! the queue is ordered by the first refusal that a client met since it last changed the row by its ETag. Without that, a
//! client would have to be lucky at the end of each wait, and the unluckiest of a hundred waited seven times as long as it
//! takes to serve all. A client that has not won after [`TURNS_OF_PLACE`] turns loses its place: perhaps it cannot win.
//!
//! A client is a connection here. Requests that come over one connection share a place.
//!
//! A refusal is never held for longer than [`TURN_MAX`] beyond the moment at which it may be told: the clients
//! whose turn it is may have gone away. The queue of a row is forgotten, with all places, when no refusal waits in it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::{TURN_MAX, TURN_PLACES_KEPT, TURNS_AT_ONCE, TURNS_OF_PLACE};

/// The queues of all rows of a range.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<BTreeMap<Vec<u8>, Queue>>);

/// The refusals of one row.
#[derive(Debug, Default)]
struct Queue {
    /// How many there were.
    refusals: u64,
    places: BTreeMap<SocketAddr, Place>,
    /// Those that wait, in the order of their turns.
    waiting: BTreeMap<Order, (SocketAddr, oneshot::Sender<()>)>,
}

/// The first refusal of the place, and the refusal itself, as numbers.
type Order = (u64, u64);

/// What a queue knows of a client that has not changed the row yet.
#[derive(Debug)]
struct Place {
    first: u64,
    last: u64,
    /// How often it had its turn.
    turns: u32,
}

/// A refusal that waits in the queue of a row. It leaves the queue when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    key: &'t [u8],
    order: Order,
    /// Its turn has come when the other end is dropped.
    comes: oneshot::Receiver<()>,
}

impl Turns {
    /// Puts a refusal of a client into the queue of a row that is being changed, or for which others wait. Otherwise `None`:
    /// the refusal need not wait.
    pub(super) fn enter<'t>(
        &'t self,
        key: &'t [u8],
        client: SocketAddr,
        is_changing: bool,
    ) -> Option<Turn<'t>> {
        let mut queues = self.0.lock();
        if !is_changing && !queues.contains_key(key) {
            return None;
        }
        let (waiting, comes) = oneshot::channel();
        let order = queues.entry(key.to_vec()).or_default().push(client, waiting);
        Some(Turn { turns: self, key, order, comes })
    }

    /// A change of these rows is durable: those that have tried longest get their turn. `winner` is the client, if it would
    /// have tried again.
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
    fn push(&mut self, client: SocketAddr, waiting: oneshot::Sender<()>) -> Order {
        self.refusals += 1;
        let number = self.refusals;
        let place = self.places.entry(client).or_insert(Place { first: number, last: number, turns: 0 });
        if place.turns >= TURNS_OF_PLACE {
            *place = Place { first: number, last: number, turns: 0 };
        }
        place.last = number;
        let order = (place.first, number);
        self.waiting.insert(order, (client, waiting));
        if self.refusals.is_multiple_of(TURN_PLACES_KEPT) {
            self.places.retain(|_, place| place.last + TURN_PLACES_KEPT > number);
        }
        order
    }

    fn next(&mut self) {
        let mut given = 0;
        while given < TURNS_AT_ONCE
            && let Some((_, (client, waiting))) = self.waiting.pop_first()
        {
            if waiting.send(()).is_ok() {
                given += 1;
                self.places.entry(client).and_modify(|place| place.turns += 1);
            }
        }
    }
}

impl Turn<'_> {
    /// Waits until it is its turn, for a limited time.
    pub(super) async fn come(mut self) {
        let _ = timeout(TURN_MAX, &mut self.comes).await;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.comes.close();
        let mut queues = self.turns.0.lock();
        let Some(queue) = queues.get_mut(self.key) else { return };
        // If the queue was forgotten and began again, its numbers did too: the refusal may be another one's.
        if queue.waiting.get(&self.order).is_some_and(|(_, waiting)| waiting.is_closed()) {
            queue.waiting.remove(&self.order);
        }
        if queue.waiting.is_empty() {
            queues.remove(self.key);
        }
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

    async fn comes_at_once(turn: Turn<'_>) {
        let begun = Instant::now();
        turn.come().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_longest_have_their_turn_first() {
        let turns = Turns::default();
        assert!(turns.enter(ROW, client(0), false).is_none(), "nobody else changes the row");
        let enter = |port| turns.enter(ROW, client(port), true).unwrap();
        let mut waiting: VecDeque<Turn<'_>> = (0..5).map(enter).collect();
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
        let mut waiting: Vec<(u16, Turn<'_>)> = ports.clone().map(|port| (port, enter(port))).collect();
        for round in ports {
            // In each round the client wins that has tried longest; those that had their turn with it lose.
            turns.next([ROW], round.checked_sub(1).map(client));
            let first: Vec<(u16, Turn<'_>)> = waiting.drain(..TURNS_AT_ONCE).collect();
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
    async fn a_client_that_cannot_win_does_not_keep_the_turns_of_others() {
        let turns = Turns::default();
        let enter = |port| turns.enter(ROW, client(port), true).unwrap();
        // The first two cannot win. Each of the others wins when it has its turn, and does not come back.
        let mut waiting: BTreeMap<u16, Turn<'_>> = (0..12).map(|port| (port, enter(port))).collect();
        let mut won = 0;
        for _ in 0..100 {
            turns.next([ROW], None);
            let is_given = |turn: &mut Turn<'_>| turn.comes.try_recv().is_ok();
            let given: Vec<u16> =
                waiting.iter_mut().filter_map(|(port, turn)| is_given(turn).then_some(*port)).collect();
            for port in given {
                waiting.remove(&port);
                if port < 2 {
                    waiting.insert(port, enter(port));
                } else {
                    won += 1;
                }
            }
            if won == 10 {
                return;
            }
        }
        panic!("{won} of 10 had their turn");
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_of_a_row_that_nobody_changes_any_more_is_forgotten() {
        let turns = Turns::default();
        let enter = |port| turns.enter(ROW, client(port), true).unwrap();
        let late: Vec<Turn<'_>> = (0..20).map(enter).collect();
        turns.next([ROW], None);
        futures::future::join_all(late.into_iter().map(Turn::come)).await;
        assert!(turns.0.lock().is_empty());
        assert!(turns.enter(ROW, client(0), false).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn places_of_clients_that_went_away_are_forgotten_and_no_others() {
        let turns = Turns::default();
        let enter = |port| turns.enter(ROW, client(port), true).unwrap();
        let stays: Vec<Turn<'_>> = (0..3).map(enter).collect();
        for port in 3..5_000 {
            drop(enter(port));
            if port % 100 == 0 {
                // This one tries again and again.
                drop(enter(1));
            }
            let queues = turns.0.lock();
            let (places, waiting) = (queues[ROW].places.len(), queues[ROW].waiting.len());
            assert!(places as u64 <= 2 * TURN_PLACES_KEPT, "{places} places");
            assert_eq!(waiting, stays.len());
        }
        assert_eq!(enter(1).order.0, 2, "its place is that of its first refusal");
        assert!(enter(3).order.0 > 4_000, "it went away");
    }
}

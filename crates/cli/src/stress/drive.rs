//! The peak itself: sends each request at its moment, whether earlier ones were answered or not.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::book::{Asked, Book, Outcome};
use super::known::Known;
use super::plan::{Act, Plan};
use super::schedule::Schedule;
use super::sender::Sender;
use crate::progress::Progress;

/// What drives a peak.
pub(super) struct Peak {
    pub(super) plan: Arc<Plan>,
    pub(super) sender: Sender,
    pub(super) book: Arc<Mutex<Book>>,
    /// Entities that exist.
    pub(super) known: Arc<Mutex<Known>>,
    /// The number of the next new registration.
    pub(super) next: u64,
    /// Requests at the same time.
    pub(super) at_once: u32,
    pub(super) seed: u64,
}

impl Peak {
    /// Drives the peak for `time`, from `begun` on, and waits for the last answers. Returns how long it drove: less than
    /// `time` if Ctrl-C ended it.
    pub(super) async fn drive(mut self, time: Duration, begun: Instant, progress: &Progress) -> Duration {
        let mut chance = StdRng::seed_from_u64(self.seed);
        let schedule = Schedule::new(&self.plan.kinds, time, StdRng::from_rng(&mut chance));
        let room = Arc::new(Semaphore::new(self.at_once as usize));
        let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
        let mut shown = 0;
        let mut ended = time;
        for due in schedule {
            tokio::select! {
                () = tokio::time::sleep_until(begun + due.at) => {}
                _ = &mut stop => {
                    ended = begun.elapsed();
                    break;
                }
            }
            progress.add(due.at.as_secs().saturating_sub(shown));
            shown = due.at.as_secs();
            self.ask(due.kind, due.at, begun, &room, chance.random());
        }
        if ended == time {
            tokio::time::sleep_until(begun + time).await;
        }
        // Each request ends by itself, at the latest when the client gives up waiting for its answer.
        let _all = room.acquire_many(self.at_once).await;
        ended
    }

    /// Begins one request, or notes that there is no room for it.
    fn ask(&mut self, kind: usize, at: Duration, begun: Instant, room: &Arc<Semaphore>, chance: f64) {
        let Some((number, is_new)) = self.number(kind, chance) else { return };
        let asked = Asked { kind, at, partition: self.plan.keys.partition(number), is_new };
        self.book.lock().asked(&asked, begun.elapsed().saturating_sub(at));
        let requests = self.plan.kinds[kind].act.requests().min(self.at_once);
        let Ok(place) = room.clone().try_acquire_many_owned(requests) else {
            self.book.lock().ended(&asked, begun.elapsed(), Outcome::Unsent);
            return;
        };
        let (sender, book, known) = (self.sender.clone(), self.book.clone(), self.known.clone());
        tokio::spawn(async move {
            let outcome = sender.send(kind, number).await;
            if is_new && matches!(outcome, Outcome::Done(_)) {
                known.lock().add(number);
            }
            book.lock().ended(&asked, begun.elapsed(), outcome);
            drop(place);
        });
    }

    /// The registration of a request, and whether it is a new one. `None` if it needs an entity and there is none yet.
    fn number(&mut self, kind: usize, chance: f64) -> Option<(u64, bool)> {
        match self.plan.kinds[kind].act {
            Act::Insert | Act::Batch { .. } => {
                self.next += 1;
                Some((self.next - 1, true))
            }
            Act::Delete => self.known.lock().take(chance).map(|number| (number, false)),
            Act::Update | Act::Get | Act::Query { .. } => {
                self.known.lock().any(chance).map(|number| (number, false))
            }
        }
    }
}

//! Turns at the processor, for work that takes long: pages, batches and listings.
//!
//! Such work gives way after half a millisecond. But where forty pages do so, all of them are ready again at once, and a request for
//! one entity stands behind them in the queue of its thread, for 15 ms as was seen. So work that gave way is not ready again before
//! its next turn has come, and as many turns are given as there are cores. The [fair queue](crate::fair) decides whose turn is next.
//!
//! ```text
//!   the work is woken --> asks for a turn --> has it: its task is woken --> is polled --> gives the turn back
//! ```

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::coop::{has_budget_remaining, poll_proceed};
use tokio::time::Instant;

use crate::fair::Tenant;
use crate::limits::{LONG_WORK, TURN_ALONE};
use crate::room::{Place, Room};

/// More than the budget of any poll; see [`end_tick`]. Outside of a task the budget has no end, so the loop needs one.
const BUDGET_MAX: usize = 1_024;

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

impl Turns {
    /// The turns of so many cores.
    pub(crate) fn of_cores(cores: usize) -> Self {
        let cores = cores.max(1);
        Self { all: Room::of_turns(cores), long: Room::of_turns((cores - 1).max(1)) }
    }

    /// Runs `work` in turns. Each time `work` gives way, or waits for something, its turn goes to the tenant that
    /// has had the least time. Work must not run other work in turns: that would wait for a turn which the first one has.
    pub(crate) async fn run<T>(&self, tenant: Tenant, work: impl Future<Output = T>) -> T {
        let place = Arc::new(self.all.enter(tenant));
        let asks = Arc::new(AskWhenWoken { place: Arc::downgrade(&place), task: Mutex::default() });
        let waker_of_work = Waker::from(Arc::clone(&asks));
        let mut place_of_long = None;
        let mut taken = Duration::ZERO;
        let mut work = pin!(work);
        poll_fn(|context| {
            asks.task.lock().replace(context.waker().clone());
            if taken >= LONG_WORK {
                let long = place_of_long.get_or_insert_with(|| self.long.enter(tenant));
                if long.poll_take(context, 1).is_pending() {
                    // Another may run in the turn that it got when it was woken.
                    place.end_turn(Duration::ZERO, context.waker(), false);
                    return Poll::Pending;
                }
            }
            ready!(place.poll_take(context, 1));
            let begun = Instant::now();
            let result = work.as_mut().poll(&mut Context::from_waker(&waker_of_work));
            let took = begun.elapsed();
            taken += took;
            let gave_way = result.is_pending() && took >= TURN_ALONE;
            if let Some(long) = &place_of_long {
                long.end_turn(took, context.waker(), false);
            }
            // Its waker may be woken only when the thread has nothing else to do, as that of `yield_now`. Until then, others
            // would have turns that are this one's.
            place.end_turn(took, context.waker(), gave_way);
            if gave_way {
                end_tick(context);
            }
            result
        })
        .await
    }
}

/// The waker of work: it asks for a turn, in which the task is polled.
struct AskWhenWoken {
    /// A waker may be kept for longer than the work lasts.
    place: Weak<Place>,
    /// The waker of the task, once it was polled.
    task: Mutex<Option<Waker>>,
}

impl Wake for AskWhenWoken {
    fn wake(self: Arc<Self>) {
        let (Some(place), Some(task)) = (self.place.upgrade(), self.task.lock().clone()) else { return };
        place.ask_for_turn(task);
    }
}

/// Makes the thread go on with the task that has waited longest, and not with the one that was woken last.
///
/// The end of a turn wakes the work whose turn is next. A thread of the runtime polls that at once, and so up to three turns more,
/// before it takes a task from its queue or looks at its sockets. It does not if the first poll has used up the budget that all of
/// these polls have together (`tokio::task::coop`).
fn end_tick(context: &mut Context<'_>) {
    for _ in 0..BUDGET_MAX {
        match has_budget_remaining().then(|| poll_proceed(context)) {
            Some(Poll::Ready(used)) => used.made_progress(),
            Some(Poll::Pending) | None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;
    use tokio::task::yield_now;
    use tokio::time::{advance, timeout};

    use super::*;

    fn tenant(group: u64) -> Tenant {
        Tenant { group, member: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_has_taken_long_waits_until_a_core_is_left_to_others() {
        let turns = Turns::of_cores(2);
        let other = turns.long.enter(tenant(1));
        poll_fn(|context| other.poll_take(context, 1)).await;
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

    #[tokio::test]
    async fn a_task_that_is_woken_stands_behind_no_more_work_than_there_are_turns() {
        const WORKS: usize = 40;
        let turns = Turns::of_cores(2);
        let (polls, wake) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let woken = tokio::spawn({
            let (polls, wake) = (Arc::clone(&polls), Arc::clone(&wake));
            async move {
                wake.notified().await;
                polls.load(Ordering::Relaxed)
            }
        });
        let works: Vec<_> = (0..WORKS)
            .map(|number| {
                let (turns, polls, wake) = (turns.clone(), Arc::clone(&polls), Arc::clone(&wake));
                tokio::spawn(async move {
                    let work = async {
                        for round in 0..100 {
                            polls.fetch_add(1, Ordering::Relaxed);
                            if (number, round) == (0, 50) {
                                polls.store(0, Ordering::Relaxed);
                                wake.notify_one();
                            }
                            yield_now().await;
                        }
                    };
                    turns.run(tenant(0), work).await;
                })
            })
            .collect();
        let between = woken.await.unwrap();
        assert!(between <= 2, "{between} pieces of work were polled first");
        for work in works {
            work.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_with_one_piece_of_work_has_as_many_turns_as_one_with_many() {
        const ROUNDS: usize = 20;
        let (turns, of_many) = (Turns::of_cores(1), Arc::new(AtomicUsize::new(0)));
        let many: Vec<_> = (0..40)
            .map(|_| {
                let (turns, of_many) = (turns.clone(), Arc::clone(&of_many));
                let work = async move {
                    loop {
                        of_many.fetch_add(1, Ordering::Relaxed);
                        advance(TURN_ALONE).await;
                    }
                };
                tokio::spawn(async move { turns.run::<()>(tenant(2), work).await })
            })
            .collect();
        yield_now().await;
        let of_one = async {
            advance(TURN_ALONE).await;
            let before = of_many.load(Ordering::Relaxed);
            for _ in 0..ROUNDS {
                advance(TURN_ALONE).await;
            }
            of_many.load(Ordering::Relaxed) - before
        };
        let meanwhile = turns.run(tenant(1), of_one).await;
        assert!(meanwhile <= 3 * ROUNDS, "{meanwhile} turns of the other tenant during {ROUNDS}");
        many.iter().for_each(|work| work.abort());
    }

    #[tokio::test]
    async fn work_that_is_given_up_gives_its_turn_back() {
        let turns = Turns::of_cores(1);
        let waits = Notify::new();
        {
            let mut given_up = pin!(turns.run(tenant(1), waits.notified()));
            assert!(timeout(Duration::from_millis(1), &mut given_up).await.is_err());
            // It has its turn from here on, and is not polled again.
            waits.notify_waiters();
        }
        let next = turns.run(tenant(1), async { "next" });
        assert_eq!(timeout(Duration::from_secs(60), next).await, Ok("next"));
    }
}

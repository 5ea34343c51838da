//! The events of ranges: a bounded list that clients can follow.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rangehold_engine::Clock;
use rangehold_map::{RangeId, Timestamp};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::limits::EVENTS_KEPT;

/// The last events of a process, at most [`EVENTS_KEPT`]. Clones are the same list.
#[derive(Clone)]
pub struct Events(Arc<Inner>);

struct Inner {
    clock: Clock,
    kept: Mutex<VecDeque<Arc<Event>>>,
    progress: watch::Sender<Progress>,
}

/// What followers of the list watch while they wait.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The number of the last event; 0 before the first.
    newest: u64,
    /// Whether the process stops. Then followers must not wait any longer.
    ended: bool,
}

/// An event of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The number of the event, counted from 1 since the process began.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub happened: Happened,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// The kind of the event.
    pub kind: EventKind,
    /// The ranges that it concerns. If a change was done, the ranges that hold the keys now.
    pub ranges: Vec<RangeId>,
    /// The sentence for people.
    pub text: String,
    /// The version of the map in which the change is done.
    pub map_version: Option<u64>,
    /// The time for which writes were held.
    pub held_for: Option<Duration>,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A change was asked for, and is being examined.
    Asked,
    /// The change is done.
    Done,
    /// The change was not begun: it does not fit the map, or the range is not ready.
    Refused,
    /// The change was begun and undone: the range goes on as before.
    Undone,
    /// The change was begun, and is neither done nor undone yet.
    BrokenOff,
    /// Ranges were not served, or their change was broken off. Their keys are served again, by them or by other
    /// ranges.
    Mended,
    /// The cause of a range's load was found.
    Verdict,
    /// A partition server has lost its lease.
    ServerEnded,
}

impl EventKind {
    /// The name of the kind in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Undone => "undone",
            Self::BrokenOff => "broken-off",
            Self::Mended => "mended",
            Self::Verdict => "verdict",
            Self::ServerEnded => "server-ended",
        }
    }
}

impl Events {
    /// An empty list.
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Arc::new(Inner { clock, kept: Mutex::default(), progress: watch::Sender::default() }))
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn add(&self, happened: Happened) {
        let mut kept = self.kept();
        let number = kept.back().map_or(1, |last| last.number + 1);
        if kept.len() == EVENTS_KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::new(Event { number, at: self.0.clock.wall(), happened }));
        self.0.progress.send_modify(|progress| progress.newest = number);
    }

    /// Ends the waiting of all followers: no more events will come.
    pub(crate) fn end(&self) {
        self.0.progress.send_modify(|progress| progress.ended = true);
    }

    /// The events with numbers above `after` that are still kept, in their order. If this process has not reached the
    /// number `after` yet, the number comes from an earlier process, and all events are returned.
    pub fn after(&self, after: u64) -> Vec<Arc<Event>> {
        let kept = self.kept();
        let newest = kept.back().map_or(0, |last| last.number);
        let after = if after > newest { 0 } else { after };
        kept.iter().filter(|event| event.number > after).cloned().collect()
    }

    /// As [`Events::after`], but if there is no event, waits up to `wait` for the first one.
    pub async fn wait_after(&self, after: u64, wait: Duration) -> Vec<Arc<Event>> {
        let mut progress = self.0.progress.subscribe();
        let some = progress.wait_for(|progress| progress.newest != after || progress.ended);
        // No event came in time, so the list is empty.
        let _ = timeout(wait, some).await;
        self.after(after)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Event>>> {
        self.0.kept.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: String) -> Happened {
        Happened {
            kind: EventKind::Verdict,
            ranges: vec![RangeId(1)],
            text,
            map_version: None,
            held_for: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_are_kept_and_can_be_followed() {
        let events = Events::new(Clock::system());
        let follower = events.clone();
        let waiting = tokio::spawn(async move { follower.wait_after(0, Duration::from_secs(9)).await });
        tokio::task::yield_now().await;
        events.add(verdict("first".to_owned()));
        assert_eq!(waiting.await.unwrap()[0].happened.text, "first");
        assert_eq!(events.wait_after(1, Duration::from_secs(9)).await, []);
        for number in 2..=EVENTS_KEPT as u64 + 1 {
            events.add(verdict(number.to_string()));
        }
        let numbers: Vec<u64> = events.after(0).iter().map(|event| event.number).collect();
        assert_eq!(numbers, (2..=EVENTS_KEPT as u64 + 1).collect::<Vec<_>>());
        assert_eq!(events.after(EVENTS_KEPT as u64).len(), 1);
        assert_eq!(events.after(u64::MAX).len(), EVENTS_KEPT, "a number of an earlier process");
    }
}

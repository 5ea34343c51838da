//! What was seen of a lane: its requests by the second in which they were sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::story::STRETCH;

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    LetIn,
    /// With 429.
    TooMany,
    /// With 503.
    Backend,
}

/// Counts while clients work.
pub(super) struct Seen {
    asked: Vec<AtomicU64>,
    refused: Vec<AtomicU64>,
    /// All refusals, with 429 and with 503.
    by_status: [AtomicU64; 2],
}

/// The counts by the second, when the clients have ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) asked: Vec<f64>,
    pub(super) refused: Vec<f64>,
}

impl Seen {
    pub(super) fn new(whole: Duration) -> Self {
        let seconds = || (0..whole.as_secs()).map(|_| AtomicU64::new(0)).collect();
        Self { asked: seconds(), refused: seconds(), by_status: Default::default() }
    }

    /// Counts a request that was sent at this time. One that was sent after the end counts in the last second.
    pub(super) fn count(&self, sent: Duration, answered: Answered) {
        let second = (sent.as_secs() as usize).min(self.asked.len() - 1);
        self.asked[second].fetch_add(1, Ordering::Relaxed);
        let status = match answered {
            Answered::LetIn => return,
            Answered::TooMany => 0,
            Answered::Backend => 1,
        };
        self.refused[second].fetch_add(1, Ordering::Relaxed);
        self.by_status[status].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        let read = |counts: &[AtomicU64]| {
            counts.iter().map(|count| count.load(Ordering::Relaxed) as f64).collect::<Vec<f64>>()
        };
        Counts { asked: read(&self.asked), refused: read(&self.refused) }
    }

    /// Refusals with 429 and with 503.
    pub(super) fn refused(&self) -> [u64; 2] {
        self.by_status.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

impl Counts {
    /// Requests that were sent in a stretch, and how many of them were refused.
    pub(super) fn of(&self, stretch: u32) -> (f64, f64) {
        let seconds = STRETCH.as_secs() as usize;
        let seconds = stretch as usize * seconds..(stretch as usize + 1) * seconds;
        (self.asked[seconds.clone()].iter().sum(), self.refused[seconds].iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_in_the_second_and_the_stretch_in_which_they_were_sent() {
        let seen = Seen::new(STRETCH * 2);
        seen.count(Duration::from_millis(1_500), Answered::LetIn);
        seen.count(STRETCH, Answered::TooMany);
        seen.count(STRETCH * 2, Answered::Backend);
        let counts = seen.counts();
        assert_eq!((counts.asked[1], counts.refused[1]), (1.0, 0.0));
        assert_eq!([counts.of(0), counts.of(1)], [(1.0, 0.0), (2.0, 2.0)]);
        assert_eq!(seen.refused(), [1, 1]);
    }
}

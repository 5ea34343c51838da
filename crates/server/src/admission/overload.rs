//! Whether the process itself has too much to do, and what share of the requests it can bear.
//!
//! The signal is a delay that cannot lie: a task that does nothing but sleep is timed, and what it
//! oversleeps is how long any task waits that is ready to run (see `probe`). It holds for whatever
//! is short, processor or the threads of the runtime, and needs no guess of what the machine bears.
//!
//! As in CoDel, the *least* delay of an interval counts: a burst makes a queue that is soon empty,
//! and that is what queues are for; a queue that is never empty is one that only shedding ends.
//!
//! ```text
//!             least delay > half               least delay > delay_max
//!      calm <-------------------> watching ---------------------------> shedding { keep }
//!        ^       (arrivals are counted)                                    |
//!        +------- all that arrived was within the limit, and waited little +
//! ```
//!
//! While it sheds there is a *limit* on what is let in. It begins below what could be done of what
//! was let in, falls as long as the delay does not, rises slowly while there is hardly any, and stays
//! in between. What could be done is read off the delay: where it grew by a third of the interval, a
//! quarter of what was let in waits. So nothing depends on what requests cost or the machine can do, and
//! a limit that is not reached sheds nothing.

use std::time::Duration;

use crate::profile::OverloadPolicy;

/// The limit as a part of what could be done, while what is let in is too much. With it and the rise,
/// and the numbers of `cloud`, a machine that is asked for 1.2 to 3 times what it can do is busy for 93 %
/// of the time and more, and its queue stays below three times `delay_max` (simulated; so were other
/// parts, and falls that did not look at the growth: those of three times took half a minute).
const FALL: f64 = 0.9;
/// By what it rises.
const RISE: f64 = 1.05;
/// A delay below this share of the last one is falling.
const FALLING: f64 = 0.95;
/// The least share that is kept: so that a delay that has another cause than requests does not lock
/// everybody out.
const KEEP_MIN: f64 = 0.1;

/// What the last interval told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pressure {
    /// All is well, and nothing is counted.
    Calm,
    /// Arrivals are counted, so that it is known who to shed if it comes to that.
    Watching,
    /// More than can be borne.
    Shedding {
        /// The share of arrivals to be let in, of 1.
        keep: f64,
    },
}

/// What came in an interval, by weight; nothing while it is calm.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flow {
    /// Everything.
    pub(crate) arrived: f64,
    /// What was not shed.
    pub(crate) let_in: f64,
}

/// Judges delays.
#[derive(Debug)]
pub(crate) struct Overload {
    policy: OverloadPolicy,
    /// The most that is let in, while it sheds.
    limit: Option<f64>,
    watching: bool,
    room: bool,
    least: Option<Duration>,
    least_before: Duration,
    ends: Duration,
}

impl Overload {
    /// Calm, with room.
    pub(crate) fn new(policy: OverloadPolicy) -> Self {
        Self {
            policy,
            limit: None,
            watching: false,
            room: true,
            least: None,
            least_before: Duration::ZERO,
            ends: policy.interval,
        }
    }

    /// The least delay of the last interval.
    pub(crate) fn least(&self) -> Duration {
        self.least_before
    }

    /// Whether credit may be used: requests hardly wait.
    pub(crate) fn has_room(&self) -> bool {
        self.room
    }

    /// Notes one measurement; at the end of an interval, what it told. `flow` is counted from the
    /// last interval's end.
    pub(crate) fn measured(&mut self, now: Duration, delay: Duration, flow: Flow) -> Option<Pressure> {
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        if now < self.ends {
            return None;
        }
        (self.least, self.ends) = (None, now + self.policy.interval);
        self.room = least <= self.policy.room_delay_max;
        self.limit = self.next_limit(least, flow);
        self.least_before = least;
        self.watching = self.limit.is_some() || least > self.policy.delay_max / 2;
        Some(match self.limit {
            Some(limit) => Pressure::Shedding { keep: (limit / flow.arrived.max(1.0)).clamp(KEEP_MIN, 1.0) },
            None if self.watching => Pressure::Watching,
            None => Pressure::Calm,
        })
    }

    fn next_limit(&self, least: Duration, flow: Flow) -> Option<f64> {
        let too_long = least > self.policy.delay_max;
        let short = least <= self.policy.delay_max / 2;
        let falls = least < self.least_before.mul_f64(FALLING);
        let growth = least.saturating_sub(self.least_before).div_duration_f64(self.policy.interval);
        let done = flow.let_in / (1.0 + growth);
        match self.limit {
            // What came while it was calm is not known: it is watched for an interval first.
            None => (too_long && self.watching).then_some(done * FALL),
            Some(limit) if too_long && !falls => Some(limit.min(done) * FALL),
            Some(limit) if short && flow.arrived <= limit => None,
            Some(limit) if short => Some(limit * RISE),
            unchanged => unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: OverloadPolicy = OverloadPolicy {
        delay_max: Duration::from_millis(100),
        interval: Duration::from_millis(500),
        room_delay_max: Duration::from_millis(10),
    };
    /// A thousand came, and all were let in.
    const FLOW: Flow = Flow { arrived: 1_000.0, let_in: 1_000.0 };

    /// What each interval tells, when a measurement is made every 100 ms from `from` on.
    fn judged(overload: &mut Overload, from: u64, delays_ms: &[u64], flow: Flow) -> Vec<Pressure> {
        let measured = delays_ms.iter().zip(from + 1..).filter_map(|(&delay, at)| {
            overload.measured(Duration::from_millis(100 * at), Duration::from_millis(delay), flow)
        });
        measured.collect()
    }

    #[test]
    fn a_burst_is_not_an_overload() {
        let mut overload = Overload::new(POLICY);
        // Every interval has a moment at which the queue was empty.
        let told = judged(&mut overload, 0, &[900, 900, 900, 900, 0, 900, 0, 900, 900, 900], FLOW);
        assert_eq!(told, [Pressure::Calm, Pressure::Calm]);
    }

    #[test]
    fn a_standing_queue_is_shed_until_it_falls_and_let_in_again() {
        let mut overload = Overload::new(POLICY);
        assert_eq!(judged(&mut overload, 0, &[200; 5], FLOW), [Pressure::Watching]);
        assert!(!overload.has_room());
        assert_eq!(judged(&mut overload, 5, &[200; 5], FLOW), [Pressure::Shedding { keep: 0.9 }]);
        let shed = Flow { arrived: 1_000.0, let_in: 900.0 };
        // It does not fall, so less is let in; then it does.
        assert_eq!(judged(&mut overload, 10, &[200; 5], shed), [Pressure::Shedding { keep: 0.81 }]);
        assert_eq!(judged(&mut overload, 15, &[180; 5], shed), [Pressure::Shedding { keep: 0.81 }]);
        assert_eq!(judged(&mut overload, 20, &[80; 5], shed), [Pressure::Shedding { keep: 0.81 }]);
        assert_eq!(
            judged(&mut overload, 25, &[10; 5], shed),
            [Pressure::Shedding { keep: 810.0 * RISE / 1_000.0 }]
        );
        // The load goes away, and the limit with it.
        let little = Flow { arrived: 300.0, let_in: 300.0 };
        assert_eq!(judged(&mut overload, 30, &[10; 5], little), [Pressure::Calm]);
        assert!(overload.has_room());
    }

    #[test]
    fn some_are_always_let_in() {
        let mut overload = Overload::new(POLICY);
        let told = judged(&mut overload, 0, &[10_000; 500], FLOW);
        assert_eq!(told.last(), Some(&Pressure::Shedding { keep: KEEP_MIN }));
    }
}

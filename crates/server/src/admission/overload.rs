//! Decides whether the process has too much to do, and which share of the requests it can bear.
//!
//! It judges by a delay. A task that only sleeps wakes later than it should, and any task that is ready to run has to
//! wait as long (see `probe`). The delay grows when processor time is short, and also when threads of the runtime are
//! short. It needs no guess of what the machine can do.
//!
//! As in CoDel, the *least* delay of an interval counts. A burst makes a queue that is soon empty, and does no harm.
//! A queue that is never empty during an interval goes away only if requests are shed.
//!
//! ```text
//!             least delay > half               least delay > delay_max
//!      calm <-------------------> watching ---------------------------> shedding { keep }
//!        ^       (arrivals are counted)                                    |
//!        +------- all that arrived was within the limit, and waited little +
//! ```
//!
//! While the process sheds there is a *limit* on what is let in. It begins below the part of the requests that could
//! be done. It falls while the delay is too long and does not get shorter. It rises slowly while the delay is short,
//! and otherwise stays as it is. The part that could be done is computed from the delay: if the delay grew by a third
//! of the interval, a quarter of what was let in still waits. So nothing depends on what requests cost or what the
//! machine can do. A limit that is not reached sheds nothing.

use std::time::Duration;

use crate::profile::OverloadPolicy;

/// The limit as a part of what could be done, while too much is let in. This number and the rise were found by
/// simulation. With the numbers of `cloud`, a machine that gets 1.2 to 3 times the work that it can do is busy for at
/// least 93 % of the time, and its queue stays below three times `delay_max`. A limit that fell without regard to the
/// growth of the delay needed half a minute at three times the work.
const FALL: f64 = 0.9;
/// The factor by which the limit rises.
const RISE: f64 = 1.05;
/// A delay counts as falling if it is below this share of the last one.
const FALLING: f64 = 0.95;
/// The least share of the requests that is let in. Without it, a delay that has another cause than requests could
/// make the process refuse all of them.
const KEEP_MIN: f64 = 0.1;

/// The finding of the last interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pressure {
    /// The delay is small, and arrivals are not counted.
    Calm,
    /// Arrivals are counted, so that it is known which tenants to shed if that becomes necessary.
    Watching,
    /// The process has more to do than it can.
    Shedding {
        /// The share of arrivals to let in, of 1.
        keep: f64,
    },
}

/// The arrivals of an interval, by weight. They are not counted while the process is calm.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flow {
    /// All arrivals.
    pub(crate) arrived: f64,
    /// The arrivals that were let in.
    pub(crate) let_in: f64,
}

/// Judges delays, one interval after the other.
#[derive(Debug)]
pub(crate) struct Overload {
    policy: OverloadPolicy,
    /// The most that is let in while the process sheds.
    limit: Option<f64>,
    watching: bool,
    room: bool,
    least: Option<Duration>,
    least_before: Duration,
    ends: Duration,
}

impl Overload {
    /// Begins calm, with room to spare.
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

    /// Whether requests hardly wait, so that credit may be used.
    pub(crate) fn has_room(&self) -> bool {
        self.room
    }

    /// Notes one measurement. At the end of an interval, returns its finding. `flow` has the arrivals since the end
    /// of the last interval.
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
            // While the process was calm, arrivals were not counted. So one interval is watched first.
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
    /// A thousand requests came, and all were let in.
    const FLOW: Flow = Flow { arrived: 1_000.0, let_in: 1_000.0 };

    /// What each interval finds if a measurement is made every 100 ms, after the first `from` measurements.
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
        // The delay does not fall, so less is let in. Then it falls.
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

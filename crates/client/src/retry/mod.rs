//! When a failed attempt is repeated, and after which wait. Pure: the caller passes the time that has gone by and the
//! chance.
//!
//! The documents of the cloud give a formula for the wait before retry number `x`, with `x` from 1 and all times in
//! milliseconds:
//!
//! ```text
//!   y = rand(0.8 z, 1.2 z) (2^x - 1)        wait = min(zmin + y, zmax)
//! ```
//!
//! So waits about double, and clients that failed at the same moment do not come back at the same moment.
//! [`Policy::documented`] has the numbers of the documents, which suit jobs that run by themselves: `z` 30 s, `zmin` 3 s,
//! `zmax` 90 s. [`Policy::quick`], the default, is the same formula with smaller numbers.
//!
//! A policy says only how often and when. Which failures are worth a retry is the same for all of them:
//! [`is_transient`].

use std::time::Duration;

/// Tries of [`Policy::quick`].
const QUICK_TRIES: u32 = 8;

/// Whether an answer with this status says that the same request may succeed later. Other 4xx say that the request is
/// wrong, and 501 and 505 that the service will never carry it out.
pub const fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// The numbers of the formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exponential {
    /// `z`: about the growth of the first wait.
    pub z: Duration,
    /// `zmin`: what every wait has at least.
    pub min: Duration,
    /// `zmax`: the longest wait.
    pub max: Duration,
}

impl Exponential {
    /// The numbers of the cloud's documents.
    pub const DOCUMENTED: Self =
        Self { z: Duration::from_secs(30), min: Duration::from_secs(3), max: Duration::from_secs(90) };
    /// Smaller numbers, for programs with a person in front of them.
    pub const QUICK: Self =
        Self { z: Duration::from_millis(100), min: Duration::from_millis(50), max: Duration::from_secs(5) };

    /// The wait before retry number `x`, which counts from 1. `chance` is at least 0 and below 1; it chooses between
    /// `0.8 z` and `1.2 z`.
    pub fn wait(&self, x: u32, chance: f64) -> Duration {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let z = millis(self.z) * (0.8 + 0.4 * chance);
        let y = z * (2_f64.powi(x.min(64) as i32) - 1.0);
        Duration::from_secs_f64((millis(self.min) + y).min(millis(self.max)) / 1e3)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    None,
    Fixed(Duration),
    Exponential(Exponential),
}

/// How often an operation is tried, and how long each wait is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    schedule: Schedule,
    tries_max: u32,
    time_max: Option<Duration>,
}

impl Default for Policy {
    /// [`Policy::quick`].
    fn default() -> Self {
        Self::quick()
    }
}

impl Policy {
    /// One attempt only.
    pub const fn none() -> Self {
        Self { schedule: Schedule::None, tries_max: 1, time_max: None }
    }

    /// The same wait each time, `tries` attempts at most.
    pub const fn fixed(wait: Duration, tries: u32) -> Self {
        Self { schedule: Schedule::Fixed(wait), tries_max: tries, time_max: None }
    }

    /// Waits by the formula, `tries` attempts at most.
    pub const fn exponential(numbers: Exponential, tries: u32) -> Self {
        Self { schedule: Schedule::Exponential(numbers), tries_max: tries, time_max: None }
    }

    /// Waits by the formula with the numbers of the cloud's documents, `tries` attempts at most.
    pub const fn documented(tries: u32) -> Self {
        Self::exponential(Exponential::DOCUMENTED, tries)
    }

    /// Waits of about 150, 350, 750, 1,550 and 3,150 ms and then of 5 s, eight attempts at most: long enough for a range
    /// that moves, and for a service that is busy for some seconds.
    pub const fn quick() -> Self {
        Self::exponential(Exponential::QUICK, QUICK_TRIES)
    }

    /// The same policy with another limit on attempts, the first one included.
    #[must_use]
    pub const fn tries(mut self, tries: u32) -> Self {
        self.tries_max = tries;
        self
    }

    /// The same policy with a limit on time: no attempt begins later than `time` after the first one began.
    #[must_use]
    pub const fn within(mut self, time: Duration) -> Self {
        self.time_max = Some(time);
        self
    }

    /// The wait before the next attempt, after `tries` of them have failed; `None` if there is no next one. `elapsed` is
    /// the time since the first attempt began, and `chance` is as in [`Exponential::wait`].
    pub fn next(&self, tries: u32, elapsed: Duration, chance: f64) -> Option<Duration> {
        let wait = match self.schedule {
            Schedule::None => return None,
            Schedule::Fixed(wait) => wait,
            Schedule::Exponential(numbers) => numbers.wait(tries, chance),
        };
        let in_time = self.time_max.is_none_or(|time| elapsed + wait <= time);
        (tries < self.tries_max && in_time).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waits(numbers: Exponential, chance: f64) -> Vec<u128> {
        (1..=8).map(|x| numbers.wait(x, chance).as_millis()).collect()
    }

    #[test]
    fn the_waits_are_those_of_the_formula_number_by_number() {
        // By hand: 3,000 + 30,000 (0.8 | 1.0 | 1.2) (1, 3, ...), at most 90,000.
        let documented = Exponential::DOCUMENTED;
        assert_eq!(waits(documented, 0.0), [27_000, 75_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000]);
        assert_eq!(waits(documented, 0.5), [33_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000]);
        assert_eq!(waits(documented, 1.0), [39_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000]);
        // By hand: 50 + 100 (0.8 | 1.0 | 1.2) (1, 3, 7, 15, 31, 63, ...), at most 5,000.
        let quick = Exponential::QUICK;
        assert_eq!(waits(quick, 0.0), [130, 290, 610, 1_250, 2_530, 5_000, 5_000, 5_000]);
        assert_eq!(waits(quick, 0.5), [150, 350, 750, 1_550, 3_150, 5_000, 5_000, 5_000]);
        assert_eq!(waits(quick, 1.0), [170, 410, 890, 1_850, 3_770, 5_000, 5_000, 5_000]);
        assert_eq!(quick.wait(u32::MAX, 0.5), Duration::from_secs(5));
    }

    #[test]
    fn limits_on_attempts_and_on_time_end_the_retries() {
        let second = Duration::from_secs(1);
        let policy = Policy::fixed(second, 3);
        assert_eq!(
            [1, 2, 3].map(|tries| policy.next(tries, Duration::ZERO, 0.0)),
            [Some(second), Some(second), None]
        );
        assert_eq!(policy.tries(4).next(3, Duration::ZERO, 0.0), Some(second));
        let policy = policy.within(2 * second);
        assert_eq!(policy.next(1, second, 0.0), Some(second));
        assert_eq!(policy.next(1, 2 * second, 0.0), None);
        assert_eq!(Policy::none().tries(5).next(1, Duration::ZERO, 0.0), None);
        assert_eq!(Policy::default(), Policy::quick());
        assert_eq!(Policy::documented(2).next(1, Duration::ZERO, 0.5), Some(33 * second));
    }

    #[test]
    fn only_a_status_that_may_pass_is_transient() {
        let transient: Vec<u16> = (100..600).filter(|status| is_transient(*status)).collect();
        assert_eq!(transient, [408, 429, 500, 502, 503, 504]);
    }

    proptest! {
        #[test]
        fn a_wait_lies_within_the_limits_of_the_formula(z in 1..100_000_u64, x in 1..20_u32, chance in 0.0..1.0) {
            let numbers = Exponential {
                z: Duration::from_millis(z),
                min: Duration::from_millis(7),
                max: Duration::from_secs(1_000_000),
            };
            let wait = numbers.wait(x, chance).as_secs_f64() * 1e3;
            let growth = (2_u64.pow(x) - 1) as f64 * z as f64;
            prop_assert!(wait >= (7.0 + 0.8 * growth).min(1e9) - 1e-3, "{wait}");
            prop_assert!(wait <= (7.0 + 1.2 * growth).min(1e9) + 1e-3, "{wait}");
        }
    }
}

//! When each request is due. Pure: chance is passed in.
//!
//! The schedule is an *open loop*: it does not know how requests end. People come by themselves, and independently of each
//! other, so the gaps between two wishes of a kind are drawn by chance, with the mean that the rate has. A service that stops for a
//! second meets the wishes of that second afterwards, and the wait counts.

use std::time::Duration;

use rand::{Rng, RngExt};

use super::plan::Kind;

/// A request that is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Due {
    /// Since the peak began.
    pub(crate) at: Duration,
    /// The number of its kind in the plan.
    pub(crate) kind: usize,
}

/// All requests of a peak, in the order of time.
pub(crate) struct Schedule<R> {
    /// Of each kind: the seconds at which its next request is due, and its rate.
    streams: Vec<(f64, f64)>,
    until: f64,
    chance: R,
}

impl<R: Rng> Schedule<R> {
    /// The schedule of a peak that lasts for `time`.
    pub(crate) fn new(kinds: &[Kind], time: Duration, mut chance: R) -> Self {
        let streams = kinds.iter().map(|kind| (gap(&mut chance, kind.per_second), kind.per_second)).collect();
        Self { streams, until: time.as_secs_f64(), chance }
    }
}

impl<R: Rng> Iterator for Schedule<R> {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let (kind, stream) =
            self.streams.iter_mut().enumerate().min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
        let at = stream.0;
        if at >= self.until {
            return None;
        }
        stream.0 += gap(&mut self.chance, stream.1);
        Some(Due { at: Duration::from_secs_f64(at), kind })
    }
}

/// The seconds between two wishes that come independently of each other.
fn gap(chance: &mut impl Rng, per_second: f64) -> f64 {
    // Above 0, so that the logarithm is finite.
    let part = 1.0 - chance.random::<f64>();
    -part.ln() / per_second
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::stress::plan::Act;

    fn kind(per_second: f64) -> Kind {
        Kind { name: "k".to_owned(), act: Act::Get, per_second, within: Duration::from_millis(1) }
    }

    #[test]
    fn each_kind_has_its_rate_and_all_are_in_the_order_of_time() {
        let kinds = [kind(500.0), kind(50.0)];
        let chance = StdRng::seed_from_u64(7);
        let all: Vec<Due> = Schedule::new(&kinds, Duration::from_secs(20), chance).collect();
        assert!(all.is_sorted_by_key(|due| due.at));
        assert!(all.last().unwrap().at < Duration::from_secs(20));
        // The counts are of a Poisson process: within four deviations.
        for (number, expected) in [(0, 10_000.0_f64), (1, 1_000.0)] {
            let count = all.iter().filter(|due| due.kind == number).count() as f64;
            assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{count} of {expected}");
        }
        let again: Vec<Due> =
            Schedule::new(&kinds, Duration::from_secs(20), StdRng::seed_from_u64(7)).collect();
        assert_eq!(all, again, "a seed gives one schedule");
    }
}

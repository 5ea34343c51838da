//! How long requests took, in few numbers. Pure.
//!
//! A bucket is a 32nd of a power of two of microseconds wide, so a percentile is too large by at most three in a hundred.

use std::time::Duration;

/// Buckets of one power of two, as a power of two.
const FINE: u32 = 5;
/// Times of 2^40 µs, twelve days, and more are in the last bucket.
const POWERS: u32 = 40;

/// Counts of times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    longest: Duration,
}

impl Histogram {
    /// Counts one time.
    pub(crate) fn add(&mut self, took: Duration) {
        let at = bucket(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] += 1;
        self.count += 1;
        self.longest = self.longest.max(took);
    }

    /// The time within which this share of all requests, 0 to 1, was answered; `None` if there is none.
    pub(crate) fn at(&self, share: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        let upper = found.map_or(u64::MAX, upper);
        Some(Duration::from_micros(upper).min(self.longest))
    }

    /// The longest time.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }
}

/// The bucket of a time in microseconds.
fn bucket(micros: u64) -> usize {
    let micros = micros.min((1 << POWERS) - 1);
    let power = micros.checked_ilog2().unwrap_or(0);
    let shift = power.saturating_sub(FINE);
    (u64::from(shift) << FINE) as usize + (micros >> shift) as usize
}

/// The largest time of a bucket.
fn upper(bucket: usize) -> u64 {
    let (bucket, fine) = (bucket as u64, 1 << FINE);
    let shift = (bucket / fine).saturating_sub(1);
    (((bucket - (shift * fine)) + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_three_in_a_hundred() {
        let mut times = Histogram::default();
        assert_eq!(times.at(0.5), None);
        for micros in 1..=100_000_u64 {
            times.add(Duration::from_micros(micros));
        }
        for (share, micros) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0), (0.0001, 10.0)] {
            let found = times.at(share).unwrap().as_micros() as f64;
            assert!(found >= micros && found <= micros * 1.032, "{share}: {found}");
        }
        assert_eq!(times.at(1.0), Some(times.longest()));
        times.add(Duration::MAX);
        assert!(times.at(1.0).unwrap() > Duration::from_secs(1 << 19));
    }

    #[test]
    fn each_time_is_in_a_bucket_that_reaches_up_to_it() {
        for micros in (0..5_000).chain((12..39).map(|power| (1 << power) + 1)) {
            let at = bucket(micros);
            assert!(upper(at) >= micros && (at == 0 || upper(at - 1) < micros), "{micros}");
        }
    }
}

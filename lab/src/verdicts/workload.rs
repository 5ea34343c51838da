//! What a workload is: where, and how, requests come at a time.
//!
//! A workload is a function of time and chance without memory, so that the traffic of any later minute
//! can be drawn without living through the time until then: that is how the truth is told.

use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_map::load::Access;

use super::keys::{Shape, hex};

/// One request: the partition at a place of the key space, and a row in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) access: Access,
    pub(super) place: u64,
    pub(super) row: u32,
    /// Of a scan, the last place it looked at.
    pub(super) to: u64,
    pub(super) entities: u32,
}

impl Draw {
    pub(super) fn write(place: u64) -> Self {
        Self { access: Access::Write, place, row: 0, to: place, entities: 1 }
    }

    pub(super) fn read(place: u64) -> Self {
        Self { access: Access::PointRead, ..Self::write(place) }
    }

    pub(super) fn scan(place: u64, to: u64, entities: u32) -> Self {
        Self { access: Access::Scan, to, entities, ..Self::write(place) }
    }
}

/// The requests of one trial: the one that comes at a time, in seconds.
pub(super) type Requests = Box<dyn Fn(&mut StdRng, f64) -> Draw>;

/// Requests per second at a time, when 1 is the usual rate.
pub(super) type Pace = fn(f64) -> f64;

/// A named workload and what may be said of it.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Verdicts that name the cause, by their names; `none` if there should be none.
    pub(super) causes: &'static [&'static str],
    /// Makes the requests of one trial, whose places and phases are drawn.
    pub(super) make: fn(&mut StdRng) -> Requests,
    pub(super) pace: Pace,
    /// Rate and cap in shares of the usual.
    pub(super) scale: f64,
    /// How keys are written.
    pub(super) shape: Shape,
    /// Seconds to go on after a verdict against a split, for a workload that settles later.
    pub(super) patience: u32,
}

impl Workload {
    pub(super) const fn new(
        name: &'static str,
        causes: &'static [&'static str],
        make: fn(&mut StdRng) -> Requests,
    ) -> Self {
        Self { name, causes, make, pace: steady, scale: 1.0, shape: hex, patience: 0 }
    }

    pub(super) const fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    pub(super) const fn with_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    pub(super) const fn with_keys(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    pub(super) const fn with_patience(self, patience: u32) -> Self {
        Self { patience, ..self }
    }
}

fn steady(_: f64) -> f64 {
    1.0
}

/// The whole key space that places are drawn from.
pub(super) const SPACE: f64 = (1u64 << 62) as f64;

/// A place at a share of the key space, from 0 to 1.
pub(super) fn at(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * SPACE) as u64
}

/// The place of a time, in microseconds; times from a year before the start on are places.
pub(super) fn at_time(seconds: f64) -> u64 {
    ((seconds + 365.0 * 86_400.0) * 1e6) as u64
}

/// Any share.
pub(super) fn any(dice: &mut StdRng) -> f64 {
    dice.random::<f64>()
}

/// Whether an event of that chance happens.
pub(super) fn chance(dice: &mut StdRng, share: f64) -> bool {
    any(dice) < share
}

/// A draw from the standard normal distribution (Box and Muller).
pub(super) fn normal(dice: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - any(dice)).ln()).sqrt();
    radius * (std::f64::consts::TAU * any(dice)).cos()
}

/// A draw from the exponential distribution of mean 1.
pub(super) fn exponential(dice: &mut StdRng) -> f64 {
    -(1.0 - any(dice)).ln()
}

/// A share that stays the same for all times with the same number, and looks random from one to the next.
pub(super) fn hashed(seed: u64, number: u64) -> f64 {
    let mut z = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Ranks of keys by popularity: rank `r` has a share in proportion to `(r + 1)^-exponent`.
pub(super) struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    pub(super) fn new(keys: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=keys).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { sums: sums.collect() }
    }

    pub(super) fn draw(&self, dice: &mut StdRng) -> usize {
        let aim = any(dice) * self.sums.last().copied().unwrap_or(0.0);
        self.sums.partition_point(|&sum| sum < aim).min(self.sums.len() - 1)
    }
}

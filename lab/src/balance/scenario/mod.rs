//! The scenarios. Each is a function without arguments that returns lines and pictures. It also contains its pass
//! lines.

mod append;
mod crowd;
mod failures;
mod hot_key;
mod large;
mod managers;
mod poison;
mod ramp;
mod steady;
mod storm;
mod wave;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::outcome::Outcome;

/// The length of a run, in simulated seconds.
const TWO_HOURS: f64 = 7_200.0;
/// Ranges of most scenarios.
const RANGES: usize = 100_000;

/// A scenario by its name.
pub(super) type Scenario = (&'static str, fn() -> Outcome);

/// All of them, in the order of the table.
pub(super) const ALL: [Scenario; 12] = [
    ("zipf 0.99", steady::zipf_099),
    ("zipf 1.2", steady::zipf_120),
    ("flash crowd", crowd::run),
    ("append", append::run),
    ("hot key", hot_key::run),
    ("ramp", ramp::run),
    ("wave", wave::run),
    ("failures", failures::run),
    ("managers", managers::run),
    ("poison", poison::run),
    ("retry storm", storm::run),
    ("large", large::run),
];

/// Rates of ranges by Zipf's law, in random order; they sum up to `all`.
fn zipf(ranges: usize, exponent: f64, all: f64, seed: u64) -> Vec<f64> {
    let mut rates: Vec<f64> = (1..=ranges).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = rates.iter().sum();
    rates.iter_mut().for_each(|rate| *rate *= all / sum);
    rates.shuffle(&mut StdRng::seed_from_u64(seed));
    rates
}

/// Rates drawn evenly from half to one and a half of the mean.
fn even(ranges: usize, mean: f64, seed: u64) -> Vec<f64> {
    let mut dice = StdRng::seed_from_u64(seed);
    (0..ranges).map(|_| mean * dice.random_range(0.5..1.5)).collect()
}

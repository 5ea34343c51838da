//! The scenarios. Each is a function that asks for things and adds what it saw to the outcome: its pass lines are in
//! it.

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

use std::ops::Range;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::outcome::Outcome;
use super::world::{Setting, World};

/// The length of a run, in simulated seconds.
const TWO_HOURS: f64 = 7_200.0;
/// Ranges of most scenarios.
const RANGES: usize = 100_000;

/// A scenario by its name.
pub(super) type Scenario = (&'static str, fn(&mut Outcome));

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

/// A server for each range: the first one has all of `together`, as if they had been split off one another.
fn owners(setting: &Setting, together: Range<u64>) -> Vec<usize> {
    let owner = |cell| if together.contains(&cell) { 0 } else { cell as usize * 7_919 % setting.servers };
    (0..RANGES as u64).map(owner).collect()
}

/// Sets the factor of each zone, whose days of this many seconds begin one after the other.
fn turn_zones(world: &mut World, day: f64, swing: f64) {
    let (now, zones) = (world.now, world.demand.factors.len() as f64);
    for (zone, factor) in world.demand.factors.iter_mut().enumerate() {
        let phase = now / day + zone as f64 / zones;
        *factor = 1.0 + swing * (phase * std::f64::consts::TAU).sin();
    }
}

/// Asks that no split was useless minutes after it was made.
fn no_useless_split(outcome: &mut Outcome, world: &World) {
    let useless = world.useless.useless;
    outcome.ask("no useless split", useless == 0, format!("{useless} of {}", world.trace.splits));
}

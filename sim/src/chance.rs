//! The seed of a run decides everything that is random in it.
//!
//! There is one generator for each purpose. With a shared one, a single additional request of a client would change
//! every later fault of the store, and a seed that fails would pass after any change of the code.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The chance of one run.
#[derive(Debug, Clone, Copy)]
pub struct Chance(u64);

/// The generator of one purpose.
#[derive(Debug)]
pub struct Dice(StdRng);

impl Chance {
    /// The chance of the run of `seed`.
    pub fn of_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator for the purpose `name`.
    pub fn dice(self, name: &str) -> Dice {
        Dice(StdRng::seed_from_u64(self.number(name)))
    }

    /// A number for the purpose `name`, as the seed of another generator.
    pub fn number(self, name: &str) -> u64 {
        // The hasher's keys are fixed, so it gives the same number on every machine.
        let mut hasher = DefaultHasher::new();
        (self.0, name).hash(&mut hasher);
        hasher.finish()
    }
}

impl Dice {
    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// True with probability `p`.
    pub fn happens(&mut self, p: f64) -> bool {
        // A number is drawn in any case, so that later draws do not depend on `p`.
        self.0.random::<f64>() < p
    }

    /// A number between `low` and `high`, as likely to be in one power of ten as in the next.
    pub fn spread(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.random::<f64>())
    }

    /// One of `items`, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// An index into a list of `length` items, of which there is at least one.
    pub fn index(&mut self, length: usize) -> usize {
        self.0.random_range(0..length)
    }
}

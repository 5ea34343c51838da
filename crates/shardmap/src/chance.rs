//! Random ids: for mappings, shards, versions, operations and lock tokens.

use std::sync::{Mutex, PoisonError};

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng};
use uuid::{Builder, Uuid};

/// A source of random ids.
pub(crate) struct Chance(Mutex<StdRng>);

impl Chance {
    /// Makes ids from a seed: the same seed gives the same ids. Without a seed, the system gives one.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let seeded = seed.map(StdRng::seed_from_u64);
        let drawn =
            || StdRng::try_from_rng(&mut SysRng).expect("the system has random bytes, or nothing is safe");
        Self(Mutex::new(seeded.unwrap_or_else(drawn)))
    }

    pub(crate) fn id(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

//! What recording one request costs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_map::load::{Access, HotState, LoadPolicy, RangeLoad, Sample};

use super::keys::{Keys, hex};

/// Different keys in a round; more than caches of the processor hold of the range's own data.
const KEYS: usize = 10_000;
/// Rounds of all keys. The quickest counts, since other work of the machine only makes a round slower.
const ROUNDS: usize = 60;

/// Prints nanoseconds for each kind of state and traffic.
pub(super) fn print() {
    println!("ns for each recorded request (keys of {} bytes)", key_of(&mut Keys::new(hex), 0).len());
    for (name, cap, partitions) in [
        ("cold, all keys different", f64::INFINITY, u64::MAX),
        ("cold, 20 partitions", f64::INFINITY, 20),
        ("candidate, all keys different", 1_000.0, u64::MAX),
        ("candidate, 20 partitions", 1_000.0, 20),
    ] {
        println!("  {name:<30} {:>6.0}", nanoseconds(cap, partitions));
    }
}

fn nanoseconds(cap: f64, partitions: u64) -> f64 {
    let mut dice = StdRng::seed_from_u64(1);
    let mut keys = Keys::new(hex);
    let keys: Vec<Vec<u8>> =
        (0..KEYS).map(|_| key_of(&mut keys, dice.random_range(0..=partitions - 1))).collect();
    let mut load = RangeLoad::new(LoadPolicy { cap, ..LoadPolicy::fast() }, 1);
    // Into look B, in which everything is counted.
    for second in 1..=20 {
        record(&mut load, &keys);
        load.tick(Duration::from_secs(second));
    }
    let expected = if cap.is_finite() { HotState::Candidate } else { HotState::Cold };
    assert_eq!(load.observe().state, expected);
    let round = |_| {
        let began = Instant::now();
        record(&mut load, black_box(&keys));
        began.elapsed()
    };
    let quickest = (0..ROUNDS).map(round).min().unwrap_or_default();
    quickest.as_nanos() as f64 / KEYS as f64
}

fn record(load: &mut RangeLoad, keys: &[Vec<u8>]) {
    for key in keys {
        load.record(&Sample { access: Access::Write, key, high: None, entities: 1, bytes: 300 });
    }
}

fn key_of(keys: &mut Keys, place: u64) -> Vec<u8> {
    keys.key(place, 0).to_vec()
}

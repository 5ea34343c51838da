//! What memory itself costs: the floor below requests about many names, whose rows lie far apart in it.
//!
//! The processor waits for a place that it did not read lately, and the wait is charged to the server as processor time. In a
//! virtual machine a place that nobody read for a while can take much longer. So a cost that grows with the number
//! of names says little without these figures, which are taken when the servers have ended.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Reads in each measurement.
const READS: usize = 20_000;
/// So much memory is near: it fits into the caches of the processor.
const NEAR_BYTES: u64 = 1 << 20;
/// How long nothing is read before the last measurement.
const REST: Duration = Duration::from_secs(10);

/// Reads random places of a little memory, and of as much as a server held. Prints how long a read takes, with the two looks at
/// the clock around it.
pub(super) fn measure(bytes: u64) {
    println!("{:<26} {:>9} {:>9} {:>9}", "reads of random places", "p50 ns", "mean ns", "p99 ns");
    let mut rng = StdRng::seed_from_u64(0);
    Memory::filled(NEAR_BYTES).read(&format!("of {} MiB", NEAR_BYTES >> 20), &mut rng);
    let far = Memory::filled(bytes);
    far.read(&format!("of {} MiB", bytes >> 20), &mut rng);
    thread::sleep(REST);
    far.read(&format!("of these after {} s", REST.as_secs()), &mut rng);
}

/// Memory in which all pages were written.
struct Memory(Vec<u64>);

impl Memory {
    fn filled(bytes: u64) -> Self {
        Self((0..bytes / size_of::<u64>() as u64).collect())
    }

    /// Reads one place after the other, and prints how long that takes.
    fn read(&self, label: &str, rng: &mut StdRng) {
        let mut took: Vec<u128> = Vec::with_capacity(READS);
        for _ in 0..READS {
            let place = rng.random_range(0..self.0.len());
            let begun = Instant::now();
            black_box(self.0[place]);
            took.push(begun.elapsed().as_nanos());
        }
        took.sort_unstable();
        let mean = took.iter().sum::<u128>() / READS as u128;
        println!("{label:<26} {:>9} {mean:>9} {:>9}", took[READS / 2], took[READS * 99 / 100]);
    }
}

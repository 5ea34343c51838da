//! The states and verdicts of a range's load. `cargo xtask verdicts` tries many more workloads.

mod causes;
mod states;

use std::time::Duration;

use rangehold_map::load::{Access, Load, LoadPolicy, RangeLoad, Sample};
use rangehold_map::{PartitionPrefix, TableId};

/// Few requests per second, so that the tests are fast. The looks are longer in return.
const RATE: u32 = 300;

/// A request: its kind, its PartitionKey and RowKey, and for a scan, where it ended.
struct Request {
    access: Access,
    partition: String,
    row: String,
    to: Option<String>,
    entities: u32,
}

fn write(partition: String) -> Request {
    Request { access: Access::Write, partition, row: "r".to_owned(), to: None, entities: 1 }
}

fn read(partition: String) -> Request {
    Request { access: Access::PointRead, ..write(partition) }
}

fn scan(from: String, to: String, entities: u32) -> Request {
    Request { access: Access::Scan, to: Some(to), entities, ..write(from) }
}

/// The next random number (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}

fn policy() -> LoadPolicy {
    LoadPolicy { cap: 250.0, ..LoadPolicy::fast() }
}

/// A range and its time.
struct Range {
    load: RangeLoad,
    dice: Dice,
    second: u32,
}

impl Range {
    fn new(seed: u64) -> Self {
        Self { load: RangeLoad::new(policy(), seed), dice: Dice(seed), second: 0 }
    }

    /// One second with this many requests. `request` gets the time in milliseconds.
    fn second(&mut self, rate: u32, mut request: impl FnMut(&mut Dice, u64) -> Request) -> Load {
        for part in 0..rate {
            let now = u64::from(self.second) * 1_000 + u64::from(part * 1_000 / rate);
            let request = request(&mut self.dice, now);
            let key = stored(&request.partition, &request.row);
            let high = request.to.map(|to| stored(&to, "~"));
            self.load.record(&Sample {
                access: request.access,
                key: &key,
                high: high.as_deref(),
                entities: request.entities,
                bytes: 100,
            });
        }
        self.second += 1;
        self.load.tick(self.now());
        self.load.observe()
    }

    fn seconds(
        &mut self,
        seconds: u32,
        rate: u32,
        mut request: impl FnMut(&mut Dice, u64) -> Request,
    ) -> Load {
        (0..seconds).map(|_| self.second(rate, &mut request)).last().unwrap()
    }

    fn now(&self) -> Duration {
        Duration::from_secs(u64::from(self.second))
    }
}

fn stored(partition: &str, row: &str) -> Vec<u8> {
    PartitionPrefix::entity("acme", TableId(7), partition).key(row)
}

fn anywhere(dice: &mut Dice, _: u64) -> Request {
    write(format!("{:016x}", dice.roll()))
}

fn appended(_: &mut Dice, now: u64) -> Request {
    write(format!("{now:010}"))
}

//! What a workload is: where, and how, requests come at a time.
//!
//! A workload is a function of time and chance without memory, so that the traffic of any later minute
//! can be drawn without living through the time until then: that is how the truth is told.

use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_map::load::Access;
use rangehold_map::{PartitionPrefix, TableId};

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
    /// Seconds to go on after a verdict against a split, for a workload that settles later.
    pub(super) patience: u32,
}

impl Workload {
    pub(super) const fn new(
        name: &'static str,
        causes: &'static [&'static str],
        make: fn(&mut StdRng) -> Requests,
    ) -> Self {
        Self { name, causes, make, pace: steady, scale: 1.0, patience: 0 }
    }

    pub(super) const fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    pub(super) const fn with_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    pub(super) const fn with_patience(self, patience: u32) -> Self {
        Self { patience, ..self }
    }
}

fn steady(_: f64) -> f64 {
    1.0
}

/// Writes stored keys: `place` as the PartitionKey, `row` as the RowKey, both in hex, so that they sort
/// as the numbers do.
pub(super) struct Keys {
    bytes: Vec<u8>,
    place_at: usize,
}

const PLACE_DIGITS: usize = 16;
const ROW_DIGITS: usize = 8;

impl Keys {
    pub(super) fn new() -> Self {
        let zeros = "0".repeat(PLACE_DIGITS);
        let prefix = PartitionPrefix::entity("load", TableId(1), &zeros);
        let place_at = prefix.as_bytes().len() - 1 - PLACE_DIGITS;
        Self { bytes: prefix.key(&zeros[..ROW_DIGITS]), place_at }
    }

    /// The stored key of a row; valid until the next call.
    pub(super) fn key(&mut self, place: u64, row: u32) -> &[u8] {
        let row_at = self.place_at + PLACE_DIGITS + 1;
        put_hex(&mut self.bytes[self.place_at..self.place_at + PLACE_DIGITS], place);
        put_hex(&mut self.bytes[row_at..row_at + ROW_DIGITS], u64::from(row));
        &self.bytes
    }

    /// The least place whose keys lie at or above a cut.
    pub(super) fn place_of(&self, cut: &[u8]) -> u64 {
        let digits = &cut[self.place_at..self.place_at + PLACE_DIGITS];
        let place = digits.iter().fold(0, |place, digit| place << 4 | u64::from(hex_value(*digit)));
        // What ends in the closing byte is the partition itself, anything else is just above it.
        if cut.last() == Some(&0) { place } else { place + 1 }
    }
}

fn put_hex(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(value & 0xF) as usize];
        value >>= 4;
    }
}

fn hex_value(digit: u8) -> u8 {
    (digit as char).to_digit(16).map_or(0, |value| value as u8)
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

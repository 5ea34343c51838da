//! Streams of requests: which request comes at a time.
//!
//! A stream is a function of time and chance without memory, so that the traffic of any later minute can be drawn
//! without living through the time until then: that is how the truth is told. Streams are put together from
//! [`Places`], which say where a request goes at a time.

use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_map::load::Access;

use super::keys::TENANT;

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

    /// A scan between two shares of the key space.
    pub(super) fn scan(from: f64, to: f64, entities: u32) -> Self {
        Self { access: Access::Scan, to: at(to), entities, ..Self::write(at(from)) }
    }
}

/// The requests of one trial: the one that comes at a time, in seconds.
pub(super) type Requests = Box<dyn Fn(&mut StdRng, f64) -> Draw>;

/// Where a request goes that comes at a time, in seconds.
pub(super) type Places = Box<dyn Fn(&mut StdRng, f64) -> u64>;

/// Writes to these places.
pub(super) fn write(places: impl Fn(&mut StdRng, f64) -> u64 + 'static) -> Requests {
    Box::new(move |dice, now| Draw::write(places(dice, now)))
}

/// Reads of these places.
pub(super) fn read(places: impl Fn(&mut StdRng, f64) -> u64 + 'static) -> Requests {
    Box::new(move |dice, now| Draw::read(places(dice, now)))
}

/// Two streams in one: a request belongs to the first with this chance.
pub(super) fn mix(share: f64, first: Requests, second: Requests) -> Requests {
    Box::new(move |dice, now| if chance(dice, share) { first(dice, now) } else { second(dice, now) })
}

/// The same requests, each of any row of its partition.
pub(super) fn any_row(requests: Requests) -> Requests {
    Box::new(move |dice, now| {
        let draw = requests(dice, now);
        Draw { row: dice.random(), ..draw }
    })
}

/// The same requests, each of this many entities.
pub(super) fn of_entities(entities: u32, requests: Requests) -> Requests {
    Box::new(move |dice, now| Draw { entities, ..requests(dice, now) })
}

/// Every place is as likely as any other.
pub(super) fn anywhere(dice: &mut StdRng, _: f64) -> u64 {
    at(any(dice))
}

/// The one place at a share of the key space.
pub(super) fn key(share: f64) -> Places {
    Box::new(move |_, _| at(share))
}

/// Keys are times, and requests are in time.
pub(super) fn newest(_: &mut StdRng, now: f64) -> u64 {
    at_time(now)
}

/// Keys are times, from now to `seconds` ago.
pub(super) fn up_to_ago(seconds: f64) -> Places {
    Box::new(move |dice, now| at_time(now - seconds * any(dice)))
}

/// Keys are times, ever fewer the longer ago: `mean` seconds on average.
pub(super) fn about_ago(mean: f64) -> Places {
    Box::new(move |dice, now| at_time(now - mean * exponential(dice)))
}

/// Times from several clocks, each behind the one before.
pub(super) fn clocks(dice: &mut StdRng, clocks: u64, apart: f64) -> Places {
    let start = 1e7 * any(dice);
    Box::new(move |dice, now| at_time(start + now - apart * dice.random_range(0..clocks) as f64))
}

/// The same places counted from the other end.
pub(super) fn mirrored(places: impl Fn(&mut StdRng, f64) -> u64 + 'static) -> Places {
    Box::new(move |dice, now| SPACE as u64 - places(dice, now))
}

/// Tenants that append side by side.
pub(super) fn tenants(tenants: u64) -> Places {
    Box::new(move |dice, now| dice.random_range(0..tenants) * TENANT + at_time(now))
}

/// Keys by Zipf's law: in the order of their popularity, or scrambled.
pub(super) fn zipf(keys: usize, exponent: f64, scramble: Option<u64>) -> Places {
    let zipf = Zipf::new(keys, exponent);
    Box::new(move |dice, _| {
        let rank = zipf.draw(dice);
        at(scramble.map_or_else(|| rank as f64 / keys as f64, |seed| hashed(seed, rank as u64)))
    })
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

//! The stories: which names are used, how the load grows, and what must be seen of it.
//!
//! What is expected is what `docs/objects.md` says of these names. Requests come in parts, and a span that is used to the full refuses a
//! little by chance; so "all" is 99.5 %. The halves of a span bear up to a tenth more than the threshold each.

use std::ops::RangeInclusive;

use super::expected::{Expected, Of};

/// A name of a second and of a number that is spread evenly over 64 bits.
pub(super) type NameOf = fn(u64, u64) -> String;

/// Names that are used side by side, each sort as much as the others.
#[derive(Clone, Copy)]
pub(super) struct Story {
    /// The name of its picture.
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    pub(super) sorts: &'static [(&'static str, NameOf)],
    pub(super) minutes: u64,
    /// Writes each second at a minute; reads are five times as many.
    pub(super) writes: fn(u64) -> f64,
    pub(super) expected: &'static [Expected],
}

/// Reads for each write.
pub(super) const READS: f64 = 5.0;
/// The least share that counts as all.
const ALL: f64 = 0.995;
/// How much more than the threshold a span bears at most.
const UNEVEN: f64 = 1.1;
/// The same, with what chance does to an average of a minute.
const THRESHOLD_MAX: f64 = 1_101.0;

/// All of a rate.
fn all(rate: f64) -> RangeInclusive<f64> {
    ALL * rate..=1.0001 * rate
}

/// From 1,000 writes a second, twice as much after each 20 minutes, up to 16,000.
fn doubling(minute: u64) -> f64 {
    1_000.0 * f64::from(1_u32 << (minute / 20).min(4))
}

/// The same up to 32,000.
fn doubling_further(minute: u64) -> f64 {
    1_000.0 * f64::from(1_u32 << (minute / 20).min(5))
}

/// The same up to 4,000.
fn doubling_twice(minute: u64) -> f64 {
    1_000.0 * f64::from(1_u32 << (minute / 20).min(2))
}

/// Evenly spread numbers, of numbers that follow each other.
pub(super) fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The first hex digits of a number.
pub(super) fn digits(number: u64, count: usize) -> String {
    format!("{number:016x}")[..count].to_owned()
}

/// `2016-05-10-12-00-00`, and so on for each second.
fn clock(second: u64) -> String {
    let (hour, minute) = (12 + second / 3_600, second / 60 % 60);
    format!("2016-05-10-{hour:02}-{minute:02}-{:02}", second % 60)
}

/// A random name.
pub(super) fn uuid(number: u64) -> String {
    format!("{:08x}-{:04x}-4{:03x}", number >> 32, number >> 16 & 0xFFFF, number & 0xFFF)
}

/// What a load that divides makes of a bucket by the end of a minute: it has doubled so often, after each 20 minutes.
fn doubled(minute: u64, most: u64) -> RangeInclusive<f64> {
    let bears = 1_000.0 * f64::from(1_u32 << ((minute + 1) / 20).min(most));
    bears..=UNEVEN * bears
}

/// An hour of names that were all new when it began: the threshold, then twice and four times as much.
fn new_hour(minute: u64) -> RangeInclusive<f64> {
    match minute % 60 {
        1..=18 => 995.0..=THRESHOLD_MAX,
        21..=38 => 1_990.0..=2.0 * THRESHOLD_MAX,
        41..=59 => all(4_000.0),
        // A minute in which the hour or the capacity changes.
        _ => 995.0..=4_001.0,
    }
}

/// A load that divides is let in, from 1,000 writes and 5,000 reads a second to 16,000 and 80,000 after 80 minutes.
const WRITES_REACH_16_000: Expected = Expected {
    what: "all writes are let in, 16,000 a second after four doublings in 80 minutes",
    minutes: 0..100,
    of: Of::Writes,
    within: |minute| all(doubling(minute)),
};
const READS_REACH_80_000: Expected = Expected {
    what: "all reads are let in, 80,000 a second after four doublings in 80 minutes",
    minutes: 0..100,
    of: Of::Reads,
    within: |minute| all(READS * doubling(minute)),
};
/// A load that divides could go on to double.
const BORNE_DOUBLES: Expected = Expected {
    what: "what is borne doubles after each 20 minutes",
    minutes: 0..100,
    of: Of::Borne,
    within: |minute| doubled(minute, 5),
};

/// The story with a picture of this name.
#[cfg(test)]
pub(super) fn named(file: &str) -> &'static Story {
    STORIES.iter().find(|story| story.file == file).expect("there is such a story")
}

pub(super) static STORIES: [Story; 6] = [
    Story {
        file: "random",
        title: "random names",
        sorts: &[("random", |_, number| uuid(number))],
        minutes: 100,
        writes: doubling,
        expected: &[WRITES_REACH_16_000, READS_REACH_80_000, BORNE_DOUBLES],
    },
    Story {
        file: "six-digits",
        title: "<6 hex digits>-2016-05-10-12-00-00/file1",
        sorts: &[("six digits", |second, number| format!("{}-{}/file1", digits(number, 6), clock(second)))],
        minutes: 100,
        writes: doubling,
        expected: &[WRITES_REACH_16_000, READS_REACH_80_000, BORNE_DOUBLES],
    },
    Story {
        file: "one-digit",
        title: "<1 hex digit>/2016-05-10-12-00-00/file1, one doubling too far",
        sorts: &[("one digit", |second, number| format!("{}/{}/file1", digits(number, 1), clock(second)))],
        minutes: 140,
        writes: doubling_further,
        expected: &[
            WRITES_REACH_16_000,
            READS_REACH_80_000,
            Expected {
                what: "no faster than documented, and 16 times the threshold at last",
                minutes: 0..140,
                of: Of::Borne,
                within: |minute| doubled(minute, 4),
            },
            Expected {
                what: "no more than 16 times the threshold is let in",
                minutes: 101..140,
                of: Of::Writes,
                within: |_| 15_920.0..=16.0 * THRESHOLD_MAX,
            },
            Expected {
                what: "no more than 16 times the threshold is let in",
                minutes: 101..140,
                of: Of::Reads,
                within: |_| 79_600.0..=READS * 16.0 * THRESHOLD_MAX,
            },
        ],
    },
    Story {
        file: "two-digits",
        title: "<2 hex digits>/2016-05-10-12-00-00/file1, one doubling further",
        sorts: &[("two digits", |second, number| format!("{}/{}/file1", digits(number, 2), clock(second)))],
        minutes: 140,
        writes: doubling_further,
        expected: &[
            WRITES_REACH_16_000,
            READS_REACH_80_000,
            Expected {
                what: "no better than one digit up to 16 times the threshold",
                minutes: 0..99,
                of: Of::Borne,
                within: |minute| doubled(minute, 4),
            },
            Expected {
                what: "beyond that it goes on",
                minutes: 102..140,
                of: Of::Writes,
                within: |_| 0.98 * 32_000.0..=32_000.0,
            },
        ],
    },
    Story {
        file: "folders",
        title: "images/animals/<uuid>, images/landscape/<uuid> and images/clouds/<number>",
        sorts: &[
            ("animals", |_, number| format!("images/animals/{}/1.jpg", uuid(number))),
            ("landscape", |_, number| format!("images/landscape/{}/1.jpg", uuid(number))),
            ("clouds", |second, _| format!("images/clouds/{second:08}.jpg")),
        ],
        minutes: 100,
        writes: |minute| doubling(minute).min(8_000.0),
        expected: &[
            Expected {
                what: "random names are borne beside names that grow",
                minutes: 0..100,
                of: Of::Sort(1),
                within: |minute| all(doubling(minute).min(8_000.0) / 3.0),
            },
            Expected {
                what: "random names are borne as soon as they have spans of their own",
                minutes: 81..100,
                of: Of::Sort(0),
                within: |_| all(8_000.0 / 3.0),
            },
            Expected {
                what: "names that grow stay at the threshold",
                minutes: 41..100,
                of: Of::Sort(2),
                within: |_| 995.0..=THRESHOLD_MAX,
            },
        ],
    },
    Story {
        file: "by-the-hour",
        title: "2016-05-10-12/<uuid>: a prefix for each hour",
        sorts: &[("by the hour", |second, number| format!("{}/{}", &clock(second)[..13], uuid(number)))],
        minutes: 240,
        writes: doubling_twice,
        expected: &[
            Expected {
                what: "the first hour is borne",
                minutes: 0..60,
                of: Of::Writes,
                within: |minute| all(doubling_twice(minute)),
            },
            Expected {
                what: "each later hour begins at the threshold again",
                minutes: 60..240,
                of: Of::Writes,
                within: new_hour,
            },
        ],
    },
];

//! The stories: which names are used, what is asked for, and what is borne.
//!
//! A story has lanes: sorts of names that are written or read side by side. Rates are in thresholds, those of one span: 1,000
//! writes or 5,000 reads a second, divided by a hundred.
//!
//! A stretch stands for 20 minutes. It is a little longer than their minute, so that a bucket has doubled when the next one begins.

use std::time::Duration;

use rangehold_map::capacity::{Rules, Usage};

use super::schedule::Schedule;
use crate::rates::story::{NameOf, digits, scattered, uuid};

/// What the rates of the cloud are multiplied by.
const RATE_SCALE: f64 = 0.01;
/// How much faster than real time the clock of the ramp runs.
pub(super) const TIME_SCALE: u64 = 20;
/// The 20 minutes after which a bucket doubles, by the faster clock.
pub(super) const DOUBLES_AFTER: Duration = Duration::from_secs(20 * 60 / TIME_SCALE);
/// So long a rate is asked for.
pub(super) const STRETCH: Duration = Duration::from_secs(62);
/// Stretches of 20 minutes in an hour.
const STRETCHES_OF_AN_HOUR: u32 = 3;
/// Random names that are read.
const READ_NAMES: u64 = 4_096;

/// Names that are used side by side, in one bucket.
pub(super) struct Story {
    /// The name of its picture. If it has both usages, there are two pictures, with the usage behind the name.
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    pub(super) stretches: u32,
    pub(super) lanes: &'static [Lane],
}

/// Names of one sort that are written or read.
pub(super) struct Lane {
    pub(super) label: &'static str,
    pub(super) usage: Usage,
    /// The name of the second in which a request is due, and of its number.
    pub(super) name: NameOf,
    /// Thresholds that are asked for in each stretch.
    pub(super) asked: fn(u32) -> f64,
    /// Thresholds that these names bear after so many times 20 minutes.
    pub(super) borne: fn(u32) -> f64,
    /// Clients at once. Requests wait for up to a second, so as many as are borne in a second can be busy with waiting.
    pub(super) clients: u64,
}

/// The arguments of the servers.
pub(super) fn arguments() -> Vec<String> {
    let (rates, time) = (RATE_SCALE.to_string(), TIME_SCALE.to_string());
    ["--profile", "cloud", "--rate-scale", &rates, "--time-scale", &time].map(str::to_owned).into()
}

/// Requests each second that a span bears.
pub(super) fn threshold(usage: Usage) -> f64 {
    Rules::documented().scaled(RATE_SCALE).threshold(usage)
}

impl Story {
    /// The requests of a lane.
    pub(super) fn schedule(&self, lane: &Lane) -> Schedule {
        let threshold = threshold(lane.usage);
        Schedule::new(STRETCH, (0..self.stretches).map(|stretch| threshold * (lane.asked)(stretch)).collect())
    }

    pub(super) fn whole(&self) -> Duration {
        STRETCH * self.stretches
    }

    /// What its lanes do, each once.
    pub(super) fn usages(&self) -> impl Iterator<Item = Usage> {
        Usage::BOTH.into_iter().filter(|usage| self.lanes.iter().any(|lane| lane.usage == *usage))
    }
}

/// Doubled after each stretch.
fn doubling(stretch: u32) -> f64 {
    f64::from(1_u32 << stretch)
}

/// The same up to 16.
fn up_to_16(stretch: u32) -> f64 {
    doubling(stretch.min(4))
}

/// Half of a load that doubles.
fn half(stretch: u32) -> f64 {
    doubling(stretch) / 2.0
}

/// The same up to the threshold.
fn half_up_to_1(stretch: u32) -> f64 {
    half(stretch).min(1.0)
}

/// Doubled after each stretch of an hour, and new with each hour.
fn by_the_hour(stretch: u32) -> f64 {
    doubling(stretch % STRETCHES_OF_AN_HOUR)
}

/// The story of names that are spread by more than one digit. From the beginning 16 times the threshold is asked for.
const fn at_once(file: &'static str, title: &'static str, lanes: &'static [Lane; 1]) -> Story {
    Story { file, title, stretches: 5, lanes }
}

/// The lane of such a story.
const fn spread(label: &'static str, name: NameOf) -> Lane {
    Lane { label, usage: Usage::Write, name, asked: |_| 16.0, borne: doubling, clients: 256 }
}

fn write_of_a_digit(second: u64, number: u64) -> String {
    format!("{}/{second:08}-{number:06}", digits(scattered(number), 1))
}

fn read_of_a_digit(second: u64, number: u64) -> String {
    format!("{}/{second:08}", digits(scattered(number), 1))
}

fn in_an_hour(second: u64, number: u64) -> String {
    let hour = second / (STRETCH.as_secs() * u64::from(STRETCHES_OF_AN_HOUR));
    format!("2016-05-10-{}/{}", 12 + hour, uuid(scattered(number)))
}

pub(super) static STORIES: [Story; 6] = [
    at_once("live-random", "random names", &[spread("random", |_, number| uuid(scattered(number)))]),
    at_once(
        "live-six-digits",
        "<6 hex digits>-<time>/<number>",
        &[spread("six digits", |second, number| {
            format!("{}-{second:08}/{number:06}", digits(scattered(number), 6))
        })],
    ),
    at_once(
        "live-two-digits",
        "<2 hex digits>/<time>/<number>",
        &[spread("two digits", |second, number| {
            format!("{}/{second:08}/{number:06}", digits(scattered(number), 2))
        })],
    ),
    Story {
        file: "live-one-digit",
        title: "<1 hex digit>/<time>, written and read, one doubling too far",
        stretches: 6,
        lanes: &[
            Lane {
                label: "one digit",
                usage: Usage::Write,
                name: write_of_a_digit,
                asked: doubling,
                borne: up_to_16,
                clients: 256,
            },
            Lane {
                label: "one digit",
                usage: Usage::Read,
                name: read_of_a_digit,
                asked: doubling,
                borne: up_to_16,
                clients: 1_024,
            },
        ],
    },
    Story {
        file: "live-folders",
        title: "images/animals/<uuid> beside images/clouds/<time>, written and read",
        stretches: 5,
        lanes: &[
            Lane {
                label: "animals",
                usage: Usage::Write,
                name: |_, number| format!("images/animals/{}/1.jpg", uuid(scattered(number))),
                asked: half,
                borne: half,
                clients: 128,
            },
            Lane {
                label: "animals",
                usage: Usage::Read,
                name: |_, number| format!("images/animals/{}/0.jpg", uuid(scattered(number % READ_NAMES))),
                asked: half,
                borne: half,
                clients: 512,
            },
            Lane {
                label: "clouds",
                usage: Usage::Write,
                name: |second, number| format!("images/clouds/{second:08}-{number:06}.jpg"),
                asked: half,
                borne: half_up_to_1,
                clients: 32,
            },
            Lane {
                label: "clouds",
                usage: Usage::Read,
                name: |second, _| format!("images/clouds/{second:08}.jpg"),
                asked: half,
                borne: half_up_to_1,
                clients: 128,
            },
        ],
    },
    Story {
        file: "live-by-the-hour",
        title: "<hour>/<uuid>, two hours",
        stretches: 2 * STRETCHES_OF_AN_HOUR,
        lanes: &[Lane {
            label: "by the hour",
            usage: Usage::Write,
            name: in_an_hour,
            asked: |stretch| doubling(stretch.min(2)),
            borne: by_the_hour,
            clients: 64,
        }],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_is_written_twice_and_the_names_that_are_read_are_few() {
        for story in &STORIES {
            for lane in story.lanes {
                let requests: Vec<(Duration, u64)> = story.schedule(lane).all().collect();
                let names: BTreeSet<String> =
                    requests.iter().map(|(due, number)| (lane.name)(due.as_secs(), *number)).collect();
                match lane.usage {
                    Usage::Write => assert_eq!(names.len(), requests.len(), "{}: {}", story.file, lane.label),
                    Usage::Read => assert!(names.len() < 10_000, "{}: {}", story.file, names.len()),
                }
            }
        }
    }

    #[test]
    fn the_digits_of_names_are_used_evenly() {
        let mut counts = [0_u32; 16];
        for number in 0..1_600 {
            let name = write_of_a_digit(0, number);
            counts[usize::from_str_radix(&name[..1], 16).expect("it begins with a digit")] += 1;
        }
        assert!(counts.iter().all(|count| (95..=105).contains(count)), "{counts:?}");
    }
}

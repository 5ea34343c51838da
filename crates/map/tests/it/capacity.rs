//! What buckets bear, as time goes by: what must hold for every load, and a golden file of some.

use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;
use rangehold_map::capacity::{Answer, Capacity, Rules, Usage};

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;
/// Requests are poured in so many parts each second.
const PARTS: u64 = 64;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Random bits of a number, always the same. The parts of a second come by chance, so spans that are used to the full refuse
/// a little.
fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

/// A bucket, its clock and the sort of names that are written to it.
struct Bucket {
    capacity: Capacity,
    now: u64,
}

impl Bucket {
    fn new() -> Self {
        Self { capacity: Capacity::new(Rules::documented(), Duration::ZERO, Duration::ZERO, 7), now: 0 }
    }

    /// Asks for so many writes each second, and returns the share that was let in. `name` makes a name of the second and
    /// of a random number.
    fn write(&mut self, rate: f64, lasting: u64, name: &dyn Fn(u64, u64) -> String) -> f64 {
        self.ask(Usage::Write, rate, lasting, name)
    }

    fn ask(&mut self, usage: Usage, rate: f64, lasting: u64, name: &dyn Fn(u64, u64) -> String) -> f64 {
        let mut passed = 0.0;
        for _ in 0..lasting {
            for part in 0..PARTS {
                let name = name(self.now, scattered(self.now * PARTS + part));
                passed += self.capacity.pour(seconds(self.now), name.as_bytes(), usage, rate / PARTS as f64);
            }
            self.now += 1;
            self.capacity.tick(seconds(self.now), seconds(self.now));
        }
        passed / rate / lasting as f64
    }

    fn rest(&mut self, lasting: u64) {
        for _ in 0..lasting / MINUTE {
            self.now += MINUTE;
            self.capacity.tick(seconds(self.now), seconds(self.now));
        }
    }

    /// Doubles a load of `name` each 20 minutes, so often, and once more.
    fn ramp(&mut self, doublings: u32, name: &dyn Fn(u64, u64) -> String) -> Vec<f64> {
        let rates = (0..=doublings).map(|doubling| 1_000.0 * f64::from(1 << doubling));
        rates.map(|rate| self.write(rate, 20 * MINUTE, name)).collect()
    }
}

fn random(_: u64, chance: u64) -> String {
    format!("{chance:016x}")
}

fn digit(second: u64, chance: u64) -> String {
    format!("{:x}/{second:010}", chance >> 60)
}

fn one_front(second: u64, _: u64) -> String {
    format!("log/{second:010}")
}

#[test]
fn loads_are_borne_as_the_documents_say() {
    let by_the_hour = |second: u64, chance: u64| format!("2016-05-10-{:02}/{chance:016x}", second / 3_600);
    let mut table = String::from(
        "# Doubled each 20 minutes from 1,000 writes/s: share let in, and what is borne at last.\n",
    );
    for (title, name) in [
        ("random names", &random as &dyn Fn(u64, u64) -> String),
        ("one hex digit before a time", &digit),
        ("a time", &one_front),
        ("random names behind the hour", &by_the_hour),
    ] {
        let mut bucket = Bucket::new();
        let let_in = bucket.ramp(3, name);
        let let_in: Vec<String> =
            let_in.into_iter().map(|share| format!("{:3.0} %", share * 100.0)).collect();
        let bears = bucket.capacity.bears(Usage::Write) / 1_000.0;
        writeln!(table, "{title:30} {}   {bears:.0},000", let_in.join(" ")).unwrap();
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/capacity.txt");
    if std::env::var_os("GOLDEN_WRITE").is_some() {
        std::fs::write(file, &table).unwrap();
    }
    assert_eq!(table, std::fs::read_to_string(file).unwrap());
}

#[test]
fn what_was_grown_survives_a_restart_and_goes_after_days_of_rest() {
    let mut bucket = Bucket::new();
    bucket.ramp(2, &random);
    let grown = bucket.capacity.spans().len();
    assert!(grown >= 4);
    let stored = bucket.capacity.encode(1.0);
    let restored = |after: u64| {
        let at = seconds(bucket.now + after);
        let capacity = Capacity::restore(&stored, 1.0, Rules::documented(), at, at, 9).unwrap();
        capacity.spans().len()
    };
    assert_eq!([restored(0), restored(2 * DAY), restored(5 * DAY)], [grown, grown, 1]);
    // The bucket that runs falls back as well, and not before.
    bucket.rest(2 * DAY);
    assert_eq!(bucket.capacity.spans().len(), grown);
    bucket.rest(3 * DAY);
    assert_eq!(bucket.capacity.spans().len(), 1);
    // Every cut of the stored form is refused, and nothing panics.
    let is_refused = |length| {
        Capacity::restore(&stored[..length], 1.0, Rules::documented(), seconds(0), seconds(0), 9).is_err()
    };
    assert!((0..stored.len()).all(is_refused));
}

#[test]
fn a_load_that_falls_to_what_half_of_the_spans_bear_keeps_its_spans() {
    let mut bucket = Bucket::new();
    bucket.ramp(1, &random);
    let spans = bucket.capacity.spans().len();
    for _ in 0..10 * 24 {
        bucket.write(1_200.0, 5 * MINUTE, &random);
        bucket.rest(55 * MINUTE);
    }
    assert_eq!(bucket.capacity.spans().len(), spans);
    assert!(bucket.write(1_200.0, 60, &random) > 0.999);
}

#[test]
fn a_bucket_that_is_too_busy_is_late_then_refuses_and_recovers_in_a_pause() {
    let mut capacity = Capacity::new(Rules::documented(), Duration::ZERO, Duration::ZERO, 7);
    let mut ask = |ms: u64| capacity.ask(Duration::from_millis(ms), b"a", Usage::Write);
    let answers: Vec<Answer> = (0..2_001).map(|_| ask(0)).collect();
    assert!(answers[..1_000].iter().all(|answer| *answer == Answer::Now));
    assert_eq!(answers[1_999], Answer::Late(Duration::from_secs(1)));
    assert_eq!(answers[2_000], Answer::Refused);
    assert_eq!(ask(2_000), Answer::Now);
    // Reads have a budget of their own.
    assert_eq!(capacity.ask(Duration::ZERO, b"a", Usage::Read), Answer::Now);
}

#[test]
fn a_bucket_with_a_hierarchical_namespace_begins_eight_times_higher() {
    let rules = Rules::documented().hierarchical();
    let capacity = Capacity::new(rules, Duration::ZERO, Duration::ZERO, 7);
    assert_eq!(Usage::BOTH.map(|usage| capacity.bears(usage)), [8_000.0, 40_000.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// However a load comes and goes: what is borne at most doubles in 20 minutes (a tenth more, for uneven cuts); each
    /// name always has the threshold; no second lets in more than two seconds' worth; and a stored bucket is the same one.
    #[test]
    fn no_load_grows_a_bucket_faster_than_documented(
        phases in prop::collection::vec((0..3_usize, 0..6_000_u32, 1..30_u64), 1..5),
    ) {
        let sorts: [&dyn Fn(u64, u64) -> String; 3] = [&random, &digit, &one_front];
        let mut bucket = Bucket::new();
        let mut borne = vec![bucket.capacity.bears(Usage::Write)];
        for (sort, rate, minutes) in phases {
            for _ in 0..minutes {
                let before = bucket.capacity.bears(Usage::Write);
                let share = bucket.write(f64::from(rate.max(1)), MINUTE, sorts[sort]);
                prop_assert!(share * f64::from(rate) <= (before + bucket.capacity.bears(Usage::Write)) * 1.04);
                borne.push(bucket.capacity.bears(Usage::Write));
                if let Some(earlier) = borne.len().checked_sub(20) {
                    let first = borne[earlier];
                    prop_assert!(borne[borne.len() - 1] <= 2.2 * first + 1e-6, "{borne:?}");
                }
                prop_assert!(bucket.capacity.spans().all(|span| (1_000.0..=1_100.001).contains(&span.bears[0])));
            }
        }
        let (at, stored) = (seconds(bucket.now), bucket.capacity.encode(1.0));
        let restored = Capacity::restore(&stored, 1.0, Rules::documented(), at, at, 1).unwrap();
        prop_assert_eq!(restored.encode(1.0), stored);
    }
}

//! Which names of objects are said to scale, in a golden file: samples of names, and what is found in them.

use std::fmt::Write as _;
use std::time::Duration;

use rangehold_map::load::{Cause, Manner, Travel, Verdict};
use rangehold_map::names::findings;
use rangehold_map::{BucketId, PartitionPrefix};

/// Names of a sample; the second argument is 0 for the earlier and 1 for the later one.
type Sample = fn(u64, u64) -> String;

fn scattered(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

const SAMPLES: [(&str, Sample); 8] = [
    ("random names", |number, later| format!("{:016x}", scattered(number + 1_000 * later))),
    ("a time in front", |number, later| format!("2016-05-10-12-{later:02}-{number:02}/file1")),
    ("six hex digits before the time", |number, later| {
        format!("{:06x}-2016-05-10-12-{later:02}-{number:02}/file1", scattered(number + 77 * later) >> 40)
    }),
    ("one hex digit before the time", |number, later| {
        format!("{:x}/2016-05-10-12-{later:02}-{:02}", number % 16, number / 2)
    }),
    ("random names behind the hour", |number, later| {
        format!("2016-05-10-12/{:016x}.jpg", scattered(number + 1_000 * later))
    }),
    ("three folders of images", |number, later| match number % 3 {
        0 => format!("images/clouds/{:06}.jpg", number + 1_000 * later),
        1 => format!("images/animals/{:016x}/1.jpg", scattered(number + 1_000 * later)),
        _ => format!("images/landscape/{:016x}/1.jpg", scattered(number + 5_000 * later)),
    }),
    ("one name", |_, _| "counters/visits.json".to_owned()),
    ("names that shrink", |number, later| format!("log/{:06}", 9_999 - number - 1_000 * later)),
];

#[test]
fn people_learn_which_of_their_names_scale() {
    let mut text = String::new();
    for (title, sample) in SAMPLES {
        let [earlier, later] =
            [0, 1].map(|later| (0..120).map(|number| sample(number, later)).collect::<Vec<_>>());
        let [earlier, later] =
            [&earlier, &later].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        writeln!(text, "{title}").unwrap();
        for finding in findings(&earlier, &later) {
            writeln!(text, "  {}: {}", finding.growth.name(), finding.sentence()).unwrap();
        }
    }
    writeln!(text, "verdicts of ranges").unwrap();
    for name in ["images/clouds/000123.jpg", "2016-05-10-12/3f2a.jpg"] {
        let front = PartitionPrefix::object(BucketId(7), name).as_bytes().to_vec();
        let travel = Travel { manner: Manner::Ahead, share: 0.9, over: Duration::from_secs(60), front };
        let split = Cause::Split { at: travel.front.clone(), above: 0.5, frontier: false };
        for cause in [Cause::Append(travel), split] {
            let verdict = Verdict { cause, at: Duration::ZERO, until: Duration::from_secs(1_800) };
            writeln!(text, "  {}", verdict.sentence(&|_, _| None)).unwrap();
        }
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/names.txt");
    if std::env::var_os("GOLDEN_WRITE").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(file).unwrap());
}

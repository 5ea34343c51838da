//! Which names of objects are said to scale, in a golden file: samples of names, and what is found in them.

use std::fmt::Write as _;
use std::time::Duration;

use rangehold_map::load::{BucketTitle, Cause, Manner, Titles, Travel, Verdict};
use rangehold_map::names::{Finding, Growth, Namespace, findings};
use rangehold_map::{BucketId, PartitionPrefix};

/// Names of a sample; the second argument is 0 for the earlier and 1 for the later one.
type Sample = fn(u64, u64) -> String;

fn scattered(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

const SAMPLES: [(&str, Sample); 9] = [
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
    ("two folders, numbers without zeros in front", |number, later| match number % 2 {
        0 => format!("images/clouds/{}.jpg", 1 + number + 120 * later),
        _ => format!("images/animals/{:016x}/1.jpg", scattered(number + 1_000 * later)),
    }),
    ("one name", |_, _| "counters/visits.json".to_owned()),
    ("names that shrink", |number, later| format!("log/{:06}", 9_999 - number - 1_000 * later)),
];

fn found_in(sample: Sample) -> Vec<Finding> {
    let [earlier, later] =
        [0, 1].map(|later| (0..120).map(|number| sample(number, later)).collect::<Vec<_>>());
    let [earlier, later] =
        [&earlier, &later].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    findings(&earlier, &later)
}

/// What is said of a range whose load is around an object.
fn verdicts(text: &mut String, name: &str, titles: Titles<'_>) {
    let front = PartitionPrefix::object(BucketId(7), name).as_bytes().to_vec();
    let travel = Travel { manner: Manner::Ahead, share: 0.9, over: Duration::from_secs(60), front };
    let split = Cause::Split { at: travel.front.clone(), above: 0.5, frontier: false };
    let hot = Cause::HotKey { key: travel.front.clone(), share: 0.6, row: None };
    for cause in [Cause::Append(travel), split, hot] {
        let verdict = Verdict { cause, at: Duration::ZERO, until: Duration::from_secs(1_800) };
        writeln!(text, "  {}", verdict.sentence(titles)).unwrap();
    }
}

#[test]
fn people_learn_which_of_their_names_scale() {
    let mut text = String::new();
    for (title, sample) in SAMPLES {
        writeln!(text, "{title}").unwrap();
        for finding in found_in(sample) {
            writeln!(text, "  {}: {}", finding.growth.name(), finding.sentence(Namespace::Flat)).unwrap();
        }
    }
    writeln!(text, "in a bucket with folders").unwrap();
    for (_, sample) in SAMPLES {
        for finding in found_in(sample).into_iter().filter(|finding| finding.growth != Growth::Spreads) {
            writeln!(text, "  {}", finding.sentence(Namespace::Folders)).unwrap();
        }
    }
    writeln!(text, "verdicts of ranges").unwrap();
    for name in ["images/clouds/000123.jpg", "2016-05-10-12/3f2a.jpg", "0000000000000012/000123.jpg"] {
        verdicts(&mut text, name, Titles::UNKNOWN);
    }
    for (namespace, names) in [
        (Namespace::Flat, ["images/clouds/000123.jpg", "0000000000000012/000123.jpg"]),
        (Namespace::Folders, ["0000000000000012/000123.jpg", ""]),
    ] {
        writeln!(text, "of a bucket whose name is known: {namespace:?}").unwrap();
        let bucket = |_| Some(BucketTitle { name: "photos".to_owned(), namespace });
        for name in names {
            verdicts(&mut text, name, Titles { bucket: &bucket, ..Titles::UNKNOWN });
        }
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/names.txt");
    if std::env::var_os("GOLDEN_WRITE").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(file).unwrap());
}

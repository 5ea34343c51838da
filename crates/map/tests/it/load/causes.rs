//! The verdicts for several loads, and their sentences.

use proptest::prelude::*;
use rangehold_map::key::is_partition_boundary;
use rangehold_map::load::{Cause, HotState, Titles, Verdict};

use super::{Dice, RATE, Range, Request, anywhere, appended, read, scan, stored, write};

/// A workload: the request at a time, in milliseconds.
type Workload = fn(&mut Dice, u64) -> Request;

/// The time in milliseconds at which the keys begin.
const START: u64 = 5_000_000;

const WORKLOADS: [(&str, &str, Workload); 17] = [
    ("anywhere", "split", anywhere),
    ("append", "append", appended),
    ("prepend", "prepend", |_, now| write(format!("{:010}", 9_999_999 - now))),
    ("append, a minute late", "append", |dice, now| {
        write(format!("{:010}", START + now - dice.below(60_000)))
    }),
    ("prepend, five minutes late", "prepend", |dice, now| {
        write(format!("{:010}", START - now + dice.below(300_000)))
    }),
    ("clocks two minutes apart", "append", |dice, now| {
        write(format!("{:010}", START + now - 120_000 * dice.below(2)))
    }),
    ("100 tenants append", "split", |dice, now| write(format!("{:03}/{now:010}", dice.below(100)))),
    ("two tenants append", "split", |dice, now| write(format!("{:03}/{now:010}", dice.below(2)))),
    ("one of 20 tenants appends 80 %", "append", |dice, now| {
        let tenant = if dice.percent(80) { 9 } else { dice.below(20) };
        write(format!("{tenant:03}/{now:010}"))
    }),
    ("append and reads of the past", "split", |dice, now| {
        let at =
            if dice.percent(60) { return write(format!("{:010}", START + now)) } else { dice.below(START) };
        read(format!("{at:010}"))
    }),
    ("one row has 60 %", "hot-key", |dice, _| {
        if dice.percent(60) {
            write("7777".to_owned())
        } else {
            write(format!("{:04x}", dice.below(1 << 16)))
        }
    }),
    ("one partition in the middle has 45 %", "hot-key", |dice, _| {
        if dice.percent(45) {
            Request { row: format!("{:x}", dice.roll()), ..write("8000".to_owned()) }
        } else {
            write(format!("{:04x}", dice.below(1 << 16)))
        }
    }),
    ("a partition for each minute", "hot-key", |dice, now| Request {
        row: format!("{:x}", dice.roll()),
        ..write(format!("{:06}", now / 60_000))
    }),
    ("two partitions, at the ends", "split", |dice, _| {
        if dice.percent(90) {
            write(["0", "zz"][dice.below(2) as usize].to_owned())
        } else {
            anywhere(dice, 0)
        }
    }),
    ("scans of everything", "scan", |dice, _| {
        if dice.percent(70) { scan("0".to_owned(), "z".to_owned(), 40) } else { anywhere(dice, 0) }
    }),
    ("scans of little", "split", |dice, _| {
        let from = dice.below(1 << 16);
        scan(format!("{from:04x}"), format!("{:04x}", from + 50), 5)
    }),
    ("a side each second", "unclear", |dice, now| {
        write(format!("{}{:08x}", ['a', 'b'][(now / 1_000 % 2) as usize], dice.below(1 << 32)))
    }),
];

/// The first verdict.
fn verdict(seed: u64, workload: impl Fn(&mut Dice, u64) -> Request) -> Verdict {
    let mut range = Range::new(seed);
    for _ in 0..300 {
        if let Some(verdict) = range.second(RATE, &workload).verdict {
            return verdict;
        }
    }
    panic!("no verdict after five minutes");
}

#[test]
fn each_load_gets_the_right_verdict() {
    for (name, cause, workload) in WORKLOADS {
        for seed in 1..=3 {
            let verdict = verdict(seed, workload);
            assert_eq!(verdict.cause.name(), cause, "{name}, seed {seed}: {verdict:?}");
            if let Cause::Split { at, above, .. } = &verdict.cause {
                assert!(is_partition_boundary(at), "{name}: {}", at.escape_ascii());
                assert!((0.3..0.7).contains(above), "{name}: {above}");
            }
        }
    }
}

/// Each partition with its share of the load, in percent.
type Few = &'static [(&'static str, u64)];

/// Loads of two and of three neighbouring partitions and nothing else, in every order of their weights.
const FEW: [Few; 15] = [
    &[("5000", 50), ("5001", 50)],
    &[("5000", 60), ("5001", 40)],
    &[("5000", 40), ("5001", 60)],
    &[("5000", 34), ("5001", 33), ("5002", 33)],
    &[("5000", 33), ("5001", 34), ("5002", 33)],
    &[("5000", 35), ("5001", 35), ("5002", 30)],
    &[("5000", 35), ("5001", 30), ("5002", 35)],
    &[("5000", 30), ("5001", 35), ("5002", 35)],
    &[("5000", 50), ("5001", 30), ("5002", 20)],
    &[("5000", 50), ("5001", 20), ("5002", 30)],
    &[("5000", 30), ("5001", 20), ("5002", 50)],
    &[("5000", 20), ("5001", 30), ("5002", 50)],
    &[("5000", 40), ("5001", 40), ("5002", 20)],
    &[("5000", 40), ("5001", 20), ("5002", 40)],
    &[("5000", 20), ("5001", 40), ("5002", 40)],
];

/// Loads whose best cut leaves 70 percent of the load on one side.
const FEW_AT_THE_BOUND: [Few; 5] = [
    &[("5000", 70), ("5001", 30)],
    &[("5000", 30), ("5001", 70)],
    &[("5000", 30), ("5001", 50), ("5002", 20)],
    &[("5000", 20), ("5001", 50), ("5002", 30)],
    &[("5000", 30), ("5001", 40), ("5002", 30)],
];

/// A write to one of these partitions.
fn to_few(few: Few, dice: &mut Dice) -> Request {
    let at = dice.below(100);
    let mut shares = few.iter().scan(0, |sum, (partition, share)| {
        *sum += share;
        Some((*partition, *sum))
    });
    let (partition, _) = shares.find(|(_, sum)| at < *sum).expect("the shares are 100 percent");
    Request { row: format!("{:x}", dice.roll()), ..write(partition.to_owned()) }
}

/// The example of the documents: a server whose two hot partitions are neighbours is divided between them, also if one of
/// them has half of the load.
#[test]
fn a_range_is_split_between_few_partitions() {
    for few in FEW {
        for seed in 1..=20 {
            let verdict = verdict(seed, |dice, _| to_few(few, dice));
            let Cause::Split { at, above, .. } = &verdict.cause else {
                panic!("{few:?}, seed {seed}: {verdict:?}");
            };
            assert!(is_partition_boundary(at), "{few:?}: {}", at.escape_ascii());
            assert!((0.3..0.7).contains(above), "{few:?}: {above}");
        }
    }
}

/// 70 percent is the bound of a useful cut, and chance puts the measured share on either side of it. So a range is split
/// there in some trials, and its heaviest partition is named in the others. Both are true, and no other verdict is.
#[test]
fn at_the_bound_a_range_is_split_or_its_heaviest_partition_is_named() {
    for few in FEW_AT_THE_BOUND {
        let (heaviest, _) = few.iter().max_by_key(|(_, share)| *share).expect("there are partitions");
        let mut splits = 0;
        for seed in 1..=20 {
            let verdict = verdict(seed, |dice, _| to_few(few, dice));
            match &verdict.cause {
                Cause::Split { at, above, .. } => {
                    assert!(is_partition_boundary(at), "{few:?}: {}", at.escape_ascii());
                    assert!((0.3..0.7).contains(above), "{few:?}: {above}");
                    splits += 1;
                }
                Cause::HotKey { key, .. } => {
                    assert!(stored(heaviest, "r").starts_with(key), "{few:?}, seed {seed}: {verdict:?}");
                }
                _ => panic!("{few:?}, seed {seed}: {verdict:?}"),
            }
        }
        // If the hot key were looked for before the cut, there would be none.
        assert!(splits > 0, "{few:?} is never split");
    }
}

/// A cut beside a partition with so much of the load would relieve it of too little. So would both cuts beside a partition in
/// the middle which has half of the load, if the others share the rest.
#[test]
fn a_partition_that_no_cut_relieves_is_a_hot_key() {
    let loads: [Few; 3] = [
        &[("5000", 75), ("5001", 25)],
        &[("5000", 25), ("5001", 75)],
        &[("5000", 25), ("5001", 50), ("5002", 25)],
    ];
    for few in loads {
        for seed in 1..=20 {
            let verdict = verdict(seed, |dice, _| to_few(few, dice));
            assert_eq!(verdict.cause.name(), "hot-key", "{few:?}, seed {seed}: {verdict:?}");
        }
    }
}

#[test]
fn sentences_have_figures_and_say_what_to_do() {
    let named = |_: &str, _| Some("Orders".to_owned());
    let spread = "put something in front of the key that spreads it, such as a hash or the name of a device, \
                  instead of a time or a counter";
    for (name, expected) in [
        (
            "append",
            format!(
                "not split: append; 100 % of the load is above the highest key of 60 s ago, and so on one side of \
                 any cut; it was last around partition \"0000086420\" of table Orders; {spread}"
            ),
        ),
        (
            "one of 20 tenants appends 80 %",
            format!(
                "not split: append; 82 % of the load moves to ever higher keys in one narrow place, such as one \
                 tenant's, where nothing was 60 s ago, and so on one side of any cut; it was last around partition \
                 \"009/0000089183\" of table Orders; {spread}"
            ),
        ),
        (
            "one row has 60 %",
            "not split: hot key; partition \"7777\" of table Orders has 61 % of the load (61 % for its row \"r\"), \
             and a partition is never cut; read that row from a cache, or keep several copies of it (for a \
             counter: several parts) under different PartitionKeys"
                .to_owned(),
        ),
        (
            "scans of everything",
            "not split: scans; 82 % of the load are scans that would touch both sides of a cut, so both \
             sides would do the work that one does now; ask for less at a time: one PartitionKey, or a narrower interval"
                .to_owned(),
        ),
        (
            "a side each second",
            "not split: unclear; the load jumps from side to side; within single seconds one side of the best cut \
             has 97 % of it; looked at again after 5 min"
                .to_owned(),
        ),
        (
            "append and reads of the past",
            "to be split at partition \"0005005590\" of table Orders: 61 % of the load is above it and 39 % below, \
             where new keys are added on one side and old ones are read on the other; the side that grows will \
             not be split further, so let its keys begin with something that spreads them"
                .to_owned(),
        ),
    ] {
        let (_, _, workload) = WORKLOADS.into_iter().find(|(known, ..)| *known == name).unwrap();
        assert_eq!(verdict(1, workload).sentence(Titles { table: &named, ..Titles::UNKNOWN }), expected, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// For any mixture of loads, shares are between 0 and 1, and so on.
    #[test]
    fn every_verdict_has_possible_figures(
        seed: u64, append in 0..100u64, hot in 0..60u64, scans in 0..30u64, tenants in 1..30u64, late in 0..400u64,
    ) {
        let mut range = Range::new(seed);
        for _ in 0..150 {
            let seen = range.second(RATE, |dice, now| {
                let tenant = dice.below(tenants);
                if dice.percent(hot) {
                    write("015/hot".to_owned())
                } else if dice.percent(scans) {
                    scan(format!("{tenant:03}"), format!("{:03}", tenant + 3), 60)
                } else if dice.percent(append) {
                    write(format!("{tenant:03}/{:010}", START + now - dice.below(late * 1_000 + 1)))
                } else {
                    read(format!("{tenant:03}/{:010}", dice.below(START)))
                }
            });
            prop_assert!(seen.top_keys.iter().all(|top| (0.0..=1.0).contains(&top.share)));
            prop_assert!(seen.rate > 0.0 && seen.cost_rate >= seen.rate * 0.999);
            let Some(verdict) = seen.verdict else { continue };
            prop_assert_eq!(seen.state, HotState::Judged);
            prop_assert!(verdict.until > verdict.at && verdict.at == range.now());
            match &verdict.cause {
                Cause::Split { at, above, .. } => {
                    prop_assert!(is_partition_boundary(at));
                    prop_assert!((0.2..0.8).contains(above));
                }
                Cause::HotKey { share, .. } => prop_assert!((0.25..=1.0).contains(share)),
                Cause::Append(travel) | Cause::Prepend(travel) => prop_assert!((0.0..=1.0).contains(&travel.share)),
                Cause::Scan { share } => prop_assert!((0.5..=1.0).contains(share)),
                Cause::Unclear(_) => {}
            }
            let sentence = verdict.sentence(Titles::UNKNOWN);
            prop_assert!(sentence.starts_with("not split: ") || sentence.starts_with("to be split at "));
            break;
        }
    }
}

//! How a range becomes hot and cools down, and how long verdicts hold.

use std::time::Duration;

use rangehold_map::load::{Access, Cause, HotState, LoadPolicy, RangeLoad};

use super::{RATE, Range, anywhere, appended, policy, stored, write};

#[test]
fn a_range_becomes_warm_and_hot_is_judged_and_cools_down() {
    let mut range = Range::new(1);
    assert_eq!(range.load.observe().state, HotState::Cold);
    let mut states: Vec<(HotState, u32)> = Vec::new();
    // 170 of 250 requests per second are warm; then it is hot; then there are none.
    for (seconds, rate) in [(20, 10), (20, 170), (120, RATE), (60, 1)] {
        for _ in 0..seconds {
            let state = range.second(rate, anywhere).state;
            if states.last().is_none_or(|(last, _)| *last != state) {
                states.push((state, range.second));
            }
        }
    }
    let order: Vec<HotState> = states.iter().map(|(state, _)| *state).collect();
    use HotState::{Candidate, Cold, Judged, Warm};
    assert_eq!(order, [Cold, Warm, Candidate, Judged, Cold], "{states:?}");
    let (warm, candidate, judged) = (states[1].1, states[2].1, states[3].1);
    assert!((25..32).contains(&warm) && (41..44).contains(&candidate), "{states:?}");
    assert!((60..=100).contains(&(judged - candidate)), "{states:?}");
    assert_eq!(range.load.observe().verdict, None, "a cut for a load that is gone must not be made");
}

#[test]
fn a_burst_is_not_judged() {
    let mut range = Range::new(2);
    for rate in [20, RATE, 20] {
        assert_eq!(range.seconds(40, rate, appended).verdict, None);
    }
    assert_eq!(range.load.observe().state, HotState::Cold);
}

#[test]
fn a_verdict_against_a_split_is_kept_for_half_an_hour() {
    let mut range = Range::new(3);
    let first = range.seconds(100, RATE, appended).verdict.unwrap();
    assert_eq!(first.until - first.at, Duration::from_secs(30 * 60));
    let later = range.seconds(29 * 60, RATE, appended);
    assert_eq!((later.verdict.unwrap(), later.state), (first.clone(), HotState::Judged));
    let looked_at = range.seconds(100, RATE, appended);
    assert_eq!((looked_at.verdict, looked_at.state), (Some(first.clone()), HotState::Candidate));
    let second = range.seconds(100, RATE, appended).verdict.unwrap();
    assert!(second.at > first.until && matches!(second.cause, Cause::Append(_)), "{second:?}");
}

#[test]
fn a_verdict_is_dropped_when_the_load_changes() {
    let mut range = Range::new(4);
    let first = range.seconds(100, RATE, appended).verdict.unwrap();
    assert_eq!(first.cause.name(), "append");
    // The verdict is dropped after two looks at the new load, and the next one comes after a third.
    let second = range.seconds(330, RATE, anywhere).verdict.unwrap();
    assert_eq!(second.cause.name(), "split", "{second:?}");
}

#[test]
fn each_unclear_verdict_doubles_the_wait() {
    let mut range = Range::new(5);
    let mut waits = Vec::new();
    let mut last = None;
    for _ in 0..25 * 60 {
        let found = range.second(RATE, |dice, now| {
            write(format!("{}{:08x}", ['a', 'b'][(now / 1_000 % 2) as usize], dice.below(1 << 32)))
        });
        if found.verdict.is_some() && found.verdict != last && found.state == HotState::Judged {
            let verdict = found.verdict.clone().unwrap();
            assert_eq!(verdict.cause.name(), "unclear");
            waits.push((verdict.until - verdict.at).as_secs() / 60);
            last = found.verdict;
        }
    }
    assert_eq!(waits, [5, 10, 20]);
}

#[test]
fn refused_requests_show_where_load_would_be() {
    let mut range = Range::new(6);
    let hot = stored("hot", "r");
    for _ in 0..150 {
        // Warm, while most requests are refused.
        range.load.throttled(&hot, Access::Write, RATE);
        range.second(
            170,
            |dice, now| if dice.percent(50) { write("hot".to_owned()) } else { anywhere(dice, now) },
        );
    }
    let seen = range.load.observe();
    assert!((seen.throttled_rate - 300.0).abs() < 1.0 && (seen.rate - 170.0).abs() < 1.0, "{seen:?}");
    match seen.verdict.unwrap().cause {
        Cause::HotKey { share, row: Some(row), .. } => {
            assert!(share > 0.7 && row.key == hot, "{share}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn refused_inserts_name_no_row() {
    let mut range = Range::new(6);
    for second in 0..150 {
        for row in 0..RATE {
            range.load.throttled(&stored("hot", &format!("{second} {row}")), Access::Write, 1);
        }
        range.second(
            170,
            |dice, now| {
                if dice.percent(50) { write(format!("hot{now}")) } else { anywhere(dice, now) }
            },
        );
    }
    match range.load.observe().verdict.unwrap().cause {
        Cause::HotKey { row, .. } => assert_eq!(row, None),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_range_without_requests_is_not_judged_for_earlier_refusals() {
    let mut range = Range::new(6);
    let hot = stored("hot", "r");
    for _ in 0..60 {
        range.load.throttled(&hot, Access::Write, RATE);
        range.second(170, anywhere);
    }
    assert_eq!(range.load.observe().state, HotState::Candidate);
    let idle = range.seconds(300, 0, anywhere);
    assert_eq!((idle.state, idle.verdict), (HotState::Cold, None));
}

#[test]
fn the_same_requests_give_the_same_verdict() {
    let seen = || Range::new(7).seconds(100, RATE, anywhere);
    assert_eq!(seen(), seen());
}

#[test]
fn a_new_range_has_no_load_and_no_peak() {
    let seen = RangeLoad::new(policy(), 1).observe();
    assert_eq!((seen.rate, seen.rate_slow, seen.cost_rate, seen.peak), (0.0, 0.0, 0.0, None));
    assert!(seen.top_keys.is_empty() && seen.verdict.is_none());
    let mut range = Range::new(8);
    let first = range.second(40, anywhere);
    assert!((first.rate - 40.0).abs() < 1e-9 && (first.rate_slow - 40.0).abs() < 1e-9, "{first:?}");
    assert_eq!(range.seconds(599, 40, anywhere).peak, None);
    assert!((range.seconds(2, 40, anywhere).peak.unwrap() - 40.0).abs() < 1e-6);
}

#[test]
fn requests_cost_by_the_entities_that_they_touch() {
    let fast = LoadPolicy::fast();
    assert_eq!([0, 1, 20, 21, 1_000].map(|entities| fast.cost(entities)), [1, 1, 1, 2, 50]);
    assert_eq!([0, 1, 20].map(|entities| LoadPolicy::cloud().cost(entities)), [1, 1, 20]);
}

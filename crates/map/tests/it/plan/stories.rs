//! What the planner does, and what it reports, in situations that no golden script can make: with other policies, many
//! ranges, or odd observations.

use std::time::Duration;

use rangehold_map::load::Cause;
use rangehold_map::plan::{Kind, LINES_PER_KIND, Policy, Reported, Standing, Suspects};
use rangehold_map::{Change, Generation, Intent, RangeId, RangeMap, ServerId};

use super::fleet::{Fleet, home, key};

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// In most stories few ranges are kept, so that cold ones may merge.
fn policy() -> Policy {
    Policy { ranges_per_server_low: 1, ..Policy::fast() }
}

#[test]
fn one_of_two_hot_ranges_on_a_server_moves_although_the_other_server_is_not_emptier() {
    let mut fleet = Fleet::new(2, &[(1, 5_000.0), (1, 5_000.0), (2, 1_000.0), (2, 1_500.0)]);
    for _ in 0..3 {
        let plan = fleet.plan(&Policy::fast());
        fleet.execute(&plan);
        fleet.pass(Policy::fast().cool_down);
    }
    assert!(fleet.max_over_mean() < 1.05, "{}", fleet.max_over_mean());
}

#[test]
fn the_report_names_what_keeps_a_range_in_place() {
    let mut fleet = Fleet::new(2, &[(1, 2_600.0), (1, 2_400.0), (2, 500.0)]);
    fleet.range(1).unchanged_for = Duration::from_secs(2);
    fleet.range(2).unchanged_for = Duration::from_secs(1);
    let said = |fleet: &Fleet| fleet.lines(&Policy::fast())[0].clone();
    assert_eq!(said(&fleet), "s1 has 1.82 times the mean load: r1 is new, and its load is known in 3 s");
    fleet.range(1).busy = true;
    fleet.range(2).busy = true;
    assert_eq!(said(&fleet), "s1 has 1.82 times the mean load: a change of r1 is under way");
}

#[test]
fn a_hot_range_that_cannot_be_split_is_the_floor_and_is_not_moved_again() {
    let mut fleet =
        Fleet::new(4, &[(1, 8_000.0), (1, 50.0), (1, 50.0), (2, 2_000.0), (3, 2_000.0), (4, 2_000.0)]);
    fleet.judge(1, hot_key());
    fleet.range(2).peak = None;
    fleet.execute(&fleet.plan(&policy()));
    assert!(fleet.owner(2) != ServerId(1) && fleet.owner(3) != ServerId(1), "it has its server to itself");
    let plan = fleet.plan(&policy());
    assert_eq!(plan.changes, [], "nor is it moved about");
    assert_eq!(
        fleet.lines(&policy()),
        [
            "r1 with 8000/s is not split: one partition has 83 % of it",
            "the busiest server cannot come below 2.27 times the mean: r1 alone has 8000/s, and a server \
             has 3525/s on average; one partition has 83 % of it"
        ]
    );
    assert!(!plan.balance.emergency, "a load that no plan can relieve is not an emergency");
}

/// A service of four servers with one request a minute, all for one range.
#[test]
fn an_idle_service_has_no_floor_to_report() {
    let mut fleet = Fleet::new(4, &[(1, 0.02), (2, 0.0), (3, 0.0), (4, 0.0)]);
    let floor = |fleet: &Fleet| fleet.lines(&policy()).iter().any(|line| line.contains("cannot come below"));
    assert!(!floor(&fleet), "{:?}", fleet.lines(&policy()));
    fleet.range(1).rate = 4_000.0;
    assert!(floor(&fleet), "as soon as it matters it is said: {:?}", fleet.lines(&policy()));
}

#[test]
fn a_server_that_came_back_empty_gets_ranges() {
    let mut ranges = Vec::new();
    for server in 1..=49 {
        ranges.extend([(server, 100.0); 50]);
    }
    let mut fleet = Fleet::new(50, &ranges);
    for _ in 0..10 {
        let plan = fleet.plan(&Policy::fast());
        fleet.execute(&plan);
    }
    let at_last = fleet.map.entries().iter().filter(|entry| entry.place.server == ServerId(50)).count();
    assert!((45..=49).contains(&at_last), "{at_last} of 2,450 ranges are on the 50th server");
}

#[test]
fn the_ranges_of_a_dead_or_leaving_server_are_spread() {
    let ranges: Vec<_> = (0..40).map(|range| (range % 5 + 1, 100.0)).collect();
    for standing in [Standing::Dead, Standing::Leaving] {
        let mut fleet = Fleet::new(5, &ranges);
        fleet.server(2).standing = standing;
        let plan = fleet.plan(&Policy::fast());
        fleet.execute(&plan);
        for server in [1, 3, 4, 5] {
            let has =
                fleet.map.entries().iter().filter(|entry| entry.place.server == ServerId(server)).count();
            assert_eq!(has, 10, "s{server}");
        }
        let state = if standing == Standing::Dead { "dead" } else { "leaving" };
        assert!(
            plan.report[0].to_string().ends_with(&format!("its server s2 is {state}")),
            "{}",
            plan.report[0]
        );
    }
}

#[test]
fn a_server_without_an_observation_is_dead_and_its_unobserved_ranges_move() {
    let mut fleet = Fleet::new(2, &[(1, 100.0), (2, 100.0), (3, 100.0), (3, 100.0)]);
    fleet.seen.ranges.truncate(2);
    let plan = fleet.plan(&Policy::fast());
    assert_eq!(plan.changes.len(), 2);
    assert!(plan.report.contains(&Reported::Unseen { ranges: 2 }));
    let unseen = "2 ranges were not observed: nothing is decided about them";
    assert!(fleet.lines(&Policy::fast()).iter().any(|line| line == unseen));
    fleet.seen.servers.clear();
    assert_eq!(fleet.lines(&Policy::fast())[0], "no server serves, and 4 ranges need one");
}

#[test]
fn a_poison_range_crashes_at_most_two_servers() {
    let ranges: Vec<_> = (0..40).map(|range| (range % 10 + 1, 100.0)).collect();
    let (mut fleet, mut suspects, policy) = (Fleet::new(10, &ranges), Suspects::default(), Policy::fast());
    let poison = 7;
    let mut lost = Vec::new();
    for second in (0..10).map(|tick| Duration::from_secs(60 * tick)) {
        let owner = fleet.owner(poison);
        if fleet.map.get(RangeId(poison)).expect("it is there").online {
            fleet.server(owner.0).standing = Standing::Dead;
            let had =
                fleet.map.entries().iter().filter(|entry| entry.place.server == owner).map(|entry| entry.id);
            suspects.crashed(owner, had, second);
            lost.push(owner);
        }
        for seen in &mut fleet.seen.ranges {
            seen.crashes = suspects.crashes(seen.id, second, &policy);
        }
        let plan = fleet.plan(&policy);
        fleet.execute(&plan);
    }
    assert_eq!(lost.len(), 2);
    let offline: Vec<_> =
        fleet.map.entries().iter().filter(|entry| !entry.online).map(|entry| entry.id).collect();
    assert_eq!(offline, [RangeId(poison)], "no innocent range is set offline with it");
}

#[test]
fn crashes_count_by_different_servers_and_are_forgotten() {
    let (mut suspects, policy, range) = (Suspects::default(), Policy::fast(), RangeId(1));
    suspects.crashed(ServerId(1), [range], minutes(0));
    suspects.crashed(ServerId(1), [range], minutes(1));
    assert_eq!(suspects.crashes(range, minutes(1), &policy), 1);
    suspects.crashed(ServerId(2), [range], minutes(2));
    assert_eq!(suspects.crashes(range, minutes(2), &policy), 2);
    assert_eq!(suspects.crashes(range, minutes(31), &policy), 1);
    suspects.forget(minutes(60), &policy);
    assert_eq!(suspects.crashes(range, minutes(0), &policy), 0, "it is forgotten");
}

#[test]
fn no_range_is_quarantined_when_too_many_are_suspected() {
    let ranges: Vec<_> = (0..40).map(|range| (range % 2 + 1, 100.0)).collect();
    let mut fleet = Fleet::new(2, &ranges);
    fleet.server(1).standing = Standing::Dead;
    fleet.seen.ranges.iter_mut().for_each(|seen| seen.crashes = 2);
    let plan = fleet.plan(&Policy::fast());
    assert!(plan.report.contains(&Reported::TooManySuspects { ranges: 20 }));
    assert!(plan.changes.iter().all(|change| matches!(change, Change::Move { .. })));
}

#[test]
fn a_split_waits_for_room_for_the_range() {
    let mut fleet = Fleet::new(1, &[(1, 2_100.0), (1, 2_200.0), (1, 2_300.0), (1, 2_400.0)]);
    fleet.judge(1, Cause::Split { at: key(150), above: 0.52, frontier: false });
    let full = Policy { ranges_per_server_high: 4, ..Policy::fast() };
    assert_eq!(fleet.lines(&full)[0], "r1 is split later: 4 ranges are as many as these servers may have");
    assert_eq!(fleet.plan(&full).changes, []);
}

#[test]
fn cold_neighbours_merge_when_both_have_been_unchanged_for_ten_minutes() {
    let mut fleet = Fleet::new(2, &[(1, 10.0), (1, 20.0), (1, 3_000.0), (2, 3_000.0), (2, 10.0)]);
    fleet.range(2).unchanged_for = Duration::from_secs(350);
    assert_eq!(
        fleet.lines(&policy()),
        ["r1 merges with r2 in 4 min 10 s: both must be unchanged for 10 min"]
    );
    fleet.pass(Duration::from_secs(250));
    let plan = fleet.plan(&policy());
    assert_eq!(plan.report[0].to_string(), "r1 and r2 become one: at most 30/s together in ten minutes");
    fleet.execute(&plan);
    assert_eq!(fleet.map.entries().len(), 4);
}

#[test]
fn ranges_that_were_hot_or_have_an_unknown_peak_do_not_merge() {
    for (peak, merges) in [(Some(390.0), true), (Some(410.0), false), (None, false)] {
        let mut fleet = Fleet::new(1, &[(1, 390.0), (1, 10.0)]);
        fleet.range(1).peak = Some(400.0);
        fleet.range(2).peak = peak;
        assert_eq!(!fleet.plan(&policy()).changes.is_empty(), merges, "{peak:?}");
    }
}

#[test]
fn ranges_do_not_merge_into_one_that_is_too_large_to_balance() {
    // 4 % of the mean load of 3,000/s.
    for (rate, merges) in [(55.0, true), (65.0, false)] {
        let fleet = Fleet::new(2, &[(1, rate), (1, rate), (1, 2_900.0), (2, 3_000.0)]);
        assert_eq!(!fleet.plan(&policy()).changes.is_empty(), merges, "{rate}");
    }
}

#[test]
fn neighbours_on_two_servers_merge_after_a_move_and_offline_ones_do_not() {
    let mut fleet = Fleet::new(2, &[(1, 10.0), (2, 20.0), (2, 10.0)]);
    fleet.range(3).bytes = u64::MAX;
    assert_eq!(
        fleet.lines(&policy())[0],
        "r1 and r2 become one: at most 30/s together in ten minutes; first r2 moves from s2 to s1"
    );
    let offline = Change::Offline { range: RangeId(1), generation: Generation(1) };
    fleet.map = fleet.map.begin(&offline).expect("it is good");
    assert_eq!(fleet.plan(&policy()).changes, []);
}

#[test]
fn a_server_is_in_one_merge_at_a_time_or_in_more_when_there_are_many_ranges() {
    let ranges = [(1, 1.0); 8];
    let fleet = Fleet::new(1, &ranges);
    assert_eq!(fleet.plan(&policy()).changes.len(), 1);
    assert_eq!(fleet.lines(&policy())[1], "r3 merges with r4 later: s1 is in another merge");
    let crowded = Policy { ranges_per_server_high: 9, ..policy() };
    assert_eq!(fleet.plan(&crowded).changes.len(), 4);
    assert_eq!(fleet.plan(&Policy::fast()).changes, []);
    assert_eq!(
        fleet.lines(&Policy::fast()),
        ["no cold ranges merge: there are 8 ranges, and up to 10 are kept to spread load over"]
    );
    let keeps_seven = Policy { ranges_per_server_low: 7, ..policy() };
    assert_eq!(
        fleet.lines(&keeps_seven)[1..],
        [
            "no more cold ranges merge: after these merges there are 7 ranges, and up to 7 are kept to spread load \
          over"
        ]
    );
}

#[test]
fn each_range_that_waits_to_merge_is_named_once() {
    let mut fleet = Fleet::new(1, &[(1, 1.0); 9]);
    for id in 1..=9 {
        fleet.range(id).unchanged_for = Duration::from_secs(590);
    }
    let pairs = |low| {
        let lines = fleet.lines(&Policy { ranges_per_server_low: low, ..policy() });
        lines.iter().map(|line| line[..17].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        pairs(1),
        ["r1 merges with r2", "r3 merges with r4", "r5 merges with r6", "r7 merges with r8"]
    );
    assert_eq!(pairs(7), ["r1 merges with r2", "r3 merges with r4"]);
}

#[test]
fn a_merge_under_way_counts_for_its_server() {
    let mut fleet = Fleet::new(2, &[(1, 1.0), (2, 1.0), (2, 1.0), (1, 1.0), (1, 1.0)]);
    let merge = Change::Merge {
        left: RangeId(1),
        left_generation: Generation(1),
        right: RangeId(2),
        right_generation: Generation(1),
    };
    fleet.map = fleet.map.begin(&merge).expect("it is good");
    assert_eq!(fleet.plan(&policy()).changes, []);
    assert_eq!(fleet.lines(&policy())[0], "r4 merges with r5 later: s1 is in another merge");
}

#[test]
fn the_load_of_a_moving_range_counts_at_its_new_server() {
    let fleet = Fleet::new(2, &[(1, 3_000.0), (1, 2_000.0), (1, 1_000.0), (2, 1_000.0)]);
    let begin = |map: &RangeMap, range| {
        let to = home(2, range);
        map.begin(&Change::Move { range: RangeId(range), generation: Generation(1), to }).expect("it is good")
    };
    let moving = Fleet { map: begin(&fleet.map, 2), ..fleet.clone() };
    assert!(matches!(moving.map.entries()[1].intent, Some(Intent::Move { .. })));
    assert!(
        (fleet.plan(&Policy::fast()).changes.len(), moving.plan(&Policy::fast()).changes.len()) == (1, 0)
    );
    assert!(moving.max_over_mean() < fleet.max_over_mean());
}

#[test]
fn a_report_of_a_large_map_is_short() {
    let ranges: Vec<_> = (0..3_000).map(|range| (range % 100 + 1, 1.0)).collect();
    let mut fleet = Fleet::new(100, &ranges);
    fleet.seen.ranges.iter_mut().for_each(|seen| seen.unchanged_for = Duration::from_secs(seen.id.0 % 500));
    for server in 1..=50 {
        fleet.server(server).standing = Standing::Dead;
    }
    let report = fleet.plan(&Policy::fast()).report;
    assert!(report.len() <= 3 * (LINES_PER_KIND + 1), "{} lines", report.len());
    assert!(report.contains(&Reported::Omitted { kind: Kind::Rehomed, lines: 1_500 - LINES_PER_KIND }));
    let omitted = report.iter().find(|line| matches!(line, Reported::Omitted { .. })).expect("some are");
    assert_eq!(omitted.to_string(), "and 1450 more lines of the kind Rehomed");
}

fn hot_key() -> Cause {
    Cause::HotKey { key: key(123), share: 0.83, row: None }
}

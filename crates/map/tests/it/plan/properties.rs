//! Properties of every plan.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use rangehold_map::load::Cause;
use rangehold_map::plan::{LINES_PER_KIND, Plan, Policy, Standing};
use rangehold_map::{Change, RangeId};

use super::fleet::{Fleet, key};

/// What is special about a range.
#[derive(Debug, Clone, Copy)]
enum Quirk {
    None,
    Judged,
    Offline,
    Busy,
    Young,
    Unseen,
    Crashed,
    Moving,
}

fn any_quirk() -> impl Strategy<Value = Quirk> {
    use Quirk::*;
    prop_oneof![
        8 => Just(None),
        1 => prop::sample::select(vec![Judged, Offline, Busy, Young, Unseen, Crashed, Moving])
    ]
}

/// A service of up to 6 servers and 60 ranges, in all possible states.
fn any_fleet() -> impl Strategy<Value = Fleet> {
    let rate = prop_oneof![Just(0.0), 1.0..50.0, 50.0..3_000.0];
    let ranges = prop::collection::vec((1u64..=6, rate, any_quirk()), 1..60);
    let standing = prop_oneof![
        6 => Just(Standing::Serving),
        1 => Just(Standing::Leaving),
        1 => Just(Standing::Dead)
    ];
    (ranges, prop::collection::vec(standing, 2..=6)).prop_map(|(ranges, standings)| {
        let placed: Vec<_> = ranges.iter().map(|(server, rate, _)| (*server, *rate)).collect();
        let mut fleet = Fleet::new(standings.len() as u64, &placed);
        for (server, standing) in (1..).zip(standings) {
            fleet.server(server).standing = standing;
        }
        for (id, (_, _, quirk)) in (1u64..).zip(&ranges) {
            add_quirk(&mut fleet, id, *quirk);
        }
        fleet
    })
}

fn add_quirk(fleet: &mut Fleet, id: u64, quirk: Quirk) {
    let entry = fleet.map.get(RangeId(id)).expect("it is there");
    let (range, generation, mut to) = (RangeId(id), entry.generation, entry.place);
    match quirk {
        Quirk::None => {}
        Quirk::Judged => {
            fleet.judge(id, Cause::Split { at: key(100 * id + 50), above: 0.5, frontier: false })
        }
        Quirk::Offline => {
            fleet.map = fleet.map.begin(&Change::Offline { range, generation }).expect("it is online");
            fleet.range(id).generation = fleet.map.get(range).expect("it is there").generation;
        }
        Quirk::Busy => fleet.range(id).busy = true,
        Quirk::Young => fleet.range(id).unchanged_for = Duration::from_secs(2),
        Quirk::Unseen => fleet.seen.ranges.retain(|seen| seen.id != range),
        Quirk::Crashed => fleet.range(id).crashes = 2,
        Quirk::Moving => {
            to.server.0 = to.server.0 % 6 + 1;
            fleet.map = fleet.map.begin(&Change::Move { range, generation, to }).expect("it goes elsewhere");
        }
    }
}

fn touched(plan: &Plan) -> Vec<RangeId> {
    let of = |change: &Change| match change {
        Change::Merge { left, right, .. } => vec![*left, *right],
        Change::Split { range, .. }
        | Change::Move { range, .. }
        | Change::Offline { range, .. }
        | Change::Online { range, .. } => vec![*range],
    };
    plan.changes.iter().flat_map(of).collect()
}

fn eager() -> Policy {
    Policy { ranges_per_server_low: 1, ..Policy::fast() }
}

proptest! {
    #[test]
    fn the_map_accepts_every_planned_change(fleet in any_fleet()) {
        let plan = fleet.plan(&eager());
        let mut map = fleet.map.clone();
        for change in &plan.changes {
            map = map.begin(change).map_err(|refused| TestCaseError::fail(format!("{change:?}: {refused}")))?;
        }
        prop_assert_eq!(map.check(), vec![]);
        let touched = touched(&plan);
        prop_assert_eq!(touched.iter().collect::<BTreeSet<_>>().len(), touched.len());
        prop_assert!(plan.report.len() <= 18 * (LINES_PER_KIND + 1));
    }

    #[test]
    fn a_plan_depends_only_on_its_arguments_and_not_on_the_order_of_observations(fleet in any_fleet()) {
        let mut shuffled = fleet.clone();
        shuffled.seen.ranges.reverse();
        shuffled.seen.servers.reverse();
        prop_assert_eq!(fleet.plan(&eager()), shuffled.plan(&eager()));
    }

    #[test]
    fn ranges_go_to_serving_servers_and_no_move_makes_the_busiest_busier(fleet in any_fleet()) {
        let plan = fleet.plan(&eager());
        for change in &plan.changes {
            if let Change::Move { to, .. } = change {
                let taker = fleet.seen.servers.iter().find(|server| server.id == to.server);
                prop_assert_eq!(taker.map(|server| server.standing), Some(Standing::Serving));
            }
        }
        prop_assert!(plan.balance.max_after <= plan.balance.max * 1.000_001);
    }

    #[test]
    fn planning_ends_when_the_load_is_steady(mut fleet in any_fleet()) {
        fleet.seen.ranges.iter_mut().for_each(|seen| seen.cause = None);
        let mut quiet = 0;
        for _ in 0..300 {
            let mut plan = fleet.plan(&eager());
            // Moves that a merge needs are not counted here.
            plan.changes.retain(|change| !matches!(change, Change::Merge { .. }));
            quiet = if plan.changes.is_empty() { quiet + 1 } else { 0 };
            if quiet > 1 {
                return Ok(());
            }
            if fleet.seen.ranges.len() < fleet.map.entries().len() {
                return Ok(()); // Some ranges are unobserved, and this property is not about them.
            }
            fleet.execute(&plan);
            fleet.pass(Duration::from_secs(600));
        }
        prop_assert!(false, "still moving after 300 plans: {:?}", fleet.plan(&eager()).report);
    }

    #[test]
    fn many_small_ranges_are_balanced_evenly(seed in prop::collection::vec((1u64..=5, 20.0..120.0), 150..300)) {
        let ranges: Vec<(u64, f64)> = seed.iter().map(|(server, rate)| (*server, rate * 2.0)).collect();
        let mut fleet = Fleet::new(5, &ranges);
        // Without merges, which move load between servers.
        let policy = Policy { calm_utilisation: 0.0, ranges_per_server_low: 100, ..Policy::fast() };
        for _ in 0..60 {
            let plan = fleet.plan(&policy);
            fleet.execute(&plan);
            fleet.pass(Duration::from_secs(15));
        }
        prop_assert!(fleet.max_over_mean() <= 1.1, "{}: {:?}", fleet.max_over_mean(), fleet.lines(&policy));
    }
}

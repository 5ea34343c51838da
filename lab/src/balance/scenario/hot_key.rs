//! One key that wants more than any server bears.
//!
//! First it is held at what one range bears: no split, refusals, a verdict. Then there is no such limit, and it fills
//! a server of its own. The balance cannot be better than that, so this is reported and has no aim.

use rangehold_map::load::Cause;
use rangehold_map::plan::{Policy, Reported};

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Outcome, percent};
use crate::balance::watched::Rule;
use crate::balance::world::{Setting, World};

const HOT: u64 = 4_321 * CELL + CELL / 2;
const WANTED: f64 = 8_000.0;
const BEGINS: f64 = 300.0;

pub(super) fn run(outcome: &mut Outcome) {
    let setting = Setting { rule: Rule::Finder, ..Setting::fast(7) };
    let held = live(setting.clone(), TWO_HOURS);
    let range = held.range_at(HOT);
    let (flow, cause, splits) = (held.flows[range], held.facts[range].cause(), held.trace.splits);
    outcome.ask(
        "no split, throttled, named",
        splits == 0 && flow.answered < flow.wanted && matches!(cause, Some(Cause::HotKey { .. })),
        format!(
            "{splits} splits; {} refused; {}",
            percent(1.0 - flow.answered / flow.wanted),
            cause.map_or("no verdict", Cause::name)
        ),
    );
    let boundless = live(Setting { range_limit: f64::INFINITY, ..setting }, TWO_HOURS);
    let report = boundless.plan.as_ref().map(|plan| plan.report.clone()).unwrap_or_default();
    let floor = report.iter().find(|line| matches!(line, Reported::Floor { .. }));
    let later = boundless.trace.moves_per_server_and_day(BEGINS + 600.0, boundless.servers.len());
    let (moves, named) = (boundless.trace.moves, floor.map_or_else(String::new, ToString::to_string));
    outcome.ask(
        "without limit: the floor is reported and not chased",
        floor.is_some() && later <= 1.0 && boundless.trace.splits == 0,
        format!("{moves} moves, later {later:.2}/server/day; \"{named}\""),
    );
    let runs = [("held at what a range bears", &held.trace), ("not held", &boundless.trace)];
    outcome.balance("hot key at 300 s", 1.1, &runs);
}

fn live(setting: Setting, until: f64) -> World {
    let setting = Setting { policy: Policy { calm_utilisation: 0.0, ..setting.policy }, ..setting };
    let mut world = World::new(setting, Demand::new(&even(RANGES, 30.0, 8), 1));
    world.run(until, |world| {
        if world.now >= BEGINS {
            world.demand.pieces = vec![Piece::key(HOT, WANTED)];
        }
    });
    world
}

//! One key that wants more than any server bears.
//!
//! First it is held at what one range bears: no split, refusals, a verdict. Then there is no such limit, and it fills
//! a server of its own. The balance cannot be better than that, so this is reported and has no aim.

use rangehold_map::load::Cause;
use rangehold_map::plan::{Policy, Reported};

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Curve, Line, Outcome, percent};
use crate::balance::watched::Rule;
use crate::balance::world::{Setting, World};

const NAME: &str = "hot key";
const HOT: u64 = 4_321 * CELL + CELL / 2;
const WANTED: f64 = 8_000.0;
const BEGINS: f64 = 300.0;

pub(super) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    let held = live(Setting { rule: Rule::Finder, ..Setting::fast(7) }, TWO_HOURS);
    let flow = held.flows[held.range_at(HOT)];
    let named = matches!(cause(&held), Some(Cause::HotKey { .. }));
    outcome.add(Line::new(
        NAME,
        "no split, throttled, named",
        format!(
            "{} splits; {} refused; {}",
            held.trace.splits,
            percent(1.0 - flow.answered / flow.wanted),
            cause(&held).map_or("no verdict", |cause| cause.name())
        ),
        held.trace.splits == 0 && flow.answered < flow.wanted && named,
    ));

    let setting = Setting { rule: Rule::Finder, range_limit: f64::INFINITY, ..Setting::fast(7) };
    let boundless = live(setting, TWO_HOURS);
    let report = boundless.plan.as_ref().map(|plan| plan.report.clone()).unwrap_or_default();
    let floor = report.iter().find(|line| matches!(line, Reported::Floor { .. }));
    let moves = boundless.trace.moves_per_server_and_day(BEGINS + 600.0, boundless.servers.len());
    let moved = boundless.trace.moves;
    outcome.add(Line::new(
        NAME,
        "without limit: the floor is reported and not chased",
        format!(
            "{moved} moves, later {moves:.2}/server/day; \"{}\"",
            floor.map_or_else(String::new, ToString::to_string)
        ),
        floor.is_some() && moves <= 1.0 && boundless.trace.splits == 0,
    ));
    outcome.balance(
        "hot key at 300 s",
        1.1,
        vec![
            Curve::max_over_mean("held at what a range bears", &held.trace),
            Curve::max_over_mean("not held", &boundless.trace),
        ],
    );
    outcome
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

fn cause(world: &World) -> Option<Cause> {
    world.facts[world.range_at(HOT)].watched.as_ref().and_then(|watched| watched.cause())
}

//! Appends: load that moves on to ever higher keys, with entries that come late by up to five minutes.
//!
//! A split cannot help one tenant that appends: the scenario demands that no useless split is made, that requests are
//! refused honestly, and that the verdict is right. A hundred tenants that append side by side can be helped: ten
//! share a range, all are on one server, and they ask for more than twice what it bears. They must be spread.

use rangehold_map::load::{Cause, LoadPolicy};

use super::{RANGES, TWO_HOURS, even, no_useless_split, owners};
use crate::balance::demand::{CELL, Demand, Piece, Place};
use crate::balance::outcome::{Curve, Outcome, percent};
use crate::balance::watched::Rule;
use crate::balance::world::{Setting, World};

/// How late entries come, evenly from 0 to this many seconds; each tenant has a range of its own.
const LATE: [f64; 6] = [0.0, 1.0, 5.0, 20.0, 60.0, 300.0];
/// What a lone tenant wants, which is more than one range bears; and each of the hundred.
const LONE_RATE: f64 = 5_500.0;
const RATE: f64 = 240.0;
const TENANTS: u64 = 100;
const TOGETHER: u64 = 10;
/// The cells of the lone tenants, and of the hundred.
const LONE: u64 = 1_000;
const MANY: u64 = 2_000;
/// When the hundred must be spread.
const LATER: f64 = 900.0;

pub(super) fn run(outcome: &mut Outcome) {
    let setting = Setting { rule: Rule::Finder, ..Setting::fast(5) };
    let ours = live(setting.clone(), TWO_HOURS);
    no_useless_split(outcome, &ours);
    let causes: Vec<&str> = (0..LATE.len()).map(|lone| cause(&ours, lone)).collect();
    outcome.ask(
        "lone tenants: the verdict is append, and some are refused",
        causes.iter().all(|cause| *cause == "append") && refused(&ours) > 0.0,
        format!("{}; {:.0}/s refused", causes.join(", "), refused(&ours)),
    );
    let (servers, hottest) = spread(&ours);
    let balanced = ours.trace.balanced_share(LATER, 1.1);
    outcome.ask(
        "100 tenants on one server: spread, max/mean <= 1.1 in 99 %, no range hot",
        servers >= 10 && balanced >= 0.99 && hottest < 2_000.0,
        format!("on {servers} servers; {}; hottest range {hottest:.0}/s", percent(balanced)),
    );
    let no_trend =
        LoadPolicy { drift_max: f64::INFINITY, useful_for: std::time::Duration::ZERO, ..LoadPolicy::fast() };
    let mut curves = vec![ranges_curve("planner, fast", &ours)];
    for (name, setting) in [
        ("without trend test", Setting { load_policy: no_trend, ..setting.clone() }),
        ("split rule: every 15 s (WAS)", setting.under(Rule::FifteenSeconds)),
        ("split rule: CockroachDB", setting.under(Rule::Cockroach)),
        ("static hashing", setting.under(Rule::Never)),
    ] {
        let world = live(setting, 1_200.0);
        let (servers, hottest) = spread(&world);
        let (useless, splits) = (world.useless.useless, world.trace.splits);
        outcome.compare(
            name,
            format!(
                "{useless} of {splits} splits useless; the 100 on {servers} servers, hottest range {hottest:.0}/s"
            ),
        );
        curves.push(ranges_curve(name, &world));
    }
    outcome.curves("append: ranges above the first 100,000", "ranges", None, curves);
}

fn ranges_curve(name: &str, world: &World) -> Curve {
    let more: Vec<f64> =
        world.trace.ranges.iter().map(|ranges| ranges.saturating_sub(RANGES) as f64).collect();
    Curve::new(name, &world.trace.times, &more)
}

fn live(setting: Setting, until: f64) -> World {
    let mut cells = even(RANGES, 50.0, 6);
    cells[LONE as usize..(MANY + TENANTS) as usize].fill(1.0);
    // The ranges of the hundred lie next to each other.
    let owners = owners(&setting, MANY..MANY + TENANTS / TOGETHER);
    let mut world = World::with_owners(setting, Demand::new(&cells, 1), &owners);
    world.run(until, |world| {
        let now = world.now;
        let lone = (0u64..)
            .zip(LATE)
            .map(|(tenant, late)| piece((LONE + 10 * tenant) * CELL, CELL, now, late, LONE_RATE));
        let many = (0..TENANTS).map(|tenant| {
            let width = CELL / TOGETHER;
            let late = LATE[tenant as usize % LATE.len()];
            piece(MANY * CELL + tenant * width, width, now, late, RATE)
        });
        world.demand.pieces = lone.chain(many).collect();
    });
    world
}

/// The load of a tenant that appends into `[from, from + width)`, and gets nearly to the end of it. It
/// began before the run did.
fn piece(from: Place, width: Place, now: f64, late: f64, rate: f64) -> Piece {
    let pace = width as f64 / (TWO_HOURS + 700.0);
    let at = |time: f64| from + (time * pace) as Place;
    let high = at(now + 600.0);
    Piece { low: at(now + 600.0 - late).min(high - 1), high, rate }
}

/// What the verdict says about the range in which a lone tenant appends.
fn cause(world: &World, lone: usize) -> &'static str {
    let piece = world.demand.pieces[lone];
    let range = world.range_at(piece.low);
    world.facts[range].cause().map_or("none", Cause::name)
}

/// What is refused per second at the end.
fn refused(world: &World) -> f64 {
    world.flows.iter().map(|flow| flow.wanted - flow.answered).sum()
}

/// On how many servers the hundred are, and the hottest range that any of them is in.
fn spread(world: &World) -> (usize, f64) {
    assert!(world.now >= LATER);
    let ranges = world.demand.pieces[LATE.len()..].iter().map(|piece| world.range_at(piece.low));
    let flows: Vec<_> = ranges.map(|range| world.flows[range]).collect();
    let servers: std::collections::BTreeSet<_> = flows.iter().map(|flow| flow.server).collect();
    (servers.len(), flows.iter().map(|flow| flow.wanted).fold(0.0, f64::max))
}

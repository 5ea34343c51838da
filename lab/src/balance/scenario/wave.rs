//! Days of an hour, in time zones one after the other, over ranges that are small and may merge; and after
//! an hour twenty tenants go elsewhere within ten minutes.
//!
//! Ranges that merge at night are split again at noon. Once a day, that is right. Ranges must not be split and merged
//! in turns: at most once in each direction per range and hour.

use super::{RANGES, TWO_HOURS, even, turn_zones};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Curve, Outcome, percent};
use crate::balance::world::{Setting, World};

const DAY: f64 = 3_600.0;
const ZONES: usize = 24;
/// The load at noon and at night, against the mean.
const SWING: f64 = 0.6;
/// The tenants that go, each with what it wants and how many cells that is spread over.
const TENANTS: u64 = 20;
const TENANT_RATE: f64 = 5_000.0;
const TENANT_CELLS: u64 = 100;
const LEAVES: f64 = 3_600.0;
const TAKES: f64 = 600.0;

pub(super) fn run(outcome: &mut Outcome) {
    let setting = Setting { bytes: 0, step: 5.0, ..Setting::fast(10) };
    let mut world = World::new(setting, Demand::new(&even(RANGES, 50.0, 11), ZONES));
    world.run(TWO_HOURS, |world| {
        turn_zones(world, DAY, SWING);
        world.demand.pieces = tenants(world.now);
    });
    let trace = &world.trace;
    let cycles = world.facts.iter().map(|facts| facts.cycles).max().unwrap_or(0);
    outcome.ask(
        "<= 1 split-merge cycle per range and hour",
        cycles <= 2,
        format!("{cycles} in two hours at most; {} merges, {} splits", trace.merges, trace.splits),
    );
    let failed = trace.failed_share(0.0, TWO_HOURS);
    let balanced = trace.balanced_share(600.0, 1.2);
    outcome.ask(
        "max/mean <= 1.2 in 95 % of the time, nothing refused",
        balanced >= 0.95 && failed < 1e-4,
        format!("{}; {} refused; {} moves", percent(balanced), percent(failed), trace.moves),
    );
    let ranges: Vec<f64> = trace.ranges.iter().map(|ranges| *ranges as f64).collect();
    let ranges = Curve::new("ranges", &trace.times, &ranges);
    outcome.curves("wave: number of ranges", "ranges", None, vec![ranges]);
    outcome.balance("wave, and migration at 3,600 s", 1.2, &[("planner", trace)]);
    outcome.heat("wave: utilisation of servers", trace);
}

/// The tenants' load, on its way from where they were to where they go.
fn tenants(now: f64) -> Vec<Piece> {
    let gone = ((now - LEAVES) / TAKES).clamp(0.0, 1.0);
    let piece = |cell: u64, share: f64| Piece {
        low: cell * CELL,
        high: (cell + TENANT_CELLS) * CELL,
        rate: TENANT_RATE * share,
    };
    (0..TENANTS)
        .flat_map(|tenant| [piece(1_000 * tenant, 1.0 - gone), piece(50_000 + 1_000 * tenant, gone)])
        .collect()
}

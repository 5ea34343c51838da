//! Days of an hour, in time zones one after the other, over ranges that are small and may merge; and after
//! an hour twenty tenants go elsewhere within ten minutes.
//!
//! Ranges that merge at night are split again at noon. Once a day, that is right. Ranges must not be split and merged
//! in turns: at most once in each direction per range and hour.

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Curve, Line, Outcome, Picture, percent};
use crate::balance::world::{Setting, World};

const NAME: &str = "wave";
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

pub(super) fn run() -> Outcome {
    let mut world = World::new(
        Setting { bytes: 0, step: 5.0, ..Setting::fast(10) },
        Demand::new(&even(RANGES, 50.0, 11), ZONES),
    );
    world.run(TWO_HOURS, |world| {
        for (zone, factor) in world.demand.factors.iter_mut().enumerate() {
            let hour = world.now / DAY + zone as f64 / ZONES as f64;
            *factor = 1.0 + SWING * (hour * std::f64::consts::TAU).sin();
        }
        world.demand.pieces = tenants(world.now);
    });
    let trace = &world.trace;
    let cycles = world.facts.iter().map(|facts| facts.cycles).max().unwrap_or(0);
    let failed = trace.failed_share(0.0, TWO_HOURS);
    let balanced = trace.balanced_share(600.0, 1.2);
    let mut outcome = Outcome::default();
    outcome.add(Line::new(
        NAME,
        "<= 1 split-merge cycle per range and hour",
        format!("{cycles} in two hours at most; {} merges, {} splits", trace.merges, trace.splits),
        cycles <= 2,
    ));
    outcome.add(Line::new(
        NAME,
        "max/mean <= 1.2 in 95 % of the time, nothing refused",
        format!("{}; {} refused; {} moves", percent(balanced), percent(failed), trace.moves),
        balanced >= 0.95 && failed < 1e-4,
    ));
    let ranges: Vec<f64> = trace.ranges.iter().map(|ranges| *ranges as f64).collect();
    outcome.pictures.push(Picture::Curves {
        title: "wave: number of ranges".to_owned(),
        unit: "ranges",
        limit: None,
        curves: vec![Curve::new("ranges", &trace.times, &ranges)],
    });
    outcome.balance("wave, and migration at 3,600 s", 1.2, vec![Curve::max_over_mean("planner", trace)]);
    outcome.heat("wave: utilisation of servers", trace);
    outcome
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

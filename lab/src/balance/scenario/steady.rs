//! Load by Zipf's law that does not change, on servers drawn at random.
//!
//! A range that wants more than one range bears is one hot key, and held at that limit. Asked for: even
//! load (or as even as the hottest range allows), soon, with few moves, and then no moves to speak of.

use rangehold_map::plan::Policy;

use super::{RANGES, TWO_HOURS, zipf};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Outcome, percent, seconds};
use crate::balance::world::{Setting, World};

const ALL: f64 = 1e7;
/// When moves are no longer those of the beginning.
const SETTLED: f64 = 600.0;

pub(super) fn zipf_099(outcome: &mut Outcome) {
    run(outcome, "zipf 0.99", 0.99);
    // Without the distance between the load that makes a server give and the load at which it stops.
    let policy = Policy { relieve_from: 1.0, relieve_to: 1.0, relief_min: 0.0, ..Policy::fast() };
    let mut world = world(0.99, Setting { policy, ..setting() });
    world.run(TWO_HOURS / 4.0, |_| {});
    let daily = world.trace.moves_per_server_and_day(SETTLED, world.servers.len());
    outcome.compare("without hysteresis", format!("{daily:.0} moves/server/day"));
    let mut hashed = self::world(0.99, Setting { balances: false, ..setting() });
    hashed.run(60.0, |_| {});
    let last = hashed.trace.max_over_mean[11];
    outcome.compare("static hashing", format!("max/mean {last:.2} to the end"));
}

pub(super) fn zipf_120(outcome: &mut Outcome) {
    run(outcome, "zipf 1.2", 1.2);
}

fn setting() -> Setting {
    Setting { step: 5.0, ..Setting::fast(1) }
}

fn world(exponent: f64, setting: Setting) -> World {
    let mut cells = zipf(RANGES, exponent, ALL, 2);
    let mut pieces = Vec::new();
    for (cell, rate) in (0u64..).zip(&mut cells).filter(|(_, rate)| **rate > setting.policy.split_rate) {
        pieces.push(Piece::key(cell * CELL + CELL / 2, *rate));
        *rate = 0.0;
    }
    let mut demand = Demand::new(&cells, 1);
    demand.pieces = pieces;
    World::new(setting, demand)
}

fn run(outcome: &mut Outcome, title: &str, exponent: f64) {
    let mut world = world(exponent, setting());
    world.run(TWO_HOURS, |_| {});
    let trace = &world.trace;
    // The hottest range alone: the server that holds it cannot get below this.
    let hottest = world.flows.iter().map(|flow| flow.answered).fold(0.0, f64::max);
    let all: f64 = world.servers.iter().map(|server| server.load).sum();
    let floor = hottest * world.servers.len() as f64 / all;
    let limit = floor.max(1.1) + 1e-9;
    let (share, first) = (trace.balanced_share(0.0, limit), trace.max_over_mean[0]);
    let even = seconds(trace.even_after(0.0, limit));
    outcome.ask(
        format!("max/mean <= max(1.10, floor {floor:.3}) in 99 % of the time"),
        share >= 0.99,
        format!("{} (from {first:.2}; even after {even})", percent(share)),
    );
    let daily = trace.moves_per_server_and_day(SETTLED, world.servers.len());
    let early = trace.move_times.iter().filter(|moved| **moved <= SETTLED).count();
    outcome.ask(
        "<= 1 move/server/day once settled",
        daily <= 1.0,
        format!("{daily:.2} ({early} moves in the first ten minutes)"),
    );
    outcome.ask("no split of a hot key", trace.splits == 0, format!("{} splits", trace.splits));
    outcome.balance(title, limit, &[("planner", trace)]);
}

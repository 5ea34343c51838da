//! Servers that end: a twentieth of all at once, a rack, and a restart of every one in turn.
//!
//! The manager knows that a server is dead 6 s after its last sign of life: its lease of 5 s and a margin. No planner
//! can be quicker than that, so the limit counts from that moment: all ranges are served again within 5 s. A restart
//! that was announced costs nothing.

use rand::seq::SliceRandom;
use rangehold_map::plan::Standing;

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::Demand;
use crate::balance::outcome::{Outcome, percent};
use crate::balance::trace::greatest;
use crate::balance::world::{DETECTED_AFTER, Setting, World};

/// Number of servers that end at once, and number of servers in a rack.
const MANY: usize = 50;
const RACK: usize = 20;
const FIRST: f64 = 600.0;
const SECOND: f64 = 3_600.0;
/// When the dead ones are back.
const BACK: f64 = 900.0;
/// Number of servers that restart together, how often such a group restarts, and how long it is away.
const GROUP: usize = 10;
const PERIOD: f64 = 70.0;
const AWAY: f64 = 20.0;

pub(super) fn run(outcome: &mut Outcome) {
    let dying = die();
    let trace = &dying.trace;
    let again = greatest(&trace.reopened);
    let unserved = [FIRST, SECOND]
        .map(|at| trace.first_minute(&trace.lost, 0.0, at).map_or(f64::INFINITY, |served| served - at));
    let (slower, rehomed) = (unserved[0].max(unserved[1]), trace.rehomed);
    outcome.ask(
        "5 % of the servers, then a rack: served again <= 5 s after that is known",
        again <= 5.0 && slower <= DETECTED_AFTER + 5.0,
        format!("{slower:.0} s after the crash and {again:.2} s after it is known; {rehomed} ranges"),
    );
    let refused = greatest(&trace.refused);
    let even = trace.even_after(FIRST + DETECTED_AFTER, 1.1).unwrap_or(f64::INFINITY) - FIRST;
    outcome.ask(
        "the others take it: nothing refused, even again <= 10 min",
        refused == 0.0 && even <= 600.0,
        format!("{} refused; even after {even:.0} s", percent(refused)),
    );
    let rolling = restart_all();
    let (wanted, refused, lost) = rolling.trace.totals;
    let success = 1.0 - (refused + lost) / wanted;
    outcome.ask(
        "rolling restart of all: success >= 99.99 %",
        success >= 0.9999,
        format!(
            "{:.4} %; {} ranges made way, {} moves evened out, max/mean at most {:.2}",
            success * 100.0,
            rolling.trace.rehomed,
            rolling.trace.moves,
            greatest(&rolling.trace.max_over_mean)
        ),
    );
    outcome.balance(
        "failures: 50 servers at 600 s, 20 at 3,600 s; and a rolling restart",
        1.1,
        &[("crashes", trace), ("rolling restart", &rolling.trace)],
    );
    outcome.heat("rolling restart: utilisation of servers", &rolling.trace);
}

fn world(seed: u64) -> World {
    World::new(Setting::fast(seed), Demand::new(&even(RANGES, 60.0, seed), 1))
}

fn die() -> World {
    let mut world = world(12);
    let mut order: Vec<usize> = (0..world.servers.len()).collect();
    order.shuffle(&mut world.dice);
    let many = order[..MANY].to_vec();
    let rack: Vec<usize> = (500..500 + RACK).collect();
    world.run(TWO_HOURS, |world| {
        for (at, group) in [(FIRST, &many), (SECOND, &rack)] {
            if world.now == at {
                group.iter().for_each(|server| world.kill(*server));
            }
            if world.now == at + BACK {
                group.iter().for_each(|server| world.start(*server));
            }
        }
    });
    world
}

fn restart_all() -> World {
    let mut world = world(13);
    let mut away: Vec<(usize, f64)> = Vec::new();
    world.run(TWO_HOURS, |world| {
        let group = (world.now / PERIOD) as usize * GROUP;
        if world.now % PERIOD == 0.0 && group < world.servers.len() {
            for server in group..group + GROUP {
                world.servers[server].standing = Standing::Leaving;
            }
        }
        let left = world.ranges_by_server();
        for (server, left) in left.into_iter().enumerate() {
            let state = &mut world.servers[server];
            if state.standing == Standing::Leaving && left == 0 && state.alive {
                state.alive = false;
                away.push((server, world.now + AWAY));
            }
        }
        let (back, rest) = away.iter().partition(|(_, until)| world.now >= *until);
        away = rest;
        let back: Vec<(usize, f64)> = back;
        back.into_iter().for_each(|(server, _)| world.start(server));
    });
    world
}

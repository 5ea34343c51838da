//! Servers that end: a twentieth of all at once, a rack, and a restart of every one in turn.
//!
//! The manager knows that a server is dead 6 s after its last sign of life: its lease of 5 s and a margin. No planner
//! can be quicker than that, so the limit counts from that moment: all ranges are served again within 5 s. A restart
//! that was announced costs nothing.

use rand::seq::SliceRandom;
use rangehold_map::plan::Standing;

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::Demand;
use crate::balance::outcome::{Curve, Line, Outcome, percent};
use crate::balance::world::{DETECTED_AFTER, Setting, World};

const NAME: &str = "failures";
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

pub(super) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    let dying = die();
    let again = dying.trace.reopened.iter().copied().fold(0.0, f64::max);
    let unserved = [FIRST, SECOND].map(|at| {
        let good = |trace: &crate::balance::trace::Trace, step: usize| trace.lost[step] == 0.0;
        dying.trace.first_minute(at, good).map_or(f64::INFINITY, |served| served - at)
    });
    outcome.add(Line::new(
        NAME,
        "5 % of the servers, then a rack: served again <= 5 s after that is known",
        format!(
            "{:.0} s after the crash and {again:.2} s after it is known; {} ranges",
            unserved[0].max(unserved[1]),
            dying.trace.rehomed
        ),
        again <= 5.0 && unserved.iter().all(|served| *served <= DETECTED_AFTER + 5.0),
    ));
    let refused: f64 = dying.trace.refused.iter().copied().fold(0.0, f64::max);
    let even =
        dying.trace.first_minute(FIRST + DETECTED_AFTER, |trace, step| trace.max_over_mean[step] <= 1.1);
    outcome.add(Line::new(
        NAME,
        "the others take it: nothing refused, even again <= 10 min",
        format!("{} refused; even after {:.0} s", percent(refused), even.unwrap_or(f64::INFINITY) - FIRST),
        refused == 0.0 && even.is_some_and(|even| even - FIRST <= 600.0),
    ));
    let rolling = restart_all();
    let (wanted, refused, lost) = rolling.trace.totals;
    let success = 1.0 - (refused + lost) / wanted;
    let restarted = rolling.trace.rehomed;
    outcome.add(Line::new(
        NAME,
        "rolling restart of all: success >= 99.99 %",
        format!(
            "{:.4} %; {restarted} ranges made way, {} moves evened out, max/mean at most {:.2}",
            success * 100.0,
            rolling.trace.moves,
            rolling.trace.max_over_mean.iter().copied().fold(0.0, f64::max)
        ),
        success >= 0.9999,
    ));
    outcome.balance(
        "failures: 50 servers at 600 s, 20 at 3,600 s; and a rolling restart",
        1.1,
        vec![
            Curve::max_over_mean("crashes", &dying.trace),
            Curve::max_over_mean("rolling restart", &rolling.trace),
        ],
    );
    outcome.heat("rolling restart: utilisation of servers", &rolling.trace);
    outcome
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

//! No manager, two managers, old maps.
//!
//! For two hours there is no planning while load drifts: nothing may fail because of that, but balance may suffer.
//! Then a front end that hears no news for an hour goes on with the map that it has ([`old_maps`]). At the end two
//! managers plan at the same time, each from a map and observations that are some changes old ([`duel`]).

mod duel;
mod old_maps;

use super::{RANGES, TWO_HOURS, even, turn_zones};
use crate::balance::demand::Demand;
use crate::balance::outcome::{Outcome, percent};
use crate::balance::trace::greatest;
use crate::balance::world::{Setting, World};
use old_maps::OldMaps;

/// How long the service is watched after its manager is back.
const AFTERWARDS: f64 = 600.0;
/// Time zones, whose load rises and falls one after the other.
const ZONES: usize = 24;

pub(super) fn run(outcome: &mut Outcome) {
    let mut old_maps = OldMaps::new();
    let alone = live(0.0, TWO_HOURS, |world| old_maps.step(world));
    let orphaned = live(TWO_HOURS, TWO_HOURS + AFTERWARDS, |_| {});
    nobody_plans(outcome, &orphaned);
    old_maps.conclude(outcome, &alone);
    duel::run(outcome);
    let runs = [("a manager", &alone.trace), ("none until 7,200 s", &orphaned.trace)];
    outcome.balance("managers: load drifts with and without one", 1.1, &runs);
}

fn nobody_plans(outcome: &mut Outcome, orphaned: &World) {
    let trace = &orphaned.trace;
    let failed = trace.failed_share(0.0, orphaned.now);
    let worst = greatest(&trace.max_over_mean);
    let then = trace.max_over_mean[trace.between(0.0, TWO_HOURS).end - 1];
    let back = trace.even_after(TWO_HOURS, 1.1);
    outcome.ask(
        "no manager for 2 h: nothing fails, then even again",
        failed == 0.0 && back.is_some(),
        format!(
            "{} failed; max/mean rose to {worst:.2}, was {then:.2} when one was back, and even {:.0} s later",
            percent(failed),
            back.unwrap_or(f64::INFINITY) - TWO_HOURS
        ),
    );
}

/// Load that drifts; no manager until then. `watch` sees the service before each step.
fn live(away_until: f64, end: f64, mut watch: impl FnMut(&World)) -> World {
    let setting = Setting { step: 5.0, ..Setting::fast(18) };
    let mut world = World::new(setting, Demand::new(&even(RANGES, 55.0, 19), ZONES));
    world.manager_away_until = away_until;
    world.run(end, |world| {
        turn_zones(world, 5_400.0, 0.5);
        watch(world);
    });
    world
}

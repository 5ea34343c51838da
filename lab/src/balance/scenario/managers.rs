//! No manager, two managers, old maps.
//!
//! For two hours there is no planning while load drifts: nothing may fail because of that, but balance may suffer.
//! Then a front end that hears no news for an hour goes on with the map that it has ([`old_maps`]). At the end two
//! managers plan at the same time, each from a map and observations that are some changes old ([`duel`]).

mod duel;
mod old_maps;

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::Demand;
use crate::balance::outcome::{Curve, Line, Outcome, percent};
use crate::balance::world::{Setting, World};
use old_maps::OldMaps;

const NAME: &str = "managers";
/// How long the service is watched after its manager is back.
const AFTERWARDS: f64 = 600.0;

pub(super) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    let mut old_maps = OldMaps::new();
    let alone = live(0.0, TWO_HOURS, |world| old_maps.step(world));
    let orphaned = live(TWO_HOURS, TWO_HOURS + AFTERWARDS, |_| {});
    outcome.add(nobody_plans(&orphaned));
    outcome.lines.extend(old_maps.conclude(&alone));
    outcome.lines.extend(duel::lines());
    outcome.balance(
        "managers: load drifts with and without one",
        1.1,
        vec![
            Curve::max_over_mean("a manager", &alone.trace),
            Curve::max_over_mean("none until 7,200 s", &orphaned.trace),
        ],
    );
    outcome
}

fn nobody_plans(orphaned: &World) -> Line {
    let trace = &orphaned.trace;
    let failed = trace.failed_share(0.0, orphaned.now);
    let worst = trace.max_over_mean.iter().copied().fold(0.0, f64::max);
    let then = trace.max_over_mean[trace.between(0.0, TWO_HOURS).end - 1];
    let back = trace.first_minute(TWO_HOURS, |trace, step| trace.max_over_mean[step] <= 1.1);
    Line::new(
        NAME,
        "no manager for 2 h: nothing fails, then even again",
        format!(
            "{} failed; max/mean rose to {worst:.2}, was {then:.2} when one was back, and even {:.0} s later",
            percent(failed),
            back.unwrap_or(f64::INFINITY) - TWO_HOURS
        ),
        failed == 0.0 && back.is_some(),
    )
}

/// Load that drifts; no manager until then. `watch` sees the service before each step.
fn live(away_until: f64, end: f64, mut watch: impl FnMut(&World)) -> World {
    let zones = 24;
    let mut world =
        World::new(Setting { step: 5.0, ..Setting::fast(18) }, Demand::new(&even(RANGES, 55.0, 19), zones));
    world.manager_away_until = away_until;
    world.run(end, |world| {
        for (zone, factor) in world.demand.factors.iter_mut().enumerate() {
            let phase = world.now / 5_400.0 + zone as f64 / zones as f64;
            *factor = 1.0 + 0.5 * (phase * std::f64::consts::TAU).sin();
        }
        watch(world);
    });
    world
}

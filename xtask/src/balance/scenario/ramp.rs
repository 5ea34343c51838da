//! A bucket whose names begin with one hex digit, and load that doubles every 20 minutes, from 1,000 to
//! 16,000 writes a second in 80 minutes; then the same every 5 minutes.
//!
//! What a bucket bears at a time is a rule of Google's documents: 1,000 writes a second at first, and
//! twice as much at most every 20 minutes in which it is used. The rule is written down here as
//! arithmetic; the code that will enforce it comes with objects. What is tried is that the finder's
//! verdicts and the planner's splits and moves keep up with it: each range bears 1,000/s. The verdict is
//! worked out, not found, as names are spread evenly over the digits. Reads go with the writes, five for
//! each, and are not counted twice.

use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use super::TWO_HOURS;
use crate::balance::demand::Demand;
use crate::balance::judge::Rule;
use crate::balance::outcome::{Curve, Line, Outcome, Picture, percent};
use crate::balance::world::{Setting, World};

const NAME: &str = "ramp";
const FIRST: f64 = 1_000.0;
const LAST: f64 = 16_000.0;
const TWENTY_MINUTES: f64 = 1_200.0;

pub(super) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    let (slow, slow_curves) = live(TWENTY_MINUTES);
    let used = slow.ranges_by_server().iter().filter(|count| **count > 0).count();
    let failed = slow.trace.failed_share(0.0, TWO_HOURS);
    outcome.add(Line::new(
        NAME,
        "x 2 in 20 min: 1,000/s to 16,000/s in 80 min, no error",
        format!("{} refused, {} ranges on {used} servers", percent(failed), slow.flows.len()),
        failed == 0.0 && slow.flows.len() >= 16 && used >= 8,
    ));
    let (quick, quick_curves) = live(TWENTY_MINUTES / 4.0);
    let failed = quick.trace.failed_share(0.0, 2.0 * TWENTY_MINUTES);
    outcome.add(Line::new(
        NAME,
        "x 2 in 5 min: refused as documented",
        format!("{} refused in the first 40 min", percent(failed)),
        failed > 0.05,
    ));
    for (title, curves) in
        [("ramp: doubling in 20 min", slow_curves), ("ramp: doubling in 5 min", quick_curves)]
    {
        outcome.pictures.push(Picture::Curves {
            title: title.to_owned(),
            unit: "writes/s",
            limit: None,
            curves,
        });
    }
    outcome
}

/// What a bucket bears: doubled when it was used, for 20 minutes, for more than half.
struct Budget {
    bears: f64,
    used_since: Option<f64>,
}

impl Budget {
    /// What is let through of `wanted`.
    fn let_through(&mut self, wanted: f64, now: f64) -> f64 {
        if wanted <= self.bears / 2.0 {
            self.used_since = None;
        } else if now - *self.used_since.get_or_insert(now) >= TWENTY_MINUTES {
            self.bears *= 2.0;
            self.used_since = Some(now);
        }
        wanted.min(self.bears)
    }
}

fn live(doubling: f64) -> (World, Vec<Curve>) {
    let load_policy = LoadPolicy { cap: FIRST, ..LoadPolicy::cloud() };
    let policy =
        Policy { split_rate: FIRST * load_policy.hot_share, calm_utilisation: 0.1, ..Policy::cloud() };
    let setting = Setting {
        servers: 16,
        capacity: 4_000.0,
        range_limit: FIRST,
        policy,
        load_policy,
        rule: Rule::Arithmetic,
        ..Setting::fast(9)
    };
    let mut world = World::with_owners(setting, Demand::new(&[1.0], 1), &[0]);
    let mut budget = Budget { bears: FIRST, used_since: None };
    let (mut times, mut wanted, mut passed, mut refused) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    world.run(TWO_HOURS, |world| {
        let want = (FIRST * (world.now / doubling).floor().exp2()).min(LAST);
        let through = budget.let_through(want, world.now);
        world.demand.factors[0] = through;
        times.push(world.now);
        wanted.push(want);
        passed.push(through);
        refused.push(want - through);
    });
    // What the bucket's budget refused did not reach the ranges: it counts as well.
    for (step, refused) in refused.iter().enumerate() {
        let reached = world.trace.refused[step] * passed[step];
        world.trace.refused[step] = (refused + reached) / wanted[step];
    }
    let answered: Vec<f64> =
        wanted.iter().zip(&world.trace.refused).map(|(wanted, refused)| wanted * (1.0 - refused)).collect();
    let curves = vec![Curve::new("wanted", &times, &wanted), Curve::new("answered", &times, &answered)];
    (world, curves)
}

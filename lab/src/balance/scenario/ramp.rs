//! A bucket whose names begin with one hex digit, and load that doubles every 20 minutes, from 1,000 to 16,000 writes
//! a second in 80 minutes; then the same every 5 minutes. It is one range among 100,000 others, which use a fifth of
//! what the servers bear. (If the others use half of it, 0.003 % is refused.)
//!
//! What a bucket bears at a time is a rule of Google's documents: 1,000 writes a second at first, and at most twice as
//! much after every 20 minutes in which it is used. The rule is written down here as arithmetic; the code that
//! enforces it is `capacity` of the crate `map`, which also cuts the names. The scenario tries whether the finder's verdicts and the planner's splits and moves
//! keep up with it: each range bears 1,000/s. The verdict is calculated and not found, as names are spread evenly over
//! the digits. Reads go with the writes, five for each, and are not counted twice.

use std::collections::BTreeSet;

use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::{CELL, Demand, Piece, Place};
use crate::balance::outcome::{Curve, Outcome, percent};
use crate::balance::watched::Rule;
use crate::balance::world::{Setting, World};

const FIRST: f64 = 1_000.0;
const LAST: f64 = 16_000.0;
const TWENTY_MINUTES: f64 = 1_200.0;
/// What the other ranges want on average.
const OTHERS: f64 = 20.0;
/// The keys of the bucket.
const BUCKET: std::ops::Range<Place> = 7_777 * CELL..7_778 * CELL;

pub(super) fn run(outcome: &mut Outcome) {
    let slow = live(TWENTY_MINUTES);
    let failed = slow.failed_share(TWO_HOURS);
    outcome.ask(
        "x 2 in 20 min: 1,000/s to 16,000/s in 80 min, no error",
        failed == 0.0 && slow.ranges >= 16 && slow.servers >= 8,
        format!("{} refused, {} ranges on {} servers", percent(failed), slow.ranges, slow.servers),
    );
    let quick = live(TWENTY_MINUTES / 4.0);
    let failed = quick.failed_share(2.0 * TWENTY_MINUTES);
    outcome.ask(
        "x 2 in 5 min: refused as documented",
        failed > 0.05,
        format!("{} refused in the first 40 min", percent(failed)),
    );
    for (title, ramp) in [("ramp: doubling in 20 min", slow), ("ramp: doubling in 5 min", quick)] {
        let curves = [("wanted", &ramp.wanted), ("answered", &ramp.answered)];
        let curves = curves.map(|(name, rates)| Curve::new(name, &ramp.times, rates));
        outcome.curves(title, "writes/s", None, curves.into());
    }
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

/// What happened to the bucket, step by step, and where it is at the end.
#[derive(Default)]
struct Ramp {
    times: Vec<f64>,
    wanted: Vec<f64>,
    /// Any refusal counts as a refusal of the bucket.
    answered: Vec<f64>,
    ranges: usize,
    servers: usize,
}

impl Ramp {
    /// The share of the bucket's requests before a time that was not answered, by its budget or later.
    fn failed_share(&self, until: f64) -> f64 {
        let steps = self.times.partition_point(|time| *time < until);
        let answered = self.wanted[..steps].iter().zip(&self.answered);
        1.0 - answered.map(|(wanted, answered)| answered / wanted).sum::<f64>() / steps as f64
    }
}

fn live(doubling: f64) -> Ramp {
    let load_policy = LoadPolicy { cap: FIRST, ..LoadPolicy::cloud() };
    let policy =
        Policy { split_rate: FIRST * load_policy.hot_share, calm_utilisation: 0.1, ..Policy::cloud() };
    let setting =
        Setting { range_limit: FIRST, policy, load_policy, rule: Rule::Arithmetic, ..Setting::fast(9) };
    let mut cells = even(RANGES, OTHERS, 22);
    cells[(BUCKET.start / CELL) as usize] = 0.0;
    let mut world = World::new(setting, Demand::new(&cells, 1));
    let mut budget = Budget { bears: FIRST, used_since: None };
    let (mut ramp, mut everybody) = (Ramp::default(), Vec::new());
    world.run(TWO_HOURS, |world| {
        let want = (FIRST * (world.now / doubling).floor().exp2()).min(LAST);
        let through = budget.let_through(want, world.now);
        world.demand.pieces = vec![Piece { low: BUCKET.start, high: BUCKET.end, rate: through }];
        ramp.times.push(world.now);
        ramp.wanted.push(want);
        ramp.answered.push(through);
        everybody.push(world.demand.whole() + through);
    });
    let trace = &world.trace;
    for (step, everybody) in everybody.into_iter().enumerate() {
        ramp.answered[step] -= (trace.refused[step] + trace.lost[step]) * everybody;
    }
    let flows = &world.flows[world.range_at(BUCKET.start)..world.range_at(BUCKET.end)];
    ramp.ranges = flows.len();
    ramp.servers = flows.iter().map(|flow| flow.server).collect::<BTreeSet<_>>().len();
    ramp
}

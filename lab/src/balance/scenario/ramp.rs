//! A bucket whose names begin with one hex digit, and load that doubles every 20 minutes, from 1,000 to 16,000 writes
//! a second in 80 minutes; then the same every 5 minutes. It is one range among 100,000 others, which use a fifth of
//! what the servers bear. (If the others use half of it, 0.003 % is refused.)
//!
//! What a bucket bears at a time is a rule of Google's documents: 1,000 writes a second at first, and at most twice as
//! much after every 20 minutes in which it is used. The real [`Capacity`] of the crate `map` decides that, on the clock of the
//! scenario: it is asked for names of all sixteen digits in each step, and cuts them. What it lets in is the load of the bucket's ranges.
//! So the scenario tries whether the finder's verdicts and the planner's splits and moves keep up with it: each range bears
//! 1,000/s. The verdict is calculated and not found, as names are spread evenly over the digits. Reads go with the writes,
//! five for each, and are not counted twice.

use std::collections::BTreeSet;
use std::time::Duration;

use rangehold_map::capacity::{Capacity, Rules, Usage};
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

/// The bucket's names begin with so many digits.
const DIGITS: u32 = 16;

/// What is let through at a time of so many writes a second, which are new names of all digits.
fn let_through(capacity: &mut Capacity, wanted: f64, now: f64) -> f64 {
    let now = Duration::from_secs_f64(now);
    capacity.tick(now, now);
    let each = wanted / f64::from(DIGITS);
    let name = |digit: u32| format!("{digit:x}/{:08}", now.as_secs());
    (0..DIGITS).map(|digit| capacity.pour(now, name(digit).as_bytes(), Usage::Write, each)).sum()
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
    /// The share of the bucket's requests before a time that was not answered, by its capacity or later.
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
    let rules = Rules { writes: FIRST, ..Rules::documented() };
    let mut capacity = Capacity::new(rules, Duration::ZERO, Duration::ZERO, 5);
    let (mut ramp, mut everybody) = (Ramp::default(), Vec::new());
    world.run(TWO_HOURS, |world| {
        let want = (FIRST * (world.now / doubling).floor().exp2()).min(LAST);
        let through = let_through(&mut capacity, want, world.now);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes that are let through in each second, if the load doubles after so many.
    fn through(doubling: u32) -> Vec<(f64, f64)> {
        let mut capacity = Capacity::new(Rules::documented(), Duration::ZERO, Duration::ZERO, 5);
        let second = |second: u32| {
            let wanted = (FIRST * f64::from(1_u32 << (second / doubling).min(10))).min(LAST);
            (wanted, let_through(&mut capacity, wanted, f64::from(second)))
        };
        (0..TWO_HOURS as u32).map(second).collect()
    }

    #[test]
    fn a_load_that_doubles_in_20_minutes_is_let_through_to_the_last_write() {
        let through = through(TWENTY_MINUTES as u32);
        assert!(through.iter().all(|(wanted, through)| wanted == through));
        assert_eq!(through[through.len() - 1].1, LAST);
    }

    #[test]
    fn one_that_doubles_in_5_minutes_gets_twice_as_much_after_each_20() {
        let through = through(TWENTY_MINUTES as u32 / 4);
        let at = |minute: usize| through[60 * minute + 30].1;
        assert_eq!([at(4), at(10), at(19), at(30), at(50)], [1_000.0, 1_000.0, 1_000.0, 2_000.0, 4_000.0]);
        assert_eq!([at(70), at(110)], [8_000.0, LAST]);
    }
}

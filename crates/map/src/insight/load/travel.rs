//! Loads that move through the keys: append and prepend.
//!
//! There are four kinds, and their figures have different meanings ([`Manner`]). All of the load goes to keys
//! where there was none before; or it moves, but slowly for its width; or part of it follows the rest at a
//! distance; or part of it moves within one narrow place, such as the keys of one tenant among others.

use std::time::Duration;

use super::finder::spread;
use super::front::{Way, front, side, time_to_pass};
use super::judge::Trial;
use super::look::{Look, mean_balance, rise};
use super::verdict::{Cause, Manner, Travel};

impl Trial<'_> {
    /// Whether part of the load moves towards a cut and will pass it before the split has been useful, and
    /// when.
    pub(super) fn passed_by(&self, cut: usize) -> Option<(Way, Duration)> {
        /// The factor by which an estimate from keys may be wrong.
        const ERROR: u32 = 4;
        [Way::Up, Way::Down].into_iter().find_map(|way| {
            let time = time_to_pass(self.evidence, cut, way)?;
            (time < self.policy.useful_for * ERROR).then_some((way, time))
        })
    }

    /// A cut would be useful if the load did not move past it.
    pub(super) fn travel_behind(&self) -> Option<Cause> {
        let best = self.best(|cut| self.passed_by(cut).is_some())?;
        let (way, over) = self.passed_by(best)?;
        let share = match way {
            Way::Up => self.evidence.c.left(best),
            Way::Down => self.evidence.c.right(best),
        };
        let moving = side(self.evidence.samples_c(), &self.evidence.cuts[best], way);
        let front = front(moving, way).unwrap_or_default().to_vec();
        Some(way.cause(Travel { manner: Manner::Behind, share, over, front }))
    }

    /// The load has moved beyond the edge of A. Or the keys began again from the start, and then the load of
    /// each look is beyond the edge of the look before.
    pub(super) fn travel_beyond(&self) -> Option<Cause> {
        for way in [Way::Up, Way::Down] {
            let step = self.median_climb(way);
            let (first, before) = (front(&self.evidence.cuts, way), self.front_before_c(way));
            for (share, over, edge) in
                [(self.beyond(way), self.evidence.gap, first), (step, self.evidence.look, before)]
            {
                if share > self.policy.beyond_share && self.is_even_climb(way, share / 2.0) {
                    let front = self.middle_beyond(edge, way);
                    return Some(way.cause(Travel { manner: Manner::Ahead, share, over, front }));
                }
            }
        }
        None
    }

    /// The middle one of C's samples beyond an earlier front. The furthest one may belong to other load.
    fn middle_beyond(&self, edge: Option<&[u8]>, way: Way) -> Vec<u8> {
        let c = self.evidence.samples_c();
        let beyond = edge.map_or(c, |edge| side(c, edge, way.back()));
        // If the keys began again from the start, there may be none beyond.
        middle(if beyond.is_empty() { c } else { beyond })
    }

    /// The front of the look before C.
    fn front_before_c(&self, way: Way) -> Option<&[u8]> {
        let before = self.evidence.samples.len().checked_sub(2)?;
        front(&self.evidence.samples[before], way)
    }

    /// The share of C's load beyond the edge of A.
    pub(super) fn beyond(&self, way: Way) -> f64 {
        match (way, self.evidence.cuts.len()) {
            (_, 0) => 0.0,
            (Way::Up, cuts) => self.evidence.c.right(cuts - 1),
            (Way::Down, _) => self.evidence.c.left(0),
        }
    }

    /// The load moves within one narrow place, and therefore on one side of any cut.
    pub(super) fn travel_within(&self) -> Option<Cause> {
        let in_way = |way| {
            let (gap, share) = self.within(way)?;
            (share >= self.policy.blocking_share).then_some((way, gap, share))
        };
        let (way, gap, share) = in_way(Way::Up).or_else(|| in_way(Way::Down))?;
        let front = middle(self.in_gap(self.evidence.samples_c(), gap));
        Some(way.cause(Travel { manner: Manner::Within, share, over: self.evidence.gap, front }))
    }

    /// Of the gaps between A's samples in which load moves that way: the one with the most load, and its
    /// share, which is the smaller of those in B and C.
    fn within(&self, way: Way) -> Option<(usize, f64)> {
        let cuts = self.evidence.cuts.len();
        let share = |look: &Look, gap: usize| {
            let from = |cut: usize| if cut == cuts { 0.0 } else { look.right(cut) };
            gap.checked_sub(1).map_or(look.left(0), from) - from(gap)
        };
        let gaps = (0..=cuts).filter(|gap| cuts > 0 && self.moves_in(*gap, way));
        let shares = gaps.map(|gap| (gap, share(&self.evidence.b, gap).min(share(&self.evidence.c, gap))));
        shares.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The samples that lie in a gap between A's samples.
    fn in_gap<'a>(&self, samples: &'a [Vec<u8>], gap: usize) -> &'a [Vec<u8>] {
        let cuts = &self.evidence.cuts;
        let start = gap.checked_sub(1).map_or(0, |low| samples.partition_point(|key| *key < cuts[low]));
        let end = cuts.get(gap).map_or(samples.len(), |high| samples.partition_point(|key| key < high));
        &samples[start..end]
    }

    /// Whether the samples in a gap are, from each look to the next, mostly beyond those before, and in C
    /// nearly all beyond those in B. A hot spot that jumps does not do this: it rests between its jumps.
    fn moves_in(&self, gap: usize, way: Way) -> bool {
        /// The least [`rise`] from look to look. For 16 samples that do not move it is 0, plus or minus 0.2.
        const STEP_MIN: f64 = 0.4;
        /// The least [`rise`] from B to C.
        const ALL_MIN: f64 = 0.8;
        let looks: Vec<&[Vec<u8>]> =
            self.evidence.samples.iter().map(|samples| self.in_gap(samples, gap)).collect();
        let (Some(b), Some(c)) = (looks.first(), looks.last()) else {
            return false;
        };
        way.sign() * rise(b, c) >= ALL_MIN
            && looks.windows(2).all(|looks| way.sign() * rise(looks[0], looks[1]) >= STEP_MIN)
    }

    pub(super) fn still_travels(&self, way: Way, travel: &Travel) -> bool {
        match travel.manner {
            Manner::Ahead => self.beyond(way).max(self.median_climb(way)) >= travel.share / 2.0,
            Manner::Late => self.drift(way) >= self.policy.drift_max / 4.0,
            Manner::Within => self.within(way).is_some_and(|(_, share)| share >= travel.share / 2.0),
            Manner::Behind => self.travel_behind().is_some(),
        }
    }

    fn median_climb(&self, way: Way) -> f64 {
        let mut steps: Vec<f64> = self.evidence.climbs.iter().map(|climb| climb * way.sign()).collect();
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(0.0)
    }

    /// Whether the load went that way about evenly from every look to the next, and together by at least
    /// `shift` of the load. One step and the next one may be short: growing keys may begin again each day,
    /// and the look in which they do so has samples of both ends.
    fn is_even_climb(&self, way: Way, shift: f64) -> bool {
        /// How much shorter a step may be by chance: the edges are the ends of a sample of 64.
        const CHANCE: f64 = 0.03;
        let median = self.median_climb(way);
        let steps = &self.evidence.climbs;
        let is_far = |step: &f64| step * way.sign() >= median / 2.0 - CHANCE;
        let near = |at: usize| steps.get(at).is_some_and(|step| !is_far(step));
        let first_near = (0..steps.len()).find(|&at| near(at));
        let others_are_far = first_near.is_none_or(|first| (first + 2..steps.len()).all(|at| !near(at)));
        others_are_far && median * steps.len() as f64 >= shift
    }

    /// The mean drift of all cuts per second, positive in direction `way`.
    fn drift(&self, way: Way) -> f64 {
        way.sign() * (mean_balance(&self.evidence.c.sides) - mean_balance(&self.evidence.b.sides))
            / self.gap()
    }

    /// All cuts drift in one direction, and without a jump.
    pub(super) fn travel_late(&self) -> Option<Cause> {
        let way = if self.drift(Way::Up) > 0.0 { Way::Up } else { Way::Down };
        let against = |cut: usize| {
            let balance = self.balance(cut);
            way.sign() * (balance.c - balance.b) < -self.policy.sigmas * balance.spread
        };
        if self.drift(way) < self.policy.drift_max || self.cuts().any(against) || self.has_jumped(way) {
            return None;
        }
        let off_middle = |cut: usize| self.balance(cut).b.abs();
        let median = self.cuts().min_by(|&a, &b| off_middle(a).total_cmp(&off_middle(b)))?;
        let share = match way {
            Way::Up => self.evidence.c.right(median),
            Way::Down => self.evidence.c.left(median),
        };
        let (over, front) = (self.evidence.gap, middle(self.evidence.samples_c()));
        Some(way.cause(Travel { manner: Manner::Late, share, over, front }))
    }

    /// Whether a large part of the drift was made within one second, and not by chance.
    fn has_jumped(&self, way: Way) -> bool {
        let c = &self.evidence.c;
        let per_second = c.sample(c.cost) / self.evidence.look.as_secs_f64().max(1.0);
        // The standard deviation of a mean over cuts all over the load is 1/sqrt(3) of that of one cut. One
        // deviation more is allowed, because `jump` is the greatest of many seconds.
        let chance = (self.policy.sigmas + 1.0) * spread(per_second, per_second) / 3f64.sqrt();
        self.evidence.jump > chance.max(self.drift(way) * self.gap() / 4.0)
    }
}

fn middle(samples: &[Vec<u8>]) -> Vec<u8> {
    samples.get(samples.len() / 2).cloned().unwrap_or_default()
}

impl Way {
    fn cause(self, travel: Travel) -> Cause {
        match self {
            Self::Up => Cause::Append(travel),
            Self::Down => Cause::Prepend(travel),
        }
    }
}

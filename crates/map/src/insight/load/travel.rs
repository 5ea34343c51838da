//! Loads that move through the keys: append and prepend.
//!
//! Four kinds are told apart, because their figures mean different things ([`Manner`]): all of the load goes
//! where nothing was, it goes there slowly for its width, part of it follows at a distance, or part of
//! it goes on within one narrow place, such as the keys of one tenant among others.

use std::time::Duration;

use super::finder::spread;
use super::front::{Way, front, side, time_to_pass};
use super::judge::Trial;
use super::look::{Look, mean_balance, rise};
use super::verdict::{Cause, Manner, Travel};

impl Trial<'_> {
    /// Part of the load that moves to a cut and will have passed it before the split has been of use.
    pub(super) fn passed_by(&self, cut: usize) -> Option<(Way, Duration)> {
        /// How far an estimate by the bytes of keys may be off: digits do not use all values of a byte.
        const ERROR: u32 = 4;
        [Way::Up, Way::Down].into_iter().find_map(|way| {
            let time = time_to_pass(self.evidence, cut, way)?;
            (time < self.policy.useful_for * ERROR).then_some((way, time))
        })
    }

    /// A cut would be useful, were it not passed by.
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

    /// The load is beyond the edge of A or, if it began anew meanwhile, of each look the next.
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

    /// The middle one of C's samples beyond an earlier front: the furthest of them may be of something else.
    fn middle_beyond(&self, edge: Option<&[u8]>, way: Way) -> Vec<u8> {
        let c = self.evidence.samples_c();
        let beyond = edge.map_or(c, |edge| side(c, edge, way.back()));
        // Where the keys began anew, none may be beyond.
        middle(if beyond.is_empty() { c } else { beyond })
    }

    /// The front of the look before C.
    fn front_before_c(&self, way: Way) -> Option<&[u8]> {
        let before = self.evidence.samples.len().checked_sub(2)?;
        front(&self.evidence.samples[before], way)
    }

    /// The share of C beyond the edge of A.
    pub(super) fn beyond(&self, way: Way) -> f64 {
        match (way, self.evidence.cuts.len()) {
            (_, 0) => 0.0,
            (Way::Up, cuts) => self.evidence.c.right(cuts - 1),
            (Way::Down, _) => self.evidence.c.left(0),
        }
    }

    /// Load that goes on within one narrow place, and so on one side of any cut, while the cuts are uneven.
    pub(super) fn travel_within(&self) -> Option<Cause> {
        let in_way = |way| {
            let (gap, share) = self.within(way)?;
            (share >= self.policy.blocking_share).then_some((way, gap, share))
        };
        let (way, gap, share) = in_way(Way::Up).or_else(|| in_way(Way::Down))?;
        let front = middle(self.in_gap(self.evidence.samples_c(), gap));
        Some(way.cause(Travel { manner: Manner::Within, share, over: self.evidence.gap, front }))
    }

    /// The gap of A's sample where the load moves that has the greatest share of C, and the same of B.
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

    /// The samples in a gap of A's sample.
    fn in_gap<'a>(&self, samples: &'a [Vec<u8>], gap: usize) -> &'a [Vec<u8>] {
        let cuts = &self.evidence.cuts;
        let start = gap.checked_sub(1).map_or(0, |low| samples.partition_point(|key| *key < cuts[low]));
        let end = cuts.get(gap).map_or(samples.len(), |high| samples.partition_point(|key| key < high));
        &samples[start..end]
    }

    /// Whether the samples in a gap of A's sample are, from each look to the next, mostly beyond those before,
    /// and in C nearly all beyond those in B. A spot that jumps comes to the same place only by chance, and
    /// rests between.
    fn moves_in(&self, gap: usize, way: Way) -> bool {
        /// By how much more of all pairs of samples the later one is beyond: it is 0, plus or minus 0.2, of 16
        /// that stay.
        const STEP_MIN: f64 = 0.4;
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

    /// Whether the load went that way from every look to the next, about evenly, and together by
    /// `shift` of the load at least. One step and the next are forgiven: keys that grow may begin anew each
    /// day, and the look in which they do has samples of both ends.
    fn is_even_climb(&self, way: Way, shift: f64) -> bool {
        /// How far a step may miss by chance: the edges are the ends of a sample of 64.
        const CHANCE: f64 = 0.03;
        let median = self.median_climb(way);
        let steps = &self.evidence.climbs;
        let is_far = |step: &f64| step * way.sign() >= median / 2.0 - CHANCE;
        let near = |at: usize| steps.get(at).is_some_and(|step| !is_far(step));
        let first_near = (0..steps.len()).find(|&at| near(at));
        let others_are_far = first_near.is_none_or(|first| (first + 2..steps.len()).all(|at| !near(at)));
        others_are_far && median * steps.len() as f64 >= shift
    }

    /// The mean drift of all cuts, per second, positive if it is that way.
    fn drift(&self, way: Way) -> f64 {
        way.sign() * (mean_balance(&self.evidence.c.sides) - mean_balance(&self.evidence.b.sides))
            / self.gap()
    }

    /// All cuts drift one way, and never by a jump.
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

    /// Whether a good part of the drift was made in one second, and not by chance.
    fn has_jumped(&self, way: Way) -> bool {
        let c = &self.evidence.c;
        let per_second = c.sample(c.cost) / self.evidence.look.as_secs_f64().max(1.0);
        // A mean over cuts, which lie everywhere in the load, spreads by 1/sqrt(3) of what one cut does. One
        // standard deviation more, because this is the greatest of many seconds.
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

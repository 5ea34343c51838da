//! From evidence to a cause. Pure, and in this order: what is found first is said.
//!
//! 1. one partition has half the load in both looks: a hot key, whatever cut may look balanced;
//! 2. a cut that is balanced, steady, and not crossed by most requests: split. If there is none, one that
//!    takes less off will do, such as the frontier between an append and many reads of what is behind;
//! 3. such cuts were there, but part of the load is about to move past them: append or prepend;
//! 4. most of the load is beyond the edges of an earlier look, and climbed there evenly: append or prepend;
//! 5. scans would touch both sides of any cut;
//! 6. all cuts drift the same way, evenly: an append or prepend whose entries come late;
//! 7. every cut is uneven because one partition is in the way: a hot key after all;
//! 8. unclear, and what was wrong with the best cut.

use std::time::Duration;

use super::finder::{Evidence, spread};
use super::front::{Way, time_to_pass};
use super::look::mean_balance;
use super::policy::LoadPolicy;
use super::top_keys::TopKey;
use super::verdict::{Cause, Doubt, Manner, Travel};

/// What holds of this evidence.
pub(super) fn judge(evidence: &Evidence, policy: &LoadPolicy) -> Cause {
    let trial = Trial { evidence, policy };
    trial
        .hot_key(policy.hot_key_share)
        .or_else(|| trial.split())
        .or_else(|| trial.travel_behind())
        .or_else(|| trial.travel_beyond())
        .or_else(|| trial.scan())
        .or_else(|| trial.travel_late())
        .or_else(|| trial.blocking_key())
        .unwrap_or_else(|| Cause::Unclear(trial.doubt()))
}

/// Whether a cause that was found earlier can still be seen, if only half as clearly.
pub(super) fn still_holds(cause: &Cause, evidence: &Evidence, policy: &LoadPolicy) -> bool {
    let trial = Trial { evidence, policy };
    match cause {
        Cause::HotKey { key, share, .. } => {
            let top = evidence.top_c.as_ref();
            top.is_some_and(|top| top.partition == *key && top.share >= share / 2.0)
        }
        Cause::Append(travel) => trial.still_travels(Way::Up, travel),
        Cause::Prepend(travel) => trial.still_travels(Way::Down, travel),
        Cause::Scan { share } => trial.crossing() >= share / 2.0,
        Cause::Split { .. } | Cause::Unclear(_) => true,
    }
}

struct Trial<'a> {
    evidence: &'a Evidence,
    policy: &'a LoadPolicy,
}

/// What the two looks say of one cut.
struct Balance {
    b: f64,
    c: f64,
    /// Change per second.
    drift: f64,
    /// Standard deviation of `c - b`.
    spread: f64,
}

impl Trial<'_> {
    fn gap(&self) -> f64 {
        self.evidence.gap.as_secs_f64().max(1.0)
    }

    fn balance(&self, cut: usize) -> Balance {
        let (b, c) = (&self.evidence.b, &self.evidence.c);
        let (b_sides, c_sides) = (&b.sides[cut], &c.sides[cut]);
        Balance {
            b: b_sides.balance(),
            c: c_sides.balance(),
            drift: (c_sides.balance() - b_sides.balance()) / self.gap(),
            spread: spread(b.sample(b_sides.left + b_sides.right), c.sample(c_sides.left + c_sides.right)),
        }
    }

    fn cuts(&self) -> std::ops::Range<usize> {
        0..self.evidence.cuts.len()
    }

    /// The balance of a cut when the split should still be of use, if it goes on drifting.
    fn later(&self, balance: &Balance) -> f64 {
        balance.c + balance.drift * self.policy.useful_for.as_secs_f64()
    }

    /// The partition that leads at the end of both looks, with its lesser share.
    fn leader(&self) -> Option<(&TopKey, f64)> {
        let (b, c) = (self.evidence.top_b.as_ref()?, self.evidence.top_c.as_ref()?);
        (b.partition == c.partition).then_some((c, b.share.min(c.share)))
    }

    fn hot_key(&self, share_min: f64) -> Option<Cause> {
        let (top, share) = self.leader()?;
        (share >= share_min).then(|| Cause::HotKey {
            key: top.partition.clone(),
            share: top.share,
            row: top.row.clone(),
        })
    }

    fn split(&self) -> Option<Cause> {
        let best = self.best(|cut| self.passed_by(cut).is_none())?;
        let above = (1.0 + self.evidence.c.sides[best].balance()) / 2.0;
        let frontier = self.is_frontier(best, Way::Up) || self.is_frontier(best, Way::Down);
        Some(Cause::Split { at: self.evidence.cuts[best].clone(), above, frontier })
    }

    /// The best of all useful cuts for which a condition holds.
    fn best(&self, condition: impl Fn(usize) -> bool) -> Option<usize> {
        let worth = |cut: usize| {
            let balance = self.balance(cut);
            balance.c.abs().max(self.later(&balance).abs())
        };
        [self.policy.balance_max, self.policy.balance_max_at_worst].into_iter().find_map(|balance_max| {
            let useful = self.cuts().filter(|&cut| self.is_useful(cut, balance_max) && condition(cut));
            useful.min_by(|&a, &b| worth(a).total_cmp(&worth(b)))
        })
    }

    /// Part of the load that moves to a cut and will have passed it before the split has been of use.
    fn passed_by(&self, cut: usize) -> Option<(Way, Duration)> {
        /// How far an estimate by the bytes of keys may be off: digits do not use all values of a byte.
        const ERROR: u32 = 4;
        [Way::Up, Way::Down].into_iter().find_map(|way| {
            let time = time_to_pass(self.evidence, cut, way)?;
            (time < self.policy.useful_for * ERROR).then_some((way, time))
        })
    }

    /// A cut would be useful, were it not passed by.
    fn travel_behind(&self) -> Option<Cause> {
        let best = self.best(|cut| self.passed_by(cut).is_some())?;
        let (way, over) = self.passed_by(best)?;
        let share = match way {
            Way::Up => self.evidence.c.left(best),
            Way::Down => self.evidence.c.right(best),
        };
        Some(way.cause(Travel { manner: Manner::Behind, share, over }))
    }

    fn is_useful(&self, cut: usize, balance_max: f64) -> bool {
        let balance = self.balance(cut);
        is_balanced(&balance, balance_max)
            && (balance.c - balance.b).abs() < self.policy.drift_max * self.gap()
            && self.is_firm(&balance)
            && self.later(&balance).abs() < self.policy.imbalance_max
            && self.evidence.swings[cut] < self.policy.imbalance_max
            && self.evidence.b.crossing(cut) < self.policy.crossing_max
            && self.evidence.c.crossing(cut) < self.policy.crossing_max
    }

    /// Whether a cut has little but new keys on one side and little but reads on the other.
    fn is_frontier(&self, cut: usize, way: Way) -> bool {
        /// How much of each side.
        const MOST: f64 = 0.8;
        let c = &self.evidence.c;
        let (beyond, behind, reads) = match way {
            Way::Up => (c.right(cut), c.left(cut), c.sides[cut].reads_left),
            Way::Down => (c.left(cut), c.right(cut), c.sides[cut].reads_right),
        };
        self.beyond(way) >= MOST * beyond && c.share(reads) >= MOST * behind
    }

    /// Whether enough was seen to tell the greatest drift allowed from chance. The looks were made long
    /// enough for that; a quarter is forgiven, since the load may have fallen a little meanwhile.
    fn is_firm(&self, balance: &Balance) -> bool {
        self.policy.sigmas * balance.spread <= 1.25 * self.policy.drift_max * self.gap()
    }

    /// The load is beyond the edge of A or, if it began anew meanwhile, of each look the next.
    fn travel_beyond(&self) -> Option<Cause> {
        for way in [Way::Up, Way::Down] {
            let step = self.median_climb(way);
            for (share, over) in [(self.beyond(way), self.evidence.gap), (step, self.evidence.look)] {
                if share > self.policy.beyond_share && self.is_even_climb(way, share / 2.0) {
                    return Some(way.cause(Travel { manner: Manner::Ahead, share, over }));
                }
            }
        }
        None
    }

    /// The share of C beyond the edge of A.
    fn beyond(&self, way: Way) -> f64 {
        match (way, self.evidence.cuts.len()) {
            (_, 0) => 0.0,
            (Way::Up, cuts) => self.evidence.c.right(cuts - 1),
            (Way::Down, _) => self.evidence.c.left(0),
        }
    }

    fn still_travels(&self, way: Way, travel: &Travel) -> bool {
        match travel.manner {
            Manner::Ahead => self.beyond(way).max(self.median_climb(way)) >= travel.share / 2.0,
            Manner::Late => self.drift(way) >= self.policy.drift_max / 4.0,
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
    fn travel_late(&self) -> Option<Cause> {
        let way = if self.drift(Way::Up) > 0.0 { Way::Up } else { Way::Down };
        let against = |cut: usize| {
            let balance = self.balance(cut);
            way.sign() * (balance.c - balance.b) < -self.policy.sigmas * balance.spread
        };
        if self.drift(way) < self.policy.drift_max || self.cuts().any(against) || self.has_jumped(way) {
            return None;
        }
        let off_middle = |cut: usize| self.balance(cut).b.abs();
        let middle = self.cuts().min_by(|&a, &b| off_middle(a).total_cmp(&off_middle(b)))?;
        let share = match way {
            Way::Up => self.evidence.c.right(middle),
            Way::Down => self.evidence.c.left(middle),
        };
        Some(way.cause(Travel { manner: Manner::Late, share, over: self.evidence.gap }))
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

    fn scan(&self) -> Option<Cause> {
        let share = self.crossing();
        (share >= self.policy.crossing_max).then_some(Cause::Scan { share })
    }

    /// The share that touches both sides of the cut that is the most balanced otherwise.
    fn crossing(&self) -> f64 {
        let c = &self.evidence.c;
        let apart = |cut: usize| (c.left(cut) - c.right(cut)).abs();
        let best = self.cuts().min_by(|&a, &b| apart(a).total_cmp(&apart(b)));
        best.map_or(0.0, |cut| c.crossing(cut))
    }

    fn blocking_key(&self) -> Option<Cause> {
        let any_balanced =
            self.cuts().any(|cut| is_balanced(&self.balance(cut), self.policy.balance_max_at_worst));
        if any_balanced { None } else { self.hot_key(self.policy.blocking_key_share) }
    }

    fn doubt(&self) -> Doubt {
        let off_middle = |cut: usize| {
            let balance = self.balance(cut);
            balance.b.abs() + balance.c.abs()
        };
        let Some(best) = self.cuts().min_by(|&a, &b| off_middle(a).total_cmp(&off_middle(b))) else {
            return Doubt::Few;
        };
        let (balance, swing) = (self.balance(best), self.evidence.swings[best]);
        let wandered = self.evidence.climbs.iter().map(|climb| climb.abs()).fold(0.0, f64::max);
        let side = |balance: f64| (1.0 + balance) / 2.0;
        if !self.is_firm(&balance) {
            Doubt::Few
        } else if is_balanced(&balance, self.policy.balance_max) && swing >= self.policy.imbalance_max {
            Doubt::Swings { larger: side(swing) }
        } else if wandered >= self.policy.beyond_share {
            Doubt::Wanders { share: wandered, over: self.evidence.look }
        } else if (balance.c - balance.b).abs() >= self.policy.drift_max * self.gap() {
            Doubt::Shifts { before: side(balance.b), now: side(balance.c), over: self.evidence.gap }
        } else {
            Doubt::Uneven { larger: side(balance.b.abs().max(balance.c.abs())) }
        }
    }
}

fn is_balanced(balance: &Balance, balance_max: f64) -> bool {
    balance.b.abs() < balance_max && balance.c.abs() < balance_max
}

impl Way {
    fn cause(self, travel: Travel) -> Cause {
        match self {
            Self::Up => Cause::Append(travel),
            Self::Down => Cause::Prepend(travel),
        }
    }
}

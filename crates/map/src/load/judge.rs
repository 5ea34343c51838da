//! From evidence to a cause. Pure, and in this order: what is found first is said.
//!
//! 1. one partition has half the load in both looks: a hot key, whatever cut may look balanced;
//! 2. a cut that is balanced, steady, and not crossed by most requests: split;
//! 3. most of C lies beyond the edge of A, and the load climbed there evenly: append or prepend. If there are
//!    also many reads of what lies behind, the frontier itself is a cut;
//! 4. scans would touch both sides of any cut;
//! 5. all cuts drift the same way, evenly: an append or prepend whose entries come late;
//! 6. every cut is uneven because one partition is in the way: a hot key after all;
//! 7. unclear, and what was wrong with the best cut.

use super::finder::{Evidence, spread};
use super::policy::LoadPolicy;
use super::top_keys::TopKey;
use super::verdict::{Cause, Doubt, Travel};

/// What holds of this evidence.
pub(super) fn judge(evidence: &Evidence, policy: &LoadPolicy) -> Cause {
    let trial = Trial { evidence, policy };
    trial
        .hot_key(policy.hot_key_share)
        .or_else(|| trial.split())
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
        Cause::Append(travel) => trial.traveled(Way::Up, travel.late) >= travel_min(travel, policy),
        Cause::Prepend(travel) => trial.traveled(Way::Down, travel.late) >= travel_min(travel, policy),
        Cause::Scan { share } => trial.mean_crossing() >= share / 2.0,
        Cause::Split { .. } | Cause::Unclear(_) => true,
    }
}

fn travel_min(travel: &Travel, policy: &LoadPolicy) -> f64 {
    if travel.late { policy.drift_max / 2.0 } else { travel.share / 2.0 }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Up,
    Down,
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

    fn is_balanced(&self, balance: &Balance) -> bool {
        balance.b.abs() < self.policy.balance_max && balance.c.abs() < self.policy.balance_max
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
        let useful = self.cuts().filter(|&cut| self.is_useful(cut));
        let worth = |cut: usize| {
            let balance = self.balance(cut);
            balance.c.abs().max(self.later(&balance).abs())
        };
        let best = useful.min_by(|&a, &b| worth(a).total_cmp(&worth(b)))?;
        Some(self.split_at(best, false))
    }

    fn split_at(&self, cut: usize, frontier: bool) -> Cause {
        let above = (1.0 + self.evidence.c.sides[cut].balance()) / 2.0;
        Cause::Split { at: self.evidence.cuts[cut].clone(), above, frontier }
    }

    fn is_useful(&self, cut: usize) -> bool {
        let balance = self.balance(cut);
        let drift_max = self.policy.drift_max * self.gap();
        self.is_balanced(&balance)
            && (balance.c - balance.b).abs() < drift_max
            && self.is_firm(&balance)
            && self.later(&balance).abs() < self.policy.imbalance_max
            && self.evidence.swings[cut] < self.policy.imbalance_max
            && self.evidence.b.crossing(cut) < self.policy.crossing_max
            && self.evidence.c.crossing(cut) < self.policy.crossing_max
    }

    /// Whether enough was seen to tell the greatest drift allowed from chance. The looks were made long
    /// enough for that; a quarter is forgiven, since the load may have fallen a little meanwhile.
    fn is_firm(&self, balance: &Balance) -> bool {
        self.policy.sigmas * balance.spread <= 1.25 * self.policy.drift_max * self.gap()
    }

    /// The load beyond the edges of A.
    fn travel_beyond(&self) -> Option<Cause> {
        for way in [Way::Up, Way::Down] {
            let share = self.traveled(way, false);
            if share > self.policy.beyond_share && self.is_even_climb(way, share / 2.0) {
                let travel = Travel { share, over: self.evidence.gap, late: false };
                return Some(self.frontier(way).unwrap_or(way.cause(travel)));
            }
        }
        None
    }

    /// A cut at the frontier, if enough is read behind it and will be.
    fn frontier(&self, way: Way) -> Option<Cause> {
        let cut = self.edge(way);
        let behind = |look: &super::look::Look| match way {
            Way::Up => look.share(look.sides[cut].reads_left),
            Way::Down => look.share(look.sides[cut].reads_right),
        };
        let (b, c) = (&self.evidence.b, &self.evidence.c);
        let pays = behind(b).min(behind(c)) > self.policy.left_behind_share
            && self.later(&self.balance(cut)).abs() < self.policy.imbalance_max
            && self.evidence.swings[cut] < self.policy.imbalance_max;
        pays.then(|| self.split_at(cut, true))
    }

    /// The outermost cut: just above the highest sample of A, or at the lowest.
    fn edge(&self, way: Way) -> usize {
        match way {
            Way::Up => self.evidence.cuts.len() - 1,
            Way::Down => 0,
        }
    }

    /// How far the load moved: its share beyond the edge of A or, for a slow one, the mean drift of all
    /// cuts per second, positive if it is that way.
    fn traveled(&self, way: Way, late: bool) -> f64 {
        if self.evidence.cuts.is_empty() {
            return 0.0;
        }
        if late {
            let drifts = self.cuts().map(|cut| self.balance(cut).drift);
            return way.sign() * drifts.sum::<f64>() / self.cuts().len() as f64;
        }
        match way {
            Way::Up => self.evidence.c.right(self.edge(way)),
            Way::Down => self.evidence.c.left(self.edge(way)),
        }
    }

    /// Whether the load went that way from every look to the next, about evenly, and together by
    /// `shift` of the load at least. One step back is forgiven: keys that grow may begin anew each day.
    fn is_even_climb(&self, way: Way, shift: f64) -> bool {
        /// How far a step may miss by chance: the edges are the ends of a sample of 64.
        const CHANCE: f64 = 0.03;
        let mut steps: Vec<f64> = self.evidence.climbs.iter().map(|climb| climb * way.sign()).collect();
        steps.sort_by(f64::total_cmp);
        let Some(&median) = steps.get(steps.len() / 2) else {
            return false;
        };
        let second_least = steps.get(1).copied().unwrap_or(median);
        second_least >= median / 2.0 - CHANCE && median * steps.len() as f64 >= shift
    }

    fn travel_late(&self) -> Option<Cause> {
        for way in [Way::Up, Way::Down] {
            let drift = self.traveled(way, true);
            let against = |cut: usize| {
                let balance = self.balance(cut);
                way.sign() * (balance.c - balance.b) < -3.0 * balance.spread
            };
            // What drifts in balance, from -1 to 1, is half as much in share.
            let shift = drift * self.gap() / 2.0;
            if drift >= self.policy.drift_max
                && !self.cuts().any(against)
                && self.is_even_climb(way, shift / 2.0)
            {
                let middle = self
                    .cuts()
                    .min_by(|&a, &b| self.balance(a).b.abs().total_cmp(&self.balance(b).b.abs()))?;
                let share = match way {
                    Way::Up => self.evidence.c.right(middle),
                    Way::Down => self.evidence.c.left(middle),
                };
                return Some(way.cause(Travel { share, over: self.evidence.gap, late: true }));
            }
        }
        None
    }

    fn scan(&self) -> Option<Cause> {
        let share = self.mean_crossing();
        (share >= self.policy.scan_share).then_some(Cause::Scan { share })
    }

    fn mean_crossing(&self) -> f64 {
        let shares = self.cuts().map(|cut| self.evidence.c.crossing(cut));
        shares.sum::<f64>() / self.cuts().len().max(1) as f64
    }

    fn blocking_key(&self) -> Option<Cause> {
        let any_balanced = self.cuts().any(|cut| self.is_balanced(&self.balance(cut)));
        if any_balanced { None } else { self.hot_key(self.policy.blocking_key_share) }
    }

    fn doubt(&self) -> Doubt {
        let worst_of = |cut: usize| {
            let balance = self.balance(cut);
            balance.b.abs().max(balance.c.abs())
        };
        let Some(best) = self.cuts().min_by(|&a, &b| worst_of(a).total_cmp(&worst_of(b))) else {
            return Doubt::Few;
        };
        let balance = self.balance(best);
        let side = |balance: f64| (1.0 + balance) / 2.0;
        if !self.is_firm(&balance) {
            Doubt::Few
        } else if self.is_balanced(&balance) && self.evidence.swings[best] >= self.policy.imbalance_max {
            Doubt::Swings { larger: side(self.evidence.swings[best]) }
        } else if (balance.c - balance.b).abs() >= self.policy.drift_max * self.gap() {
            Doubt::Shifts { before: side(balance.b), now: side(balance.c), over: self.evidence.gap }
        } else {
            Doubt::Uneven { larger: side(balance.b.abs().max(balance.c.abs())) }
        }
    }
}

impl Way {
    fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }

    fn cause(self, travel: Travel) -> Cause {
        match self {
            Self::Up => Cause::Append(travel),
            Self::Down => Cause::Prepend(travel),
        }
    }
}

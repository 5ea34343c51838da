//! Finds the cause in the evidence. The tests are made in this order, and the first one that holds decides:
//!
//! 1. A cut is balanced, steady, and not crossed by most requests: split. If there is none, a less balanced
//!    cut will do, such as the frontier between an append and many reads of older keys. It does not matter then that one
//!    partition has half of the load: two neighbours with half each are best divided between them.
//! 2. At any time one partition has half of the load: a hot key.
//! 3. There are such cuts, but part of the load will soon move past them: append or prepend.
//! 4. Most of the load is beyond the edges of an earlier look, and climbed there evenly: append or prepend.
//! 5. Scans would touch both sides of any cut: scan.
//! 6. All cuts drift evenly in the same direction: an append or prepend whose entries come late.
//! 7. Every cut is uneven because of one partition, or of one narrow place within which the load moves: a hot
//!    key, or an append or prepend beside other load.
//! 8. Otherwise the cause is unclear, and the verdict says what was wrong with the best cut.

use super::finder::{Evidence, spread};
use super::front::Way;
use super::policy::LoadPolicy;
use super::top_keys::TopKey;
use super::verdict::{Cause, Doubt};

/// The cause of the load, by this evidence.
pub(super) fn judge(evidence: &Evidence, policy: &LoadPolicy) -> Cause {
    let trial = Trial { evidence, policy };
    trial
        .split()
        .or_else(|| trial.hot_key())
        .or_else(|| trial.travel_behind())
        .or_else(|| trial.travel_beyond())
        .or_else(|| trial.scan())
        .or_else(|| trial.travel_late())
        .or_else(|| trial.blocking())
        .unwrap_or_else(|| Cause::Unclear(trial.doubt()))
}

/// Whether a cause that was found earlier is still seen, at least half as clearly.
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

/// The evidence, and the numbers by which it is judged.
pub(super) struct Trial<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) policy: &'a LoadPolicy,
}

/// What B and C say about one cut.
pub(super) struct Balance {
    pub(super) b: f64,
    pub(super) c: f64,
    /// Change per second.
    drift: f64,
    /// Standard deviation of `c - b`.
    pub(super) spread: f64,
}

impl Trial<'_> {
    pub(super) fn gap(&self) -> f64 {
        self.evidence.gap.as_secs_f64().max(1.0)
    }

    pub(super) fn balance(&self, cut: usize) -> Balance {
        let (b, c) = (&self.evidence.b, &self.evidence.c);
        let (b_sides, c_sides) = (&b.sides[cut], &c.sides[cut]);
        Balance {
            b: b_sides.balance(),
            c: c_sides.balance(),
            drift: (c_sides.balance() - b_sides.balance()) / self.gap(),
            spread: spread(b.sample(b_sides.left + b_sides.right), c.sample(c_sides.left + c_sides.right)),
        }
    }

    pub(super) fn cuts(&self) -> std::ops::Range<usize> {
        0..self.evidence.cuts.len()
    }

    /// The balance that a cut will have after [`LoadPolicy::useful_for`], if it goes on drifting.
    fn later(&self, balance: &Balance) -> f64 {
        balance.c + balance.drift * self.policy.useful_for.as_secs_f64()
    }

    /// The partition with the most load at the end of C, and the smaller of the two greatest shares at the
    /// ends of B and C.
    fn leaders(&self) -> Option<(&TopKey, f64)> {
        let (b, c) = (self.evidence.top_b.as_ref()?, self.evidence.top_c.as_ref()?);
        Some((c, b.share.min(c.share)))
    }

    /// The partition may differ in B and C: if each minute has its own partition, one at a time has all load.
    fn hot_key(&self) -> Option<Cause> {
        let (top, share) = self.leaders()?;
        (share >= self.policy.hot_key_share).then(|| hot_key(top))
    }

    fn split(&self) -> Option<Cause> {
        let best = self.best(|cut| self.passed_by(cut).is_none())?;
        let above = (1.0 + self.evidence.c.sides[best].balance()) / 2.0;
        let frontier = self.is_frontier(best, Way::Up) || self.is_frontier(best, Way::Down);
        Some(Cause::Split { at: self.evidence.cuts[best].clone(), above, frontier })
    }

    /// The best of the useful cuts for which `condition` holds.
    pub(super) fn best(&self, condition: impl Fn(usize) -> bool) -> Option<usize> {
        let worth = |cut: usize| {
            let balance = self.balance(cut);
            balance.c.abs().max(self.later(&balance).abs())
        };
        [self.policy.balance_max, self.policy.balance_max_at_worst].into_iter().find_map(|balance_max| {
            let useful = self.cuts().filter(|&cut| self.is_useful(cut, balance_max) && condition(cut));
            useful.min_by(|&a, &b| worth(a).total_cmp(&worth(b)))
        })
    }

    fn is_useful(&self, cut: usize, balance_max: f64) -> bool {
        let balance = self.balance(cut);
        // B needs no check of its own: its balance is that of C less the drift, and both are limited.
        balance.c.abs() < balance_max
            && (balance.c - balance.b).abs() < self.policy.drift_max * self.gap()
            && self.is_firm(&balance)
            && self.later(&balance).abs() < self.policy.imbalance_max
            && self.evidence.swings[cut] < self.policy.imbalance_max
            && self.evidence.b.crossing(cut) < self.policy.crossing_max
            && self.evidence.c.crossing(cut) < self.policy.crossing_max
    }

    /// Whether a cut has mostly new keys on one side and mostly reads on the other.
    fn is_frontier(&self, cut: usize, way: Way) -> bool {
        /// The share of each side that counts as most of it.
        const MOST: f64 = 0.8;
        let c = &self.evidence.c;
        let (beyond, behind, reads) = match way {
            Way::Up => (c.right(cut), c.left(cut), c.sides[cut].reads_left),
            Way::Down => (c.left(cut), c.right(cut), c.sides[cut].reads_right),
        };
        self.beyond(way) >= MOST * beyond && c.share(reads) >= MOST * behind
    }

    /// Whether there were enough requests to tell the greatest allowed drift from chance. The looks are long
    /// enough for that; a quarter is tolerated, because the load may have fallen since their length was
    /// chosen.
    fn is_firm(&self, balance: &Balance) -> bool {
        self.policy.sigmas * balance.spread <= 1.25 * self.policy.drift_max * self.gap()
    }

    fn scan(&self) -> Option<Cause> {
        let share = self.crossing();
        (share >= self.policy.crossing_max).then_some(Cause::Scan { share })
    }

    /// The share of the load that touches both sides of the most balanced cut.
    fn crossing(&self) -> f64 {
        let c = &self.evidence.c;
        let apart = |cut: usize| (c.left(cut) - c.right(cut)).abs();
        let best = self.cuts().min_by(|&a, &b| apart(a).total_cmp(&apart(b)));
        best.map_or(0.0, |cut| c.crossing(cut))
    }

    /// One partition, or one narrow place with moving load, has so much load that no cut is balanced.
    fn blocking(&self) -> Option<Cause> {
        let balance_max = self.policy.balance_max_at_worst;
        if self.cuts().any(|cut| is_balanced(&self.balance(cut), balance_max)) {
            return None;
        }
        let (top, share) = self.leaders()?;
        let is_same = self.evidence.top_b.as_ref().is_some_and(|before| before.partition == top.partition);
        if is_same && share >= self.policy.blocking_share {
            return Some(hot_key(top));
        }
        self.travel_within()
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

fn hot_key(top: &TopKey) -> Cause {
    Cause::HotKey { key: top.partition.clone(), share: top.share, row: top.row.clone() }
}

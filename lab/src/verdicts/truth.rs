//! What a cut was really worth: the traffic some minutes later.

use rand::rngs::StdRng;
use rangehold_map::load::{Access, LoadPolicy};

use super::stream::{Draw, Requests};

/// When the truth is looked at, in seconds after the decision, and for how many seconds.
const LATER: f64 = 330.0;
const SECONDS: usize = 120;
/// Requests drawn in each second.
const DRAWS: usize = 300;
/// Beyond this imbalance a split was useless.
const USELESS: f64 = 0.5;
/// Up to this imbalance, before and later, a cut is a good one, and a range that has one is splittable.
const GOOD: f64 = 0.25;
/// Cuts that are tried when looking for a good one.
const CUTS: usize = 100;

/// Traffic of some seconds.
pub(super) struct Traffic {
    seconds: Vec<Vec<(Draw, u64)>>,
}

/// What a cut does to traffic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    /// |L-R| / (L+R), over all seconds or on average within single ones: the worse of the two.
    pub(super) imbalance: f64,
    /// The share of cost that touches both sides.
    pub(super) crossing: f64,
}

impl Effect {
    pub(super) fn is_useless(&self) -> bool {
        self.imbalance > USELESS || self.crossing > USELESS
    }

    fn is_good(&self) -> bool {
        self.imbalance <= GOOD && self.crossing <= GOOD
    }
}

impl Traffic {
    /// The traffic that shows whether a decision at `now` was right.
    pub(super) fn later(requests: &Requests, now: f64, policy: &LoadPolicy, dice: &mut StdRng) -> Self {
        Self::draw(requests, now + LATER, SECONDS, policy, dice)
    }

    /// The traffic of the minute before `now`.
    pub(super) fn before(requests: &Requests, now: f64, policy: &LoadPolicy, dice: &mut StdRng) -> Self {
        Self::draw(requests, now - 60.0, 60, policy, dice)
    }

    fn draw(requests: &Requests, from: f64, seconds: usize, policy: &LoadPolicy, dice: &mut StdRng) -> Self {
        let second = |second: usize| {
            let draws = (0..DRAWS).map(|part| {
                let draw = requests(dice, from + second as f64 + part as f64 / DRAWS as f64);
                (draw, u64::from(policy.cost(draw.entities)))
            });
            draws.collect()
        };
        Self { seconds: (0..seconds).map(second).collect() }
    }

    pub(super) fn effect(&self, cut: u64) -> Effect {
        let (mut all, mut left, mut right, mut apart) = (0, 0, 0, 0.0);
        for second in &self.seconds {
            let (mut l, mut r) = (0, 0);
            for (draw, cost) in second {
                all += cost;
                let to = if draw.access == Access::Scan { draw.to } else { draw.place };
                if to < cut {
                    l += cost;
                } else if draw.place >= cut {
                    r += cost;
                }
            }
            left += l;
            right += r;
            apart += imbalance(l, r) / self.seconds.len() as f64;
        }
        let crossing = (all - left - right) as f64 / all.max(1) as f64;
        Effect { imbalance: imbalance(left, right).max(apart), crossing }
    }

    /// The cuts that part this traffic into pieces of equal weight.
    fn quantiles(&self) -> Vec<u64> {
        let mut places: Vec<u64> = self.seconds.iter().flatten().map(|(draw, _)| draw.place).collect();
        places.sort_unstable();
        // Just above the last one too: what grows has nothing there yet.
        let above = places.last().map(|place| place + 1);
        (1..CUTS).map(|part| places[places.len() * part / CUTS]).chain(above).collect()
    }
}

/// Whether there was a cut that parted the load well before the decision and still did later.
pub(super) fn is_splittable(before: &Traffic, later: &Traffic) -> bool {
    let is_good = |cut: u64| before.effect(cut).is_good() && later.effect(cut).is_good();
    before.quantiles().into_iter().any(is_good)
}

fn imbalance(left: u64, right: u64) -> f64 {
    if left + right == 0 { 0.0 } else { left.abs_diff(right) as f64 / (left + right) as f64 }
}

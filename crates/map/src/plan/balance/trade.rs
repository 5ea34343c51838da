//! Chooses which server gives which range to which other server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::draft::{Churn, Draft};
use super::super::fleet::{Fleet, Level};
use super::super::policy::Policy;
use super::super::report::{BusyWait, Reported};
use super::donor::Donor;
use super::too_busy;

/// If so many moves of ranges that fit relieve a server, no larger range is moved.
const FEW_MOVES: u32 = 8;

/// The chosen moves in their order, those of the busiest server first, and the lines about servers that stay
/// too busy.
pub(super) struct Traded {
    pub(super) moves: Vec<Chosen>,
    pub(super) stuck: Vec<Reported>,
    /// The rest of the budget.
    pub(super) churn: Churn,
}

/// A chosen move.
pub(super) struct Chosen {
    /// The index of the range in the map.
    pub(super) range: usize,
    /// The indexes of the servers.
    from: u32,
    pub(super) to: u32,
    pub(super) line: Reported,
}

/// Lets the donors give ranges away until each has reached its goal or is stuck.
pub(super) fn trade(draft: &Draft<'_>, donors: Vec<Option<Donor>>, mean: f64) -> Traded {
    let mut market = Market::new(draft, donors, mean);
    let mut stuck = Vec::new();
    while let Some((_, Reverse(from))) = market.givers.pop() {
        match market.give(from) {
            Ok(true) => market.givers.push((Level(market.used(from)), Reverse(from))),
            Ok(false) => {}
            Err(why) => stuck.push((from, why)),
        }
    }
    market.close(stuck)
}

/// The servers' loads as the moves chosen so far would make them.
struct Market<'a> {
    draft: &'a Draft<'a>,
    fleet: &'a Fleet,
    policy: &'a Policy,
    mean: f64,
    loads: Vec<f64>,
    donors: Vec<Option<Donor>>,
    /// Donors, the busiest first.
    givers: BinaryHeap<(Level, Reverse<u32>)>,
    /// Servers below the mean, the least busy first.
    takers: BinaryHeap<Reverse<(Level, u32)>>,
    moves: Vec<Chosen>,
    churn: Churn,
}

impl<'a> Market<'a> {
    fn new(draft: &'a Draft<'a>, donors: Vec<Option<Donor>>, mean: f64) -> Self {
        let (fleet, policy) = (&draft.fleet, draft.policy);
        let takers = (fleet.serving())
            .filter(|(_, server)| server.utilisation() < mean)
            .map(|(index, server)| Reverse((Level(server.utilisation()), index)))
            .collect();
        let givers = (fleet.serving())
            .filter(|(index, _)| donors[*index as usize].is_some())
            .map(|(index, server)| (Level(server.utilisation()), Reverse(index)))
            .collect();
        let (loads, moves) = (fleet.loads(), Vec::new());
        Self { draft, fleet, policy, mean, loads, donors, givers, takers, moves, churn: draft.churn }
    }

    fn donor(&self, server: u32) -> Option<&Donor> {
        self.donors[server as usize].as_ref()
    }

    fn used(&self, server: u32) -> f64 {
        self.loads[server as usize] / self.fleet.get(server).capacity
    }

    /// Lets one server give one range away. `Ok(false)` means that the server has reached its goal.
    fn give(&mut self, from: u32) -> Result<bool, BusyWait> {
        let Some(donor) = self.donor(from).filter(|donor| self.loads[from as usize] > donor.goal) else {
            return Ok(false);
        };
        let Some(&Reverse((_, to))) = self.takers.peek() else {
            return Err(donor.stuck());
        };
        let place = self.fitting(donor, from, to).ok_or_else(|| donor.stuck())?;
        let (rate, range, _) = donor.ranges[place];
        if donor.count >= self.policy.moves_per_server || !self.churn.spend(rate) {
            if let Some(donor) = &mut self.donors[from as usize] {
                donor.goes_on = true;
            }
            return Err(BusyWait::Budget { share: self.churn.share });
        }
        let line = Reported::Moved {
            range: self.draft.ranges[range].entry.id,
            rate,
            from: self.fleet.get(from).id,
            from_utilisation: self.used(from),
            to: self.fleet.get(to).id,
            to_utilisation: self.used(to),
        };
        self.moves.push(Chosen { range, from, to, line });
        self.loads[from as usize] -= rate;
        self.loads[to as usize] += rate;
        self.takers.pop();
        self.takers.push(Reverse((Level(self.used(to)), to)));
        if let Some(donor) = &mut self.donors[from as usize] {
            donor.gave(place);
        }
        Ok(true)
    }

    /// The index, among a donor's ranges, of the range that goes from `from` to `to`.
    fn fitting(&self, donor: &Donor, from: u32, to: u32) -> Option<usize> {
        let (giver, taker) = (self.fleet.get(from), self.fleet.get(to));
        let half = 0.5 * (self.used(from) - self.used(to)) * giver.capacity.min(taker.capacity);
        let surplus = self.loads[from as usize] - donor.goal;
        let room = self.mean * taker.capacity - self.loads[to as usize];
        let fits = donor.largest_within(half.min(surplus).min(room));
        // A server that is not too busy itself gives only a range that fits.
        let few = fits.is_some_and(|place| donor.ranges[place].0 * f64::from(FEW_MOVES) >= surplus);
        if few || !donor.busy {
            return fits;
        }
        let better = self.used(from) * (1.0 - self.policy.exchange_gain) - self.used(to);
        let rate = |place: usize| donor.ranges[place].0;
        let halving = donor.largest_within(half);
        let large =
            donor.largest_within(better * taker.capacity).filter(|place| rate(*place) * 2.0 >= surplus);
        // If the two are nearly equal, take the smaller one: it is not worth moving back.
        let equal = halving.filter(|place| large.is_some_and(|large| rate(*place) >= 0.9 * rate(large)));
        equal.or(large).or(fits).or(halving)
    }

    /// Drops the moves of servers that they would not relieve much, and reports which servers stay busy.
    fn close(self, stuck: Vec<(u32, BusyWait)>) -> Traded {
        let busy = |(from, why): &(u32, BusyWait)| {
            let server = self.fleet.get(*from);
            let stays = self.loads[*from as usize] > too_busy(server, self.policy, self.mean);
            let over_mean = self.used(*from) / self.mean;
            stays.then_some(Reported::StaysBusy { server: server.id, over_mean, why: *why })
        };
        let stuck = stuck.iter().filter_map(busy).collect();
        let worth = |from: u32| {
            // A server that keeps only its hottest range gives the last small range away too; none comes back.
            let alone = |d: &Donor| d.goal == self.fleet.get(from).hottest;
            let enough = |d: &Donor| d.goes_on || alone(d) || d.given >= d.load * self.policy.relief_min;
            self.donors[from as usize].as_ref().is_some_and(enough)
        };
        let moves = self.moves.into_iter().filter(|chosen| worth(chosen.from)).collect();
        Traded { moves, stuck, churn: self.churn }
    }
}

//! The servers that give ranges away, and what they could give.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::super::draft::{Draft, View};
use super::super::fleet::{Level, Server};
use super::super::policy::Policy;
use super::too_busy;
use crate::range::RangeId;

/// A server that gives ranges away.
pub(super) struct Donor {
    /// Load at which it stops.
    pub(super) goal: f64,
    /// Whether it was too busy; else it only lends a hand to a starving one.
    pub(super) busy: bool,
    /// Load that it had.
    pub(super) load: f64,
    /// The ranges it could give, the hottest first, and whether each is gone.
    pub(super) ranges: Vec<(f64, usize, bool)>,
    /// Load of the ranges that go, and how many there are.
    pub(super) given: f64,
    pub(super) count: u32,
    /// It has more to give, which is for the next tick.
    pub(super) goes_on: bool,
    /// The range that would go soonest, had it not come just now.
    pub(super) cooling: Option<(Duration, RangeId)>,
}

impl Donor {
    fn new(goal: f64, busy: bool, load: f64) -> Self {
        Self { goal, busy, load, ranges: Vec::new(), given: 0.0, count: 0, goes_on: false, cooling: None }
    }

    /// Takes note of one of its ranges.
    fn offer(&mut self, index: usize, range: &View<'_>, policy: &Policy) {
        // So small that the most of them would bring no relief.
        if range.rate * f64::from(policy.moves_per_server) < self.load * policy.relief_min {
            return;
        }
        let Some(seen) = range.free().filter(|seen| seen.unchanged_for >= policy.settle) else {
            return;
        };
        match policy.cool_down.checked_sub(seen.unmoved_for) {
            None | Some(Duration::ZERO) => self.ranges.push((range.rate, index, false)),
            Some(left) => {
                let this = (left, range.entry.id);
                self.cooling = Some(self.cooling.map_or(this, |other| other.min(this)));
            }
        }
    }

    /// Takes note that one of its ranges goes.
    pub(super) fn gave(&mut self, place: usize) {
        let (rate, _, gone) = &mut self.ranges[place];
        *gone = true;
        self.given += *rate;
        self.count += 1;
    }

    /// The place in `ranges` of the hottest that is there and not above `limit`.
    pub(super) fn largest_within(&self, limit: f64) -> Option<usize> {
        let from = self.ranges.partition_point(|(rate, ..)| *rate > limit);
        self.ranges[from..].iter().position(|(.., gone)| !gone).map(|place| from + place)
    }
}

/// The servers that are to give ranges away, with those ranges, by index.
pub(super) fn donors(draft: &Draft<'_>, mean: f64) -> BTreeMap<u32, Donor> {
    let policy = draft.policy;
    let mut donors = BTreeMap::new();
    for (index, server) in draft.fleet.serving() {
        if server.load > too_busy(server, policy, mean) {
            let goal = (mean * server.capacity * policy.relieve_to).max(server.hottest);
            donors.insert(index, Donor::new(goal, true, server.load));
        }
    }
    for index in lenders(draft, mean) {
        let server = draft.fleet.get(index);
        let goal = (mean * server.capacity / policy.relieve_to).max(server.hottest);
        donors.entry(index).or_insert_with(|| Donor::new(goal, false, server.load));
    }
    if donors.is_empty() {
        return donors;
    }
    for (index, range) in draft.ranges.iter().enumerate() {
        if let Some(donor) = range.server.and_then(|server| donors.get_mut(&server)) {
            donor.offer(index, range, policy);
        }
    }
    for donor in donors.values_mut() {
        donor.ranges.sort_by_key(|(rate, index, _)| (Reverse(Level(*rate)), *index));
    }
    donors
}

/// The busiest servers, if there is one that starves.
fn lenders(draft: &Draft<'_>, mean: f64) -> Vec<u32> {
    let starving = |server: &Server| server.utilisation() < mean * draft.policy.starving_share;
    if !draft.fleet.serving().any(|(_, server)| starving(server)) {
        return Vec::new();
    }
    let mut busiest: Vec<_> =
        draft.fleet.serving().map(|(index, server)| (Reverse(Level(server.utilisation())), index)).collect();
    busiest.sort();
    busiest.into_iter().take(draft.policy.lenders_max).map(|(_, index)| index).collect()
}

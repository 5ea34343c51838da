//! The servers that give ranges away, and the ranges that they can give.

use std::cmp::Reverse;
use std::time::Duration;

use super::super::draft::{Draft, View};
use super::super::fleet::{Level, Server};
use super::super::policy::Policy;
use super::super::report::BusyWait;

/// A server that gives ranges away.
pub(super) struct Donor {
    /// The load at which it stops giving.
    pub(super) goal: f64,
    /// Whether it was too busy. If not, it only gives to a starving server.
    pub(super) busy: bool,
    /// The load that it had before the plan.
    pub(super) load: f64,
    /// The ranges that it can give, the hottest first: load, index in the map, and whether it is given already.
    pub(super) ranges: Vec<(f64, usize, bool)>,
    /// The load of the ranges that were given, and their number.
    pub(super) given: f64,
    pub(super) count: u32,
    /// It has more to give in the next tick.
    pub(super) goes_on: bool,
    /// Of the ranges that cannot go now: why the one that can go soonest has to wait, and how long.
    hindrance: Option<(Duration, BusyWait)>,
}

impl Donor {
    fn new(goal: f64, busy: bool, load: f64) -> Self {
        Self { goal, busy, load, ranges: Vec::new(), given: 0.0, count: 0, goes_on: false, hindrance: None }
    }

    /// Adds one of its ranges, if it would bring relief and can move now.
    fn offer(&mut self, index: usize, range: &View<'_>, policy: &Policy) {
        // Even the most such ranges that may move would bring no relief.
        if range.rate * f64::from(policy.moves_per_server) < self.load * policy.relief_min {
            return;
        }
        match hindrance(range, policy) {
            Ok(()) => self.ranges.push((range.rate, index, false)),
            Err(Some(this)) if self.hindrance.is_none_or(|other| this.0 < other.0) => {
                self.hindrance = Some(this);
            }
            Err(_) => {}
        }
    }

    /// Why it stays busy if none of the ranges that it can give fits on another server.
    pub(super) fn stuck(&self) -> BusyWait {
        self.hindrance.map_or(BusyWait::NothingFits, |(_, why)| why)
    }

    /// Records that one of its ranges goes.
    pub(super) fn gave(&mut self, place: usize) {
        let (rate, _, gone) = &mut self.ranges[place];
        *gone = true;
        self.given += *rate;
        self.count += 1;
    }

    /// The index in `ranges` of the hottest one that is not given yet and not above `limit`.
    pub(super) fn largest_within(&self, limit: f64) -> Option<usize> {
        let from = self.ranges.partition_point(|(rate, ..)| *rate > limit);
        self.ranges[from..].iter().position(|(.., gone)| !gone).map(|place| from + place)
    }
}

/// Why a range cannot be moved for balance now, and for how long. No reason is given for a range that is
/// offline or was not observed.
fn hindrance(range: &View<'_>, policy: &Policy) -> Result<(), Option<(Duration, BusyWait)>> {
    let id = range.entry.id;
    let seen = range.seen.filter(|_| range.entry.online).ok_or(None)?;
    if !range.is_free() {
        return Err(Some((Duration::MAX, BusyWait::UnderWay { range: id })));
    }
    let cools = policy.cool_down.saturating_sub(seen.unmoved_for);
    let settles = policy.settle.saturating_sub(seen.unchanged_for);
    if !cools.is_zero() {
        return Err(Some((cools.max(settles), BusyWait::CoolDown { range: id, left: cools.max(settles) })));
    }
    if !settles.is_zero() {
        return Err(Some((settles, BusyWait::Settling { range: id, left: settles })));
    }
    Ok(())
}

/// The servers that give ranges away, each at its index.
pub(super) fn donors(draft: &Draft<'_>, mean: f64) -> Vec<Option<Donor>> {
    let policy = draft.policy;
    let mut donors: Vec<Option<Donor>> = Vec::new();
    donors.resize_with(draft.fleet.loads().len(), || None);
    for index in lenders(draft, mean) {
        let server = draft.fleet.get(index);
        let goal = (mean * server.capacity / policy.relieve_to).max(server.hottest);
        donors[index as usize] = Some(Donor::new(goal, false, server.load));
    }
    for (index, server) in draft.fleet.serving() {
        let fair = mean * server.capacity;
        if server.load > (fair * policy.relieve_from).max(server.hottest) {
            let goal = (fair * policy.relieve_to).max(server.hottest);
            donors[index as usize] = Some(Donor::new(goal, true, server.load));
        }
    }
    if donors.iter().all(Option::is_none) {
        return donors;
    }
    for (index, range) in draft.ranges.iter().enumerate() {
        if let Some(donor) = range.server().and_then(|server| donors[server as usize].as_mut()) {
            donor.offer(index, range, policy);
        }
    }
    for donor in donors.iter_mut().flatten() {
        donor.ranges.sort_by_key(|(rate, index, _)| (Reverse(Level(*rate)), *index));
    }
    donors
}

/// The busiest servers, if another server starves.
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

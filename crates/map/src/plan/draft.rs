//! A plan while it is made: the map and the observations, joined range by range.

use std::collections::HashMap;

use super::fleet::Fleet;
use super::observe::{Observations, RangeObservation};
use super::report::{Report, Reported};
use super::{Balance, Plan, Policy};
use crate::range::RangeId;
use crate::range_map::Home;
use crate::range_map::{Change, Intent, RangeEntry, RangeMap};

/// One range with its observation.
///
/// The steps go over all ranges several times, and a map may have a million ranges. So the figures that decide
/// whether a step examines a range are copied here.
pub(super) struct View<'a> {
    pub(super) entry: &'a RangeEntry,
    /// Its observation, if that was made in the generation that the map has.
    pub(super) seen: Option<&'a RangeObservation>,
    /// Its load per second; 0 if none was observed.
    pub(super) rate: f64,
    /// The index of the server that has it, or to which it moves; or [`NO_SERVER`].
    server: u32,
    /// Its greatest load lately; infinite if that is unknown or if the range must not be merged.
    pub(super) peak: f32,
    pub(super) mebibytes: u32,
    /// It serves, was observed, and no change of it is under way.
    open: bool,
    /// There is a verdict about its load.
    pub(super) judged: bool,
    /// Its owner does not serve.
    pub(super) lost: bool,
    /// It is in a change of this plan already.
    pub(super) taken: bool,
    /// The report says already why its merge has to wait.
    pub(super) told: bool,
}

/// Stands for a server that was not observed.
const NO_SERVER: u32 = u32::MAX;

impl View<'_> {
    /// The index of the server that has it, or to which it moves.
    pub(super) fn server(&self) -> Option<u32> {
        (self.server != NO_SERVER).then_some(self.server)
    }

    /// Whether it can take part in a change now.
    pub(super) fn is_free(&self) -> bool {
        self.open && !self.taken
    }
}

/// Everything that the steps of a plan read and write.
pub(super) struct Draft<'a> {
    pub(super) policy: &'a Policy,
    pub(super) ranges: Vec<View<'a>>,
    /// The indexes of the ranges that have an intent in the map.
    pub(super) under_way: Vec<usize>,
    pub(super) fleet: Fleet,
    pub(super) changes: Vec<Change>,
    pub(super) report: Report,
    pub(super) balance: Balance,
    pub(super) churn: Churn,
    version: u64,
}

/// How much load may still move in this plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Churn {
    /// The share of all load that may.
    pub(super) share: f64,
    left: f64,
    spent: bool,
}

impl Churn {
    /// For a service that is not busy: any load may move.
    pub(super) const FREE: Self = Self { share: 1.0, left: f64::INFINITY, spent: false };

    /// A budget of a share of all load, less the load that is moving already.
    pub(super) fn new(share: f64, total: f64, moving: f64) -> Self {
        Self { share, left: total * share - moving, spent: false }
    }

    /// Takes a range's load out of the budget. Refuses if less is left, except for the first range: a single
    /// range may be larger than any budget.
    pub(super) fn spend(&mut self, rate: f64) -> bool {
        let affords = rate <= self.left || (!self.spent && self.left > 0.0);
        if affords {
            self.left -= rate;
            self.spent = true;
        }
        affords
    }
}

impl<'a> Draft<'a> {
    pub(super) fn new(map: &'a RangeMap, observations: &'a Observations, policy: &'a Policy) -> Self {
        let mut fleet = Fleet::new(&observations.servers);
        let mut seen = Seen::new(&observations.ranges);
        let ranges: Vec<_> =
            (map.entries().iter()).map(|entry| view(entry, seen.next(entry.id), &mut fleet)).collect();
        let under_way = (0..ranges.len()).filter(|index| map.entries()[*index].intent.is_some()).collect();
        let mut report = Report::default();
        let unseen = ranges.iter().filter(|range| range.seen.is_none()).count();
        if unseen > 0 {
            report.say(Reported::Unseen { ranges: unseen });
        }
        let (changes, balance, churn) = (Vec::new(), Balance::default(), Churn::FREE);
        Self { policy, ranges, under_way, fleet, changes, report, balance, churn, version: map.version() }
    }

    /// Decides that a range moves, and counts its load at its new server.
    pub(super) fn move_range(&mut self, range: usize, to: u32) {
        let view = &mut self.ranges[range];
        let home = Home { server: self.fleet.get(to).id, database: view.entry.place.database };
        if let Some(from) = view.server() {
            self.fleet.get_mut(from).remove(view.rate);
        }
        self.fleet.get_mut(to).add(view.rate);
        view.server = to;
        view.taken = true;
        let (range, generation) = (view.entry.id, view.entry.generation);
        self.changes.push(Change::Move { range, generation, to: home });
    }

    pub(super) fn finish(self) -> Plan {
        Plan {
            map_version: self.version,
            changes: self.changes,
            balance: self.balance,
            report: self.report.finish(),
        }
    }
}

/// Joins an entry of the map with its observation, and counts its load at its server.
fn view<'a>(entry: &'a RangeEntry, seen: Option<&'a RangeObservation>, fleet: &mut Fleet) -> View<'a> {
    let rate = seen.map_or(0.0, |seen| if seen.rate.is_finite() { seen.rate.max(0.0) } else { 0.0 });
    let owner = fleet.index(entry.place.server);
    let server = match &entry.intent {
        // Its load will be at its new server.
        Some(Intent::Move { to }) => fleet.index(to.server).or(owner),
        _ => owner,
    };
    if let Some(server) = server {
        fleet.get_mut(server).add(rate);
    }
    let lost = !owner.is_some_and(|owner| fleet.serves(owner));
    let seen = seen.filter(|seen| seen.generation == entry.generation);
    let open = entry.online && entry.intent.is_none() && seen.is_some_and(|seen| !seen.busy);
    let judged = seen.is_some_and(|seen| seen.cause.is_some());
    let quiet = seen.filter(|_| open && !judged && !lost);
    View {
        entry,
        seen,
        rate,
        server: server.unwrap_or(NO_SERVER),
        peak: quiet.and_then(|seen| seen.peak).map_or(f32::INFINITY, |peak| peak as f32),
        mebibytes: quiet.map_or(u32::MAX, |seen| (seen.bytes >> 20).min(u64::from(u32::MAX)) as u32),
        open,
        judged,
        lost,
        taken: false,
        told: false,
    }
}

/// Finds the observations of the ranges, one after the other in the map's order.
struct Seen<'a> {
    all: &'a [RangeObservation],
    next: usize,
    /// Made as soon as an observation is out of the map's order.
    by_id: Option<HashMap<RangeId, &'a RangeObservation>>,
}

impl<'a> Seen<'a> {
    fn new(all: &'a [RangeObservation]) -> Self {
        Self { all, next: 0, by_id: None }
    }

    fn next(&mut self, id: RangeId) -> Option<&'a RangeObservation> {
        if let Some(seen) = self.all.get(self.next).filter(|seen| seen.id == id) {
            self.next += 1;
            return Some(seen);
        }
        let all = self.all;
        let by_id = self.by_id.get_or_insert_with(|| all.iter().map(|seen| (seen.id, seen)).collect());
        by_id.get(&id).copied()
    }
}

//! A small service for tests of the planner: a map and its observations, which change together.

use std::time::Duration;

use rangehold_map::load::Cause;
use rangehold_map::plan::{Observations, Plan, Policy, RangeObservation, ServerObservation, Standing, plan};
use rangehold_map::{
    Change, DatabaseName, Generation, Home, KeyRange, PartitionPrefix, RangeEntry, RangeId, RangeMap,
    ServerId, TableId,
};

/// The capacity of each server.
pub(crate) const CAPACITY: f64 = 10_000.0;

/// The first key of the partition `number`.
pub(crate) fn key(number: u64) -> Vec<u8> {
    PartitionPrefix::entity("test", TableId(1), &format!("{number:08}")).as_bytes().to_vec()
}

pub(crate) fn home(server: u64, range: u64) -> Home {
    let database = DatabaseName { range: RangeId(range), generation: Generation(1), attempt: 1 };
    Home { server: ServerId(server), database }
}

/// The service: range n is the n-th entry, holds the partitions `100 n` to `100 n + 99`, and has
/// never changed.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    pub(crate) map: RangeMap,
    pub(crate) seen: Observations,
}

impl Fleet {
    /// Ranges, each given by its server and rate, and `servers` servers, counted from 1.
    pub(crate) fn new(servers: u64, ranges: &[(u64, f64)]) -> Self {
        let entries = (1u64..).zip(ranges).map(|(id, (server, _))| RangeEntry {
            id: RangeId(id),
            keys: KeyRange::new(
                if id == 1 { KeyRange::whole().low().to_vec() } else { key(100 * id) },
                (id < ranges.len() as u64).then(|| key(100 * (id + 1))),
            ),
            generation: Generation(1),
            place: home(*server, id),
            online: true,
            intent: None,
        });
        let map = RangeMap::new(1, RangeId(ranges.len() as u64 + 1), entries.collect());
        let observed = (1u64..).zip(ranges).map(|(id, (_, rate))| RangeObservation {
            rate: *rate,
            peak: Some(*rate),
            ..RangeObservation::quiet(RangeId(id))
        });
        let server =
            |id| ServerObservation { id: ServerId(id), standing: Standing::Serving, capacity: CAPACITY };
        let seen = Observations { ranges: observed.collect(), servers: (1..=servers).map(server).collect() };
        Self { map, seen }
    }

    /// The observation of range `id`, to change it.
    pub(crate) fn range(&mut self, id: u64) -> &mut RangeObservation {
        self.seen.ranges.iter_mut().find(|seen| seen.id == RangeId(id)).expect("the range was seen")
    }

    pub(crate) fn server(&mut self, id: u64) -> &mut ServerObservation {
        self.seen.servers.iter_mut().find(|seen| seen.id == ServerId(id)).expect("the server was seen")
    }

    pub(crate) fn judge(&mut self, id: u64, cause: Cause) {
        self.range(id).cause = Some(Box::new(cause));
    }

    pub(crate) fn plan(&self, policy: &Policy) -> Plan {
        plan(&self.map, &self.seen, policy)
    }

    /// The changes and the report of the plan, in lines.
    pub(crate) fn lines(&self, policy: &Policy) -> Vec<String> {
        self.plan(policy).report.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn owner(&self, id: u64) -> ServerId {
        self.map.get(RangeId(id)).expect("the range is in the map").place.server
    }

    /// Carries a plan out and checks the rules of the map. After a split, each half gets half of the rate.
    pub(crate) fn execute(&mut self, plan: &Plan) {
        for change in &plan.changes {
            let map = self.map.begin(change).unwrap_or_else(|refused| panic!("{change:?}: {refused}"));
            match change {
                Change::Split { range, .. } => self.split(*range, &map),
                Change::Merge { left, right, .. } => self.merge(*left, *right, &map),
                Change::Move { range, .. } => {
                    self.map = map.move_done(*range).expect("it was begun");
                    let seen = self.range(range.0);
                    seen.unmoved_for = Duration::ZERO;
                    seen.unchanged_for = Duration::ZERO;
                }
                Change::Offline { .. } | Change::Online { .. } => self.map = map,
            }
        }
        for seen in &mut self.seen.ranges {
            seen.generation = self.map.get(seen.id).expect("what was seen is in the map").generation;
        }
        assert_eq!(self.map.check(), []);
    }

    fn split(&mut self, range: RangeId, begun: &RangeMap) {
        let whole = self.range(range.0).clone();
        let place = self.map.get(range).expect("it is there").place;
        let (left, right) = (self.map.next_range(), RangeId(self.map.next_range().0 + 1));
        self.map = begun
            .split_done(range, home(place.server.0, left.0), home(place.server.0, right.0))
            .expect("it was begun");
        let half = |id| RangeObservation {
            id,
            rate: whole.rate / 2.0,
            peak: None,
            unchanged_for: Duration::ZERO,
            unmoved_for: whole.unmoved_for,
            ..RangeObservation::quiet(id)
        };
        self.replace(&[range], vec![half(left), half(right)]);
    }

    fn merge(&mut self, left: RangeId, right: RangeId, begun: &RangeMap) {
        let rate = self.range(left.0).rate + self.range(right.0).rate;
        let into = self.map.next_range();
        let place = self.map.get(left).expect("it is there").place;
        self.map = begun.merge_done(left, home(place.server.0, into.0)).expect("it was begun");
        let merged =
            RangeObservation { rate, unchanged_for: Duration::ZERO, ..RangeObservation::quiet(into) };
        self.replace(&[left, right], vec![merged]);
    }

    fn replace(&mut self, old: &[RangeId], new: Vec<RangeObservation>) {
        let at = self.seen.ranges.iter().position(|seen| seen.id == old[0]).expect("it was seen");
        self.seen.ranges.splice(at..at + old.len(), new);
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        for seen in &mut self.seen.ranges {
            seen.unchanged_for = seen.unchanged_for.saturating_add(time);
            seen.unmoved_for = seen.unmoved_for.saturating_add(time);
        }
    }

    /// The load of the busiest serving server, as a multiple of the mean.
    pub(crate) fn max_over_mean(&self) -> f64 {
        let plan = self.plan(&Policy::fast());
        if plan.balance.mean > 0.0 { plan.balance.max / plan.balance.mean } else { 1.0 }
    }
}

//! Carrying plans out.

use std::collections::BTreeMap;

use rangehold_map::plan::{Plan, Standing};
use rangehold_map::{Change, Home, KeyRange, RangeEntry, RangeId, RangeMap};

use super::{Facts, Flow, OPEN_SECONDS, OPENS_AT_ONCE, World};
use crate::balance::keys;
use crate::balance::parts::{Done, LONG_AGO, flow, home};

/// What happens to one range.
enum Fate {
    Moves(Home),
    SplitsAt(Vec<u8>),
    /// It and its right neighbour become one.
    MergesRight,
    GoesOffline,
}

/// Ranges that are being rebuilt, in the order of their keys.
#[derive(Default)]
struct Rebuilt {
    entries: Vec<RangeEntry>,
    flows: Vec<Flow>,
    facts: Vec<Facts>,
}

impl World {
    /// Makes the changes of a plan that were made for the generations that ranges are in.
    pub(super) fn execute(&mut self, plan: &Plan) {
        let mut fates = self.fates(plan);
        if fates.is_empty() {
            return;
        }
        let version = self.map.version() + fates.len() as u64;
        let mut next = self.map.next_range();
        let map = std::mem::replace(&mut self.map, RangeMap::new(0, next, Vec::new()));
        let flows = std::mem::take(&mut self.flows);
        let facts = std::mem::take(&mut self.facts);
        let mut opened = vec![0; self.servers.len()];
        let mut rebuilt = Rebuilt::default();
        let mut old = map.into_entries().into_iter().zip(flows).zip(facts).map(|((e, f), x)| (e, f, x));
        while let Some((mut entry, mut flow, mut facts)) = old.next() {
            match fates.remove(&entry.id) {
                Some(Fate::Moves(to)) => self.move_range(&mut entry, &mut flow, &mut facts, to, &mut opened),
                Some(Fate::GoesOffline) => {
                    entry.online = false;
                    entry.generation = entry.generation.next();
                    self.trace.quarantined += 1;
                }
                Some(Fate::SplitsAt(at)) => {
                    self.split_range((entry, flow, facts), &at, &mut next, &mut rebuilt);
                    continue;
                }
                Some(Fate::MergesRight) => {
                    if let Some(right) = old.next() {
                        self.merge_ranges((entry, flow, facts), right, &mut next, &mut rebuilt);
                    }
                    continue;
                }
                None => {}
            }
            rebuilt.push(entry, flow, facts);
        }
        self.map = RangeMap::new(version, next, rebuilt.entries);
        self.flows = rebuilt.flows;
        self.facts = rebuilt.facts;
    }

    /// The changes that are to be made, by range.
    fn fates(&self, plan: &Plan) -> BTreeMap<RangeId, Fate> {
        assert_eq!(plan.map_version, self.map.version(), "a plan is carried out before the next one is made");
        let wanted = |change: &Change| match change {
            Change::Move { range, to, .. } => Some((*range, Fate::Moves(*to))),
            Change::Split { range, at, .. } => Some((*range, Fate::SplitsAt(at.clone()))),
            Change::Merge { left, .. } => Some((*left, Fate::MergesRight)),
            Change::Offline { range, .. } => Some((*range, Fate::GoesOffline)),
            Change::Online { .. } => None,
        };
        let allowed = |change: &&Change| {
            self.setting.balances || matches!(change, Change::Split { .. } | Change::Offline { .. })
        };
        plan.changes.iter().filter(allowed).filter_map(wanted).collect()
    }

    fn move_range(
        &mut self,
        entry: &mut RangeEntry,
        flow: &mut Flow,
        facts: &mut Facts,
        to: Home,
        opened: &mut [usize],
    ) {
        let (from, target) = (flow.server as usize, to.server.0 as usize - 1);
        let was_dead = self.servers[from].standing == Standing::Dead;
        if was_dead {
            opened[target] += 1;
            let wait = opened[target].div_ceil(OPENS_AT_ONCE) as f64 * OPEN_SECONDS;
            flow.opens = (self.now + wait) as f32;
            self.trace.reopened.push(wait);
        }
        self.trace.moved(flow.rate(), self.servers[from].standing == Standing::Serving);
        entry.place = to;
        entry.generation = entry.generation.next();
        flow.server = target as u32;
        facts.moved = self.now;
        facts.changed = self.now;
    }

    fn split_range(
        &mut self,
        (entry, old, facts): (RangeEntry, Flow, Facts),
        at: &[u8],
        next: &mut RangeId,
        rebuilt: &mut Rebuilt,
    ) {
        let cut = keys::place(at);
        if cut <= facts.low || cut >= facts.high {
            rebuilt.push(entry, old, facts);
            return;
        }
        self.trace.splits += 1;
        self.useless.add(self.now, facts.low, cut, facts.high);
        let cycles = facts.cycles + u32::from(self.is_cycle(&facts, Done::Merge));
        let server = old.server as usize;
        let bounds = [(facts.low, cut), (cut, facts.high)];
        let halves = [
            KeyRange::new(entry.keys.low().to_vec(), Some(at.to_vec())),
            KeyRange::new(at.to_vec(), entry.keys.high().map(<[u8]>::to_vec)),
        ];
        for ((low, high), keys) in bounds.into_iter().zip(halves) {
            let made = Facts {
                cycles,
                made: self.now,
                made_by: Some(Done::Split),
                changed: self.now,
                moved: facts.moved,
                ..Facts::new(low, high)
            };
            rebuilt.push(fresh(next, keys, server), flow(&self.demand, low, high, old.server), made);
        }
    }

    fn merge_ranges(
        &mut self,
        (left, left_flow, left_facts): (RangeEntry, Flow, Facts),
        (right, right_flow, right_facts): (RangeEntry, Flow, Facts),
        next: &mut RangeId,
        rebuilt: &mut Rebuilt,
    ) {
        self.trace.merges += 1;
        if left_flow.server != right_flow.server {
            self.trace.step_churn += right_flow.rate();
        }
        let cycle = self.is_cycle(&left_facts, Done::Split) || self.is_cycle(&right_facts, Done::Split);
        let made = Facts {
            cycles: left_facts.cycles.max(right_facts.cycles) + u32::from(cycle),
            made: self.now,
            made_by: Some(Done::Merge),
            changed: self.now,
            moved: LONG_AGO,
            ..Facts::new(left_facts.low, right_facts.high)
        };
        let keys = KeyRange::new(left.keys.low().to_vec(), right.keys.high().map(<[u8]>::to_vec));
        let whole = flow(&self.demand, made.low, made.high, left_flow.server);
        rebuilt.push(fresh(next, keys, left_flow.server as usize), whole, made);
    }

    /// Whether what `by` made less than an hour ago is undone now.
    fn is_cycle(&self, facts: &Facts, by: Done) -> bool {
        facts.made_by == Some(by) && self.now - facts.made < 3_600.0
    }
}

impl Rebuilt {
    fn push(&mut self, entry: RangeEntry, flow: Flow, facts: Facts) {
        self.entries.push(entry);
        self.flows.push(flow);
        self.facts.push(facts);
    }
}

fn fresh(next: &mut RangeId, keys: KeyRange, server: usize) -> RangeEntry {
    let id = *next;
    *next = id.next();
    RangeEntry {
        id,
        keys,
        generation: rangehold_map::Generation::FIRST,
        place: home(id, server),
        online: true,
        intent: None,
    }
}

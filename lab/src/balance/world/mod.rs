//! The simulated service: ranges and servers on a virtual clock, with load as rates.
//!
//! Every step of a second the wanted rates become answered ones ([`admit`]), are measured as a
//! server would measure them, and the hot ranges are looked at ([`super::judge`]). Every tick the
//! *real* planner makes a plan from what was measured ([`observe`]), and the plan is carried out
//! ([`execute`]). Nothing in here decides where a range goes.
//!
//! What is modelled, and how:
//! * a rate is known with the noise that counting requests has;
//! * a server that is asked for more than its capacity refuses the hottest ranges' requests first;
//! * a range bears no more than a limit of its own;
//! * a split, merge or move is done at once and holds requests for less than the queue bears, so it
//!   costs no answer. That the real ones are so is shown elsewhere, with real requests;
//! * a dead server is noticed after its lease and a margin (6 s); then each server opens the ranges
//!   it was given four at a time, 50 ms each.

mod admit;
mod execute;
mod observe;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rangehold_map::plan::{Plan, Standing, Suspects};
use rangehold_map::{RangeId, RangeMap, ServerId};

use super::demand::{CELL, Demand, Place};
use super::judge::Judge;
pub(super) use super::parts::{Facts, Flow, Server, Setting, entry};
use super::parts::{LONG_AGO, MANY, WINDOWS, flow};
use super::trace::{Trace, UselessSplits};
use super::watched::Rule;

/// How long until the manager knows that a server is dead: its lease, and a margin for drift.
pub(super) const DETECTED_AFTER: f64 = 6.0;
/// How long it takes to open a range, and how many a server opens side by side.
const OPEN_SECONDS: f64 = 0.05;
const OPENS_AT_ONCE: usize = 4;
/// Length of a window of a peak, in seconds: as `map`'s own. One is always being filled.
const WINDOW_SECONDS: f64 = 120.0;

/// The service.
pub(super) struct World {
    pub(super) setting: Setting,
    pub(super) now: f64,
    pub(super) demand: Demand,
    pub(super) map: RangeMap,
    pub(super) flows: Vec<Flow>,
    pub(super) facts: Vec<Facts>,
    pub(super) servers: Vec<Server>,
    pub(super) suspects: Suspects,
    pub(super) trace: Trace,
    pub(super) useless: UselessSplits,
    /// The last plan.
    pub(super) plan: Option<Plan>,
    /// Until when no manager is there.
    pub(super) manager_away_until: f64,
    pub(super) dice: StdRng,
    judge: Judge,
    next_tick: f64,
    next_window: f64,
}

impl World {
    /// A service with one range for each cell, on servers drawn at random.
    pub(super) fn new(setting: Setting, demand: Demand) -> Self {
        let mut dice = StdRng::seed_from_u64(setting.seed);
        let cells = (demand.end() / CELL) as usize;
        let mut owners: Vec<usize> = (0..cells).map(|cell| cell % setting.servers).collect();
        owners.shuffle(&mut dice);
        Self::placed(setting, demand, &owners, dice)
    }

    /// A service with one range for each cell, on the given servers.
    pub(super) fn with_owners(setting: Setting, demand: Demand, owners: &[usize]) -> Self {
        let dice = StdRng::seed_from_u64(setting.seed);
        Self::placed(setting, demand, owners, dice)
    }

    fn placed(setting: Setting, demand: Demand, owners: &[usize], dice: StdRng) -> Self {
        let bounds: Vec<Place> = (0..=owners.len() as u64).map(|cell| cell * CELL).collect();
        let entries = owners.iter().enumerate().map(|(index, owner)| {
            let high = bounds[index + 1];
            entry(RangeId(index as u64 + 1), *owner, bounds[index], (high < demand.end()).then_some(high))
        });
        let map = RangeMap::new(1, RangeId(owners.len() as u64 + 1), entries.collect());
        let flow =
            |(index, owner): (usize, &usize)| flow(&demand, bounds[index], bounds[index + 1], *owner as u32);
        let flows = owners.iter().enumerate().map(flow).collect();
        let facts = bounds.windows(2).map(|pair| Facts::new(pair[0], pair[1])).collect();
        let server = Server { alive: true, died: LONG_AGO, standing: Standing::Serving, load: 0.0 };
        let mut world = Self {
            now: 0.0,
            map,
            flows,
            facts,
            servers: vec![server; setting.servers],
            suspects: Suspects::default(),
            trace: Trace::default(),
            useless: UselessSplits::default(),
            plan: None,
            manager_away_until: 0.0,
            dice,
            judge: Judge::new(setting.rule, setting.load_policy.clone()),
            next_tick: setting.policy.tick.as_secs_f64(),
            next_window: WINDOW_SECONDS,
            setting,
            demand,
        };
        world.assume_steady();
        world
    }

    /// Takes the rates of the beginning as known for long.
    fn assume_steady(&mut self) {
        self.spread_demand();
        for (flow, facts) in self.flows.iter_mut().zip(&mut self.facts) {
            flow.seconds = 10.0;
            flow.count = flow.wanted.min(self.setting.range_limit) * flow.seconds;
            facts.windows = [flow.wanted.min(self.setting.range_limit) as f32; WINDOWS];
        }
    }

    /// Lives until `end`; `drive` changes the demand, kills servers and so on before each step.
    pub(super) fn run(&mut self, end: f64, mut drive: impl FnMut(&mut Self)) {
        while self.now < end {
            drive(self);
            self.step();
        }
    }

    /// One step, and a tick if one is due.
    fn step(&mut self) {
        let step = self.setting.step;
        self.spread_demand();
        let warm = self.admit(step);
        self.judge.watch(&warm, &self.demand, &mut self.flows, &mut self.facts, self.now, &mut self.dice);
        self.turn_window();
        self.now += step;
        self.useless.settle(self.now, &self.demand);
        let lost_server = self.notice_dead();
        if self.now >= self.next_tick || lost_server {
            self.next_tick = self.next_tick.max(self.now) + self.setting.policy.tick.as_secs_f64();
            let static_map = self.setting.rule == Rule::Never && !self.setting.balances;
            if self.now >= self.manager_away_until && !static_map {
                self.tick();
            }
        }
        self.trace.record(self.now, &self.servers, self.flows.len(), self.setting.capacity);
    }

    /// Works out what is wanted of each range.
    fn spread_demand(&mut self) {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.wanted = if flow.group == MANY {
                self.demand.cells(self.facts[index].low, self.facts[index].high)
            } else {
                flow.plain * self.demand.factors[flow.group as usize]
            };
        }
        for piece in &self.demand.pieces {
            let from = self.facts.partition_point(|facts| facts.high <= piece.low);
            for (flow, facts) in self.flows[from..].iter_mut().zip(&self.facts[from..]) {
                if facts.low >= piece.high {
                    break;
                }
                flow.wanted += piece.within(facts.low, facts.high);
            }
        }
    }

    /// Begins another window of the peaks, if it is time.
    fn turn_window(&mut self) {
        if self.now >= self.next_window {
            self.next_window += WINDOW_SECONDS;
            let window = (self.next_window / WINDOW_SECONDS) as usize % WINDOWS;
            for (flow, facts) in self.flows.iter_mut().zip(&mut self.facts) {
                facts.windows[window] = flow.window_max;
                flow.window_max = 0.0;
            }
        }
    }

    /// Ends the lease of servers that died a while ago.
    fn notice_dead(&mut self) -> bool {
        let mut noticed = Vec::new();
        for (index, server) in self.servers.iter_mut().enumerate() {
            let known = server.standing == Standing::Dead;
            if !server.alive && !known && self.now >= server.died + DETECTED_AFTER {
                server.standing = Standing::Dead;
                noticed.push(index);
            }
        }
        let now = std::time::Duration::from_secs_f64(self.now);
        for index in &noticed {
            let ranges =
                self.flows.iter().zip(self.map.entries()).filter(|(flow, _)| flow.server as usize == *index);
            self.suspects.crashed(ServerId(*index as u64 + 1), ranges.map(|(_, entry)| entry.id), now);
        }
        !noticed.is_empty()
    }

    /// Kills a server.
    pub(super) fn kill(&mut self, server: usize) {
        self.servers[server].alive = false;
        self.servers[server].died = self.now;
    }

    /// Lets a server that was dead or stopped serve again, empty.
    pub(super) fn start(&mut self, server: usize) {
        self.servers[server].alive = true;
        self.servers[server].standing = Standing::Serving;
    }

    /// How many ranges each server has.
    pub(super) fn ranges_by_server(&self) -> Vec<usize> {
        let mut counts = vec![0; self.servers.len()];
        for flow in &self.flows {
            counts[flow.server as usize] += 1;
        }
        counts
    }

    /// The index of the range that holds `place`.
    pub(super) fn range_at(&self, place: Place) -> usize {
        self.facts.partition_point(|facts| facts.high <= place)
    }

    /// Whether a server holds the range of `place` and serves it: what the server says when it is asked,
    /// by what it holds and not by any map.
    pub(super) fn holds(&self, server: ServerId, place: Place) -> bool {
        let flow = &self.flows[self.range_at(place)];
        let owner = flow.server as usize;
        let serves = self.servers[owner].alive && f64::from(flow.opens) <= self.now;
        serves && owner as u64 + 1 == server.0
    }
}

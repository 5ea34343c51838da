//! What the manager is told, and the plan it makes of that.

use std::time::{Duration, Instant};

use rand::RngExt;
use rangehold_map::plan::{Observations, RangeObservation, ServerObservation, plan};
use rangehold_map::{RangeEntry, ServerId};

use super::{Facts, Flow, WINDOWS, World};

impl World {
    /// Observes, plans, and carries the plan out.
    pub(super) fn tick(&mut self) {
        let observations = self.observe();
        let began = Instant::now();
        let plan = plan(&self.map, &observations, &self.setting.policy);
        self.trace.decisions.push(began.elapsed());
        self.execute(&plan);
        self.plan = Some(plan);
    }

    /// What was seen of all ranges and servers.
    pub(super) fn observe(&mut self) -> Observations {
        let now = Duration::from_secs_f64(self.now);
        let mut ranges = Vec::with_capacity(self.flows.len());
        for ((flow, facts), entry) in self.flows.iter().zip(&self.facts).zip(self.map.entries()) {
            let noise = noise(self.dice.random());
            let mut seen = range(self.now, flow, facts, entry, noise);
            seen.bytes = self.setting.bytes;
            seen.crashes = self.suspects.crashes(entry.id, now, &self.setting.policy);
            ranges.push(seen);
        }
        let server = |(index, server): (usize, &super::Server)| ServerObservation {
            id: ServerId(index as u64 + 1),
            standing: server.standing,
            capacity: self.setting.capacity,
        };
        Observations { ranges, servers: self.servers.iter().enumerate().map(server).collect() }
    }
}

fn range(now: f64, flow: &Flow, facts: &Facts, entry: &RangeEntry, noise: f64) -> RangeObservation {
    // A count decayed by a half-life of 10 s varies as one of 29 s does.
    let rate = (flow.rate() + noise * (flow.rate() / 29.0).sqrt()).max(0.0);
    let known = now - facts.changed >= (WINDOWS - 1) as f64 * super::WINDOW_SECONDS;
    let peak = facts.windows.iter().fold(flow.window_max, |max, window| max.max(*window));
    RangeObservation {
        generation: entry.generation,
        rate,
        peak: known.then_some(f64::from(peak)),
        cause: facts.cause().cloned().map(Box::new),
        unchanged_for: since(now, facts.changed),
        unmoved_for: since(now, facts.moved),
        ..RangeObservation::quiet(entry.id)
    }
}

fn since(now: f64, then: f64) -> Duration {
    Duration::from_secs((now - then) as u64)
}

/// A draw from (nearly) the standard normal distribution, from 64 random bits.
fn noise(bits: u64) -> f64 {
    let quarters = (0..4).map(|quarter| f64::from((bits >> (16 * quarter)) as u16) / 65_536.0);
    (quarters.sum::<f64>() - 2.0) * 3f64.sqrt()
}

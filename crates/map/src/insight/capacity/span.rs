//! One span of names: what it bears, what is asked of it, and what becomes of it.

use std::time::Duration;

use super::allowance::Allowance;
use super::look::{Cut, Undivided};
use super::peaks::Peaks;
use super::rules::{Rules, Usage};
use super::usage::{Became, Used};

/// How much more than the threshold a half may bear.
const UNITS_MAX: f64 = 1.1;
/// The demand is averaged over about so much of the ramp's time, to be shown and to fall back.
const AVERAGED_OVER: f64 = 60.0;

/// The names from `low` to the next span.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) low: Vec<u8>,
    /// What it bears, in thresholds: 1 to [`UNITS_MAX`].
    pub(super) units: f64,
    pub(super) peaks: Peaks,
    allowances: [Allowance; 2],
    /// Requests since the last tick, let in or not.
    counted: [f64; 2],
    /// Averaged demand, in thresholds.
    pub(super) demand: [f64; 2],
    pub(super) used: Option<Used>,
    /// What the last whole look found, if the load does not divide.
    pub(super) undivided: Option<Undivided>,
}

impl Span {
    pub(super) fn new(low: Vec<u8>, units: f64, peaks: Peaks) -> Self {
        Self {
            low,
            units: units.clamp(1.0, UNITS_MAX),
            peaks,
            allowances: Default::default(),
            counted: [0.0; 2],
            demand: [0.0; 2],
            used: None,
            undivided: None,
        }
    }

    /// Lets requests in; see [`Allowance::take`].
    pub(super) fn ask(
        &mut self,
        now: Duration,
        name: &[u8],
        usage: Usage,
        requests: f64,
        rules: &Rules,
    ) -> (f64, Duration) {
        self.counted[usage.index()] += requests;
        let threshold = rules.threshold(usage);
        if let Some(used) = &mut self.used {
            used.look.record(name, requests, requests / threshold);
        }
        let rate = threshold * self.units;
        self.allowances[usage.index()].take(now, rate, rules.delay_max, requests)
    }

    /// Ends a stretch of `seconds` of real time and of `passed` of the ramp's. Returns what a complete look found.
    pub(super) fn tick(
        &mut self,
        seconds: f64,
        passed: Duration,
        now: Duration,
        seed: u64,
        rules: &Rules,
    ) -> Option<Cut> {
        let counted = std::mem::take(&mut self.counted);
        let demand = Usage::BOTH.map(|usage| counted[usage.index()] / seconds / rules.threshold(usage));
        let weight = 1.0 - (-passed.as_secs_f64() / AVERAGED_OVER).exp();
        for (average, demand) in self.demand.iter_mut().zip(demand) {
            *average += (demand - *average) * weight;
        }
        self.peaks.note(self.demand);
        let (most, least) = (demand[0].max(demand[1]), rules.used_share * self.units);
        let Some(used) = &mut self.used else {
            if most >= least {
                let mut used = Used::new(now.saturating_sub(passed), seed);
                used.tick(passed, now, most, least, rules);
                self.used = Some(used);
            }
            return None;
        };
        match used.tick(passed, now, most, least, rules) {
            Became::GoesOn => None,
            Became::Paused => {
                self.used = None;
                None
            }
            Became::Complete(Err(undivided)) => {
                self.undivided = Some(undivided);
                self.used = Some(Used::new(now, seed));
                None
            }
            Became::Complete(Ok(cut)) => Some(cut),
        }
    }

    /// The two halves. Together they bear twice as much, in proportion to their load, within limits.
    pub(super) fn halves(self, cut: Cut) -> [Self; 2] {
        let half = |low, share: f64| Self {
            allowances: self.allowances.clone(),
            demand: self.demand.map(|demand| demand * share),
            ..Self::new(low, 2.0 * self.units * share, self.peaks.part(share))
        };
        [half(self.low.clone(), cut.below), half(cut.at, 1.0 - cut.below)]
    }

    /// The span of this one and the next.
    pub(super) fn with(self, next: &Self) -> Self {
        let peaks = self.peaks.together(&next.peaks);
        Self {
            demand: [self.demand[0] + next.demand[0], self.demand[1] + next.demand[1]],
            ..Self::new(self.low, 1.0, peaks)
        }
    }
}

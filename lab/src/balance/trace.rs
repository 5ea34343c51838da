//! What a run leaves behind: a line of figures for every step, and counts.

use std::time::Duration;

use rangehold_map::plan::Standing;

use super::demand::{Demand, Place};
use super::parts::Server;

/// Seconds between two columns of the heat map.
const HEAT_SECONDS: f64 = 60.0;

/// Figures of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// The end of each step, in seconds.
    pub(super) times: Vec<f64>,
    /// The load of the busiest server over the mean, of those that serve.
    pub(super) max_over_mean: Vec<f64>,
    /// The share of its capacity that the busiest server uses.
    pub(super) busiest: Vec<f64>,
    /// Shares of what was wanted.
    pub(super) refused: Vec<f64>,
    pub(super) lost: Vec<f64>,
    pub(super) ranges: Vec<usize>,
    /// Load moved in each step to even out load.
    pub(super) churn: Vec<f64>,
    /// Utilisation of every server, a column a minute.
    pub(super) heat: Vec<Vec<f32>>,
    pub(super) splits: usize,
    pub(super) merges: usize,
    pub(super) quarantined: usize,
    /// Moves to even out load, and moves of ranges whose server was dead or leaving.
    pub(super) moves: usize,
    pub(super) rehomed: usize,
    /// When each move to even out load was made.
    pub(super) move_times: Vec<f64>,
    /// Seconds from the plan until a range of a dead server was served again.
    pub(super) reopened: Vec<f64>,
    pub(super) decisions: Vec<Duration>,
    /// Requests wanted, refused and lost in all.
    pub(super) totals: (f64, f64, f64),
    step: (f64, f64, f64),
    /// Load moved in the step that is under way, to even out load or to bring two ranges together.
    pub(super) step_churn: f64,
    next_heat: f64,
}

impl Trace {
    pub(super) fn count(&mut self, wanted: f64, refused: f64, lost: f64) {
        self.step = (wanted, refused, lost);
        let (a, b, c) = self.totals;
        self.totals = (a + wanted, b + refused, c + lost);
    }

    /// Notes a move, which either evened out load or emptied a server.
    pub(super) fn moved(&mut self, rate: f64, balances: bool) {
        if balances {
            self.moves += 1;
            self.move_times.push(self.times.last().copied().unwrap_or(0.0));
            self.step_churn += rate;
        } else {
            self.rehomed += 1;
        }
    }

    pub(super) fn record(&mut self, now: f64, servers: &[Server], ranges: usize, capacity: f64) {
        let serving = || servers.iter().filter(|server| server.alive && server.standing == Standing::Serving);
        let max = serving().map(|server| server.load).fold(0.0, f64::max);
        let mean = serving().map(|server| server.load).sum::<f64>() / serving().count().max(1) as f64;
        self.times.push(now);
        self.max_over_mean.push(if mean > 0.0 { max / mean } else { 1.0 });
        self.busiest.push(max / capacity);
        let (wanted, refused, lost) = self.step;
        self.refused.push(if wanted > 0.0 { refused / wanted } else { 0.0 });
        self.lost.push(if wanted > 0.0 { lost / wanted } else { 0.0 });
        self.ranges.push(ranges);
        self.churn.push(std::mem::take(&mut self.step_churn));
        if now >= self.next_heat {
            self.next_heat += HEAT_SECONDS;
            let used = |server: &Server| if server.alive { (server.load / capacity) as f32 } else { -1.0 };
            self.heat.push(servers.iter().map(used).collect());
        }
    }

    /// The steps that end after `from` and not after `to`.
    pub(super) fn between(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        self.times.partition_point(|time| *time <= from)..self.times.partition_point(|time| *time <= to)
    }

    /// The share of steps after `from` in which the busiest server was at most `limit` times the mean.
    pub(super) fn balanced_share(&self, from: f64, limit: f64) -> f64 {
        let steps = &self.max_over_mean[self.between(from, f64::INFINITY)];
        steps.iter().filter(|ratio| **ratio <= limit).count() as f64 / steps.len().max(1) as f64
    }

    /// The share of requests between two moments that were refused or lost.
    pub(super) fn failed_share(&self, from: f64, to: f64) -> f64 {
        let steps = self.between(from, to);
        let count = steps.len().max(1) as f64;
        steps.map(|step| self.refused[step] + self.lost[step]).sum::<f64>() / count
    }

    /// The first moment after `from` from which on, for a minute, one of these figures is at most `most` in every step.
    pub(super) fn first_minute(&self, figures: &[f64], most: f64, from: f64) -> Option<f64> {
        let mut since = None;
        for step in self.between(from, f64::INFINITY) {
            if figures[step] > most {
                since = None;
                continue;
            }
            // A step's time is its end.
            let began = *since.get_or_insert(if step == 0 { 0.0 } else { self.times[step - 1] });
            if self.times[step] - began >= 60.0 {
                return Some(began);
            }
        }
        None
    }

    /// The same for the load of the busiest server over the mean.
    pub(super) fn even_after(&self, from: f64, most: f64) -> Option<f64> {
        self.first_minute(&self.max_over_mean, most, from)
    }

    /// Moves to even out load after `from`, for each server and day.
    pub(super) fn moves_per_server_and_day(&self, from: f64, servers: usize) -> f64 {
        let last = self.times.last().copied().unwrap_or(from);
        let moves = self.move_times.iter().filter(|time| **time > from).count();
        moves as f64 / servers as f64 / ((last - from) / 86_400.0)
    }

    /// The median and the longest time of a decision.
    pub(super) fn decision_times(&self) -> (Duration, Duration) {
        let mut times = self.decisions.clone();
        times.sort();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        (middle, times.last().copied().unwrap_or_default())
    }
}

/// The greatest of some figures, none of which is below zero.
pub(super) fn greatest(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(0.0, f64::max)
}

/// When a split proves itself, in seconds after it was made.
const PROOF: std::ops::Range<f64> = 330.0..450.0;
/// Beyond this imbalance a split was useless.
const USELESS: f64 = 0.5;

/// Checks, minutes after each split, what the split was good for.
#[derive(Clone, Debug, Default)]
pub(super) struct UselessSplits {
    open: Vec<Proof>,
    pub(super) useless: usize,
    pub(super) proved: usize,
}

#[derive(Clone, Debug)]
struct Proof {
    made: f64,
    low: Place,
    cut: Place,
    high: Place,
    left: f64,
    right: f64,
}

impl UselessSplits {
    pub(super) fn add(&mut self, made: f64, low: Place, cut: Place, high: Place) {
        self.open.push(Proof { made, low, cut, high, left: 0.0, right: 0.0 });
    }

    /// Adds the traffic of now to the splits of some minutes ago.
    pub(super) fn settle(&mut self, now: f64, demand: &Demand) {
        // Every ten seconds is often enough.
        if now % 10.0 != 0.0 {
            return;
        }
        for proof in &mut self.open {
            if PROOF.contains(&(now - proof.made)) {
                proof.left += demand.between(proof.low, proof.cut);
                proof.right += demand.between(proof.cut, proof.high);
            }
        }
        let (done, open) =
            std::mem::take(&mut self.open).into_iter().partition(|proof| now - proof.made >= PROOF.end);
        self.open = open;
        for Proof { left, right, .. } in done {
            self.proved += 1;
            let imbalance = if left + right > 0.0 { (left - right).abs() / (left + right) } else { 0.0 };
            self.useless += usize::from(imbalance > USELESS);
        }
    }
}

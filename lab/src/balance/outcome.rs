//! What a scenario hands over: lines of the table, and pictures.

use serde::Serialize;

use super::trace::Trace;

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) scenario: &'static str,
    /// What is asked for.
    pub(super) asked: String,
    /// What was seen.
    pub(super) seen: String,
    /// Whether that is as asked; `None` if the line is only there for comparison.
    pub(super) passed: Option<bool>,
}

impl Line {
    /// The verdict in a word; empty for a line that is only there for comparison.
    pub(super) fn verdict(&self) -> &'static str {
        match self.passed {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "",
        }
    }
}

/// A picture.
#[derive(Clone, Debug)]
pub(super) enum Picture {
    /// Curves over time in seconds.
    Curves { title: String, unit: &'static str, limit: Option<f64>, curves: Vec<Curve> },
    /// Utilisation of servers over time: a column for each minute, a row for each server. Below 0: the server is not
    /// there.
    Heat { title: String, columns: Vec<Vec<f32>> },
}

/// A named curve.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

impl Curve {
    /// Keeps at most this many points: the greatest of each stretch.
    const POINTS: usize = 360;

    pub(crate) fn new(name: impl Into<String>, times: &[f64], values: &[f64]) -> Self {
        let stretch = times.len().div_ceil(Self::POINTS).max(1);
        let point = |(times, values): (&[f64], &[f64])| {
            (times[times.len() - 1], values.iter().copied().fold(f64::MIN, f64::max))
        };
        Self {
            name: name.into(),
            points: times.chunks(stretch).zip(values.chunks(stretch)).map(point).collect(),
        }
    }
}

/// All results of one scenario.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    scenario: &'static str,
    pub(super) lines: Vec<Line>,
    pub(super) pictures: Vec<Picture>,
}

impl Outcome {
    /// The outcome of a scenario that has not run yet.
    pub(super) fn new(scenario: &'static str) -> Self {
        Self { scenario, lines: Vec::new(), pictures: Vec::new() }
    }

    /// Adds what was asked for, whether it is so, and what was seen.
    pub(super) fn ask(&mut self, asked: impl Into<String>, passed: bool, seen: String) {
        self.lines.push(Line { scenario: self.scenario, asked: asked.into(), seen, passed: Some(passed) });
    }

    /// Adds what was seen with another rule, or without one of ours.
    pub(super) fn compare(&mut self, with: &str, seen: String) {
        self.lines.push(Line { scenario: self.scenario, asked: with.to_owned(), seen, passed: None });
    }

    /// Adds a picture of curves over time.
    pub(super) fn curves(&mut self, title: &str, unit: &'static str, limit: Option<f64>, curves: Vec<Curve>) {
        self.pictures.push(Picture::Curves { title: title.to_owned(), unit, limit, curves });
    }

    /// Adds a picture of the load of the busiest server over the mean, in each of these runs.
    pub(super) fn balance(&mut self, title: &str, limit: f64, runs: &[(&str, &Trace)]) {
        let curve = |(name, trace): &(&str, &Trace)| Curve::new(*name, &trace.times, &trace.max_over_mean);
        self.curves(title, "busiest server / mean", Some(limit), runs.iter().map(curve).collect());
    }

    /// Adds a picture of how busy each server is.
    pub(super) fn heat(&mut self, title: &str, trace: &Trace) {
        self.pictures.push(Picture::Heat { title: title.to_owned(), columns: trace.heat.clone() });
    }
}

/// A share, for the table.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.1 => format!("{percent:.4} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// A moment after another, for the table.
pub(super) fn seconds(after: Option<f64>) -> String {
    after.map_or_else(|| "never".to_owned(), |seconds| format!("{seconds:.0} s"))
}

//! What a scenario hands over: lines of the table, and pictures.

use super::trace::Trace;

/// One line of the table.
#[derive(Clone, Debug)]
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
    pub(super) fn new(scenario: &'static str, asked: impl Into<String>, seen: String, passed: bool) -> Self {
        Self { scenario, asked: asked.into(), seen, passed: Some(passed) }
    }

    /// A line that shows what happens with another rule, or without one of ours.
    pub(super) fn compared(scenario: &'static str, with: impl Into<String>, seen: String) -> Self {
        Self { scenario, asked: with.into(), seen, passed: None }
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
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

impl Curve {
    /// Keeps at most this many points: the greatest of each stretch.
    const POINTS: usize = 360;

    pub(super) fn new(name: impl Into<String>, times: &[f64], values: &[f64]) -> Self {
        let stretch = times.len().div_ceil(Self::POINTS).max(1);
        let point = |(times, values): (&[f64], &[f64])| {
            (times[times.len() - 1], values.iter().copied().fold(f64::MIN, f64::max))
        };
        Self {
            name: name.into(),
            points: times.chunks(stretch).zip(values.chunks(stretch)).map(point).collect(),
        }
    }

    /// The load of the busiest server over the mean.
    pub(super) fn max_over_mean(name: impl Into<String>, trace: &Trace) -> Self {
        Self::new(name, &trace.times, &trace.max_over_mean)
    }
}

/// All results of one scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) lines: Vec<Line>,
    pub(super) pictures: Vec<Picture>,
}

impl Outcome {
    pub(super) fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Adds a picture of max/mean over time.
    pub(super) fn balance(&mut self, title: impl Into<String>, limit: f64, curves: Vec<Curve>) {
        let picture = Picture::Curves {
            title: title.into(),
            unit: "busiest server / mean",
            limit: Some(limit),
            curves,
        };
        self.pictures.push(picture);
    }

    pub(super) fn heat(&mut self, title: impl Into<String>, trace: &Trace) {
        self.pictures.push(Picture::Heat { title: title.into(), columns: trace.heat.clone() });
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

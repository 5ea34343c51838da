//! A workload by its name: what comes, how fast, under which keys, and what may be said of it.

use rand::rngs::StdRng;

use super::keys::{Shape, hex};
use super::stream::Requests;

/// A named workload and what may be said of it.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Verdicts that name the cause, by their names; `none` if there should be none.
    pub(super) causes: &'static [&'static str],
    /// Makes the requests of one trial, whose places and phases are drawn.
    pub(super) make: fn(&mut StdRng) -> Requests,
    /// Requests per second at a time, when 1 is the usual rate.
    pub(super) pace: fn(f64) -> f64,
    /// Rate and cap in shares of the usual.
    pub(super) scale: f64,
    /// How keys are written.
    pub(super) shape: Shape,
    /// Seconds to go on after a verdict against a split, for a workload that settles later.
    pub(super) patience: u32,
}

impl Workload {
    pub(super) const fn new(
        name: &'static str,
        causes: &'static [&'static str],
        make: fn(&mut StdRng) -> Requests,
    ) -> Self {
        Self { name, causes, make, pace: |_| 1.0, scale: 1.0, shape: hex, patience: 0 }
    }

    pub(super) const fn with_pace(self, pace: fn(f64) -> f64) -> Self {
        Self { pace, ..self }
    }

    pub(super) const fn with_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    pub(super) const fn with_keys(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    pub(super) const fn with_patience(self, patience: u32) -> Self {
        Self { patience, ..self }
    }
}

//! A warm range that a rule watches, and the rules.

mod cockroach;

use rangehold_map::load::{Cause, RangeLoad};

use super::demand::Place;
pub(super) use cockroach::Finder;

/// The rule by which split keys are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The real finder.
    Finder,
    /// What the finder would say of load that is spread evenly and stands still.
    Arithmetic,
    /// Every 15 s, where half of the load of those 15 s was. Windows Azure Storage's "adaptive range profiling" would
    /// give this if it were asked in every quantum.
    FifteenSeconds,
    /// CockroachDB's finder: ten seconds, twenty samples, at most one split a minute.
    Cockroach,
    /// Nothing is ever split.
    Never,
}

/// A warm range that a rule watches.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) eyes: Eyes,
    pub(super) cause: Option<Cause>,
}

/// What a rule remembers of a range.
#[derive(Debug)]
pub(super) enum Eyes {
    Finder(Box<RangeLoad>),
    Arithmetic { hot_since: Option<f64>, judged: f64 },
    FifteenSeconds { began: f64, places: Vec<Place> },
    Cockroach(Box<Finder>),
}

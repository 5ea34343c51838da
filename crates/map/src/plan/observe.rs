//! What the planner is told about the service. It is partial and old by the time it is used, and
//! the planner decides nothing about what it was not told.

use std::time::Duration;

use crate::load::Cause;
use crate::range::{Generation, RangeId, ServerId};

/// What was seen of one range.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeObservation {
    /// The range.
    pub id: RangeId,
    /// The generation in which it was seen. Seen in another than the map's, it counts as not seen.
    pub generation: Generation,
    /// Its load now, per second: [`crate::load::Load::cost_rate`].
    pub rate: f64,
    /// Its greatest load in the last ten minutes, per second; `None` while that is not known:
    /// [`crate::load::Load::peak`].
    pub peak: Option<f64>,
    /// Bytes that it holds.
    pub bytes: u64,
    /// The verdict about its load that holds now, if it was hot enough for one. In a box, since one
    /// range in thousands has one.
    pub cause: Option<Box<Cause>>,
    /// Since it was last split, merged or moved; for ever if it never was.
    pub unchanged_for: Duration,
    /// Since it was last moved; for ever if it never was.
    pub unmoved_for: Duration,
    /// Someone is working at it already.
    pub busy: bool,
    /// How many different servers crashed while they held it, of late: [`super::Suspects`] counts them.
    pub crashes: u32,
}

impl RangeObservation {
    /// A quiet range of which nothing else is known, in its first generation.
    pub fn quiet(id: RangeId) -> Self {
        Self {
            id,
            generation: Generation(1),
            rate: 0.0,
            peak: None,
            bytes: 0,
            cause: None,
            unchanged_for: Duration::MAX,
            unmoved_for: Duration::MAX,
            busy: false,
            crashes: 0,
        }
    }
}

/// What a server is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It holds a lease and takes ranges.
    Serving,
    /// It holds a lease and is about to stop: its ranges are to go before it does.
    Leaving,
    /// It has lost its lease. A server that came back after it ended unasked is dead until its
    /// ranges are gone, and comes back empty: else a range that brings it down would do so for ever.
    Dead,
}

/// What was seen of one server. A server that is not mentioned is dead.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerObservation {
    /// The server.
    pub id: ServerId,
    /// What it is good for.
    pub standing: Standing,
    /// The load that it can bear, per second, in the unit of the ranges' rates.
    pub capacity: f64,
}

/// Everything that was seen for one plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observations {
    /// The ranges: quickest in the map's order, but any order will do. Some may be missing.
    pub ranges: Vec<RangeObservation>,
    /// The servers.
    pub servers: Vec<ServerObservation>,
}

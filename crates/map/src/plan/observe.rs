//! What the planner is told about the service. Observations may be incomplete, and are old when they are used.
//! The planner decides nothing about ranges that were not observed.

use std::time::Duration;

use crate::load::Cause;
use crate::range::{Generation, RangeId, ServerId};

/// What was observed of one range.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeObservation {
    /// The range.
    pub id: RangeId,
    /// The generation in which it was observed. If the map has another one, the range counts as not observed.
    pub generation: Generation,
    /// Its load now, per second: [`crate::load::Load::cost_rate`].
    pub rate: f64,
    /// Its greatest load in the last ten minutes, per second; `None` while that is not known:
    /// [`crate::load::Load::peak`].
    pub peak: Option<f64>,
    /// The bytes that it holds.
    pub bytes: u64,
    /// The present verdict about its load, if it was hot enough for one. It is in a box because few ranges have
    /// one.
    pub cause: Option<Box<Cause>>,
    /// The time since it was last split, merged or moved; [`Duration::MAX`] if it never was.
    pub unchanged_for: Duration,
    /// The time since it was last moved; [`Duration::MAX`] if it never was.
    pub unmoved_for: Duration,
    /// Whether a change of it is being carried out.
    pub busy: bool,
    /// How many different servers crashed lately while they held it: [`super::Suspects`] counts them.
    pub crashes: u32,
}

impl RangeObservation {
    /// A range without load in its first generation, about which nothing else is known.
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

/// Whether a server takes ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It holds a lease and takes ranges.
    Serving,
    /// It holds a lease and is about to stop. Its ranges have to move away first.
    Leaving,
    /// It has no lease. A server that comes back after a crash counts as dead until its ranges are gone.
    /// Otherwise a range that crashes it would do so again and again.
    Dead,
}

/// What was observed of one server. A server without an observation counts as dead.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerObservation {
    /// The server.
    pub id: ServerId,
    /// Whether it takes ranges.
    pub standing: Standing,
    /// The load that it can take, per second, in the unit of the ranges' rates.
    pub capacity: f64,
}

/// All observations for one plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observations {
    /// The ranges, in any order (the map's order is the fastest). Some may be missing.
    pub ranges: Vec<RangeObservation>,
    /// The servers.
    pub servers: Vec<ServerObservation>,
}

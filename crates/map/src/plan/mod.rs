//! The planner: which ranges should be split, merged and moved, and why.
//!
//! [`plan`] is a pure function of the map, of what was observed of ranges and servers, and of a [`Policy`]. It
//! keeps nothing from one call to the next. The manager of a service calls it, and so do scripts and the
//! simulator.
//!
//! ```text
//!   map (version 41) --\
//!   observations -------> plan --> changes, each made for a generation --> executor
//!   policy ------------/       \-> report: why, and what has to wait ----> people
//! ```
//!
//! A plan is made in four steps. A range takes part in at most one change, so earlier steps have priority:
//!
//! 1. *rehome*: all ranges of servers that are dead or leaving get another owner at once. A range that seems
//!    to crash its owners is set offline instead.
//! 2. *split*: ranges for which a verdict says that a split helps are split, the hottest first.
//! 3. *balance*: servers well above the mean load give ranges away, within a budget.
//! 4. *merge*: cold neighbours are merged, if there are more ranges than needed.
//!
//! A plan may be carried out late. Each change names the generation that it was made for, so the map refuses
//! it if the range has changed since. The planner reads from the map's intents what is under way. It plans no
//! second change for such a range, and it counts the load of a moving range at the range's new server.
//!
//! Rates and capacities may be in any unit of load, as long as it is the same for both.

mod balance;
mod draft;
mod fleet;
mod merge;
mod observe;
mod policy;
mod quarantine;
mod rehome;
mod report;
mod split;

pub use observe::{Observations, RangeObservation, ServerObservation, Standing};
pub use policy::Policy;
pub use quarantine::Suspects;
pub use report::{BusyWait, Kind, LINES_PER_KIND, MergeWait, NoSplit, Reported, SplitWait};

use crate::range_map::{Change, RangeMap};

/// The changes to make, and the reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The version of the map for which it was made.
    pub map_version: u64,
    /// The changes, the most urgent first. No range is in two of them. The two ranges of a merge may be on
    /// different servers; then the executor moves the right one first.
    pub changes: Vec<Change>,
    /// How evenly the servers are loaded.
    pub balance: Balance,
    /// Why each change is made, and what has to wait. At most [`LINES_PER_KIND`] lines of each kind.
    pub report: Vec<Reported>,
}

/// How evenly the servers that serve are loaded, before the plan is carried out and after.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Balance {
    /// The load of all servers, as a share of their capacity.
    pub mean: f64,
    /// The load of the busiest server, as a share of its capacity.
    pub max: f64,
    /// The same after every change of the plan.
    pub max_after: f64,
    /// The share of the largest server that the busiest range alone would use. No plan can get below it.
    pub floor: f64,
    /// Whether the plan was made with the budget for emergencies.
    pub emergency: bool,
}

/// Plans the next changes of `map`.
pub fn plan(map: &RangeMap, observations: &Observations, policy: &Policy) -> Plan {
    let mut draft = draft::Draft::new(map, observations, policy);
    rehome::rehome(&mut draft);
    split::split(&mut draft);
    balance::balance(&mut draft);
    merge::merge(&mut draft);
    draft.finish()
}

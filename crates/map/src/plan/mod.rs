//! The planner: what is to be split, merged and moved, and why.
//!
//! [`plan`] is a function of the map, of what was seen of ranges and servers, and of a [`Policy`].
//! It keeps nothing from one call to the next, knows no time but the one it is told, and gives the
//! same plan for the same arguments. The manager, the command line, the simulator and the advisor
//! all call it.
//!
//! ```text
//!   map (version 41) --\
//!   observations -------> plan --> changes, each made for a generation --> executor
//!   policy ------------/       \-> report: why, and what is waited for --> people
//! ```
//!
//! A plan goes through four steps. A range takes part in one change at most, so earlier steps come
//! first:
//!
//! 1. *rehome*: ranges of servers that are dead or leaving get another owner, now and all of
//!    them. A range that seems to kill its owners is set offline instead.
//! 2. *split*: ranges whose load was judged worth a split are split, the hottest first.
//! 3. *balance*: servers well above the mean give ranges away, within a budget.
//! 4. *merge*: cold neighbours become one, where there are more ranges than needed.
//!
//! Plans may be late. Each change names the generation it was made for, so one that is carried out
//! when the range has changed meanwhile is refused by the map and does no harm; the next plan is
//! made from the next look. What is under way is read from the map's intents: it is neither
//! repeated nor crossed, and a moving range's load counts where it goes.
//!
//! The unit of load is whatever the caller uses for rates and capacities alike. With several
//! resources take, for each range, the one that is scarcest, in parts of the capacity.

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

/// What is to be done, and what was thought.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The version of the map it was made for.
    pub map_version: u64,
    /// What is to be done, the most urgent first. No range is in two of them. The two ranges of a
    /// merge may be on different servers: then whoever carries it out moves the right one first.
    pub changes: Vec<Change>,
    /// How evenly the servers are loaded.
    pub balance: Balance,
    /// Why each change is made, and what else is waited for; of bounded length.
    pub report: Vec<Reported>,
}

/// How evenly the servers that serve are loaded, before the plan is carried out and after.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Balance {
    /// Load in parts of the capacity, over all servers.
    pub mean: f64,
    /// The same of the busiest server.
    pub max: f64,
    /// The same of the busiest server if every change of the plan is made.
    pub max_after: f64,
    /// What the busiest range alone would use of the largest server: no plan comes below that.
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

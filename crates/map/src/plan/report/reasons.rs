//! Why a change is not made, or has to wait.

use std::time::Duration;

use crate::load::Cause;
use crate::range::{RangeId, ServerId};

/// Why a split has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitWait {
    /// Hotter ranges are split first.
    Turn {
        /// How many are split in one tick.
        limit: usize,
    },
    /// The map has as many ranges as it may have.
    Room {
        /// How many ranges there may be.
        limit: usize,
    },
    /// The range is offline, or another change of it is under way.
    Busy,
    /// The verdict names a key outside the range: the range has changed since.
    NewVerdict,
}

/// Why a hot range is not split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoSplit {
    /// One partition has this share of the load.
    HotKey(f64),
    /// This share of the load is above all earlier keys.
    Append(f64),
    /// This share of the load is below all earlier keys.
    Prepend(f64),
    /// This share of the load is scans that would read both sides of any cut.
    Scan(f64),
    /// No good cut was found.
    Unclear,
}

impl NoSplit {
    /// Why this cause speaks against a split; `None` if it asks for one.
    pub fn of(cause: &Cause) -> Option<Self> {
        match cause {
            Cause::Split { .. } => None,
            Cause::HotKey { share, .. } => Some(Self::HotKey(*share)),
            Cause::Append(travel) => Some(Self::Append(travel.share)),
            Cause::Prepend(travel) => Some(Self::Prepend(travel.share)),
            Cause::Scan { share } => Some(Self::Scan(*share)),
            Cause::Unclear(_) => Some(Self::Unclear),
        }
    }
}

/// Why a merge has to wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MergeWait {
    /// One of the two was split, merged or moved a short while ago.
    Unchanged {
        /// How much longer it waits.
        left: Duration,
        /// How long both must be unchanged.
        of: Duration,
    },
    /// One of the two has to move first, and this tick moves as much load as it may.
    Budget {
        /// The share of all load.
        share: f64,
    },
    /// A server takes part in as many merges as it may.
    Turn {
        /// The server.
        server: ServerId,
    },
}

/// Why a server stays busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BusyWait {
    /// This tick moves as much load as it may.
    Budget {
        /// The share of all load.
        share: f64,
    },
    /// A range that it could give came a short while ago.
    CoolDown {
        /// The range.
        range: RangeId,
        /// How much longer the range stays.
        left: Duration,
    },
    /// A range that it could give is new, so its rate is not trusted yet.
    Settling {
        /// The range.
        range: RangeId,
        /// How much longer.
        left: Duration,
    },
    /// Changes of the ranges that it could give are under way.
    UnderWay {
        /// One of them.
        range: RangeId,
    },
    /// None of its ranges fits on another server, or too little load to be worth a move.
    NothingFits,
}

//! Why something is not done, or not yet.

use std::time::Duration;

use crate::load::Cause;
use crate::range::{RangeId, ServerId};

/// What a split waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitWait {
    /// Hotter ranges are split first.
    Turn {
        /// How many are split at once.
        limit: usize,
    },
    /// There are as many ranges as the servers may have.
    Room {
        /// How many ranges there may be.
        limit: usize,
    },
    /// Something else is under way with the range, or it is offline.
    Busy,
    /// The verdict names a key outside the range: it was made for a range that is no more.
    NewVerdict,
}

/// Why a hot range is not split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoSplit {
    /// One key has this share of the load.
    HotKey(f64),
    /// This share of the load lies above everything that went before.
    Append(f64),
    /// This share of the load lies below everything that went before.
    Prepend(f64),
    /// This share of the load reads across any cut.
    Scan(f64),
    /// No cut promises to be of use.
    Unclear,
}

impl NoSplit {
    /// What a verdict has against a split.
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

/// What a merge waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MergeWait {
    /// Both must have been left alone for a while.
    Unchanged {
        /// For how much longer.
        left: Duration,
        /// For how long in all.
        of: Duration,
    },
    /// As much load moves as may move in one tick, and one of the two would have to.
    Budget {
        /// The share of all load.
        share: f64,
    },
    /// A server is in as many merges as it may be.
    Turn {
        /// The server.
        server: ServerId,
    },
}

/// Why a server stays busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BusyWait {
    /// As much load moves as may move in one tick.
    Budget {
        /// The share of all load.
        share: f64,
    },
    /// A range that it might give came here a short while ago.
    CoolDown {
        /// The range.
        range: RangeId,
        /// For how much longer it stays.
        left: Duration,
    },
    /// A range that it might give was made a moment ago: its rate is not believed yet.
    Settling {
        /// The range.
        range: RangeId,
        /// For how much longer.
        left: Duration,
    },
    /// Something is under way with the ranges that it might give.
    UnderWay {
        /// One of them.
        range: RangeId,
    },
    /// None of its ranges fits another server, or so little does that it is not worth it.
    NothingFits,
}

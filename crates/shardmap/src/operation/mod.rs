//! The store operation: a change of the global map and of one or two shards, as a logged protocol.
//!
//! ```text
//!   global begin ──▶ local source ──▶ local target ──▶ global end        forward
//!        ╎                ╎                ╎
//!        └── turn back ◀──┴────────────────┘   (a step failed, or must not be)
//!               └──▶ undo target ──▶ undo source ──▶ undo end            back
//! ```
//!
//! Each arrow is one transaction in one database, and may be done twice. The first step makes the log row, and the
//! last step deletes it. The row says what the operation is, who owns it until when, and with which epoch the owner
//! writes. So any process that finds the row can take the operation over and continue it.
//! `docs/design/0007-shard-maps.md` has the reasons.

mod attach;
pub(crate) mod begin;
mod carry;
pub(crate) mod closing;
mod end;
mod hook;
pub(crate) mod identity;
pub(crate) mod intervals;
pub(crate) mod local;
mod numbers;
mod plan;
mod repair;
mod replacing;
mod settle;
pub(crate) mod shards;
mod side;

use std::time::Duration;

use uuid::Uuid;

pub(crate) use begin::ChangeRequest;
pub use hook::{Moment, Step, StepFault, StepHook, When};
pub(crate) use plan::Plan;
pub use plan::{Direction, OperationKind};
pub use settle::PendingOperation;
pub(crate) use settle::operations;
pub(crate) use shards::ShardRequest;

use crate::chance::Chance;
use crate::error::{Category, Error};
use crate::limits::{STEP_PAUSE_MAX, STEP_PAUSE_MIN, STEP_RETRIES_MAX};
use crate::location::Location;
use crate::metrics::Metrics;
use crate::store::{Database, Databases, For, Mark, StoreError};

/// How often a step of an operation is tried again after a failure that may pass, and how long the pauses are. They double
/// from the first to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often.
    pub times_max: u32,
    /// The first pause.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { times_max: STEP_RETRIES_MAX, pause_min: STEP_PAUSE_MIN, pause_max: STEP_PAUSE_MAX }
    }
}

/// Carries operations out. Each manager has one.
pub(crate) struct Operations {
    pub(crate) databases: Databases,
    pub(crate) global: Database,
    pub(crate) global_location: Location,
    /// The name of this process in the log.
    pub(crate) owner: String,
    pub(crate) lease: Duration,
    pub(crate) retries: RetryPolicy,
    pub(crate) hook: StepHook,
    pub(crate) chance: Chance,
    pub(crate) metrics: Metrics,
}

/// An operation that this process owns.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) id: Uuid,
    pub(crate) kind: OperationKind,
    /// The epoch that every write of the operation carries.
    pub(crate) epoch: i64,
    pub(crate) direction: Direction,
    pub(crate) plan: Plan,
    /// If it was taken over: the mark of its former owner, whose sessions are ended.
    pub(crate) former: Option<Mark>,
}

impl Owned {
    /// An operation that this process begins.
    fn new(id: Uuid, kind: OperationKind, epoch: i64, plan: Plan) -> Self {
        Self { id, kind, epoch, direction: Direction::Forward, plan, former: None }
    }

    /// What the transaction of a step is for.
    fn step(&self) -> For {
        For::Step(Mark::new(self.id, self.epoch))
    }
}

/// The operation of another process that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Met {
    pub(crate) operation: Uuid,
}

/// Why a transaction of the protocol was not committed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The database failed.
    Store(StoreError),
    /// The rules refuse the change.
    Refused(Error),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Trouble {
    /// The error that the caller sees, with its category.
    pub(crate) fn seen_by(self, category: Category) -> Error {
        match self {
            Self::Store(error) => error.seen_by(category),
            Self::Refused(error) => error,
        }
    }
}

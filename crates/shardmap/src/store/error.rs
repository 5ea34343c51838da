//! Failures of a database, and what they mean for the protocol.

use crate::error::{Category, Code, Error};
use crate::location::Location;

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// There was no connection, and nothing was done.
    Unreachable,
    /// The connection broke. It is not known whether the last statement was done.
    Lost,
    /// Another transaction was in the way. This one was undone and may be tried again.
    Busy,
    /// Keys that already have a mapping were mapped again. The exclusion constraint found this, or the trigger in its
    /// place.
    Overlap,
    /// Another row has the same name or location.
    Duplicate,
    /// The tables do not exist.
    NoSchema,
    /// An operation that another process has taken over wrote late, and was refused.
    Outrun,
    /// Transactions on keys that go offline or away did not end.
    NotDrained,
    /// The role has no right to do this.
    Denied,
    /// The database says that it is another shard than the one that was to be written or read.
    OtherShard,
    /// A row that this program would never write.
    Damaged,
    /// Any other error of the database.
    Other,
}

/// A failure of a database, with its location.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {message}")]
pub struct StoreError {
    /// The location of the database.
    pub location: Box<Location>,
    /// What it means.
    pub failure: Failure,
    /// The message of the database.
    pub message: String,
}

impl StoreError {
    pub(crate) fn new(location: &Location, failure: Failure, message: impl Into<String>) -> Self {
        Self { location: Box::new(location.clone()), failure, message: message.into() }
    }

    /// The error that the caller sees, with its category.
    pub(crate) fn seen_by(self, category: Category) -> Error {
        let code = match self.failure {
            Failure::NoSchema => Code::StoreDoesNotExist,
            Failure::Damaged => Code::Damaged,
            Failure::NotDrained => Code::MappingDrainFailure,
            Failure::OtherShard => Code::ShardNotValid,
            _ => Code::StorageOperationFailure,
        };
        // The text says all, so the store's error is not the cause: it would be printed twice.
        Error::new(category, code, self.to_string()).failed_by(self.failure)
    }

    /// Whether the same statement may succeed in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.failure, Failure::Unreachable | Failure::Lost | Failure::Busy)
    }
}

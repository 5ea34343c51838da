//! What a database's failure means to the protocol.

use crate::error::{Category, Code, Error};
use crate::location::Location;

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No connection: nothing was done.
    Unreachable,
    /// The connection broke: whether the last statement was done is not known.
    Lost,
    /// Somebody else was in the way: the transaction was undone, and may be tried again.
    Busy,
    /// Keys that are mapped were mapped again: the exclusion constraint, or its trigger.
    Overlap,
    /// Another row has that name or place.
    Duplicate,
    /// The tables are not there.
    NoSchema,
    /// An operation that was given up by others wrote late, and was refused.
    Outrun,
    /// A row that this program would never write.
    Damaged,
    /// Anything else that the database says.
    Other,
}

/// A database's failure, with its place.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {message}")]
pub struct StoreError {
    /// Where.
    pub location: Box<Location>,
    /// What it means.
    pub failure: Failure,
    /// What the database says.
    pub message: String,
}

impl StoreError {
    pub(crate) fn new(location: &Location, failure: Failure, message: impl Into<String>) -> Self {
        Self { location: Box::new(location.clone()), failure, message: message.into() }
    }

    /// The error that a caller sees, with its category.
    pub(crate) fn seen_by(self, category: Category) -> Error {
        let code = match self.failure {
            Failure::NoSchema => Code::StoreDoesNotExist,
            Failure::Damaged => Code::Damaged,
            _ => Code::StorageOperationFailure,
        };
        Error::new(category, code, self.to_string()).because(self)
    }

    /// Whether the same may succeed in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.failure, Failure::Unreachable | Failure::Lost | Failure::Busy)
    }
}

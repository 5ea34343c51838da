//! Failures of a database, and what they mean for the protocol.

use crate::error::{Category, Code, Error, Failure};
use crate::location::Location;

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
            Failure::OtherVersion => Code::StoreVersionMismatch,
            _ => Code::StorageOperationFailure,
        };
        // The text says all, so the store's error is not the cause: it would be printed twice.
        Error::new(category, code, self.to_string()).failed_by(self.failure)
    }

    /// The same after a wait for locks that the sessions of a former owner hold, which this role may not end.
    pub(crate) fn held_by(mut self, sessions: &[String]) -> Self {
        if self.failure == Failure::Busy && !sessions.is_empty() {
            self.message += &format!(
                "; the former owner of the operation holds locks: {}. End these sessions, or give this role the right to do \
                so (grant pg_signal_backend)",
                sessions.join("; ")
            );
        }
        self
    }

    /// Whether the same statement may succeed in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.failure, Failure::Unreachable | Failure::Lost | Failure::Busy)
    }
}

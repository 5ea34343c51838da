//! Why there is no number.

use std::sync::Arc;

use crate::entity::Keys;
use crate::error::Error;

/// Why a sequence gave no number. All callers that waited for one reservation get the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SequenceError {
    /// Each try met another client that was faster, or had no answer.
    #[error(
        "no number of the sequence {keys} after {tries} tries; {conflicts} of them met another client: too many clients \
         for one entity, so reserve blocks or use several sequences"
    )]
    Contended {
        /// The sequence.
        keys: Keys,
        /// How many tries there were.
        tries: u32,
        /// How many of them were refused because another client was faster. The others were in doubt.
        conflicts: u32,
    },
    /// The type of `Value` holds no larger number.
    #[error(
        "the sequence {keys} has given out its last number, {last}; go on with a sequence whose Value is Int64"
    )]
    Exhausted {
        /// The sequence.
        keys: Keys,
        /// The last number.
        last: i64,
    },
    /// The entity is not a sequence.
    #[error(
        "the entity {keys} is not a sequence: its property Value is {value}, and must be an Int32 or Int64 above -1"
    )]
    NotASequence {
        /// The entity.
        keys: Keys,
        /// What it has in place of a number.
        value: String,
    },
    /// Another process took the number up, because it believed that this one had ended. Undo what was done with it.
    #[error("number {number} is not ours any more: another process has taken it up")]
    Lost {
        /// The number.
        number: i64,
    },
    /// The service refused, or could not be reached.
    #[error("the service could not be used")]
    Service(#[source] Arc<Error>),
}

impl From<Error> for SequenceError {
    fn from(error: Error) -> Self {
        Self::Service(Arc::new(error))
    }
}

//! Why there is no number.

use std::sync::Arc;

use crate::entity::Keys;
use crate::error::Error;

/// Why a sequence gave no number, or why a claim is lost. All callers that waited for one reservation get the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SequenceError {
    /// Each try met another client that was faster, or had no answer.
    #[error(
        "no number of the sequence {keys} after {tries} tries: {conflicts} of them met another client, the others had no answer; \
         if many clients share the entity, reserve blocks or use several sequences"
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
    /// The claim was taken up, because its owner seemed to have ended, or it is gone. Undo what was done with the number.
    #[error("number {number} is not ours any more: its claim was taken up, or is gone")]
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

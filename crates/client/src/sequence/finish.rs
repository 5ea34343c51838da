//! Claims that their owners have finished are removed in batches.
//!
//! One batch removes the claims of all callers in the line, and none of them if one claim has another owner. Then each claim is
//! removed alone, so that only that caller learns of it.
//!
//! A removal may have been carried out without an answer: the outcome of its batch is not known, or the caller that sent it
//! is gone. Then a claim that is not there counts as removed by its owner, also if a new owner has taken it up and removed it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::counter::Counter;
use super::error::SequenceError;
use super::line::{Caller, Serve};
use crate::entity::ETag;
use crate::error::{Error, Found};
use crate::request::{Change, Condition};
use rangehold_protocol::table::limits::BATCH_OPERATIONS_MAX;

/// A claim that is to be removed.
#[derive(Clone)]
pub(super) struct Removal {
    pub(super) number: i64,
    pub(super) version: ETag,
    /// Whether it may have been carried out already.
    pub(super) is_in_doubt: bool,
}

type Answer = Result<(), SequenceError>;

/// See the module.
pub(super) struct Finishing(pub(super) Arc<Counter>);

impl Serve for Finishing {
    type Wish = Removal;
    type Answer = Answer;
    type Left = ();

    fn most(&self) -> usize {
        BATCH_OPERATIONS_MAX
    }

    async fn serve(&self, callers: VecDeque<Caller<Removal, Answer>>, (): &mut ()) {
        let mut is_in_doubt = false;
        if callers.len() > 1 {
            let changes = callers.iter().map(|caller| self.change(&caller.wish)).collect();
            match self.0.table.batch(changes).await {
                Ok(_) => return callers.into_iter().for_each(|caller| caller.answer(Ok(()))),
                Err(Error::OutcomeUnknown(_)) => is_in_doubt = true,
                Err(error) if is_of_another(&error) => {}
                // A batch may name a row only once, and the line may hold two removals of one claim: of its old and its new owner.
                Err(Error::Invalid(_)) => {}
                Err(error) => {
                    let error = SequenceError::from(error);
                    return callers.into_iter().for_each(|caller| caller.answer(Err(error.clone())));
                }
            }
        }
        for caller in callers {
            let removal =
                Removal { is_in_doubt: is_in_doubt || caller.wish.is_in_doubt, ..caller.wish.clone() };
            let answer = self.remove(&removal).await;
            caller.answer(answer);
        }
    }
}

impl Finishing {
    fn change(&self, removal: &Removal) -> Change {
        Change::Delete(self.0.claim_keys(removal.number), Condition::Version(removal.version.clone()))
    }

    /// Removes one claim.
    async fn remove(&self, removal: &Removal) -> Answer {
        match self.0.table.apply(self.change(removal)).await {
            Ok(_) => Ok(()),
            Err(Error::OutcomeUnknown(unknown)) if matches!(unknown.found, Found::Nothing) => Ok(()),
            Err(error) if removal.is_in_doubt && error.has_status(404) => Ok(()),
            Err(error) if is_of_another(&error) => Err(SequenceError::Lost { number: removal.number }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a claim is there in another version, or not at all.
pub(super) fn is_of_another(error: &Error) -> bool {
    error.has_status(404) || error.has_status(412)
}

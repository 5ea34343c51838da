//! Numbers for the callers in a line.
//!
//! A number for a caller that is gone is left unused. To give it to a later caller could give numbers out in another
//! order than that of time.

use std::collections::VecDeque;
use std::sync::Arc;

use super::counter::{Counter, Reserved};
use super::error::SequenceError;
use super::line::{Caller, Serve};

type Answer = Result<Reserved, SequenceError>;

/// See the module.
pub(super) struct Numbers(pub(super) Arc<Counter>);

impl Serve for Numbers {
    type Wish = ();
    type Answer = Answer;
    /// What is left of the last block.
    type Left = VecDeque<Reserved>;

    fn most(&self) -> usize {
        self.0.round_max()
    }

    async fn serve(&self, mut callers: VecDeque<Caller<(), Answer>>, left: &mut VecDeque<Reserved>) {
        while !callers.is_empty() {
            if left.is_empty() {
                match self.0.reserve(callers.len()).await {
                    Ok(numbers) => left.extend(numbers),
                    Err(error) => {
                        callers.drain(..).for_each(|caller| caller.answer(Err(error.clone())));
                    }
                }
            }
            let served = callers.len().min(left.len());
            for (caller, number) in callers.drain(..served).zip(left.drain(..served)) {
                caller.answer(Ok(number));
            }
        }
    }
}

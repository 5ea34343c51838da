//! The callers of one process, in the order in which they came.
//!
//! The caller at the head takes the *turn*. It reserves numbers for all callers in the line, gives them out in the line's
//! order, and passes the turn on. There is no task behind it: if the caller with the turn is dropped, the callers that
//! it was about to serve stand in line again, and one of them takes the turn.
//!
//! A number for a caller that is gone is left unused. To give it to a later caller could give numbers out in another
//! order than that of time.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex as Turn, oneshot};

use super::counter::{Counter, Reserved};
use super::error::SequenceError;

type Answer = Result<Reserved, SequenceError>;

/// The line before one counter.
pub(super) struct Line {
    counter: Arc<Counter>,
    waiting: Mutex<VecDeque<oneshot::Sender<Answer>>>,
    /// Holds what is left of the last block.
    turn: Turn<VecDeque<Reserved>>,
}

impl Line {
    pub(super) fn new(counter: Arc<Counter>) -> Self {
        Self { counter, waiting: Mutex::default(), turn: Turn::default() }
    }

    pub(super) async fn next(&self) -> Answer {
        loop {
            let (sender, mut answer) = oneshot::channel();
            self.waiting.lock().push_back(sender);
            let mut left = tokio::select! {
                biased;
                served = &mut answer => match served {
                    Ok(answer) => return answer,
                    Err(_) => continue,
                },
                left = self.turn.lock() => left,
            };
            loop {
                match answer.try_recv() {
                    Ok(answer) => return answer,
                    Err(TryRecvError::Closed) => break,
                    Err(TryRecvError::Empty) => self.serve(&mut left).await,
                }
            }
        }
    }

    /// Serves the callers at the head of the line.
    async fn serve(&self, left: &mut VecDeque<Reserved>) {
        let callers: Vec<_> = {
            let mut waiting = self.waiting.lock();
            let count = waiting.len().min(self.counter.round_max());
            waiting.drain(..count).filter(|caller| !caller.is_closed()).collect()
        };
        let mut callers = VecDeque::from(callers);
        while !callers.is_empty() {
            if left.is_empty() {
                match self.counter.reserve(callers.len()).await {
                    Ok(numbers) => left.extend(numbers),
                    Err(error) => {
                        for caller in callers.drain(..) {
                            let _gone = caller.send(Err(error.clone()));
                        }
                    }
                }
            }
            let served = callers.len().min(left.len());
            for (caller, number) in callers.drain(..served).zip(left.drain(..served)) {
                let _gone = caller.send(Ok(number));
            }
        }
    }
}

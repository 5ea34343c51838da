//! The callers of one process that want the same kind of thing, in the order in which they came.
//!
//! The caller at the head takes the *turn*. It serves all callers in the line by one request, and passes the turn on.
//! There is no task behind it: if the caller with the turn is dropped, the callers that it was about to serve stand in
//! line again, and one of them takes the turn.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex as Turn, oneshot};

/// How the callers of a line are served.
pub(super) trait Serve: Sync {
    /// What a caller wants.
    type Wish: Send;
    /// What it gets.
    type Answer: Send;
    /// What is left for the next turn.
    type Left: Default + Send;

    /// How many callers are served at once.
    fn most(&self) -> usize;

    /// Answers all these callers.
    fn serve(
        &self,
        callers: VecDeque<Caller<Self::Wish, Self::Answer>>,
        left: &mut Self::Left,
    ) -> impl Future<Output = ()> + Send;
}

/// A caller that waits for its answer.
pub(super) struct Caller<W, A> {
    pub(super) wish: W,
    answer: oneshot::Sender<A>,
}

impl<W, A> Caller<W, A> {
    /// Answers it. What is for a caller that is gone is lost.
    pub(super) fn answer(self, answer: A) {
        let _gone = self.answer.send(answer);
    }
}

/// See the module.
pub(super) struct Line<S: Serve> {
    server: S,
    waiting: Mutex<VecDeque<Caller<S::Wish, S::Answer>>>,
    turn: Turn<S::Left>,
}

impl<S: Serve> Line<S> {
    pub(super) fn new(server: S) -> Self {
        Self { server, waiting: Mutex::default(), turn: Turn::default() }
    }

    /// Stands in line until there is an answer. `wish` is asked each time; from the second time on with `true`, because the
    /// caller that had the turn was dropped, and may have carried the wish out.
    pub(super) async fn stand(&self, wish: impl Fn(bool) -> S::Wish) -> S::Answer {
        let mut is_again = false;
        loop {
            let (sender, mut answer) = oneshot::channel();
            self.waiting.lock().push_back(Caller { wish: wish(is_again), answer: sender });
            is_again = true;
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
                    Err(TryRecvError::Empty) => self.server.serve(self.head(), &mut left).await,
                }
            }
        }
    }

    /// The callers at the head of the line that still wait.
    fn head(&self) -> VecDeque<Caller<S::Wish, S::Answer>> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(self.server.most());
        waiting.drain(..count).filter(|caller| !caller.answer.is_closed()).collect()
    }
}

//! A stopped process: it does nothing until it is continued, as after SIGSTOP.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Whether a process is stopped. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Freezer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    frozen: bool,
    waiting: Vec<Waker>,
}

impl Freezer {
    /// Stops or continues the process.
    pub(crate) fn set(&self, frozen: bool) {
        let woken = {
            let mut state = self.state();
            state.frozen = frozen;
            if frozen { Vec::new() } else { std::mem::take(&mut state.waiting) }
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Whether the process is stopped now.
    pub(crate) fn is_frozen(&self) -> bool {
        self.state().frozen
    }

    /// Runs `future`, but does not poll it while the process is stopped.
    pub(crate) fn hold<F: Future>(&self, future: F) -> Held<F> {
        Held { freezer: self.clone(), future: Box::pin(future) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Freezer::hold`].
pub(crate) struct Held<F> {
    freezer: Freezer,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Held<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut state = self.freezer.state();
            if state.frozen {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
        }
        self.future.as_mut().poll(context)
    }
}

//! A future that runs to its end even if the code that waits for it goes away.
//!
//! A client may hang up, or its deadline may pass, while its batch is on the way into the log. If the wait
//! were simply dropped, the lock of the stripe would be free before the batch is visible, and the next
//! write of the partition would be judged by rows that are about to be replaced. If each such step ran in a
//! task of its own, every write would pay for the switch between tasks. Here only abandoned steps pay for
//! it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// Runs a future to its end, even if this is dropped.
pub(crate) struct RunToEnd<T: Send + 'static> {
    rest: Option<BoxFuture<'static, T>>,
}

impl<T: Send + 'static> RunToEnd<T> {
    pub(crate) fn new(future: BoxFuture<'static, T>) -> Self {
        Self { rest: Some(future) }
    }
}

impl<T: Send + 'static> Future for RunToEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let rest = self.rest.as_mut().expect("a finished future is not polled");
        let poll = rest.as_mut().poll(context);
        if poll.is_ready() {
            self.rest = None;
        }
        poll
    }
}

impl<T: Send + 'static> Drop for RunToEnd<T> {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the write is lost as in a crash.
        if let (Some(rest), Ok(runtime)) = (self.rest.take(), Handle::try_current()) {
            drop(runtime.spawn(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_abandoned_is_finished() {
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let step = RunToEnd::new(Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            flag.store(true, Ordering::Relaxed);
        }));
        assert!(tokio::time::timeout(Duration::from_secs(1), step).await.is_err());
        assert!(!done.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(done.load(Ordering::Relaxed));
    }
}

//! Whether a client has failed: then the run cannot succeed any more, and all others end too.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use anyhow::Result;

/// Known to all clients of all stories.
#[derive(Default)]
pub(super) struct Failed {
    has_failed: Mutex<bool>,
    changed: Condvar,
}

impl Failed {
    /// Returns the result of a client. If it is an error, all that wait are told.
    pub(super) fn note<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            *self.has_failed.lock().expect("no thread panics while it holds this") = true;
            self.changed.notify_all();
        }
        result
    }

    /// Sleeps for so long, or until a client fails. Returns whether one has.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let has_failed = self.has_failed.lock().expect("no thread panics while it holds this");
        let slept = self.changed.wait_timeout_while(has_failed, time, |has_failed| !*has_failed);
        *slept.expect("no thread panics while it holds this").0
    }
}

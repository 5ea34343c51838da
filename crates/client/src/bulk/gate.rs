//! Requests of many tasks at the pace of one ramp.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::ramp::{Pace, Ramp, Sign};
use crate::wire::{Ended, Watch};

/// A ramp that tasks share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gate {
    ramp: Arc<Mutex<Ramp>>,
    begun: Instant,
}

impl Gate {
    /// A gate at this pace, from now on.
    pub fn new(pace: Pace) -> Self {
        Self { ramp: Arc::new(Mutex::new(Ramp::new(pace, Duration::ZERO))), begun: Instant::now() }
    }

    /// Returns when the next request may be sent.
    pub async fn pass(&self) {
        self.pass_together(1).await;
    }

    /// Returns when the next `count` requests, or entities, may be sent together.
    pub async fn pass_together(&self, count: u32) {
        loop {
            let passed = self.ramp.lock().pass_together(count, self.now());
            match passed {
                Ok(()) => return,
                Err(wait) => tokio::time::sleep(wait).await,
            }
        }
    }

    /// Requests a second that may pass now; infinite without a limit.
    pub fn rate(&self) -> f64 {
        self.ramp.lock().rate()
    }

    /// Takes note of an answer.
    pub fn note(&self, sign: Sign) {
        self.ramp.lock().note(sign, self.now());
    }

    /// The time since the gate was made.
    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// What to put into [`Options::watch`](crate::Options), so that the gate hears of every answer, also of those that the client
    /// repeats by itself.
    pub fn watch(&self) -> Watch {
        let gate = self.clone();
        Arc::new(move |Ended { status, took, bytes, .. }| gate.note(Sign::of(status, took, bytes)))
    }
}

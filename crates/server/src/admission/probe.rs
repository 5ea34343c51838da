//! The measurement behind [`Overload`](super::overload::Overload): how late a sleeper wakes.
//!
//! A task sleeps until a given moment, and wakes some time after it. Any request that is ready to run waits for about
//! the same time: until a thread of the runtime is free, and until the runtime looks at its timers and sockets.
//! Nothing else is measured, so nothing else can be mistaken for load.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Admission;

/// The time between two measurements.
const EVERY: Duration = Duration::from_millis(20);
/// The same while there are no requests. It is longer, so that an idle process stays idle.
const EVERY_AT_REST: Duration = Duration::from_millis(500);

/// Measures until everything else has dropped `admission`.
pub(super) async fn run(admission: Arc<Admission>) {
    let weak = Arc::downgrade(&admission);
    drop(admission);
    let mut every = EVERY;
    loop {
        let due = Instant::now() + every;
        sleep_until(due).await;
        let Some(admission) = weak.upgrade() else { return };
        admission.measured(due.elapsed());
        every = if admission.take_asked() { EVERY } else { EVERY_AT_REST };
    }
}

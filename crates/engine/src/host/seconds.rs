//! One task ends the second of every range. A timer for each range would mean a thousand wake-ups a second for
//! a thousand idle ranges.

use std::sync::Arc;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::limits::LOAD_SECOND;
use crate::range::OpenRanges;

/// Tells all open ranges, each second, that a second of their load is over.
pub(crate) async fn end_seconds(open: Arc<OpenRanges>) {
    let began = Instant::now();
    let mut second = interval(LOAD_SECOND);
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        second.tick().await;
        let now = began.elapsed();
        for range in open.list() {
            range.end_second(now);
        }
    }
}

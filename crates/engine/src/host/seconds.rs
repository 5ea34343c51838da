//! One task ends the seconds of all ranges: a timer for each of a thousand idle ranges would be a thousand
//! wake-ups.

use std::sync::Arc;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::limits::LOAD_SECOND;
use crate::range::OpenRanges;

/// Ends the seconds of all open ranges.
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

//! The memtables of all ranges together stay within their share of the memory.
//!
//! Each database below has a limit for itself only, so the memory of many databases would add up. One task looks at
//! all ranges. While their memtables together are above their share, it flushes the largest. It also limits the
//! files of the log, because they would all be replayed after a crash: it flushes a memtable, however small, whose
//! rows lie in many of them, and if all ranges together have too many, the memtable whose rows lie in most.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::database::Shares;
use crate::limits::{
    LOG_FILES_MAX, LOG_FILES_TOTAL_MAX, MEMTABLE_FLUSHES_MAX, MEMTABLE_OVERHEAD, MEMTABLES_POLL,
    MEMTABLES_POLL_AT_REST,
};
use crate::range::{Range, Unsorted};

/// Which range to flush: the first with too many files of the log. If there is none, and all memtables together have
/// more than `allowed` encoded bytes, the range with the most bytes. Otherwise, if all logs together are too long,
/// the range with the longest log. Of equal ranges it takes the first.
fn to_flush(allowed: u64, loads: &[Unsorted]) -> Option<usize> {
    if let Some(many) = loads.iter().position(|load| load.log_files > LOG_FILES_MAX) {
        return Some(many);
    }
    if loads.iter().map(|load| load.bytes).sum::<u64>() > allowed {
        let most = loads.iter().map(|load| load.bytes).max()?;
        return loads.iter().position(|load| load.bytes == most);
    }
    if loads.iter().map(|load| load.log_files).sum::<usize>() > LOG_FILES_TOTAL_MAX {
        let longest = loads.iter().map(|load| load.log_files).max()?;
        return loads.iter().position(|load| load.log_files == longest);
    }
    None
}

/// Watches the memtables of all `ranges`, without end. Run it as a task.
pub(crate) async fn watch_memtables(ranges: impl Fn() -> Vec<Arc<Range>> + Send, shares: Shares) {
    let mut before = Vec::new();
    let mut poll = MEMTABLES_POLL;
    let allowed = shares.memtable_bytes / MEMTABLE_OVERHEAD / 4 * 3;
    loop {
        sleep(poll).await;
        let ranges = ranges();
        let mut loads: Vec<Unsorted> = ranges.iter().map(|range| range.unsorted()).collect();
        poll = if loads == before { MEMTABLES_POLL_AT_REST } else { MEMTABLES_POLL };
        before.clone_from(&loads);
        for _ in 0..MEMTABLE_FLUSHES_MAX {
            let Some(which) = to_flush(allowed, &loads) else {
                break;
            };
            tracing::debug!(load = ?loads[which], "flushing a memtable");
            if let Err(error) = ranges[which].save().await {
                tracing::warn!(%error, "a memtable could not be flushed");
                sleep(Duration::from_secs(1)).await;
                break;
            }
            loads[which] = Unsorted::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_memtable_is_flushed_for_a_long_log_or_as_the_largest_of_too_much(
            loads in prop::collection::vec((0u64..1_000, 0usize..LOG_FILES_MAX + 20), 0..40),
            allowed in 0u64..50_000,
        ) {
            let loads: Vec<Unsorted> = loads
                .into_iter()
                .map(|(bytes, log_files)| Unsorted { bytes, log_files })
                .collect();
            let total: u64 = loads.iter().map(|load| load.bytes).sum();
            let log: usize = loads.iter().map(|load| load.log_files).sum();
            let long = |load: &Unsorted| load.log_files > LOG_FILES_MAX;
            match to_flush(allowed, &loads) {
                None => prop_assert!(total <= allowed && log <= LOG_FILES_TOTAL_MAX && !loads.iter().any(long)),
                Some(index) if long(&loads[index]) => {}
                Some(index) if total > allowed => {
                    prop_assert!(loads.iter().all(|load| load.bytes <= loads[index].bytes));
                }
                Some(index) => {
                    prop_assert!(log > LOG_FILES_TOTAL_MAX);
                    prop_assert!(loads.iter().all(|load| load.log_files <= loads[index].log_files));
                }
            }
        }
    }
}

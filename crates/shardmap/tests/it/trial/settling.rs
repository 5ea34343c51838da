//! Brings operations that were given up to an end.

use std::time::Duration;

use rangehold_shardmap::RangeShardMap;

/// How often one tries to bring all operations to an end, and how long one waits in between: longer than a
/// server is down.
const SETTLE_TRIALS_MAX: usize = 600;
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// Brings every operation that was given up to an end. Adds what is wrong if one stays.
pub async fn settle(map: &RangeShardMap<i64>, wrong: &mut Vec<String>) {
    let mut last = String::new();
    for _ in 0..SETTLE_TRIALS_MAX {
        if let Ok((_, failed)) = map.manager().recover_pending().await {
            last = format!("{failed:?}");
        }
        if map.manager().pending_operations().await.is_ok_and(|pending| pending.is_empty()) {
            return;
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    wrong.push(format!("operations stay pending: {last}"));
}

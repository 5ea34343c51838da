//! Brings operations that were given up to an end.

use std::time::Duration;

use rangehold_shardmap::RangeShardMap;

/// How often one tries to bring all operations to an end, and how long one waits in between: longer than a
/// server is down.
const SETTLE_TRIALS_MAX: usize = 600;
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// Brings every operation that was given up to an end. Adds what is wrong if one stays, or if a shard's size is not the number
/// of its mappings.
pub async fn settle(map: &RangeShardMap<i64>, wrong: &mut Vec<String>) {
    let mut last = String::new();
    for _ in 0..SETTLE_TRIALS_MAX {
        if let Ok((_, failed)) = map.manager().recover_pending().await {
            last = format!("{failed:?}");
        }
        if map.manager().pending_operations().await.is_ok_and(|pending| pending.is_empty()) {
            return compare_sizes(map, wrong).await;
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    wrong.push(format!("operations stay pending: {last}"));
}

async fn compare_sizes(map: &RangeShardMap<i64>, wrong: &mut Vec<String>) {
    let (mappings, sizes) = match (map.mappings().await, map.sizes().await) {
        (Ok(mappings), Ok(sizes)) => (mappings, sizes),
        (Err(error), _) | (_, Err(error)) => {
            return wrong.push(format!("the sizes cannot be compared: {error}"));
        }
    };
    for size in sizes {
        let place = size.shard.location();
        let there = mappings.iter().filter(|mapping| mapping.shard().location() == place).count();
        if size.mappings != there {
            wrong.push(format!("{place} has {there} mappings, and its size says {}", size.mappings));
        }
    }
}

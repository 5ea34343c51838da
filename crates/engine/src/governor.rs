//! Memory: one figure for the process, and what becomes of it.
//!
//! | share | for |
//! |---|---|
//! | 45 % | blocks of sorted files, cached, for all ranges together |
//! | 10 % | their indexes and filters, likewise |
//! | 25 % | memtables: what is not yet in sorted files |
//! | 10 % | building sorted files: flushing and compacting |
//! | 10 % | requests that are held; the server above keeps to it |
//!
//! The database below knows limits for itself only, so many databases would add up. The governor
//! looks at all ranges and, while their memtables are above their share together, flushes the
//! largest. It also flushes a memtable, however small, whose rows lie in many files of the log, or
//! the one with most when all together are too many: they would all be replayed after a crash.

use std::sync::Arc;
use std::time::Duration;

use foyer::{DefaultHasher, S3FifoConfig};
use slatedb::db_cache::foyer::FoyerCache;
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache, SplitCache};
use tokio::time::sleep;

use crate::error::OpenError;
use crate::limits::{
    CACHE_SHARDS, GOVERNOR_FLUSHES_MAX, GOVERNOR_POLL, GOVERNOR_POLL_AT_REST, LOG_FILES_MAX,
    LOG_FILES_TOTAL_MAX, MEMORY_BYTES_MIN, MEMTABLE_OVERHEAD,
};
use crate::range::{Range, Unsorted};

/// How the memory is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Cached blocks.
    pub block_cache_bytes: u64,
    /// Cached indexes and filters.
    pub metadata_cache_bytes: u64,
    /// Memtables, as they lie in memory.
    pub memtable_bytes: u64,
    /// Requests that are held.
    pub request_bytes: u64,
}

impl Shares {
    /// Divides `memory_bytes`; refuses too few.
    pub fn of(memory_bytes: u64) -> Result<Self, OpenError> {
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(OpenError::TooLittleMemory { given: memory_bytes, least: MEMORY_BYTES_MIN });
        }
        let percent = |share: u64| memory_bytes / 100 * share;
        Ok(Self {
            block_cache_bytes: percent(45),
            metadata_cache_bytes: percent(10),
            memtable_bytes: percent(25),
            request_bytes: percent(10),
        })
    }

    /// The caches of all ranges.
    ///
    /// Blocks are evicted by S3-FIFO: a new one waits in a small queue and comes to stay only if it
    /// is asked for again. With the usual LRU one scan of a large table would drive out every
    /// block that single reads need, and reads that go round through a little more than fits would
    /// never find anything (single reads over 290 MB of rows with 230 MB of cache: 16 us against 50).
    pub(crate) fn cache(&self) -> Arc<dyn DbCache> {
        let blocks = cache(self.block_cache_bytes).with_eviction_config(S3FifoConfig::default());
        let metadata = cache(self.metadata_cache_bytes);
        let part = |cache: CacheBuilder| -> Option<Arc<dyn DbCache>> {
            Some(Arc::new(FoyerCache::new_with_cache(cache.build())))
        };
        Arc::new(SplitCache::new().with_block_cache(part(blocks)).with_meta_cache(part(metadata)).build())
    }

    /// Encoded bytes in one memtable at which it becomes a sorted file: a third, since one is
    /// filled while another is written out, and their sum stays below the share.
    pub(crate) fn memtable_flush_bytes(&self) -> usize {
        encoded(self.memtable_bytes / 3)
    }

    /// Encoded bytes in all memtables of a range at which its writes wait.
    pub(crate) fn unflushed_bytes_max(&self) -> usize {
        encoded(self.memtable_bytes)
    }
}

type CacheBuilder = foyer::CacheBuilder<CachedKey, CachedEntry, DefaultHasher>;

fn cache(bytes: u64) -> CacheBuilder {
    foyer::CacheBuilder::new(usize::try_from(bytes).unwrap_or(usize::MAX))
        .with_weighter(|_, entry: &CachedEntry| entry.size())
        .with_shards(CACHE_SHARDS)
}

/// The encoded size of what takes `bytes` in a memtable.
fn encoded(bytes: u64) -> usize {
    usize::try_from(bytes / MEMTABLE_OVERHEAD).unwrap_or(usize::MAX)
}

/// Which range to flush: one with too many files of the log; else, if all memtables together have
/// more than `allowed` encoded bytes, the one with most; else, if all logs together are too long,
/// the one with the longest. Of equals the first.
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

/// Watches the memtables of all `ranges` for ever. To be run as a task.
pub(crate) async fn watch_memtables(ranges: impl Fn() -> Vec<Arc<Range>> + Send, shares: Shares) {
    let mut before = Vec::new();
    let mut poll = GOVERNOR_POLL;
    let allowed = shares.memtable_bytes / MEMTABLE_OVERHEAD / 4 * 3;
    loop {
        sleep(poll).await;
        let ranges = ranges();
        let mut loads: Vec<Unsorted> = ranges.iter().map(|range| range.unsorted()).collect();
        poll = if loads == before { GOVERNOR_POLL_AT_REST } else { GOVERNOR_POLL };
        before.clone_from(&loads);
        for _ in 0..GOVERNOR_FLUSHES_MAX {
            let Some(which) = to_flush(allowed, &loads) else {
                break;
            };
            tracing::debug!(load = ?loads[which], "flushing a memtable");
            if let Err(why) = ranges[which].flush_memtable().await {
                tracing::warn!(%why, "a memtable could not be flushed");
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
        fn shares_stay_within_what_is_given(memory in MEMORY_BYTES_MIN..1u64 << 40) {
            let shares = Shares::of(memory).unwrap();
            let sum = shares.block_cache_bytes + shares.metadata_cache_bytes + shares.memtable_bytes
                + shares.request_bytes;
            prop_assert!(sum <= memory / 100 * 90 && sum > memory / 100 * 89);
            prop_assert!(shares.memtable_flush_bytes() < shares.unflushed_bytes_max());
        }

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

    #[test]
    fn too_little_memory_is_refused() {
        assert!(matches!(Shares::of(1 << 20), Err(OpenError::TooLittleMemory { .. })));
    }
}

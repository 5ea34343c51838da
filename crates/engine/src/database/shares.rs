//! Memory: divides the bytes that the process may use.
//!
//! | share | for |
//! |---|---|
//! | 10 % | blocks of sorted files, cached, for all ranges together |
//! | 35 % | rows that are cached, for all ranges together |
//! | 10 % | their indexes and filters, cached in the same way |
//! | 25 % | memtables: what is not yet in sorted files |
//! | 10 % | building sorted files: flushing and compacting |
//! | 10 % | requests that are held; the layer above keeps to this limit |

use std::sync::Arc;

use foyer::{DefaultHasher, S3FifoConfig};
use slatedb::db_cache::foyer::FoyerCache;
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache, SplitCache};

use crate::limits::{CACHE_SHARDS, MEMORY_BYTES_MIN, MEMTABLE_OVERHEAD};

/// How the memory is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Cached blocks.
    pub block_cache_bytes: u64,
    /// Cached rows.
    pub row_cache_bytes: u64,
    /// Cached indexes and filters.
    pub metadata_cache_bytes: u64,
    /// Memtables, as they lie in memory.
    pub memtable_bytes: u64,
    /// Requests that are held.
    pub request_bytes: u64,
}

/// The caches of the sorted files of all ranges.
#[derive(Clone)]
pub(crate) struct Caches {
    /// Blocks, and their indexes and filters.
    pub(crate) all: Arc<dyn DbCache>,
    /// Indexes and filters only, in the same memory as those of `all`.
    pub(crate) metadata: Arc<dyn DbCache>,
}

/// The given memory is too little to work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{given} bytes of memory are too few: give at least {least}")]
pub struct TooLittleMemory {
    /// What was given.
    pub given: u64,
    /// The least that works.
    pub least: u64,
}

impl Shares {
    /// Divides `memory_bytes`. Refuses an amount that is too small.
    pub fn of(memory_bytes: u64) -> Result<Self, TooLittleMemory> {
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(TooLittleMemory { given: memory_bytes, least: MEMORY_BYTES_MIN });
        }
        let percent = |share: u64| memory_bytes / 100 * share;
        Ok(Self {
            block_cache_bytes: percent(10),
            row_cache_bytes: percent(35),
            metadata_cache_bytes: percent(10),
            memtable_bytes: percent(25),
            request_bytes: percent(10),
        })
    }

    /// The caches of all ranges.
    ///
    /// Blocks are evicted by S3-FIFO: a new block waits in a small queue, and stays only if it is asked for
    /// again. With the usual LRU, one scan of a large table would drive out every block that single reads
    /// need. And reads that go round through a little more than fits would never find a block in the cache
    /// (measured with 290 MB of rows and 230 MB of cache: a single read takes 16 us with S3-FIFO and 50
    /// with LRU).
    pub(crate) fn caches(&self) -> Caches {
        let part = |cache: CacheBuilder| -> Option<Arc<dyn DbCache>> {
            Some(Arc::new(FoyerCache::new_with_cache(cache.build())))
        };
        let blocks = part(cache(self.block_cache_bytes).with_eviction_config(S3FifoConfig::default()));
        let metadata = part(cache(self.metadata_cache_bytes));
        let without_blocks = SplitCache::new().with_meta_cache(metadata.clone());
        let all = SplitCache::new().with_meta_cache(metadata).with_block_cache(blocks);
        Caches { all: Arc::new(all.build()), metadata: Arc::new(without_blocks.build()) }
    }

    /// When a memtable has this many encoded bytes, it becomes a sorted file. This is a third of the share,
    /// since one memtable is filled while another is written out, and their sum must stay below the share.
    pub(crate) fn memtable_flush_bytes(&self) -> usize {
        encoded(self.memtable_bytes / 3)
    }

    /// When all memtables of a range have this many encoded bytes, its writes wait.
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

/// The encoded size of rows that take `bytes` in a memtable.
fn encoded(bytes: u64) -> usize {
    usize::try_from(bytes / MEMTABLE_OVERHEAD).unwrap_or(usize::MAX)
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
                + shares.request_bytes + shares.row_cache_bytes;
            prop_assert!(sum <= memory / 100 * 90 && sum > memory / 100 * 89);
            prop_assert!(shares.memtable_flush_bytes() < shares.unflushed_bytes_max());
        }
    }

    #[test]
    fn too_little_memory_is_refused() {
        let refused = TooLittleMemory { given: 1 << 20, least: MEMORY_BYTES_MIN };
        assert_eq!(Shares::of(1 << 20), Err(refused));
    }
}

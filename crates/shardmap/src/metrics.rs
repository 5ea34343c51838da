//! What a manager counts: the counters of the elastic database library, and those of operations.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a manager has counted since it was opened.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Mappings that came into the cache, or came again.
    pub mappings_cached: Counter,
    /// Mappings that left the cache.
    pub mappings_dropped: Counter,
    /// Lookups of keys that the cache answered.
    pub cache_hits: Counter,
    /// Lookups of keys that it could not answer.
    pub cache_misses: Counter,
    /// Lookups of maps' names that the cache answered.
    pub map_hits: Counter,
    /// Lookups of maps' names that it could not answer.
    pub map_misses: Counter,
    /// Lookups of keys in the global map.
    pub global_lookups: Counter,
    /// Connections that were given out for a key.
    pub routed_connections: Counter,
    /// Operations that were carried to their end.
    pub operations_done: Counter,
    /// Operations that failed and were undone.
    pub operations_undone: Counter,
    /// Operations of others that were in the way.
    pub operations_met: Counter,
    /// Operations of others that this manager took over.
    pub operations_taken_over: Counter,
    /// Steps that were tried again.
    pub step_retries: Counter,
}

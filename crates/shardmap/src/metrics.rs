//! The counters of a manager: those of the elastic database library, and those of operations.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
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

/// The counters of a manager since it was opened.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Mappings that were put into the cache. Those that were already in it count too.
    pub mappings_cached: Counter,
    /// Mappings that were removed from the cache.
    pub mappings_dropped: Counter,
    /// Lookups of keys that the cache answered.
    pub cache_hits: Counter,
    /// Lookups of keys that the cache could not answer.
    pub cache_misses: Counter,
    /// Lookups of names of maps that the cache answered.
    pub map_hits: Counter,
    /// Lookups of names of maps that the cache could not answer.
    pub map_misses: Counter,
    /// Lookups of keys in the global map.
    pub global_lookups: Counter,
    /// Connections that were given out for a key.
    pub routed_connections: Counter,
    /// Operations that were carried to their end.
    pub operations_done: Counter,
    /// Operations that failed and were undone.
    pub operations_undone: Counter,
    /// Operations of other managers that held rows which this manager needed.
    pub operations_met: Counter,
    /// Operations of other managers that this manager took over.
    pub operations_taken_over: Counter,
    /// Steps that were tried again.
    pub step_retries: Counter,
}

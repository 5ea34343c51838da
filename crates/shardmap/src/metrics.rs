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

/// Declares the counters, with the names and descriptions under which they are exported.
macro_rules! metrics {
    ($($(#[doc = $about:literal])* $name:ident,)*) => {
        /// The counters of a manager since it was opened.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $about])* pub $name: Counter,)*
        }

        impl Metrics {
            /// All counters: the name, what it counts, and the count.
            pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($about),*), self.$name.get()),)*]
            }
        }
    };
}

metrics! {
    /// Mappings that were put into the cache. Those that were already in it count too.
    mappings_cached,
    /// Mappings that were removed from the cache.
    mappings_dropped,
    /// Lookups of keys that the cache answered.
    cache_hits,
    /// Lookups of keys that the cache could not answer.
    cache_misses,
    /// Lookups of names of maps that the cache answered.
    map_hits,
    /// Lookups of names of maps that the cache could not answer.
    map_misses,
    /// Lookups of keys in the global map.
    global_lookups,
    /// Connections that were given out for a key.
    routed_connections,
    /// Operations that were carried to their end.
    operations_done,
    /// Operations that failed and were undone.
    operations_undone,
    /// Operations of other managers that held rows which this manager needed.
    operations_met,
    /// Operations of other managers that this manager took over.
    operations_taken_over,
    /// Steps that were tried again.
    step_retries,
}

impl Metrics {
    /// All counters as text in the format of Prometheus: `rangehold_shardmap_cache_hits_total 12`.
    pub fn prometheus(&self) -> String {
        let one = |(name, about, count): (&str, &str, u64)| {
            let name = format!("rangehold_shardmap_{name}_total");
            format!("# HELP {name} {}\n# TYPE {name} counter\n{name} {count}\n", about.trim())
        };
        self.all().into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_exported_with_their_names() {
        let metrics = Metrics::default();
        metrics.cache_hits.add(12);
        let text = metrics.prometheus();
        assert!(text.contains("\nrangehold_shardmap_cache_hits_total 12\n"), "{text}");
        assert!(
            text.contains(
                "# HELP rangehold_shardmap_cache_hits_total Lookups of keys that the cache answered."
            )
        );
        assert_eq!(text.matches("# TYPE").count(), metrics.all().len());
    }
}

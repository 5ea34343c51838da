//! A bounded table of what was used lately.
//!
//! There are more partitions than memory for their buckets. But a bucket that was not used for a few seconds is full,
//! and a full bucket need not be remembered. So the table has a fixed number of sets with a few places each, like a
//! processor's cache. A key belongs to one set. In a full set, a new key takes the place that was not used for the
//! longest time. There is nothing to sweep, and no list to keep in order.

use std::time::Duration;

/// Places in a set.
const WAYS: usize = 8;

/// Values by key. The keys must be hashes, since they are not hashed again.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    sets: Vec<Vec<Place<V>>>,
}

#[derive(Debug)]
struct Place<V> {
    key: u64,
    used: Duration,
    value: V,
}

impl<V> Recent<V> {
    /// A table for about `most` values. The number of its sets is rounded up to a power of two.
    pub(crate) fn new(most: usize) -> Self {
        Self { sets: (0..most.div_ceil(WAYS).next_power_of_two()).map(|_| Vec::new()).collect() }
    }

    /// The value of `key`. It is made if it is not in the table.
    pub(crate) fn get(&mut self, key: u64, now: Duration, make: impl FnOnce() -> V) -> &mut V {
        let set = key as usize & (self.sets.len() - 1);
        let places = &mut self.sets[set];
        let at = match places.iter().position(|place| place.key == key) {
            Some(at) => at,
            None => put(places, Place { key, used: now, value: make() }),
        };
        places[at].used = places[at].used.max(now);
        &mut places[at].value
    }
}

/// Puts a new key into a set, and returns its place.
fn put<V>(places: &mut Vec<Place<V>>, newcomer: Place<V>) -> usize {
    if places.len() < WAYS {
        places.push(newcomer);
        return places.len() - 1;
    }
    let oldest = (0..WAYS).min_by_key(|&at| places[at].used).expect("a full set has places");
    places[oldest] = newcomer;
    oldest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_used_longest_ago_is_forgotten() {
        let mut recent = Recent::new(WAYS);
        let second = Duration::from_secs;
        for key in 0..WAYS as u64 {
            recent.get(key, second(key), || key);
        }
        // Key 0 is used again, so key 1 is the oldest.
        *recent.get(0, second(100), || 7) += 40;
        recent.get(1000, second(101), || 1000);
        assert_eq!(*recent.get(0, second(102), || 7), 40);
        assert_eq!(*recent.get(2, second(102), || 7), 2);
        assert_eq!(*recent.get(1, second(102), || 7), 7);
    }

    #[test]
    fn its_size_is_bounded() {
        let mut recent = Recent::new(100);
        for key in 0..100_000_u64 {
            recent.get(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), Duration::from_millis(key), || ());
        }
        assert!(recent.sets.iter().map(Vec::len).sum::<usize>() <= 128);
    }
}

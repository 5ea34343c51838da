//! What the keys of a peak show: which partition is asked most, and whether new keys go to one end. Pure.

use std::collections::BTreeMap;

use crate::stress::limits::PARTITIONS_COUNTED;

/// Entities that were asked of each partition. At most [`PARTITIONS_COUNTED`] partitions are kept. If there are more, all lose
/// as much as the least has (the rule of Misra and Gries), so a partition with a part of the load that matters stays, and its count is
/// too low by at most the total divided by that number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitions {
    counts: BTreeMap<String, u64>,
    total: u64,
}

impl Partitions {
    /// So many more entities were asked of this partition.
    pub(crate) fn add(&mut self, partition: &str, entities: u64) {
        self.total += entities;
        if let Some(count) = self.counts.get_mut(partition) {
            *count += entities;
            return;
        }
        let mut rest = entities;
        if self.counts.len() >= PARTITIONS_COUNTED {
            let least = self.counts.values().copied().min().unwrap_or_default().min(rest);
            self.counts.retain(|_, count| {
                *count -= least;
                *count > 0
            });
            rest -= least;
        }
        if rest > 0 {
            self.counts.insert(partition.to_owned(), rest);
        }
    }

    /// The partition with most, and its share of all entities.
    pub(crate) fn hottest(&self) -> Option<(&str, f64)> {
        let (partition, count) = self.counts.iter().max_by_key(|(_, count)| **count)?;
        Some((partition, *count as f64 / self.total.max(1) as f64))
    }
}

/// Whether new partitions come above all earlier ones, or below.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth {
    least: Option<String>,
    greatest: Option<String>,
    /// Entities of new registrations: all; in a partition above all earlier ones; below all.
    all: u64,
    above: u64,
    below: u64,
}

/// To which end of the table new keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Above the greatest key.
    Append,
    /// Below the least.
    Prepend,
}

impl Growth {
    /// A new registration with so many entities.
    pub(crate) fn add(&mut self, partition: &str, entities: u64) {
        self.all += entities;
        let (Some(least), Some(greatest)) = (&self.least, &self.greatest) else {
            (self.least, self.greatest) = (Some(partition.to_owned()), Some(partition.to_owned()));
            return;
        };
        if partition > greatest.as_str() {
            self.above += entities;
            self.greatest = Some(partition.to_owned());
        } else if partition < least.as_str() {
            self.below += entities;
            self.least = Some(partition.to_owned());
        }
    }

    /// The end to which most new entities go, and how many of all entities these are; `None` if they go elsewhere.
    pub(crate) fn end(&self) -> Option<(End, u64)> {
        let (end, most) =
            if self.above >= self.below { (End::Append, self.above) } else { (End::Prepend, self.below) };
        (2 * most > self.all).then_some((end, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_partition_is_found_among_more_than_are_counted() {
        let mut partitions = Partitions::default();
        for number in 0..40_000 {
            partitions.add(&format!("own-{number}"), 1);
            partitions.add("hot", 1);
        }
        let (hottest, share) = partitions.hottest().unwrap();
        assert_eq!(hottest, "hot");
        assert!((share - 0.5).abs() < 0.01, "{share}");
        assert!(partitions.counts.len() <= PARTITIONS_COUNTED);
    }

    #[test]
    fn growing_keys_go_to_one_end_and_others_do_not() {
        let end = |partition: &dyn Fn(u64) -> String| {
            let mut growth = Growth::default();
            (1..=100).for_each(|number| growth.add(&partition(number), 20));
            growth.end()
        };
        assert_eq!(end(&|number| format!("{number:09}")), Some((End::Append, 99 * 20)));
        assert_eq!(end(&|number| format!("{:09}", 1000 - number)), Some((End::Prepend, 99 * 20)));
        assert_eq!(end(&|number| format!("{:02}", number * 37 % 101)), None);
        assert_eq!(end(&|_| "one".to_owned()), None);
    }
}

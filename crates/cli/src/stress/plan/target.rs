//! The target partition: the one that the peak asks most of. Pure.
//!
//! It is found before anything is sent, from the first registrations that the keys make. If no partition stands out, because
//! each registration is a partition of its own, the target is that of the first registration, and its share is nearly zero.

use std::collections::BTreeMap;

use super::Plan;
use crate::stress::limits::{SAMPLED, TARGET_SEARCH_MAX};

/// The share from which a partition stands out.
const STANDS_OUT: f64 = 0.01;

/// The partition that is asked most of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    /// Its PartitionKey.
    pub(crate) partition: String,
    /// Its share of the registrations.
    pub(crate) share: f64,
}

impl Target {
    /// The target of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for number in 0..SAMPLED {
            *counts.entry(plan.keys.partition(number)).or_default() += 1;
        }
        let largest = counts.values().copied().max().unwrap_or_default();
        let first = plan.keys.partition(0);
        let share = largest as f64 / SAMPLED as f64;
        let found = counts.into_iter().find(|(_, count)| *count == largest);
        match found.filter(|_| share >= STANDS_OUT) {
            Some((partition, _)) => Self { partition, share },
            None => Self { partition: first, share },
        }
    }

    /// Whether the partition stands out.
    pub(crate) fn stands_out(&self) -> bool {
        self.share >= STANDS_OUT
    }

    /// The registrations that are loaded before the peak, as many as have `plan.load` entities of `rows` each, and the first
    /// number that is free then. They are those of the target partition, or the first ones if none stands out.
    pub(crate) fn loaded(&self, plan: &Plan, rows: u32) -> (Vec<u64>, u64) {
        let wanted = plan.load.div_ceil(u64::from(rows.max(1))) as usize;
        let is_wanted = |number: &u64| !self.stands_out() || plan.keys.partition(*number) == self.partition;
        let numbers: Vec<u64> = (0..TARGET_SEARCH_MAX).filter(is_wanted).take(wanted).collect();
        let free = numbers.last().map_or(0, |last| last + 1);
        (numbers, free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::plan::PlanFile;

    fn plan(partition: &str) -> Plan {
        let text = format!(
            "load = 100\n[keys]\npartition = {partition:?}\nrow = \"{{number}}\"\n[[request]]\nname = \"r\"\n\
             do = \"insert\"\nper-second = 1\nwithin-ms = 1"
        );
        PlanFile::parse(&text).unwrap().plan("test", None).unwrap()
    }

    #[test]
    fn the_target_is_the_partition_with_most_registrations_and_it_is_loaded() {
        let many = plan("{any:Full,Full,Full,Half}");
        let target = Target::of(&many);
        assert_eq!(target.partition, "Full");
        assert!((target.share - 0.75).abs() < 0.02, "{target:?}");
        let (numbers, free) = target.loaded(&many, 1);
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().all(|number| many.keys.partition(*number) == "Full"));
        assert!(free > 100 && numbers.iter().all(|number| *number < free));
    }

    #[test]
    fn no_partition_stands_out_where_each_registration_has_its_own() {
        let own = plan("{number}");
        let target = Target::of(&own);
        assert!(!target.stands_out(), "{target:?}");
        assert_eq!(target.loaded(&own, 20), ((0..5).collect(), 5));
    }
}

//! When each partition takes its next batch. Pure.
//!
//! A partition takes so many entities a second, whatever the others take. It is known only while its last batch needs its time:
//! after that it is like one that was never written.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::BULK_PARTITIONS;

/// How much later than its turn a batch may come, and count as if it had come in time.
const LATE: Duration = Duration::from_millis(50);

/// The turns of all partitions.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Entities a second of one partition.
    per_second: f64,
    /// When a partition takes the next batch.
    turns: BTreeMap<String, Duration>,
}

impl Lanes {
    pub(super) fn new(per_second: f64) -> Self {
        Self { per_second, turns: BTreeMap::new() }
    }

    /// Lets `count` entities of a partition pass, or says how long to wait before asking again.
    pub(super) fn pass(&mut self, partition: &str, count: u32, now: Duration) -> Result<(), Duration> {
        let earliest = now.saturating_sub(LATE);
        let turn = self.turns.get(partition).copied().unwrap_or(earliest);
        if turn > now {
            return Err(turn - now);
        }
        let time = Duration::from_secs_f64(f64::from(count) / self.per_second);
        let next = turn.max(earliest) + time;
        if let Some(turn) = self.turns.get_mut(partition) {
            *turn = next;
            return Ok(());
        }
        if self.turns.len() >= BULK_PARTITIONS {
            self.turns.retain(|_, turn| *turn > earliest);
            if let Some(first) = self.turns.values().min().filter(|_| self.turns.len() >= BULK_PARTITIONS) {
                return Err(*first - earliest);
            }
        }
        self.turns.insert(partition.to_owned(), next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_its_own_rate_and_none_waits_for_another() {
        let mut lanes = Lanes::new(2_000.0);
        let (mut now, mut hot) = (Duration::ZERO, 0);
        while now < Duration::from_secs(10) {
            match lanes.pass("hot", 100, now) {
                Ok(()) => hot += 100,
                Err(wait) => {
                    // Timers are late.
                    now += wait + Duration::from_millis(3);
                    assert_eq!(lanes.pass(&format!("cold {}", now.as_millis()), 100, now), Ok(()));
                }
            }
        }
        assert!((19_500..=20_200).contains(&hot), "{hot}");
    }

    #[test]
    fn partitions_that_had_their_time_are_forgotten_and_the_others_are_few() {
        let mut lanes = Lanes::new(1.0);
        let second = Duration::from_secs(1);
        for partition in 0..BULK_PARTITIONS {
            assert_eq!(lanes.pass(&partition.to_string(), 10, second), Ok(()));
        }
        let wait = lanes.pass("one more", 10, second).expect_err("there is no room");
        assert_eq!(lanes.pass("one more", 10, second + wait), Ok(()));
        assert_eq!(lanes.turns.len(), 1);
    }
}

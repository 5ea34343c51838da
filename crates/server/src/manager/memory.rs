//! What the manager remembers of ranges from one look to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rangehold_engine::RangeSeen;
use rangehold_map::load::Verdict;
use rangehold_map::plan::RangeObservation;
use rangehold_map::{Generation, RangeId, ServerId};

use super::ServerSeen;

/// When ranges changed, as far as it was seen. Times are since the manager began.
#[derive(Debug, Default)]
pub(super) struct Memory {
    ranges: BTreeMap<RangeId, Known>,
    /// Whether there was a look before: what is there at the first one is not new.
    looked: bool,
    /// Servers that had lost their leases at the last look.
    ended: BTreeSet<ServerId>,
}

#[derive(Debug)]
struct Known {
    generation: Generation,
    changed: Option<Duration>,
    moved: Option<Duration>,
    /// When the last verdict was reached, which tells it from others.
    verdict: Option<Duration>,
}

impl Memory {
    /// Notes what is seen now. Returns the verdicts that were reached since the last look.
    pub(super) fn look(&mut self, seen: &[RangeSeen], now: Duration) -> Vec<(RangeId, Verdict)> {
        let mut reached = Vec::new();
        let mut ranges = BTreeMap::new();
        for range in seen {
            let known = match self.ranges.remove(&range.range) {
                Some(known) if known.generation == range.generation => known,
                // It changed hands, or a change of it was undone: as if it had moved.
                Some(_) => Known::new(range.generation, Some(now), Some(now)),
                None => Known::new(range.generation, self.looked.then_some(now), None),
            };
            let verdict = range.load.verdict.as_ref();
            if let Some(new) = verdict.filter(|verdict| known.verdict != Some(verdict.at)) {
                reached.push((range.range, new.clone()));
            }
            ranges.insert(range.range, Known { verdict: verdict.map(|verdict| verdict.at), ..known });
        }
        self.ranges = ranges;
        self.looked = true;
        reached
    }

    /// The servers that have lost their leases since this was last asked.
    pub(super) fn ended<'a>(&mut self, seen: &'a [ServerSeen]) -> Vec<&'a ServerSeen> {
        seen.iter().filter(|server| server.ended && self.ended.insert(server.server)).collect()
    }

    /// What the planner is told of a range.
    pub(super) fn observation(&self, seen: &RangeSeen, now: Duration, busy: bool) -> RangeObservation {
        let known = self.ranges.get(&seen.range);
        let since = |at: Option<Duration>| at.map_or(Duration::MAX, |at| now.saturating_sub(at));
        RangeObservation {
            generation: seen.generation,
            rate: seen.load.cost_rate,
            peak: seen.load.peak,
            bytes: seen.bytes,
            cause: seen.load.verdict.as_ref().map(|verdict| Box::new(verdict.cause.clone())),
            unchanged_for: since(known.and_then(|known| known.changed)),
            unmoved_for: since(known.and_then(|known| known.moved)),
            busy,
            ..RangeObservation::quiet(seen.range)
        }
    }
}

impl Known {
    fn new(generation: Generation, changed: Option<Duration>, moved: Option<Duration>) -> Self {
        Self { generation, changed, moved, verdict: None }
    }
}

#[cfg(test)]
mod tests {
    use rangehold_map::load::{LoadPolicy, RangeLoad};

    use super::*;

    fn seen(range: u64, generation: u64) -> RangeSeen {
        let load = RangeLoad::new(LoadPolicy::fast(), 1).observe();
        RangeSeen {
            range: RangeId(range),
            generation: Generation(generation),
            bytes: 0,
            borrowed_bytes: 0,
            load,
        }
    }

    #[test]
    fn a_range_is_new_if_it_was_not_there_before() {
        let second = Duration::from_secs;
        let mut memory = Memory::default();
        memory.look(&[seen(1, 1), seen(2, 1)], second(1));
        memory.look(&[seen(1, 1), seen(2, 2), seen(3, 1)], second(5));
        let ages = |range, generation| {
            let observed = memory.observation(&seen(range, generation), second(7), false);
            (observed.unchanged_for, observed.unmoved_for)
        };
        assert_eq!(ages(1, 1), (Duration::MAX, Duration::MAX), "it was there when the process began");
        assert_eq!(ages(2, 2), (second(2), second(2)), "it moved");
        assert_eq!(ages(3, 1), (second(2), Duration::MAX), "a split made it");
    }
}

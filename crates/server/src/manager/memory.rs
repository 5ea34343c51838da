//! What the manager remembers about ranges from one look to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rangehold_engine::{PartitionServer, RangeGlance, RangeSeen};
use rangehold_map::load::Verdict;
use rangehold_map::plan::RangeObservation;
use rangehold_map::{Generation, RangeId, ServerId};

/// When ranges changed, as far as the manager saw it. Times count from its start.
#[derive(Debug, Default)]
pub(super) struct Memory {
    ranges: BTreeMap<RangeId, Known>,
    /// The number of looks so far. Verdicts that exist at the first one are not new.
    looks: u64,
    /// Servers that had lost their leases at the last look.
    ended: BTreeSet<ServerId>,
    /// Ranges that no server served at the last look for such ranges.
    unserved: BTreeSet<RangeId>,
}

#[derive(Debug)]
struct Known {
    generation: Generation,
    changed: Option<Duration>,
    moved: Option<Duration>,
    /// When the last verdict was reached. This distinguishes it from other verdicts.
    verdict: Option<Duration>,
    /// The last look at which the range existed.
    look: u64,
}

impl Memory {
    /// Notes the ranges as they are now. Returns the verdicts that were reached since the last look.
    pub(super) fn look(&mut self, seen: Vec<RangeGlance>, now: Duration) -> Vec<(RangeId, Verdict)> {
        let mut reached = Vec::new();
        self.looks += 1;
        let (look, is_first) = (self.looks, self.looks == 1);
        for RangeGlance { range, generation, verdict } in seen {
            let new = || Known::new(generation, (!is_first).then_some(now), None);
            let known = self.ranges.entry(range).or_insert_with(new);
            if known.generation != generation {
                // It has a new owner, or a change of it was undone. Both count as a move.
                *known = Known::new(generation, Some(now), Some(now));
            }
            known.look = look;
            let before = std::mem::replace(&mut known.verdict, verdict.as_ref().map(|verdict| verdict.at));
            reached.extend(verdict.filter(|_| known.verdict != before).map(|verdict| (range, verdict)));
        }
        self.ranges.retain(|_, known| known.look == look);
        reached
    }

    /// The servers that have lost their leases since the last call.
    pub(super) fn ended(&mut self, servers: &[PartitionServer]) -> Vec<PartitionServer> {
        let ended = |server: &&PartitionServer| server.has_ended() && self.ended.insert(server.id());
        servers.iter().filter(ended).cloned().collect()
    }

    /// Those of the unserved ranges that were also unserved at the last call.
    pub(super) fn still_unserved(&mut self, unserved: Vec<RangeId>) -> Vec<RangeId> {
        let before = std::mem::replace(&mut self.unserved, unserved.iter().copied().collect());
        unserved.into_iter().filter(|range| before.contains(range)).collect()
    }

    /// A range as the planner sees it.
    pub(super) fn observation(&self, seen: &RangeSeen, now: Duration, busy: bool) -> RangeObservation {
        let known = self.ranges.get(&seen.range);
        let since = |at: Option<Duration>| at.map_or(Duration::MAX, |at| now.saturating_sub(at));
        RangeObservation {
            generation: seen.generation,
            rate: seen.load.cost_rate,
            peak: seen.load.peak,
            bytes: seen.bytes,
            cause: seen.load.verdict.as_ref().map(|verdict| Box::new(verdict.cause.clone())),
            // A range that did not exist at the last look has changed just now.
            unchanged_for: since(known.map_or(Some(now), |known| known.changed)),
            unmoved_for: since(known.and_then(|known| known.moved)),
            busy,
            ..RangeObservation::quiet(seen.range)
        }
    }
}

impl Known {
    fn new(generation: Generation, changed: Option<Duration>, moved: Option<Duration>) -> Self {
        Self { generation, changed, moved, verdict: None, look: 0 }
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

    fn glance(range: u64, generation: u64) -> RangeGlance {
        RangeGlance { range: RangeId(range), generation: Generation(generation), verdict: None }
    }

    #[test]
    fn a_range_is_new_if_it_was_not_there_before() {
        let second = Duration::from_secs;
        let mut memory = Memory::default();
        memory.look(vec![glance(1, 1), glance(2, 1)], second(1));
        memory.look(vec![glance(1, 1), glance(2, 2), glance(3, 1)], second(5));
        let ages = |range, generation| {
            let observed = memory.observation(&seen(range, generation), second(7), false);
            (observed.unchanged_for, observed.unmoved_for)
        };
        assert_eq!(ages(1, 1), (Duration::MAX, Duration::MAX), "it was there when the process began");
        assert_eq!(ages(2, 2), (second(2), second(2)), "it moved");
        assert_eq!(ages(3, 1), (second(2), Duration::MAX), "a split made it");
    }
}

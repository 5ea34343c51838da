//! Ranges that bring their servers down, and what is done about them.
//!
//! **This waits for a service of several processes.** There a process can end while others go on and take over
//! its ranges. A range whose requests kill its owner would then kill the next one too, and so on through the
//! fleet. In one process all partition servers end together: its manager counts no crashes
//! ([`RangeObservation::crashes`](super::RangeObservation::crashes) is 0), and nothing is quarantined. Simulated
//! fleets and scripts use this module today. [`Standing::Leaving`](super::Standing::Leaving) waits too.

use std::collections::BTreeMap;
use std::time::Duration;

use super::draft::Draft;
use super::policy::Policy;
use super::report::Reported;
use crate::range::{RangeId, ServerId};
use crate::range_map::Change;

/// Remembers for every range which servers crashed while they held it.
///
/// The first crash of a server makes all its ranges suspects. They are spread over the other servers, as few to
/// each as possible, so that a second crash leaves few ranges under suspicion.
///
/// Different servers are counted, not crashes: one server that crashes again and again says nothing about its
/// ranges. Times are given as the time since any fixed moment.
#[derive(Debug, Clone, Default)]
pub struct Suspects {
    crashes: BTreeMap<RangeId, Vec<(ServerId, Duration)>>,
}

impl Suspects {
    /// Notes that `server` crashed at `now` while it held `ranges`. A server that was told to stop, or that lost
    /// its lease and still runs, did not crash.
    pub fn crashed(&mut self, server: ServerId, ranges: impl IntoIterator<Item = RangeId>, now: Duration) {
        for range in ranges {
            let crashes = self.crashes.entry(range).or_default();
            crashes.retain(|(other, _)| *other != server);
            crashes.push((server, now));
        }
    }

    /// How many different servers crashed while they held `range`, within [`Policy::crash_memory`] before `now`.
    pub fn crashes(&self, range: RangeId, now: Duration, policy: &Policy) -> u32 {
        let Some(crashes) = self.crashes.get(&range) else { return 0 };
        crashes.iter().filter(|(_, at)| now.saturating_sub(*at) < policy.crash_memory).count() as u32
    }

    /// Forgets all crashes of `range`: somebody examined it and set it online again.
    pub fn acquit(&mut self, range: RangeId) {
        self.crashes.remove(&range);
    }

    /// Forgets crashes that are older than [`Policy::crash_memory`].
    pub fn forget(&mut self, now: Duration, policy: &Policy) {
        self.crashes.retain(|_, crashes| {
            crashes.retain(|(_, at)| now.saturating_sub(*at) < policy.crash_memory);
            !crashes.is_empty()
        });
    }
}

/// Sets ranges offline that have cost too many servers, and takes them out of `lost`.
///
/// If there are more than [`Policy::quarantined_max`] of them, something else must be to blame, and nothing is
/// done. Only ranges without a server are examined: one that is served again may be innocent.
pub(super) fn quarantine(draft: &mut Draft<'_>, lost: &mut Vec<usize>) {
    let crashes = |draft: &Draft<'_>, index: usize| {
        let range = &draft.ranges[index];
        let is_dead = draft.fleet.is_dead(range.entry.place.server);
        range.seen.filter(|_| is_dead).map_or(0, |seen| seen.crashes)
    };
    let limit = draft.policy.crashes_max.max(1);
    let poison: Vec<usize> = lost.iter().copied().filter(|index| crashes(draft, *index) >= limit).collect();
    if poison.is_empty() {
        return;
    }
    if poison.len() > draft.policy.quarantined_max {
        draft.report.say(Reported::TooManySuspects { ranges: poison.len() });
        return;
    }
    for index in &poison {
        let crashes = crashes(draft, *index);
        let range = &mut draft.ranges[*index];
        range.taken = true;
        let (id, generation) = (range.entry.id, range.entry.generation);
        draft.changes.push(Change::Offline { range: id, generation });
        draft.report.say(Reported::Quarantined { range: id, crashes });
    }
    lost.retain(|index| !draft.ranges[*index].taken);
}

//! New owners for the ranges of servers that no longer serve; and ranges that kill their owners.
//!
//! Nothing is waited for and no budget holds: a range without an owner serves nobody. The ranges of
//! one server are spread over all others, each of which gets an equal number, so that they are opened
//! side by side, and so that after the next such end few ranges are left under suspicion
//! ([`super::Suspects`]). Within that, the hottest range goes to the least busy server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::draft::{Draft, View};
use super::fleet::{Fleet, Level};
use super::observe::Standing;
use super::report::Reported;
use crate::range_map::Change;

pub(super) fn rehome(draft: &mut Draft<'_>) {
    let mut lost = lost(draft);
    quarantine(draft, &mut lost);
    if lost.is_empty() {
        return;
    }
    if draft.fleet.serving_count() == 0 {
        draft.report.say(Reported::NoServer { ranges: lost.len() });
        return;
    }
    spread(draft, lost);
}

/// The ranges that need another owner, by their places in the map.
fn lost(draft: &mut Draft<'_>) -> Vec<usize> {
    let mut lost = Vec::new();
    for (index, range) in draft.ranges.iter().enumerate().filter(|(_, range)| range.lost) {
        let owner = range.entry.place.server;
        let id = range.entry.id;
        // A dead owner can't be busy with the range; a leaving one can.
        let busy = range.seen.is_some_and(|seen| seen.busy) && !is_dead(&draft.fleet, range);
        if let Some(intent) = &range.entry.intent {
            draft.report.say(Reported::Unfinished { range: id, doing: intent.doing(), server: owner });
        } else if !range.entry.online {
            draft.report.say(Reported::OfflineWithoutServer { range: id, server: owner });
        } else if busy {
            draft.report.say(Reported::RehomeWaits { range: id, server: owner });
        } else {
            lost.push(index);
        }
    }
    lost
}

/// Sets ranges offline that have cost too many servers, unless there are so many of them that
/// something else must be to blame. Only ranges that would be given to the next server now are
/// looked at: one that is served again may be innocent.
fn quarantine(draft: &mut Draft<'_>, lost: &mut Vec<usize>) {
    let crashes = |draft: &Draft<'_>, index: usize| {
        let range = &draft.ranges[index];
        range.seen.filter(|_| is_dead(&draft.fleet, range)).map_or(0, |seen| seen.crashes)
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

/// Gives each range to the least busy server that has not had its share of them yet.
fn spread(draft: &mut Draft<'_>, mut lost: Vec<usize>) {
    let share = lost.len().div_ceil(draft.fleet.serving_count());
    lost.sort_by_key(|index| (Reverse(Level(draft.ranges[*index].rate)), *index));
    let mut takers: BinaryHeap<_> = (draft.fleet.serving())
        .map(|(index, server)| Reverse((Level(server.utilisation()), 0usize, index)))
        .collect();
    for range in lost {
        let Some(Reverse((_, had, to))) = takers.pop() else {
            return; // Shares add up to all ranges, so takers last as long as they do.
        };
        let (id, from) = (draft.ranges[range].entry.id, draft.ranges[range].entry.place.server);
        let dead = is_dead(&draft.fleet, &draft.ranges[range]);
        draft.move_range(range, to);
        draft.report.say(Reported::Rehomed { range: id, from, dead, to: draft.fleet.get(to).id });
        if had + 1 < share {
            takers.push(Reverse((Level(draft.fleet.get(to).utilisation()), had + 1, to)));
        }
    }
}

/// Whether the owner of a range has no lease, so that nobody serves it.
fn is_dead(fleet: &Fleet, range: &View<'_>) -> bool {
    fleet.index(range.entry.place.server).is_none_or(|owner| fleet.get(owner).standing == Standing::Dead)
}

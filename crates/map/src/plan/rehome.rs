//! New owners for the ranges of servers that no longer serve.
//!
//! A range of a dead server answers nobody, so this step has no budget. The ranges are spread evenly over all
//! servers that serve: then they are opened side by side, and another crash makes few of them suspects
//! ([`super::quarantine`]). The hottest range goes to the least busy server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::draft::Draft;
use super::fleet::Level;
use super::quarantine::quarantine;
use super::report::Reported;

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

/// The ranges that can get another owner now, by their places in the map. Reports those that cannot.
fn lost(draft: &mut Draft<'_>) -> Vec<usize> {
    let mut lost = Vec::new();
    for (index, range) in draft.ranges.iter().enumerate().filter(|(_, range)| range.lost) {
        let owner = range.entry.place.server;
        let id = range.entry.id;
        // A dead owner can't be busy with the range; a leaving one can.
        let busy = range.seen.is_some_and(|seen| seen.busy) && !draft.fleet.is_dead(owner);
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

/// Gives each range to the least busy server that has not had its share of them yet.
fn spread(draft: &mut Draft<'_>, mut lost: Vec<usize>) {
    let share = lost.len().div_ceil(draft.fleet.serving_count());
    lost.sort_by_key(|index| (Reverse(Level(draft.ranges[*index].rate)), *index));
    let mut takers: BinaryHeap<_> = (draft.fleet.serving())
        .map(|(index, server)| Reverse((Level(server.utilisation()), 0usize, index)))
        .collect();
    for range in lost {
        let Some(Reverse((_, had, to))) = takers.pop() else {
            return; // All shares together are enough for all ranges, so a taker is always left.
        };
        let (id, from) = (draft.ranges[range].entry.id, draft.ranges[range].entry.place.server);
        let dead = draft.fleet.is_dead(from);
        draft.move_range(range, to);
        draft.report.say(Reported::Rehomed { range: id, from, dead, to: draft.fleet.get(to).id });
        if had + 1 < share {
            takers.push(Reverse((Level(draft.fleet.get(to).utilisation()), had + 1, to)));
        }
    }
}

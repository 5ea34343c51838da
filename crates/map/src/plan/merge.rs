//! Merges of cold neighbours.
//!
//! Two neighbours become one if both have been quiet for ten minutes, so that together they stay far
//! from being split again, and both have been left alone as long. The distance between the load
//! that merges and the load that splits is what keeps a range from being split and merged in turns.
//!
//! A few ranges per server are kept, quiet or not: they are what there is to spread when load comes.
//! A server takes part in one merge at a time, in more where ranges have become many. Neighbours on
//! one server go first; others cost a move of the right one, which is up to whoever carries it out, and
//! comes out of what the balance has left of its budget.

use std::collections::BinaryHeap;
use std::time::Duration;

use super::draft::Draft;
use super::observe::RangeObservation;
use super::report::{Kind, LINES_PER_KIND, MergeWait, Reported};
use crate::range_map::{Change, Intent};

pub(super) fn merge(draft: &mut Draft<'_>) {
    let Candidates { ready, early, waiting } = candidates(draft);
    let few = |draft: &mut Draft<'_>, ranges, kept| draft.report.say(Reported::FewRanges { ranges, kept });
    let kept = draft.policy.ranges_per_server_low as usize * draft.fleet.serving_count();
    let ranges = draft.ranges.len() - count_begun(draft);
    if ranges <= kept {
        if !ready.is_empty() || waiting > 0 {
            few(draft, ranges, kept);
        }
        return;
    }
    let mut left = ranges - kept;
    let limit = per_server(draft, ranges);
    let (here, apart): (Vec<_>, Vec<_>) =
        ready.into_iter().partition(|index| draft.ranges[*index].server == draft.ranges[index + 1].server);
    for index in here.into_iter().chain(apart) {
        if draft.ranges[index].taken || draft.ranges[index + 1].taken {
            continue;
        }
        if left == 0 {
            few(draft, kept, kept);
            break;
        }
        left -= usize::from(merge_pair(draft, index, limit));
    }
    report_waiting(draft, early, waiting);
}

/// Counts the merges that were begun before, and puts each down to its servers.
fn count_begun(draft: &mut Draft<'_>) -> usize {
    let mut begun = 0;
    for pair in draft.ranges.windows(2) {
        if matches!(pair[0].entry.intent, Some(Intent::Merge { .. })) {
            begun += 1;
            let (at, from) = (pair[0].server, pair[1].server.filter(|from| Some(*from) != pair[0].server));
            for server in [at, from].into_iter().flatten() {
                draft.fleet.get_mut(server).merges += 1;
            }
        }
    }
    begun
}

/// How many merges a server may be in at once.
fn per_server(draft: &Draft<'_>, ranges: usize) -> u32 {
    let high = f64::from(draft.policy.ranges_per_server_high) * draft.fleet.serving_count() as f64;
    let crowded = ranges as f64 > high * draft.policy.crowded_share;
    if crowded { draft.policy.merges_per_server_crowded } else { draft.policy.merges_per_server }
}

/// Neighbours that are cold, by the place of the left one in the map.
struct Candidates {
    /// Those that could merge now, in the map's order.
    ready: Vec<usize>,
    /// Those that could soonest, with how long that takes; no more than a report has lines.
    early: BinaryHeap<(Duration, usize)>,
    /// How many could later, `early` included.
    waiting: usize,
}

fn candidates(draft: &Draft<'_>) -> Candidates {
    let mut found = Candidates { ready: Vec::new(), early: BinaryHeap::new(), waiting: 0 };
    let quiet = |index: usize| {
        let range = &draft.ranges[index];
        let served = range.server.is_some_and(|server| draft.fleet.serves(server));
        range.free().filter(|seen| served && seen.cause.is_none())
    };
    let mut before = None;
    for index in 0..draft.ranges.len() {
        let right = quiet(index);
        if let (Some(left), Some(right)) = (before, right)
            && cold(draft, left, right).is_some()
        {
            let unchanged = left.unchanged_for.min(right.unchanged_for);
            let wait = draft.policy.merge_after.saturating_sub(unchanged);
            if wait.is_zero() {
                found.ready.push(index - 1);
            } else {
                found.waiting += 1;
                found.early.push((wait, index - 1));
                if found.early.len() > LINES_PER_KIND {
                    found.early.pop();
                }
            }
        }
        before = right;
    }
    found
}

/// The sum of the peaks of two neighbours that are cold and small enough to be one.
fn cold(draft: &Draft<'_>, left: &RangeObservation, right: &RangeObservation) -> Option<f64> {
    let peak = left.peak? + right.peak?;
    let small = left.bytes.saturating_add(right.bytes) <= draft.policy.merge_bytes_max;
    (small && peak < draft.policy.split_rate * draft.policy.merge_share).then_some(peak)
}

/// Merges the range at this place with the next one, if their servers have time.
fn merge_pair(draft: &mut Draft<'_>, index: usize, limit: u32) -> bool {
    let (left, right) = (&draft.ranges[index], &draft.ranges[index + 1]);
    let (Some(at), Some(from)) = (left.server, right.server) else {
        return false;
    };
    let peak = left.seen.zip(right.seen).and_then(|(l, r)| cold(draft, l, r)).unwrap_or(0.0);
    let (left, right) = (left.entry, right.entry);
    if let Some(busy) = [at, from].into_iter().find(|server| draft.fleet.get(*server).merges >= limit) {
        let until = MergeWait::Turn { server: draft.fleet.get(busy).id };
        draft.report.say(Reported::MergeWaits { left: left.id, right: right.id, until });
        return false;
    }
    if at != from && !draft.churn.spend(draft.ranges[index + 1].rate) {
        let until = MergeWait::Budget { share: draft.churn.share };
        draft.report.say(Reported::MergeWaits { left: left.id, right: right.id, until });
        return false;
    }
    let moves_first = (at != from).then(|| (draft.fleet.get(from).id, draft.fleet.get(at).id));
    draft.fleet.get_mut(at).merges += 1;
    if at != from {
        draft.fleet.get_mut(from).merges += 1;
    }
    draft.ranges[index].taken = true;
    draft.ranges[index + 1].taken = true;
    draft.changes.push(Change::Merge {
        left: left.id,
        left_generation: left.generation,
        right: right.id,
        right_generation: right.generation,
    });
    draft.report.say(Reported::Merged { left: left.id, right: right.id, peak, moves_first });
    true
}

fn report_waiting(draft: &mut Draft<'_>, early: BinaryHeap<(Duration, usize)>, waiting: usize) {
    let told = early.len();
    for (left, index) in early.into_sorted_vec() {
        let of = draft.policy.merge_after;
        let (left_id, right_id) = (draft.ranges[index].entry.id, draft.ranges[index + 1].entry.id);
        let until = MergeWait::Unchanged { left, of };
        draft.report.say(Reported::MergeWaits { left: left_id, right: right_id, until });
    }
    draft.report.count_only(Kind::MergeWaits, waiting - told);
}

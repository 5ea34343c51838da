//! Merges of cold neighbours.
//!
//! Two neighbours are merged if for ten minutes both had little load and neither was split, merged or moved.
//! The load at which ranges merge is far below the load at which a range is split, so that a range is not
//! split and merged in turns.
//!
//! A few ranges per server are kept even if they are cold: they can be spread over the servers when load
//! comes. A server takes part in one merge at a time, or in more if there are many ranges. Neighbours on the
//! same server are merged first. Other neighbours need a move of the right one, which the executor makes; the
//! load of that move comes out of the budget that the balance has left.

use std::collections::BinaryHeap;
use std::time::Duration;

use super::draft::{Draft, View};
use super::policy::Policy;
use super::report::{Kind, LINES_PER_KIND, MergeWait, Reported};
use crate::range_map::{Change, Intent};

pub(super) fn merge(draft: &mut Draft<'_>) {
    let Candidates { ready, early, waiting } = candidates(draft);
    let mut merging = count_begun(draft);
    let kept = draft.policy.ranges_per_server_low as usize * draft.fleet.serving_count();
    let ranges = draft.ranges.len();
    let limit = per_server(draft, ranges - merging);
    let (together, apart): (Vec<_>, Vec<_>) = ready
        .into_iter()
        .partition(|index| draft.ranges[*index].server() == draft.ranges[index + 1].server());
    let (mut refused, mut more) = (Vec::new(), waiting > 0);
    for index in together.into_iter().chain(apart) {
        if ranges - merging <= kept {
            more = true;
            break;
        }
        if draft.ranges[index].taken || draft.ranges[index + 1].taken {
            continue;
        }
        match merge_pair(draft, index, limit) {
            Ok(()) => merging += 1,
            Err(until) => refused.push((index, until)),
        }
    }
    let ranges = ranges - merging;
    if ranges > kept {
        report_waiting(draft, refused, early, waiting, ranges - kept);
    } else if more || !refused.is_empty() {
        draft.report.say(Reported::FewRanges { ranges, merging, kept });
    }
}

/// Counts the merges that were begun before this plan, and adds each to its servers.
fn count_begun(draft: &mut Draft<'_>) -> usize {
    let mut begun = 0;
    for index in draft.under_way.iter().copied() {
        if matches!(draft.ranges[index].entry.intent, Some(Intent::Merge { .. })) {
            begun += 1;
            let at = draft.ranges[index].server();
            let from = draft.ranges.get(index + 1).and_then(View::server).filter(|from| Some(*from) != at);
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

/// Two ranges are cold if the sum of their loads is below this. A range that is a large part of an average
/// server's load fits on no other server, so with several servers the mark is lower; in a service that is not
/// busy this does not matter, because nothing is moved.
fn cold_mark(draft: &Draft<'_>) -> f64 {
    let policy = draft.policy;
    let mark = policy.split_rate * policy.merge_share;
    let servers = draft.fleet.serving_count();
    if servers < 2 {
        return mark;
    }
    let capacity = draft.fleet.serving().map(|(_, server)| server.capacity).sum::<f64>() / servers as f64;
    mark.min(policy.merge_grain * capacity * draft.fleet.mean().max(policy.calm_utilisation))
}

/// Neighbours that are cold, by the index of the left one in the map.
struct Candidates {
    /// Those that could merge now, in the map's order.
    ready: Vec<usize>,
    /// Those that can merge soonest, with the time until then. Not more than a report has lines.
    early: BinaryHeap<(Duration, usize)>,
    /// How many pairs can merge later, `early` included. Each range is counted in one pair.
    waiting: usize,
}

fn candidates(draft: &Draft<'_>) -> Candidates {
    let mut found = Candidates { ready: Vec::new(), early: BinaryHeap::new(), waiting: 0 };
    let mark = cold_mark(draft);
    let mut paired = None;
    for (index, pair) in draft.ranges.windows(2).enumerate() {
        if !cold(draft.policy, mark, &pair[0], &pair[1]) {
            continue;
        }
        let unchanged =
            [&pair[0], &pair[1]].map(|range| range.seen.map_or(Duration::ZERO, |s| s.unchanged_for));
        let wait = draft.policy.merge_after.saturating_sub(unchanged[0].min(unchanged[1]));
        if wait.is_zero() {
            found.ready.push(index);
            continue;
        }
        if paired != Some(index) {
            found.waiting += 1;
            paired = Some(index + 1);
        }
        found.early.push((wait, index));
        if found.early.len() > LINES_PER_KIND {
            found.early.pop();
        }
    }
    found
}

/// Whether two neighbours are cold, and small enough to be merged.
fn cold(policy: &Policy, mark: f64, left: &View<'_>, right: &View<'_>) -> bool {
    let mebibytes = u64::from(left.mebibytes) + u64::from(right.mebibytes);
    f64::from(left.peak + right.peak) < mark
        && mebibytes <= policy.merge_bytes_max >> 20
        && !left.taken
        && !right.taken
}

/// Merges the range at this index with the next one, if their servers are not in too many merges.
fn merge_pair(draft: &mut Draft<'_>, index: usize, limit: u32) -> Result<(), MergeWait> {
    let (left, right) = (&draft.ranges[index], &draft.ranges[index + 1]);
    let (left_server, right_server) = (left.server(), right.server());
    let servers = || [left_server, right_server.filter(|right| Some(*right) != left_server)];
    let peak = f64::from(left.peak + right.peak);
    let (left, right) = (left.entry, right.entry);
    let id = |server: u32| draft.fleet.get(server).id;
    if let Some(busy) = servers().into_iter().flatten().find(|s| draft.fleet.get(*s).merges >= limit) {
        return Err(MergeWait::Turn { server: id(busy) });
    }
    let moves_first = left_server.zip(right_server).filter(|(at, from)| at != from);
    let moves_first = moves_first.map(|(at, from)| (id(from), id(at)));
    if moves_first.is_some() && !draft.churn.spend(draft.ranges[index + 1].rate) {
        return Err(MergeWait::Budget { share: draft.churn.share });
    }
    for server in servers().into_iter().flatten() {
        draft.fleet.get_mut(server).merges += 1;
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
    Ok(())
}

/// Reports why merges wait: first those that were refused, then those that can be made soonest. Each range is
/// named in one pair only, and not more pairs are named than there are spare ranges.
fn report_waiting(
    draft: &mut Draft<'_>,
    refused: Vec<(usize, MergeWait)>,
    early: BinaryHeap<(Duration, usize)>,
    waiting: usize,
    spare: usize,
) {
    let of = draft.policy.merge_after;
    let refusals = refused.len();
    let early = early.into_sorted_vec().into_iter();
    let early = early.map(|(left, index)| (index, MergeWait::Unchanged { left, of }));
    let (mut lines, mut early_lines) = (0, 0);
    for (place, (index, until)) in refused.into_iter().chain(early).enumerate() {
        let free = |range: &View<'_>| !range.taken && !range.told;
        if lines == spare || !draft.ranges[index..=index + 1].iter().all(free) {
            continue;
        }
        draft.ranges[index].told = true;
        draft.ranges[index + 1].told = true;
        let (left, right) = (draft.ranges[index].entry.id, draft.ranges[index + 1].entry.id);
        draft.report.say(Reported::MergeWaits { left, right, until });
        lines += 1;
        early_lines += usize::from(place >= refusals);
    }
    draft.report.count_only(Kind::MergeWaits, waiting.saturating_sub(early_lines).min(spare - lines));
}

//! Splits of ranges for which a verdict says that a split helps.
//!
//! The range's owner judges *whether* a split helps, because it sees the load. The planner only decides
//! *when*. A few ranges are split in one tick, the hottest first, as long as the map may grow. Both halves
//! stay on the same server; the next plan moves one of them if that server is too busy.

use std::cmp::Reverse;

use super::draft::Draft;
use super::fleet::Level;
use super::report::{NoSplit, Reported, SplitWait};
use crate::key::is_partition_boundary;
use crate::load::Cause;
use crate::range_map::Change;

pub(super) fn split(draft: &mut Draft<'_>) {
    let hot = judged(draft);
    let ranges = draft.ranges.len();
    let room = (draft.policy.ranges_per_server_high as usize * draft.fleet.serving_count()).max(1);
    let limit = ((ranges as f64 * draft.policy.splits_share) as usize).max(1);
    let mut begun = 0;
    for index in hot {
        let range = draft.ranges[index].entry.id;
        let wait = match cut(draft, index) {
            Err(wait) => Some(wait),
            Ok(_) if ranges + begun >= room => Some(SplitWait::Room { limit: room }),
            Ok(_) if begun >= limit => Some(SplitWait::Turn { limit }),
            Ok((change, above)) => {
                let rate = draft.ranges[index].rate;
                draft.ranges[index].taken = true;
                draft.changes.push(change);
                draft.report.say(Reported::Split { range, rate, above });
                begun += 1;
                None
            }
        };
        if let Some(until) = wait {
            draft.report.say(Reported::SplitWaits { range, until });
        }
    }
}

/// The ranges that are to be split, the hottest first; those with another verdict are reported.
fn judged(draft: &mut Draft<'_>) -> Vec<usize> {
    let mut judged: Vec<usize> =
        (0..draft.ranges.len()).filter(|index| draft.ranges[*index].judged).collect();
    judged.sort_by_key(|index| (Reverse(Level(draft.ranges[*index].rate)), *index));
    judged.retain(|index| {
        let range = &draft.ranges[*index];
        let why = range.seen.and_then(|seen| seen.cause.as_deref()).and_then(NoSplit::of);
        if let Some(why) = why {
            draft.report.say(Reported::NotSplit { range: range.entry.id, rate: range.rate, why });
        }
        why.is_none()
    });
    judged
}

/// The split that the verdict asks for, and the share of the load above the cut; or why it has to wait.
fn cut(draft: &Draft<'_>, index: usize) -> Result<(Change, f64), SplitWait> {
    let range = &draft.ranges[index];
    if !range.is_free() || range.lost {
        return Err(SplitWait::Busy);
    }
    let Some(Cause::Split { at, above, .. }) = range.seen.and_then(|seen| seen.cause.as_deref()) else {
        return Err(SplitWait::NewVerdict);
    };
    if !range.entry.keys.is_cut_by(at) || !is_partition_boundary(at) {
        return Err(SplitWait::NewVerdict);
    }
    let (range, generation) = (range.entry.id, range.entry.generation);
    Ok((Change::Split { range, generation, at: at.clone() }, *above))
}

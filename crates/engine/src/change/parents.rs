//! The steps of a change on the ranges that it replaces.

use std::sync::Arc;

use futures::future::join_all;
use rangehold_map::{RangeEntry, RangeId};
use tokio::time::Duration;
use uuid::Uuid;

use super::record::{self, Decided, Decision};
use super::{ChangeError, StepError};
use crate::database::DatabaseError;
use crate::map_store::Maps;
use crate::partition_server::PartitionServer;
use crate::range::{Frozen, NotReady, Range};
use crate::record_name::RecordName;

/// Brings a range near the state in which its freeze is short, within `within`.
pub(crate) async fn get_ready(
    server: &PartitionServer,
    entry: (RangeId, rangehold_map::Generation),
    within: Duration,
) -> Result<(), ChangeError> {
    let (range, generation) = entry;
    let held = server.held(range, generation)?;
    held.get_ready(within).await.map_err(|waits_for| ChangeError::NotYet { range, waits_for })
}

/// Holds the writes of all these ranges, and waits until those under way are in the log. If one of them takes too
/// long, none is held.
pub(super) async fn freeze(ranges: &[Arc<Range>]) -> Result<Vec<Frozen>, StepError> {
    let freezing = ranges.iter().map(async |range| range.freeze().await.ok_or(slow(range.id())));
    // All at the same time: otherwise the first would be held while the second ends its writes.
    join_all(freezing).await.into_iter().collect()
}

/// The writes of a range could not be held.
pub(super) fn slow(range: RangeId) -> StepError {
    StepError::NotReady { range, waits_for: NotReady::WritesUnderWay }
}

/// Retires ranges whose writes are held; returns a checkpoint of each.
pub(super) async fn retire(ranges: &[Arc<Range>], record: RecordName) -> Result<Vec<Uuid>, StepError> {
    // Waits for all of them, even if one fails: what is still under way could not be undone.
    let retired = join_all(ranges.iter().map(|range| range.retire(record))).await;
    Ok(retired.into_iter().collect::<Result<_, _>>()?)
}

/// Opens the ranges of these entries, in their order, which shuts out everybody who had them open. They are added to
/// `opened` one by one, so that the caller can end them if a later one fails.
pub(super) async fn open(
    server: &PartitionServer,
    entries: &[RangeEntry],
    opened: &mut Vec<Arc<Range>>,
) -> Result<(), DatabaseError> {
    for entry in entries {
        opened.push(server.open_range(entry, entry.generation, None).await?);
    }
    Ok(())
}

/// Takes the retirement row away.
pub(super) async fn unretire(ranges: &[Arc<Range>]) -> Result<(), StepError> {
    for range in ranges {
        range.unretire().await?;
    }
    Ok(())
}

/// What came of a range that is retired by a change of which the map says nothing.
pub(super) enum Other {
    /// That change is undone: the range is no longer retired.
    Undone,
    /// That change counts.
    Counts,
}

/// Undoes the change that has retired a range and of which the map says nothing, unless that change counts. To be
/// asked only for a range that was opened, and of which the map, read after that, still says the same.
pub(super) async fn settle_other(maps: &Maps, range: &Range, record: RecordName) -> Result<Other, StepError> {
    match record::decide(record, maps.objects(), &Decision::Undone).await? {
        Decided::ByUs | Decided::Before(Decision::Undone) => {
            range.unretire().await?;
            Ok(Other::Undone)
        }
        Decided::Before(Decision::Done { .. }) => Ok(Other::Counts),
    }
}

/// Sees to a range that was opened because the map gives it to a server, and that is retired by `record`.
///
/// Either the map has gone on since, and the process that changed it sees to the range. Or the map was set back, or
/// a step failed that may not fail: then the range may be served only if its change is undone.
pub(crate) async fn settle_retired(
    maps: &Maps,
    range: &Range,
    record: RecordName,
) -> Result<(), ChangeError> {
    let id = range.id();
    // Opening the database has shut out all others. A process that retires it after this look has opened it after us.
    let map = maps.refresh().await?;
    if map.get(id).is_none_or(|entry| entry.generation != range.generation()) {
        return Err(ChangeError::Overtaken { range: id });
    }
    match settle_other(maps, range, record).await {
        Ok(Other::Undone) => Ok(()),
        Ok(Other::Counts) => Err(ChangeError::MapTooOld(id, record)),
        Err(source) => Err(ChangeError::BrokenOff { range: id, source }),
    }
}

/// Saves and closes ranges.
pub(super) async fn close_all(ranges: &[Arc<Range>]) {
    for range in ranges {
        range.close().await;
    }
}

/// Gives up databases that were opened and shall not be served.
pub(crate) async fn end_all(ranges: &[Arc<Range>]) {
    for range in ranges {
        range.let_go();
        range.end().await;
    }
}

//! What a change writes into the map: first its intent, at the end what came of it.
//!
//! The end is written only over the entry on which the change was begun. If the map says anything else of it by
//! then, another process has brought the change to its end.

use std::sync::Arc;

use rangehold_map::{Change, ChangeRefused, RangeEntry, RangeId, RangeMap};
use tokio::time::sleep;

use super::ChangeError;
use crate::error::with_causes;
use crate::limits::PUBLISH_AGAIN_AFTER;
use crate::map_store::Maps;

/// The map says something else of the range than when the change was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overtaken;

/// Writes the intent of a change into the map, or the change itself if that is all there is to do (offline, online).
/// Returns that map, and the entry of `range` in it.
pub(crate) async fn begin(
    maps: &Maps,
    change: &Change,
    range: RangeId,
) -> Result<(Arc<RangeMap>, RangeEntry), ChangeError> {
    let map = maps.change(|map| map.begin(change)).await??;
    let entry = map.get(range).ok_or(ChangeRefused::UnknownRange { range })?.clone();
    Ok((map, entry))
}

/// Writes into the map what has already happened. There is no way back, so it tries until the store takes it.
pub(super) async fn publish(
    maps: &Maps,
    begun: &RangeEntry,
    change: impl Fn(&RangeMap) -> Result<RangeMap, ChangeRefused>,
) -> Result<Arc<RangeMap>, Overtaken> {
    let change_if_begun = |map: &RangeMap| {
        if map.get(begun.id) != Some(begun) {
            return Err(ChangeRefused::NotBegun { range: begun.id, doing: "in this change" });
        }
        change(map)
    };
    loop {
        match maps.change(change_if_begun).await {
            Ok(published) => return published.map_err(|_| Overtaken),
            Err(error) => {
                tracing::error!(error = with_causes(&error), "the map could not be stored; trying again");
            }
        }
        sleep(PUBLISH_AGAIN_AFTER).await;
    }
}

/// Takes the intent out of the map: the ranges go on as they were, in their next generation.
pub(super) async fn publish_undone(maps: &Maps, begun: &RangeEntry) -> Result<Arc<RangeMap>, Overtaken> {
    publish(maps, begun, |map| map.undone(begun.id)).await
}

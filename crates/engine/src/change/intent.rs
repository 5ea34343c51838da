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
use crate::map_store::{MapError, Maps};

/// Why what has happened is not in the map.
#[derive(Debug)]
pub(super) enum NotPublished {
    /// The map says something else of the range than when the change was begun.
    Overtaken,
    /// The version breaks the rules of maps, so it is not stored however often it is tried. This is a bug.
    Unsound(MapError),
}

impl NotPublished {
    /// The error of the change.
    pub(super) fn of(self, range: RangeId) -> ChangeError {
        match self {
            Self::Overtaken => ChangeError::Overtaken { range },
            Self::Unsound(error) => ChangeError::BrokenOff { range, source: error.into() },
        }
    }
}

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

/// Writes into the map what has already happened. There is no way back, so it tries until the store takes it. Only a
/// version that breaks the rules of maps is given up: trying again makes the same version.
pub(super) async fn publish(
    maps: &Maps,
    begun: &RangeEntry,
    change: impl Fn(&RangeMap) -> Result<RangeMap, ChangeRefused>,
) -> Result<Arc<RangeMap>, NotPublished> {
    let change_if_begun = |map: &RangeMap| {
        if map.get(begun.id) != Some(begun) {
            return Err(ChangeRefused::NotBegun { range: begun.id, doing: "in this change" });
        }
        change(map)
    };
    loop {
        match maps.change(change_if_begun).await {
            Ok(published) => return published.map_err(|_| NotPublished::Overtaken),
            Err(error @ MapError::Unsound(..)) => {
                tracing::error!(range = %begun.id, error = with_causes(&error), "a change is broken off");
                return Err(NotPublished::Unsound(error));
            }
            Err(error) => {
                tracing::error!(error = with_causes(&error), "the map could not be stored; trying again");
            }
        }
        sleep(PUBLISH_AGAIN_AFTER).await;
    }
}

/// Takes the intent out of the map: the ranges go on as they were, in their next generation.
pub(super) async fn publish_undone(maps: &Maps, begun: &RangeEntry) -> Result<Arc<RangeMap>, NotPublished> {
    publish(maps, begun, |map| map.undone(begun.id)).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use object_store::memory::InMemory;
    use rangehold_map::{DatabaseName, Generation, Home, KeyRange, ServerId};

    use super::*;
    use crate::map_store;

    #[tokio::test(start_paused = true)]
    async fn a_change_that_would_make_a_bad_map_ends_with_an_error_and_is_not_tried_again() {
        let objects: Arc<dyn object_store::ObjectStore> = Arc::new(InMemory::new());
        let database = DatabaseName { range: RangeId(1), generation: Generation::FIRST, attempt: 1 };
        let map = RangeMap::single(RangeId(1), Home { server: ServerId(1), database });
        map_store::create(&objects, &map, "first").await.unwrap();
        let maps = Maps::new(Arc::clone(&objects), map.clone(), "one".to_owned());
        let with_gap = |map: &RangeMap| {
            let mut entries = map.entries().to_vec();
            entries[0].keys = KeyRange::new(vec![0x30], None);
            Ok(RangeMap::new(map.version() + 1, map.next_range(), entries))
        };
        let published = publish(&maps, &map.entries()[0], with_gap);
        let ended = tokio::time::timeout(Duration::from_secs(60), published).await.expect("it ends");
        let error = ended.unwrap_err().of(RangeId(1));
        let text = with_causes(&error);
        assert!(matches!(error, ChangeError::BrokenOff { .. }), "{text}");
        assert!(text.contains("keys before r1 belong to no range"), "{text}");
        assert_eq!(map_store::load(&objects).await.unwrap(), Some(map), "the store is as it was");
    }
}

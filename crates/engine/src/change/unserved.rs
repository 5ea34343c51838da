//! Undoes a change that was broken off, without opening its ranges: one of them is damaged, and nobody serves any.
//!
//! Ranges that were retired stay so. The process that opens one reads the change record then, and finds that the change is
//! undone ([`super::settle_retired`]).

use rangehold_map::{Intent, RangeId};

use super::ChangeError;
use super::record::{self, Decided, Decision};
use super::replacement::Replacement;
use crate::map_store::Maps;

/// Undoes the change that was begun on this range, in the newest map. False if the change counts, and has to be
/// finished.
pub(crate) async fn undo_unserved(maps: &Maps, range: RangeId) -> Result<bool, ChangeError> {
    let map = maps.current();
    let begun = match map.get(range) {
        Some(entry) => match entry.intent {
            Some(Intent::MergeWith { left }) => map.get(left),
            _ => Some(entry),
        },
        None => None,
    };
    // A move needs no record: the database is one, and the range goes on where it was.
    if let Some(replacement) = begun.and_then(|begun| Replacement::of(begun, &map)) {
        let decided = record::decide(replacement.record(), maps.objects(), &Decision::Undone).await;
        match decided.map_err(|source| ChangeError::BrokenOff { range, source })? {
            Decided::ByUs | Decided::Before(Decision::Undone) => {}
            Decided::Before(Decision::Done { .. }) => return Ok(false),
        }
    }
    maps.change(|map| map.undone(range)).await??;
    Ok(true)
}

//! Ranges that the map gives to a server and that it could not open, because what is stored of them is damaged. A
//! request for one of them is told of the damage; the other ranges are served as always.

use std::sync::Arc;

use rangehold_map::{KeyRange, RangeEntry, RangeId};

use super::PartitionServer;
use crate::error::{Damaged, ReadError, with_causes};
use crate::range::Range;

/// A range that could not be opened.
pub(super) struct Unopened {
    range: RangeId,
    keys: KeyRange,
    damage: Damaged,
}

impl PartitionServer {
    /// Notes that a range could not be opened. The note goes when the server serves its keys.
    pub(crate) fn note_damaged(&self, entry: &RangeEntry, damage: &Damaged) {
        tracing::error!(
            range = %entry.id, damage = with_causes(damage),
            "the range cannot be opened; the others are served. Bring the file back, or restore a backup into an empty \
             directory with `rangehold restore`"
        );
        let mut unopened = self.0.unopened.lock();
        unopened.retain(|other| other.range != entry.id);
        unopened.push(Unopened { range: entry.id, keys: entry.keys.clone(), damage: damage.clone() });
    }

    /// Forgets the notes about keys that are served now.
    pub(super) fn forget_damaged(&self, served: &[Arc<Range>]) {
        let is_served = |keys: &KeyRange| served.iter().any(|range| !range.keys().intersect(keys).is_empty());
        self.0.unopened.lock().retain(|unopened| !is_served(&unopened.keys));
    }

    /// Why `key` cannot be answered for, if no range here holds it.
    pub(super) fn not_held(&self, key: &[u8]) -> ReadError {
        self.damage_in(|keys| keys.contains(key)).map_or(ReadError::NotOwned, ReadError::Damaged)
    }

    /// Why not all of `keys` can be answered for.
    pub(super) fn not_covered(&self, part: &KeyRange) -> ReadError {
        let damage = self.damage_in(|keys| !keys.intersect(part).is_empty());
        damage.map_or(ReadError::NotOwned, ReadError::Damaged)
    }

    fn damage_in(&self, is_meant: impl Fn(&KeyRange) -> bool) -> Option<Damaged> {
        // Another server may serve it by now.
        if self.has_ended() {
            return None;
        }
        let unopened = self.0.unopened.lock();
        unopened.iter().find(|unopened| is_meant(&unopened.keys)).map(|unopened| unopened.damage.clone())
    }

    /// The ranges that could not be opened, each with the reason.
    pub(super) fn unopened(&self) -> Vec<(RangeId, String)> {
        self.0
            .unopened
            .lock()
            .iter()
            .map(|unopened| (unopened.range, with_causes(&unopened.damage)))
            .collect()
    }

    /// Whether a range with some of these keys could not be opened.
    pub(crate) fn has_damaged(&self, keys: &KeyRange) -> bool {
        self.0.unopened.lock().iter().any(|unopened| !unopened.keys.intersect(keys).is_empty())
    }
}

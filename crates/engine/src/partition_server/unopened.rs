//! Ranges that the map gives to a server and that it could not open, because what is stored of them is damaged. A
//! request for one of them is told of the damage; the other ranges are served as always.

use std::sync::Arc;

use rangehold_map::{KeyRange, RangeEntry, RangeId};

use super::PartitionServer;
use crate::database::database_path;
use crate::error::{Damaged, ReadError, with_causes};
use crate::range::Range;

/// A range that could not be opened.
pub(super) struct Unopened {
    range: RangeId,
    keys: KeyRange,
    damage: Damaged,
}

/// Whether a text names the database at `path`, and not one whose path begins with it.
fn is_named(text: &str, path: &str) -> bool {
    text.split(path).skip(1).any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

impl PartitionServer {
    /// Notes that a range could not be opened. The note goes when the server serves its keys. The damage may be that of another
    /// range, with which this one was about to be merged.
    pub(crate) fn note_damaged(&self, entry: &RangeEntry, damage: &Damaged) {
        let why = with_causes(damage);
        if is_named(&why, &database_path(entry.place.database)) {
            tracing::error!(
                range = %entry.id, damage = why,
                "the range cannot be opened; the others are served. Bring the file back, or stop the service and restore this \
                 range from a backup with `rangehold restore --range`"
            );
        } else {
            tracing::error!(
                range = %entry.id, damage = why,
                "the range waits for the end of a change, and the damaged file is that of another range: mend or restore that one"
            );
        }
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

#[cfg(test)]
mod tests {
    use super::is_named;

    #[test]
    fn damage_names_its_own_database_only() {
        let damage = "the file /data/ranges/3-1-12/manifest/7.manifest is damaged";
        assert!(is_named(damage, "ranges/3-1-12"));
        assert!(!is_named(damage, "ranges/3-1-1"));
        assert!(is_named("there is no database at ranges/3-1-1", "ranges/3-1-1"));
    }
}

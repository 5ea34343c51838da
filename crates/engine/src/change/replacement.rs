//! Which ranges a split or a merge replaces, and by which: read from the intent in the map.
//!
//! A split has one parent and two heirs, a merge two parents and one heir. Nothing else in the protocol differs
//! between them.

use rangehold_map::{ChangeRefused, Home, Intent, KeyRange, RangeEntry, RangeId, RangeMap, ServerId};

use super::table::Attempt;
use crate::map_store::heir;
use crate::range::Identity;
use crate::record_name::RecordName;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    /// The entries of the parents as they were when the change was begun, in the order of their keys.
    parents: Vec<RangeEntry>,
    /// The heirs and their keys, in the order of their keys.
    heirs: Vec<(RangeId, KeyRange)>,
}

impl Replacement {
    /// The split or merge that is begun on this entry of the map; `None` if its intent is something else, such as
    /// the right side of a merge.
    pub(crate) fn of(begun: &RangeEntry, map: &RangeMap) -> Option<Self> {
        let (low, high) = (begun.keys.low().to_vec(), begun.keys.high().map(<[u8]>::to_vec));
        match begun.intent.as_ref()? {
            Intent::Split { at, left, right } => Some(Self {
                parents: vec![begun.clone()],
                heirs: vec![
                    (*left, KeyRange::new(low, Some(at.clone()))),
                    (*right, KeyRange::new(at.clone(), high)),
                ],
            }),
            Intent::Merge { right, into } => {
                let right = map.get(*right)?.clone();
                let keys = KeyRange::new(low, right.keys.high().map(<[u8]>::to_vec));
                Some(Self { parents: vec![begun.clone(), right], heirs: vec![(*into, keys)] })
            }
            Intent::MergeWith { .. } | Intent::Move { .. } => None,
        }
    }

    /// The entry that has the intent: the parent, or the left one of two.
    pub(super) fn begun(&self) -> &RangeEntry {
        &self.parents[0]
    }

    /// The entries of the parents, in the order of their keys.
    pub(crate) fn parents(&self) -> &[RangeEntry] {
        &self.parents
    }

    /// The ids of the heirs, in the order of their keys.
    pub(super) fn heirs(&self) -> Vec<RangeId> {
        self.heirs.iter().map(|(id, _)| *id).collect()
    }

    /// The heirs as this attempt makes them.
    pub(super) fn heirs_of(&self, attempt: Attempt) -> impl Iterator<Item = Identity> {
        self.heirs.iter().map(move |(id, keys)| Identity {
            id: *id,
            keys: keys.clone(),
            database: heir(*id, attempt),
        })
    }

    /// The name of the record that decides about this change.
    pub(super) fn record(&self) -> RecordName {
        RecordName { range: self.begun().id, generation: self.begun().generation.next() }
    }

    /// Whether the map says of the parents what it said when the change was begun.
    pub(super) fn is_begun_in(&self, map: &RangeMap) -> bool {
        self.parents.iter().all(|parent| map.get(parent.id) == Some(parent))
    }

    /// Whether the map names the heirs of this attempt, at this server.
    pub(super) fn is_done_in(&self, map: &RangeMap, attempt: Attempt, server: ServerId) -> bool {
        self.heirs_of(attempt).all(|heir| {
            let place = Home { server, database: heir.database };
            map.get(heir.id).is_some_and(|entry| entry.place == place)
        })
    }

    /// The next map, in which the heirs of this attempt are at this server.
    pub(super) fn done(
        &self,
        map: &RangeMap,
        attempt: Attempt,
        server: ServerId,
    ) -> Result<RangeMap, ChangeRefused> {
        let homes: Vec<Home> =
            self.heirs_of(attempt).map(|heir| Home { server, database: heir.database }).collect();
        match homes.as_slice() {
            [left, right] => map.split_done(self.begun().id, *left, *right),
            [merged] => map.merge_done(self.begun().id, *merged),
            _ => unreachable!("a change has one heir or two"),
        }
    }
}

//! Changes of the map. Each is a pure function from one version to the next, or a refusal.

use super::{ChangeRefused, DatabaseName, Home, Intent, RangeEntry, RangeMap};
use crate::key::is_partition_boundary;
use crate::range::{Generation, KeyRange, RangeId};

/// A change of the map, made for ranges in certain generations.
///
/// The generation makes it harmless to carry a change out late or twice: after any change the range is in a
/// later generation, or is no longer in the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Split a range in two.
    Split {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
        /// The first key of the right half.
        at: Vec<u8>,
    },
    /// Merge two neighbours into one range.
    Merge {
        /// The one with the lower keys.
        left: RangeId,
        /// The generation it must be in.
        left_generation: Generation,
        /// The other.
        right: RangeId,
        /// The generation it must be in.
        right_generation: Generation,
    },
    /// Move a range to another server.
    Move {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
        /// The new server, with the database that the range has already.
        to: Home,
    },
    /// Make a range refuse every request.
    Offline {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
    },
    /// Make a range serve again.
    Online {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
    },
}

impl Intent {
    /// The change in words, such as "being split".
    pub fn doing(&self) -> &'static str {
        match self {
            Self::Split { .. } => "being split",
            Self::Merge { .. } | Self::MergeWith { .. } => "being merged",
            Self::Move { .. } => "being moved",
        }
    }
}

impl RangeMap {
    /// The next version, in which `change` is begun. Offline and online have no second step: they are done at
    /// once. The ids of new ranges are taken from [`RangeMap::next_range`].
    ///
    /// A merge may be begun on ranges of different servers. The executor brings both to one server first.
    pub fn begin(&self, change: &Change) -> Result<Self, ChangeRefused> {
        if let Change::Move { range, to, .. } = change
            && self.get(*range).is_some_and(|entry| entry.place.database != to.database)
        {
            return Err(ChangeRefused::OtherDatabase { range: *range });
        }
        match change {
            Change::Split { range, generation, at } => self.begin_split(*range, *generation, at),
            Change::Merge { left, left_generation, right, right_generation } => {
                self.begin_merge((*left, *left_generation), (*right, *right_generation))
            }
            Change::Move { range, generation, to } => self.begin_move(*range, *generation, to),
            Change::Offline { range, generation } => self.set_online(*range, *generation, false),
            Change::Online { range, generation } => self.set_online(*range, *generation, true),
        }
    }

    fn begin_split(&self, range: RangeId, generation: Generation, at: &[u8]) -> Result<Self, ChangeRefused> {
        let index = self.serving(range, generation)?;
        let keys = &self.entries[index].keys;
        if !keys.is_cut_by(at) {
            return Err(ChangeRefused::OutsideRange { range, at: at.to_vec(), keys: keys.clone() });
        }
        if !is_partition_boundary(at) {
            return Err(ChangeRefused::CutsPartition { range, at: at.to_vec() });
        }
        let mut next = self.next_version();
        let (left, right) = (next.give_id(), next.give_id());
        next.entries[index].intent = Some(Intent::Split { at: at.to_vec(), left, right });
        Ok(next)
    }

    fn begin_merge(
        &self,
        (left, left_generation): (RangeId, Generation),
        (right, right_generation): (RangeId, Generation),
    ) -> Result<Self, ChangeRefused> {
        let left_index = self.serving(left, left_generation)?;
        let right_index = self.serving(right, right_generation)?;
        if right_index != left_index + 1 {
            return Err(ChangeRefused::NotNeighbours { left, right });
        }
        let mut next = self.next_version();
        let into = next.give_id();
        next.entries[left_index].intent = Some(Intent::Merge { right, into });
        next.entries[right_index].intent = Some(Intent::MergeWith { left });
        Ok(next)
    }

    fn begin_move(&self, range: RangeId, generation: Generation, to: &Home) -> Result<Self, ChangeRefused> {
        let index = self.serving(range, generation)?;
        if self.entries[index].place == *to {
            return Err(ChangeRefused::Already { range, how: "on that server" });
        }
        let mut next = self.next_version();
        next.entries[index].intent = Some(Intent::Move { to: *to });
        Ok(next)
    }

    fn set_online(
        &self,
        range: RangeId,
        generation: Generation,
        online: bool,
    ) -> Result<Self, ChangeRefused> {
        let index = self.changeable(range, generation)?;
        if self.entries[index].online == online {
            return Err(ChangeRefused::Already { range, how: if online { "online" } else { "offline" } });
        }
        let mut next = self.next_version();
        let entry = &mut next.entries[index];
        entry.online = online;
        entry.generation = entry.generation.next();
        Ok(next)
    }

    /// The next version, in which the split that was begun on `range` is done: two ranges in their first
    /// generation, at these places.
    pub fn split_done(&self, range: RangeId, left: Home, right: Home) -> Result<Self, ChangeRefused> {
        let index = self.index(range)?;
        let Some(Intent::Split { at, left: left_id, right: right_id }) = &self.entries[index].intent else {
            return Err(ChangeRefused::NotBegun { range, doing: "being split" });
        };
        let keys = &self.entries[index].keys;
        let left_keys = KeyRange::new(keys.low().to_vec(), Some(at.clone()));
        let right_keys = KeyRange::new(at.clone(), keys.high().map(<[u8]>::to_vec));
        let halves = [fresh(*left_id, left_keys, left), fresh(*right_id, right_keys, right)];
        let mut next = self.next_version();
        next.entries.splice(index..=index, halves);
        Ok(next)
    }

    /// The next version, in which the merge that was begun on `left` is done: one range in its first
    /// generation, at this place.
    pub fn merge_done(&self, left: RangeId, merged: Home) -> Result<Self, ChangeRefused> {
        let index = self.index(left)?;
        let Some(Intent::Merge { into, .. }) = &self.entries[index].intent else {
            return Err(ChangeRefused::NotBegun { range: left, doing: "the left range of a merge" });
        };
        let partner =
            self.partner(index).ok_or(ChangeRefused::NotBegun { range: left, doing: "being merged" })?;
        let low = self.entries[index].keys.low().to_vec();
        let high = self.entries[partner].keys.high().map(<[u8]>::to_vec);
        let whole = fresh(*into, KeyRange::new(low, high), merged);
        let mut next = self.next_version();
        next.entries.splice(index..=partner, [whole]);
        Ok(next)
    }

    /// The next version, in which the move that was begun on `range` is done.
    pub fn move_done(&self, range: RangeId) -> Result<Self, ChangeRefused> {
        let index = self.index(range)?;
        let Some(Intent::Move { to }) = &self.entries[index].intent else {
            return Err(ChangeRefused::NotBegun { range, doing: "being moved" });
        };
        let mut next = self.next_version();
        let entry = &mut next.entries[index];
        entry.place = *to;
        entry.intent = None;
        entry.generation = entry.generation.next();
        Ok(next)
    }

    /// The next version, in which the change that was begun on `range` is undone. A merge is undone on both
    /// sides, and either side may be named. The generation grows, so a process that still works at the change
    /// cannot continue it.
    pub fn undone(&self, range: RangeId) -> Result<Self, ChangeRefused> {
        let index = self.index(range)?;
        if self.entries[index].intent.is_none() {
            return Err(ChangeRefused::NotBegun { range, doing: "being changed" });
        }
        let mut next = self.next_version();
        for index in [Some(index), self.partner(index)].into_iter().flatten() {
            let entry = &mut next.entries[index];
            entry.intent = None;
            entry.generation = entry.generation.next();
        }
        Ok(next)
    }

    /// The next version, in which each of these ranges is at the given place, one generation after the given
    /// one. The ranges must be online and have no intent.
    ///
    /// A process that opens ranges that nobody serves assigns them first, even if their place stays the same.
    /// If two processes open the same ranges, the second one is refused here, because the generation has grown.
    pub fn assigned(&self, ranges: &[(RangeId, Generation, Home)]) -> Result<Self, ChangeRefused> {
        let mut next = self.next_version();
        for (range, generation, place) in ranges {
            let index = self.serving(*range, *generation)?;
            let entry = &mut next.entries[index];
            entry.place = *place;
            entry.generation = generation.next();
        }
        Ok(next)
    }

    /// The next version, in which the range has another database, one generation later: its rows were restored from a
    /// backup. The range may be offline, but it must have no intent.
    pub fn restored(
        &self,
        range: RangeId,
        generation: Generation,
        database: DatabaseName,
    ) -> Result<Self, ChangeRefused> {
        let index = self.changeable(range, generation)?;
        let mut next = self.next_version();
        let entry = &mut next.entries[index];
        entry.place.database = database;
        entry.generation = generation.next();
        Ok(next)
    }

    fn index(&self, range: RangeId) -> Result<usize, ChangeRefused> {
        let index = self.entries.iter().position(|entry| entry.id == range);
        index.ok_or(ChangeRefused::UnknownRange { range })
    }

    /// The index of a range that is in this generation and has no intent.
    fn changeable(&self, range: RangeId, made_for: Generation) -> Result<usize, ChangeRefused> {
        let index = self.index(range)?;
        let entry = &self.entries[index];
        if entry.generation != made_for {
            return Err(ChangeRefused::OtherGeneration { range, made_for, is_in: entry.generation });
        }
        match &entry.intent {
            Some(intent) => Err(ChangeRefused::Begun { range, doing: intent.doing() }),
            None => Ok(index),
        }
    }

    /// As [`Self::changeable`], but the range must also be online.
    fn serving(&self, range: RangeId, made_for: Generation) -> Result<usize, ChangeRefused> {
        let index = self.changeable(range, made_for)?;
        if self.entries[index].online { Ok(index) } else { Err(ChangeRefused::Offline { range }) }
    }

    /// The index of the other side of a merge that was begun on this one.
    fn partner(&self, index: usize) -> Option<usize> {
        let (other, id) = match self.entries[index].intent {
            Some(Intent::Merge { right, .. }) => (index + 1, right),
            Some(Intent::MergeWith { left }) => (index.checked_sub(1)?, left),
            _ => return None,
        };
        self.entries.get(other).filter(|entry| entry.id == id).map(|_| other)
    }

    fn next_version(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    fn give_id(&mut self) -> RangeId {
        let id = self.next_range;
        self.next_range = id.next();
        id
    }
}

/// The entry of a new range.
fn fresh(id: RangeId, keys: KeyRange, place: Home) -> RangeEntry {
    RangeEntry { id, keys, generation: Generation::FIRST, place, online: true, intent: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::ServerId;

    #[test]
    fn a_restored_range_keeps_its_owner_and_gets_another_database_also_while_it_is_offline() {
        let database = |generation, attempt| DatabaseName { range: RangeId(1), generation, attempt };
        let home = Home { server: ServerId(3), database: database(Generation(1), 1) };
        let map = RangeMap::single(RangeId(1), home);
        let map = map.begin(&Change::Offline { range: RangeId(1), generation: Generation(1) }).unwrap();
        let new = database(Generation(3), 2);
        let restored = map.restored(RangeId(1), Generation(2), new).unwrap();
        let entry = restored.get(RangeId(1)).unwrap();
        assert_eq!((entry.generation, entry.online), (Generation(3), false));
        assert_eq!(entry.place, Home { database: new, ..home });
        let late = restored.restored(RangeId(1), Generation(2), new);
        assert!(matches!(late, Err(ChangeRefused::OtherGeneration { .. })), "it is restored once");
    }
}

//! Changes of a map: what can be asked for, and the next version that it makes.

use super::{ChangeRefused, Home, Intent, RangeEntry, RangeMap};
use crate::key::is_partition_boundary;
use crate::range::{Generation, KeyRange, RangeId};

/// A change of the map, made for ranges in certain generations.
///
/// The generation makes it harmless to carry a change out late, or twice: once the range was
/// changed, by this or by another change, it is in a later generation or is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Make two ranges of one.
    Split {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
        /// The first key of the right half.
        at: Vec<u8>,
    },
    /// Make one range of two neighbours.
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
    /// Put a range somewhere else.
    Move {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
        /// Where to. In the service a move changes the server alone, never the database.
        to: Home,
    },
    /// Let a range refuse every request.
    Offline {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
    },
    /// Let a range serve again.
    Online {
        /// The range.
        range: RangeId,
        /// The generation it must be in.
        generation: Generation,
    },
}

impl Intent {
    /// What the range is being done, in a word: "being split".
    pub fn doing(&self) -> &'static str {
        match self {
            Self::Split { .. } => "being split",
            Self::Merge { .. } | Self::MergeWith { .. } => "being merged",
            Self::Move { .. } => "being moved",
        }
    }
}

impl RangeMap {
    /// The next version, in which `change` is begun; offline and online need no more and are done.
    /// Ids of ranges to come are taken from [`RangeMap::next_range`].
    ///
    /// Places are not compared in a merge: that both ranges must be on one server is a rule of
    /// whoever carries merges out.
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
            return Err(ChangeRefused::Already { range, how: "there" });
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

    /// The next version, in which the split begun on `range` is done: two ranges in their first
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

    /// The next version, in which the merge begun on `left` is done: one range in its first
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

    /// The next version, in which the move begun on `range` is done.
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

    /// The next version, in which what was begun on `range` is undone; a merge on both its sides,
    /// whichever of them is named. The generation grows, so that nobody who still works at the
    /// change can go on with it.
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

    /// The next version, in which each of these ranges is at this place, in the generation that follows
    /// the one named. Nothing may be begun on them.
    ///
    /// Who opens ranges that nobody serves assigns them first, whether or not their place is another
    /// one: of two who open the same ranges the map knows one, and whoever comes second is refused.
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

    fn index(&self, range: RangeId) -> Result<usize, ChangeRefused> {
        let index = self.entries.iter().position(|entry| entry.id == range);
        index.ok_or(ChangeRefused::UnknownRange { range })
    }

    /// The index of a range that is in this generation and has nothing begun.
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

    /// As [`Self::changeable`], and online.
    fn serving(&self, range: RangeId, made_for: Generation) -> Result<usize, ChangeRefused> {
        let index = self.changeable(range, made_for)?;
        if self.entries[index].online { Ok(index) } else { Err(ChangeRefused::Offline { range }) }
    }

    /// The index of the other side, if a merge is begun on this one.
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

/// A range that a change has made.
fn fresh(id: RangeId, keys: KeyRange, place: Home) -> RangeEntry {
    RangeEntry { id, keys, generation: Generation::FIRST, place, online: true, intent: None }
}

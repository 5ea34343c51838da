//! The map of ranges: which range holds which keys, and where each range is.
//!
//! A map is immutable. A change makes the next versions of it in two steps, because the work between them can
//! fail: databases are cloned, one owner closes the range, another opens it.
//!
//! ```text
//!              begin                        split_done, merge_done, move_done
//!   version 7 -------> version 8, with an --------------------------------------> version 9,
//!                      Intent in the entry \                                      the new ranges
//!                                           \------------------------------> version 9, as 7 was,
//!                                                    undone                  generations higher
//! ```
//!
//! The intent makes a crash harmless: the process that opens the range next reads in the map which change was
//! begun, and finishes or undoes it. While a range has an intent, no other change of it can begin.
//!
//! Each change is made *for* a generation. Moves, offline and online make the next generation; a split and a
//! merge make new ranges. So a change that comes late or twice finds another generation and is refused: see
//! [`Change`].
//!
//! Users' shard maps ([`crate::shard`]) are another type: they have gaps and other changes. Both keep their
//! entries in the same layer, [`Ordered`].

mod change;
mod check;
mod home;
mod refused;

pub use change::Change;
pub use check::Finding;
pub use home::{DatabaseName, Home, NotADatabaseName};
pub use refused::ChangeRefused;

use crate::ordered::{Keyed, Ordered};
use crate::range::{Generation, KeyRange, RangeId};

/// One line of the map: a range and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeEntry {
    /// Which range.
    pub id: RangeId,
    /// The keys it holds.
    pub keys: KeyRange,
    /// The generation it is in.
    pub generation: Generation,
    /// The server that owns it and the database that holds it.
    pub place: Home,
    /// Whether it serves. An offline range still has an owner, which refuses every request at once.
    pub online: bool,
    /// The change that was begun and is not finished.
    pub intent: Option<Intent>,
}

/// A change that was begun and is neither done nor undone. The ids of new ranges are taken from the map at the
/// beginning of the change, and are never given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// The range is being split in two.
    Split {
        /// The first key of the right one.
        at: Vec<u8>,
        /// The range that will hold the keys below `at`.
        left: RangeId,
        /// The range that will hold the rest.
        right: RangeId,
    },
    /// The range and its right neighbour are being merged.
    Merge {
        /// The neighbour, whose intent is [`Intent::MergeWith`] this one.
        right: RangeId,
        /// The range that will hold the keys of both.
        into: RangeId,
    },
    /// The range is the right one of a merge. Its left neighbour has [`Intent::Merge`].
    MergeWith {
        /// The left neighbour.
        left: RangeId,
    },
    /// The range is being moved to another server.
    Move {
        /// Where it goes.
        to: Home,
    },
}

/// One immutable version of the map.
///
/// In every version each key belongs to exactly one range ([`RangeMap::check`]). To front ends a map is a
/// hint: a server that is asked for a key checks that it owns the key, so a stale map costs a retry and never
/// gives a wrong answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeMap {
    version: u64,
    /// The id for the next new range; all ids that were given are below it.
    next_range: RangeId,
    entries: Ordered<RangeEntry>,
}

impl Keyed for RangeEntry {
    fn keys(&self) -> &KeyRange {
        &self.keys
    }
}

impl RangeMap {
    /// The first map of a service: one range holds the whole key space.
    pub fn single(id: RangeId, place: Home) -> Self {
        let entry = RangeEntry {
            id,
            keys: KeyRange::whole(),
            generation: Generation::FIRST,
            place,
            online: true,
            intent: None,
        };
        Self::new(1, id.next(), vec![entry])
    }

    /// A map of the given entries, in the order of their keys. It is not checked.
    pub fn new(version: u64, next_range: RangeId, entries: Vec<RangeEntry>) -> Self {
        Self { version, next_range, entries: Ordered::new(entries) }
    }

    /// The number of this version; each change makes a greater one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The id for the next new range; all ids that were ever given are below it.
    pub fn next_range(&self) -> RangeId {
        self.next_range
    }

    /// The ranges in the order of their keys.
    pub fn entries(&self) -> &[RangeEntry] {
        &self.entries
    }

    /// The ranges in the order of their keys, by value.
    pub fn into_entries(self) -> Vec<RangeEntry> {
        self.entries.into_vec()
    }

    /// The range that holds `key`; `None` below the key space or in a gap.
    pub fn lookup(&self, key: &[u8]) -> Option<&RangeEntry> {
        self.entries.lookup(key)
    }

    /// The range `id`, if the map has it. The search is linear.
    pub fn get(&self, id: RangeId) -> Option<&RangeEntry> {
        self.entries.iter().find(|e| e.id == id)
    }

    /// The ranges that hold some of `keys`, in the order of their keys.
    pub fn overlapping<'a>(&'a self, keys: &'a KeyRange) -> impl Iterator<Item = &'a RangeEntry> {
        self.entries.overlapping(keys).iter()
    }
}

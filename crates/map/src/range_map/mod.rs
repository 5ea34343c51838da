//! The map: which range holds which keys, and where it is.
//!
//! A map is immutable. A change makes the next version of it, in two steps, because between them
//! lies work that can fail: databases are cloned, an owner lets go, another takes over.
//!
//! ```text
//!              begin                        split_done, merge_done, move_done
//!   version 7 -------> version 8, with an --------------------------------------> version 9,
//!                      Intent in the entry \                                      the new ranges
//!                                           \------------------------------> version 9, as 7 was,
//!                                                    undone                  generations higher
//! ```
//!
//! The intent is what makes a crash harmless: whoever comes next reads in the map what was going
//! on, and finishes it or undoes it. While it stands, the range takes no other change.
//!
//! Each change is made *for* a generation, and makes a later one (a split and a merge make new
//! ranges instead). So a change that comes late or twice finds another generation than its own and
//! is refused: see [`Change`].
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
    /// Where it is.
    pub place: Home,
    /// Whether it serves. One that does not is still owned, and refuses every request at once.
    pub online: bool,
    /// The change that is under way.
    pub intent: Option<Intent>,
}

/// A change that was begun and is neither done nor undone. The ids of ranges to come were taken
/// from the map when it began, and are never given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// The range is to become two.
    Split {
        /// The first key of the right one.
        at: Vec<u8>,
        /// The range that will hold the keys below `at`.
        left: RangeId,
        /// The range that will hold the rest.
        right: RangeId,
    },
    /// The range and its right neighbour are to become one.
    Merge {
        /// The neighbour, whose intent is [`Intent::MergeWith`] this one.
        right: RangeId,
        /// The range that will hold the keys of both.
        into: RangeId,
    },
    /// The range is the right one of a merge.
    MergeWith {
        /// The neighbour, which has [`Intent::Merge`].
        left: RangeId,
    },
    /// The range is to be somewhere else.
    Move {
        /// There.
        to: Home,
    },
}

/// Which range holds which keys, and where it is: one immutable version.
///
/// In every version each key belongs to exactly one range ([`RangeMap::check`]). To front ends a
/// map is a hint: whoever is asked for a key checks for himself whether he owns it, so a stale map
/// costs a retry and never a wrong answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeMap {
    version: u64,
    /// The id for the next range to be made; all given ids are below it.
    next_range: RangeId,
    entries: Ordered<RangeEntry>,
}

impl Keyed for RangeEntry {
    fn keys(&self) -> &KeyRange {
        &self.keys
    }
}

impl RangeMap {
    /// A first map: the whole key space is one range.
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

    /// The id for the next range to be made; all ids that were ever given are below it.
    pub fn next_range(&self) -> RangeId {
        self.next_range
    }

    /// The ranges in the order of their keys.
    pub fn entries(&self) -> &[RangeEntry] {
        &self.entries
    }

    /// The ranges in the order of their keys, for whoever makes another map of them.
    pub fn into_entries(self) -> Vec<RangeEntry> {
        self.entries.into_vec()
    }

    /// The range that holds `key`; `None` below the key space or in a gap.
    pub fn lookup(&self, key: &[u8]) -> Option<&RangeEntry> {
        self.entries.lookup(key)
    }

    /// The range `id`, if the map has it. Looks at every entry until it is found.
    pub fn get(&self, id: RangeId) -> Option<&RangeEntry> {
        self.entries.iter().find(|e| e.id == id)
    }

    /// The ranges that hold some of `keys`, in the order of their keys.
    pub fn overlapping<'a>(&'a self, keys: &'a KeyRange) -> impl Iterator<Item = &'a RangeEntry> {
        self.entries.overlapping(keys).iter()
    }
}

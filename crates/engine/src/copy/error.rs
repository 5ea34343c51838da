//! Why a store or a range was not copied.

use rangehold_map::{ChangeRefused, RangeId};

use super::location;
use crate::change::ChangeError;
use crate::database::DatabaseError;
use crate::error::{Damaged, ReadError, read_error};
use crate::limits::CHECKPOINT_LIFETIME;
use crate::map_store::MapError;
use crate::store::{ObjectError, Store, StoreError, StoreLocation, damaged_file};

/// Why a store or a range was not copied. Whatever the reason, the source is unchanged. If a store was to be copied and
/// anything was written to the target, it cannot be opened, but it can be copied to again. If a range was to be restored,
/// the target is served as before.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store in memory exists only inside its process.
    #[error("memory: cannot be copied from or to; give a directory")]
    InMemory,
    /// The source and the target are the same, or one is inside the other.
    #[error("{from} and {to} are the same place, or one lies in the other; give separate directories")]
    SamePlace {
        /// The source.
        from: StoreLocation,
        /// The target.
        to: StoreLocation,
    },
    /// The base does not say what it holds.
    #[error(
        "{base} cannot be the base: it does not say what was copied into it (an earlier release made it, or it is not a copy); copy without a base, and take that copy as the base of the next one"
    )]
    NoNotes {
        /// The base.
        base: StoreLocation,
    },
    /// The source or the target could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The source has no map of ranges.
    #[error("{from} holds no tables yet: it was never served")]
    NeverServed {
        /// The source.
        from: StoreLocation,
    },
    /// The map of ranges could not be read or stored.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A file of a large object, or the hold that keeps these files, could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The process did not run for so long, or the clock leapt so far, that files of large objects may have been deleted
    /// before they were copied.
    #[error("the copy was held up for over {} minutes (or the clock was set ahead), and {from} may have deleted files of large objects meanwhile; copy again", CHECKPOINT_LIFETIME.as_secs() / 60)]
    TooLate {
        /// The source.
        from: StoreLocation,
    },
    /// A file of a large object is damaged in the source.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The operating system gave no thread for compaction.
    #[error("the compaction runtime could not be started")]
    Runtime(#[source] std::io::Error),
    /// A database could not be opened or made.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A row could not be read.
    #[error("range {range} of {store} cannot be read")]
    Read {
        /// The store: the source, or the directory of which one range is restored.
        store: StoreLocation,
        /// The range.
        range: RangeId,
        /// Why.
        source: ReadError,
    },
    /// A row could not be written to the target.
    #[error("range {range} cannot be written to {store}")]
    Write {
        /// The target.
        store: StoreLocation,
        /// The range.
        range: RangeId,
        /// What SlateDB said.
        source: slatedb::Error,
    },
    /// The target's disk has too little space left.
    #[error("the disk of {to} is full (a copy leaves {} MiB of it free); make room, or copy to another one", reserve_bytes >> 20)]
    DiskFull {
        /// The target.
        to: StoreLocation,
        /// Free bytes below which nothing is written.
        reserve_bytes: u64,
    },
    /// The manifest of a range changed at each attempt to find a moment.
    #[error("range {range} changes too fast to be copied; try again when there are fewer writes")]
    Unsteady {
        /// The range.
        range: RangeId,
    },
    /// A change of ranges is under way, and did not end while the copy waited for it.
    #[error(
        "{range} of {from} is changing hands; copy again (if nobody serves {from}: start the service once, which brings the change to its end)"
    )]
    Changing {
        /// The source.
        from: StoreLocation,
        /// The range.
        range: RangeId,
    },
    /// The map has no such range.
    #[error("{store} has no range {range}; it has {known} (`rangehold ranges` shows what each holds)")]
    NoSuchRange {
        /// The store.
        store: StoreLocation,
        /// The range that was asked for.
        range: RangeId,
        /// The ranges of the map.
        known: String,
    },
    /// A change of the range was begun, and could not be undone.
    #[error("the change of ranges that was broken off cannot be undone")]
    NotUndone(#[source] ChangeError),
    /// A change of the range was begun, and has to be brought to its end first.
    #[error(
        "{range} of {store} is {doing}: start the service once, which brings that to its end, and restore the range then"
    )]
    Begun {
        /// The store.
        store: StoreLocation,
        /// The range.
        range: RangeId,
        /// The change, such as "being split".
        doing: &'static str,
    },
    /// The map of ranges was not changed.
    #[error("the map of ranges was not changed")]
    Refused(#[source] ChangeRefused),
    /// A row of an object could not be understood.
    #[error("a row of an object in range {range} of {store} cannot be read: {why}")]
    BadRow {
        /// The store with the range.
        store: StoreLocation,
        /// The range.
        range: RangeId,
        /// Why.
        why: String,
    },
    /// A file of large objects has other bytes in the target than in the backup, and both are whole.
    #[error(
        "{path} has other bytes here than in the backup: after the backup, this directory and another copy of it went on with the same upload, so one range cannot be restored into it; restore the whole backup into a new directory"
    )]
    OtherFile {
        /// The file.
        path: String,
    },
    /// Ranges were split, merged or moved at each attempt to find a moment of all of them.
    #[error("the ranges of {from} change too fast to be copied; copy again when there are fewer changes")]
    MapChanged {
        /// The source.
        from: StoreLocation,
    },
}

impl CopyError {
    pub(super) fn read(store: &Store, range: RangeId, source: ReadError) -> Self {
        Self::Read { store: location(store), range, source }
    }

    /// For a call of SlateDB that reads.
    pub(super) fn reading(store: &Store, range: RangeId) -> impl Fn(slatedb::Error) -> Self {
        move |error| Self::read(store, range, read_error(error))
    }

    /// For a call of SlateDB that writes.
    pub(super) fn writing(store: &Store, range: RangeId) -> impl Fn(slatedb::Error) -> Self {
        move |source| Self::Write { store: location(store), range, source }
    }

    /// Whether a file of large objects is damaged in the source.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Object(error) => damaged_file(error).is_some(),
            _ => false,
        }
    }

    pub(super) fn bad_row(store: &Store, range: RangeId) -> impl Fn(String) -> Self {
        move |why| Self::BadRow { store: location(store), range, why }
    }
}

//! Marks in the log: empty files, by each of which an opening of a database shuts out the openings before it.
//!
//! SlateDB makes a file of the log only if there is none of its name. An opening makes the next file itself, and leaves it
//! empty. So a writer from before, which believes that this name is free, fails and knows that it is shut out. If the mark
//! were deleted while that writer has a file under way, the file would be made and its rows acknowledged, and nobody
//! would ever read them, since the newer opening goes on behind it. So a mark may go only when every opening before it is over.
//! Its age proves nothing.
//!
//! | openings before a mark | are they over? |
//! |---|---|
//! | of processes before this one | yes, if the store's lock proves that they have ended ([`Store::others_are_over`](crate::store::Store)) |
//! | of this process | not certainly: a database that was closed may still have a file under way |
//!
//! So the marks that were there when this process first opened a database may go. Its own stay until the next start, and are
//! counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The marks in the logs of all databases. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    others_are_over: bool,
    /// For the path of each database: its log when this process first opened it.
    found: Mutex<BTreeMap<String, FoundLog>>,
    made: AtomicU64,
}

/// The log of a database before an opening.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundLog {
    /// The number of its last file.
    pub(super) last: u64,
    /// How many files the opening reads.
    pub(super) read: usize,
}

impl Marks {
    /// `others_are_over`: whether no process before this one can have an opening.
    pub(crate) fn new(others_are_over: bool) -> Self {
        Self(Arc::new(Inner { others_are_over, ..Inner::default() }))
    }

    /// Notes that the database at `path` is about to be opened.
    pub(super) fn note_opening(&self, path: &str, log: FoundLog) {
        self.0.found.lock().entry(path.to_owned()).or_insert(log);
    }

    /// Notes that it was opened.
    pub(super) fn note_opened(&self) {
        self.0.made.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the database at `path` was deleted.
    pub(crate) fn forget(&self, path: &str) {
        self.0.found.lock().remove(path);
    }

    /// The last file of the log of the database at `path` that may be deleted if it is a mark; `None` if no mark may be.
    pub(crate) fn may_go_up_to(&self, path: &str) -> Option<u64> {
        let last = self.0.found.lock().get(path)?.last;
        (self.0.others_are_over && last > 0).then_some(last)
    }

    /// How many files of its log the first opening of the database at `path` has read; 0 if they are no longer needed, or may
    /// not go. `replaced_until`: the last file that is no longer needed.
    pub(crate) fn still_read(&self, path: &str, replaced_until: u64) -> usize {
        let found = self.0.found.lock().get(path).copied();
        let found = found.filter(|log| self.0.others_are_over && replaced_until < log.last);
        found.map_or(0, |log| log.read)
    }

    /// How many marks this process has made.
    pub(crate) fn made(&self) -> u64 {
        self.0.made.load(Ordering::Relaxed)
    }
}

//! Which objects are in the journal, and where.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use super::segment::Segment;

/// Where an object lies.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) segment: Arc<Segment>,
    /// Where its payload begins in the segment.
    pub(super) start: u64,
    /// The length of the payload and its seal.
    pub(super) len: u64,
    pub(super) modified: SystemTime,
}

/// The objects of the journal by their paths.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: BTreeMap<String, Entry>,
    /// Bytes of the objects in each segment, by its number; segments without objects are left out.
    live: HashMap<u64, u64>,
}

impl Index {
    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// The objects below `prefix`, in the order of their paths. All, if it is empty.
    pub(super) fn below(&self, prefix: &str) -> impl Iterator<Item = (&String, &Entry)> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let behind = self.entries.range::<str, _>(from);
        behind.take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// The paths of the objects in a segment.
    pub(super) fn in_segment(&self, number: u64) -> impl Iterator<Item = &String> {
        self.entries
            .iter()
            .filter(move |(_, entry)| entry.segment.name.number == number)
            .map(|(path, _)| path)
    }

    pub(super) fn insert(&mut self, path: String, entry: Entry) {
        *self.live.entry(entry.segment.name.number).or_default() += entry.len;
        if let Some(replaced) = self.entries.insert(path, entry) {
            self.no_longer_live(&replaced);
        }
    }

    /// Removes an object. Returns where it was.
    pub(super) fn remove(&mut self, path: &str) -> Option<Entry> {
        let removed = self.entries.remove(path)?;
        self.no_longer_live(&removed);
        Some(removed)
    }

    /// Removes the objects in a segment that begin at `from` or behind it.
    pub(super) fn remove_behind(&mut self, number: u64, from: u64) {
        let paths: Vec<String> = self.in_segment(number).cloned().collect();
        for path in paths {
            if self.entries[&path].start >= from {
                self.remove(&path);
            }
        }
    }

    /// The bytes of the objects in a segment.
    pub(super) fn live_bytes(&self, number: u64) -> u64 {
        self.live.get(&number).copied().unwrap_or(0)
    }

    fn no_longer_live(&mut self, entry: &Entry) {
        let number = entry.segment.name.number;
        if let Some(bytes) = self.live.get_mut(&number) {
            *bytes -= entry.len;
            if *bytes == 0 {
                self.live.remove(&number);
            }
        }
    }
}

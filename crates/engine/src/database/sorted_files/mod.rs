//! The sorted files of a database, read without the engine's iterators.
//!
//! A row of the engine's own scan passes through some ten iterators, which costs 1.4 µs and more. Here whole blocks are read
//! and decoded, and the files are merged by a few comparisons. See `docs/design/0019-cold-scans.md`.
//!
//! ```text
//!   manifest > runs of files that do not overlap ([`Run`]) > one cursor for each run > merged ([`FileScan`])
//! ```
//!
//! These are only the rows that are in sorted files. A caller must know by itself which rows lie in the memtable. (In a range
//! that is `range::snapshot_rows`.)

mod cursor;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use rangehold_map::KeyRange;
use slatedb::SstReader;
use slatedb::db_cache::DbCache;
use slatedb::manifest::{SsTableId, SsTableView, VersionedManifest};

pub(crate) use self::scan::FileScan;
use super::shares::Caches;

/// How the sorted files of one database are read, whatever its manifest names.
#[derive(Clone)]
pub(crate) struct FileReader {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Where the database is.
    pub(super) path: String,
    pub(super) caches: Caches,
}

/// The files that one manifest names.
pub(crate) struct SortedFiles {
    runs: Vec<Run>,
    /// The number of the manifest.
    manifest: u64,
    /// The sequence number up to which all rows are in these files.
    sequence: u64,
}

/// Files whose intervals of keys do not overlap, ascending. (Only of one key the versions may lie in two of them.)
type Run = Vec<File>;

/// What a database may show of one file.
struct File {
    view: SsTableView,
    readers: Arc<Readers>,
    low: Bytes,
    high: Bound<Bytes>,
}

/// Reads the files of one directory.
struct Readers {
    keeping_blocks: SstReader,
    keeping_no_blocks: SstReader,
}

impl FileReader {
    /// The files that `manifest` names.
    pub(crate) fn files(&self, manifest: &VersionedManifest) -> SortedFiles {
        let own = Arc::new(self.readers(&self.path));
        let mut lent: BTreeMap<SsTableId, Arc<Readers>> = BTreeMap::new();
        for lender in manifest.external_dbs() {
            let readers = Arc::new(self.readers(&lender.path));
            lent.extend(lender.sst_ids.iter().map(|id| (*id, Arc::clone(&readers))));
        }
        let file = |view: &SsTableView| File::new(view, lent.get(&view.sst.id).unwrap_or(&own));
        let newest = manifest.l0().iter().map(|view| vec![file(view)]);
        let older = manifest.compacted().iter().map(|run| run.sst_views().iter().map(file).collect());
        SortedFiles {
            runs: newest.chain(older).collect(),
            manifest: manifest.id(),
            sequence: manifest.last_l0_seq(),
        }
    }

    fn readers(&self, path: &str) -> Readers {
        let reader = |cache: &Arc<dyn DbCache>| {
            SstReader::new(path, Arc::clone(&self.objects), Some(Arc::clone(cache)), None)
        };
        Readers { keeping_blocks: reader(&self.caches.all), keeping_no_blocks: reader(&self.caches.metadata) }
    }
}

impl SortedFiles {
    /// Whether these are the files that `manifest` names.
    pub(crate) fn are_of(&self, manifest: &VersionedManifest) -> bool {
        self.manifest == manifest.id() && self.sequence == manifest.last_l0_seq()
    }

    /// Whether there is no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The sequence number up to which all rows are in these files.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The rows of `keys`, in order, as the writes up to the sequence number `newest` left them.
    pub(crate) fn scan(self: &Arc<Self>, keys: &KeyRange, newest: u64, caches_blocks: bool) -> FileScan {
        FileScan::new(Arc::clone(self), keys, newest, caches_blocks)
    }
}

impl File {
    fn new(view: &SsTableView, readers: &Arc<Readers>) -> Self {
        let info = &view.sst.info;
        let mut low = info.first_entry.clone().unwrap_or_default();
        let mut high = info.last_entry.clone().map_or(Bound::Unbounded, Bound::Included);
        // A clone shows only a part of some of its parents' files.
        if let Some(visible) = view.visible_range() {
            match visible.start_bound() {
                Bound::Included(start) => low = low.max(start.clone()),
                Bound::Excluded(start) => low = low.max([start, &b"\0"[..]].concat().into()),
                Bound::Unbounded => {}
            }
            high = first_end(high, visible.end_bound().cloned());
        }
        Self { view: view.clone(), readers: Arc::clone(readers), low, high }
    }

    /// Whether `key` lies before the end of what it shows.
    fn reaches(&self, key: &[u8]) -> bool {
        match &self.high {
            Bound::Included(last) => key <= last.as_ref(),
            Bound::Excluded(high) => key < high.as_ref(),
            Bound::Unbounded => true,
        }
    }
}

/// The end that comes first.
fn first_end(one: Bound<Bytes>, other: Bound<Bytes>) -> Bound<Bytes> {
    // At the same key, the end without that key comes first.
    let place = |end: &Bound<Bytes>| match end {
        Bound::Excluded(key) => Some((key.clone(), false)),
        Bound::Included(key) => Some((key.clone(), true)),
        Bound::Unbounded => None,
    };
    match (place(&one), place(&other)) {
        (_, None) => one,
        (None, Some(_)) => other,
        (Some(first), Some(second)) => {
            if first <= second {
                one
            } else {
                other
            }
        }
    }
}

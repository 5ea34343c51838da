//! What a database reads from the files of others.
//!
//! A split or a merge copies nothing: the children's manifests name the files of their parents, and
//! pin them there. So each retired parent stays, whole, for as long as one child reads one of its
//! files. What is said here is read off a manifest; nothing is looked up.

use std::collections::BTreeSet;

use slatedb::manifest::{SsTableId, VersionedManifest};

use crate::limits::BORROWED_FROM_MAX;

/// What a database reads from the files of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Borrowed {
    /// How many others.
    pub databases: usize,
    /// How many files.
    pub files: usize,
    /// The bytes of these files, whole, though perhaps only a part of each is read. Several children
    /// of one parent all count what they share.
    pub bytes: u64,
}

impl Borrowed {
    /// What the database of this manifest borrows.
    pub(crate) fn in_manifest(manifest: &VersionedManifest) -> Self {
        let files = files(manifest);
        let mut counted = BTreeSet::new();
        let borrowed = manifest.all_sst_views().filter(|view| files.contains(&view.sst.id));
        let once = borrowed.filter(|view| counted.insert(view.sst.id));
        Self {
            databases: lenders_read(manifest).len(),
            bytes: once.map(|view| view.estimate_size()).sum(),
            files: files.len(),
        }
    }

    /// Whether a range over such a database may be split or merged now. If not, it has to be
    /// rewritten first (`Housekeeping::rewrite`).
    pub fn lets_split(&self) -> bool {
        self.databases <= BORROWED_FROM_MAX
    }
}

/// The files of others that a manifest names.
pub(crate) fn files(manifest: &VersionedManifest) -> BTreeSet<SsTableId> {
    manifest.external_dbs().iter().flat_map(|lender| lender.sst_ids.iter().copied()).collect()
}

/// The databases that a manifest names files of.
pub(crate) fn lenders_read(manifest: &VersionedManifest) -> BTreeSet<&str> {
    let read = manifest.external_dbs().iter().filter(|lender| !lender.sst_ids.is_empty());
    read.map(|lender| lender.path.as_str()).collect()
}

/// The databases that a manifest still pins something in, though perhaps it reads nothing of them
/// any more.
pub(crate) fn lenders(manifest: &VersionedManifest) -> impl Iterator<Item = &str> {
    manifest.external_dbs().iter().map(|lender| lender.path.as_str())
}

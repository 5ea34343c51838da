//! What a database reads from the files of others.
//!
//! A split or a merge copies nothing: the manifests of the children name files of the parents, and pin them
//! there. So each retired parent stays as a whole as long as one child reads one of its files. All numbers
//! here are read off a manifest; the store is not asked.

use std::collections::BTreeSet;

use slatedb::manifest::{SsTableId, VersionedManifest};

use crate::limits::BORROWED_FROM_MAX;

/// What a database reads from the files of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Borrowed {
    /// How many other databases.
    pub databases: usize,
    /// How many files.
    pub files: usize,
    /// The bytes of these whole files, even if only a part of each is read. If several children of one
    /// parent share a file, each of them counts it.
    pub bytes: u64,
}

impl Borrowed {
    /// What the database with this manifest borrows.
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

    /// Whether a range over such a database may be split or merged now. If not, the database must be
    /// rewritten first (`HousekeeperHandle::rewrite`).
    pub fn lets_split(&self) -> bool {
        self.databases <= BORROWED_FROM_MAX
    }
}

/// The files of other databases that a manifest names.
pub(crate) fn files(manifest: &VersionedManifest) -> BTreeSet<SsTableId> {
    manifest.external_dbs().iter().flat_map(|lender| lender.sst_ids.iter().copied()).collect()
}

/// The databases whose files a manifest names.
pub(crate) fn lenders_read(manifest: &VersionedManifest) -> BTreeSet<&str> {
    let read = manifest.external_dbs().iter().filter(|lender| !lender.sst_ids.is_empty());
    read.map(|lender| lender.path.as_str()).collect()
}

/// The databases in which a manifest still pins something, even if it reads none of their files any more.
pub(crate) fn lenders(manifest: &VersionedManifest) -> impl Iterator<Item = &str> {
    manifest.external_dbs().iter().map(|lender| lender.path.as_str())
}

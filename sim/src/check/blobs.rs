//! Blobs after an audit: no chunk that a row names is missing, and no file is left that no row names.

use std::collections::{BTreeMap, BTreeSet};

use rangehold_map::blob::BlobId;

/// Blobs, each with the numbers of some of its chunks.
pub type Chunks = BTreeMap<BlobId, BTreeSet<u32>>;

/// All blobs of a store, as three sorts of witnesses have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blobs {
    /// What the rows of objects and uploads name.
    pub named: Chunks,
    /// The blobs that have a row of their own.
    pub counted: BTreeSet<BlobId>,
    /// The blobs of uploads that go on. They may have chunks that no row names yet.
    pub growing: BTreeSet<BlobId>,
    /// The files.
    pub files: Chunks,
}

/// What is wrong when nothing is under way, in words.
pub fn check(blobs: &Blobs) -> Vec<String> {
    let mut findings = Vec::new();
    let none = BTreeSet::new();
    for (blob, chunks) in &blobs.named {
        let files = blobs.files.get(blob).unwrap_or(&none);
        let missing = chunks.difference(files);
        findings
            .extend(missing.map(|chunk| format!("chunk {chunk} of blob {blob} is needed and is not there")));
        if !blobs.growing.contains(blob) {
            let stray = files.difference(chunks);
            findings
                .extend(stray.map(|chunk| format!("chunk {chunk} of blob {blob} is not named by any row")));
        }
        if !blobs.counted.contains(blob) {
            findings.push(format!("blob {blob} is needed and has no row"));
        }
    }
    let is_left = |blob: &&BlobId| !blobs.named.contains_key(blob);
    let left = blobs.counted.iter().filter(is_left);
    findings.extend(left.map(|blob| format!("blob {blob} has a row and is not used")));
    let left = blobs.files.keys().filter(is_left);
    findings.extend(left.map(|blob| format!("blob {blob} has files and is not used")));
    findings
}

//! Tells whether two databases hold the same rows, without reading their sorted files.
//!
//! The rows of a database at one moment are those of its sorted files and those of the log behind them. A sorted file never
//! changes, and its name is never given again: SlateDB draws it from the time and from chance. So the same files, seen
//! in the same way, and the same rows in the log are the same rows. Other files may hold the same rows too, as after a
//! compaction: that is not seen here.

use std::sync::Arc;

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slatedb::manifest::VersionedManifest;
use slatedb::{ValueDeletable, WalReader};

/// What a database holds at one moment, as a digest. If two are the same, the rows are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Contents(String);

impl Contents {
    /// Of the database at `path`: of the files that `manifest` names, and the rows in the log files `log` up to the sequence
    /// number `last`.
    pub(super) async fn of(
        path: &str,
        objects: Arc<dyn ObjectStore>,
        manifest: &VersionedManifest,
        log: &[u64],
        last: u64,
    ) -> Result<Self, slatedb::Error> {
        let mut digest = Parts::default();
        // A view is what a database sees of a file. Another part of the same file is another view.
        manifest.all_sst_views().for_each(|view| digest.add(&view.id.to_bytes()));
        digest.end();
        let in_files = manifest.last_l0_seq();
        let reader = WalReader::new(path, objects);
        for number in log {
            let mut rows = reader.get(*number).iterator().await?;
            while let Some(row) = rows.next().await? {
                if row.seq <= in_files || row.seq > last {
                    continue;
                }
                digest.add(&row.seq.to_be_bytes());
                digest.add(&row.key);
                match &row.value {
                    ValueDeletable::Value(value) | ValueDeletable::Merge(value) => digest.add(value),
                    ValueDeletable::Tombstone => digest.end(),
                }
            }
        }
        Ok(Self(const_hex::encode(digest.0.finalize())))
    }
}

/// A digest of byte strings. Each goes in with its length, so that the same bytes in other strings make another digest.
#[derive(Default)]
struct Parts(Sha256);

impl Parts {
    fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Adds what no string adds.
    fn end(&mut self) {
        self.0.update(u64::MAX.to_be_bytes());
    }
}

//! The audit of blobs, in the background: some time after the start, and then each day.
//!
//! An upload that breaks off, or a crash between the steps of an upload, a copy or a deletion, can leave a blob that nobody uses.
//! It never leaves an object without its blob. The audit asks for each user of each blob whether one of the user's rows still names
//! the blob, and removes what nobody uses. Then it asks for the chunks that the objects of a blob name, and removes the others.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rangehold_engine::blob::{AuditCursor, BlobError};
use rangehold_engine::{ReadError, with_causes};
use rangehold_map::blob::{BlobId, BlobUser, Extent};
use rangehold_map::key::{ObjectGeneration, ObjectKey, ObjectRow};
use rangehold_map::{KeyRange, PartitionPrefix};
use rangehold_protocol::object::generation::{Content, Generation, Head};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::ObjectService;
use crate::limits::BLOB_AUDIT_AGAIN_AFTER;

impl ObjectService {
    /// Audits the blobs now and then, until `stop` is set.
    pub(crate) async fn keep_up(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut wait = self.options.audit_after_start;
        while !stops_within(wait, &mut stop).await {
            wait = tokio::select! {
                audited = self.audit_blobs() => match audited {
                    Ok(()) => self.options.audit_every,
                    Err(error) => {
                        warn!(error = with_causes(&error), "the audit of blobs was broken off and begins again later");
                        self.options.audit_every.min(BLOB_AUDIT_AGAIN_AFTER)
                    }
                },
                _ = stop.wait_for(|stop| *stop) => return,
            };
        }
    }

    /// Audits all blobs once: removes users that are gone, the files of blobs without users, and chunks that no row names. Does
    /// nothing while a copy of the store is being made.
    pub async fn audit_blobs(&self) -> Result<(), BlobError> {
        let (mut from, mut removed, mut buried) = (AuditCursor::default(), 0, 0);
        loop {
            let audited = self.blobs.audit(&from, |blob, user| self.names(blob, user)).await?;
            removed += audited.removed;
            buried += audited.buried;
            match audited.next {
                Some(next) => from = next,
                None => break,
            }
        }
        let swept = self.blobs.audit_files(|blob, user| self.extents_of(blob, user)).await?;
        buried += swept.blobs;
        if removed + buried + swept.chunks > 0 {
            let chunks = swept.chunks;
            info!(
                removed,
                buried,
                chunks,
                "the audit of blobs removed users that are gone, blobs that nobody uses, and chunks that no row names"
            );
        }
        Ok(())
    }

    /// Whether a row of this user names this blob.
    async fn names(&self, blob: BlobId, user: BlobUser) -> Result<bool, ReadError> {
        let partition = PartitionPrefix::object(user.bucket, &user.name);
        let keys = KeyRange::prefix(partition.as_bytes());
        let look = |found: &mut bool, key: &[u8], row: &Bytes| {
            *found = row_names(key, row, blob, &user.upload);
            if *found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.router.scan(&keys, || false, look).await
    }

    /// The extents of the object by which this user names this blob; `None` if it is not known to be an object.
    async fn extents_of(&self, blob: BlobId, user: BlobUser) -> Result<Option<Vec<Extent>>, ReadError> {
        let partition = PartitionPrefix::object(user.bucket, &user.name);
        let keys = KeyRange::prefix(partition.as_bytes());
        let look = |found: &mut Option<ObjectGeneration>, key: &[u8], row: &Bytes| {
            *found = generation_in(key, row)
                .filter(|stored| stored.uses(blob, &user.upload))
                .map(|stored| stored.id);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let Some(id) = self.router.scan(&keys, || None, look).await? else { return Ok(None) };
        let row = self.router.get(&partition.object_row(&ObjectRow::Content(id))).await?;
        Ok(match row.map(|row| Content::decode(&row)) {
            Some(Ok(Content::Extents(extents))) => Some(extents),
            _ => None,
        })
    }
}

/// The generation in a row of a name; `None` for every other row, and for one that cannot be read.
fn generation_in(key: &[u8], row: &Bytes) -> Option<Generation> {
    match ObjectKey::decode(key).ok()?.row {
        ObjectRow::Head => Head::decode(row).ok().map(|head| head.live),
        ObjectRow::NotLive(_) => Generation::decode(row).ok(),
        _ => None,
    }
}

/// Whether a row of an object uses a blob of which this upload is the user. A row that cannot be read may use it.
fn row_names(key: &[u8], row: &Bytes, blob: BlobId, upload: &str) -> bool {
    match ObjectKey::decode(key).map(|key| key.row) {
        Ok(ObjectRow::Head) => Head::decode(row).map_or(true, |head| head.live.uses(blob, upload)),
        Ok(ObjectRow::NotLive(_)) => Generation::decode(row).map_or(true, |old| old.uses(blob, upload)),
        Ok(ObjectRow::Upload(id) | ObjectRow::Part { upload: id, .. }) => id == upload,
        Ok(ObjectRow::Content(_) | ObjectRow::Answer(_) | ObjectRow::Outcome(_)) => false,
        Err(_) => true,
        Ok(ObjectRow::Tree | ObjectRow::Folder(_) | ObjectRow::FolderName { .. }) => false,
    }
}

/// Waits for so long; true if `stop` is set before.
pub(super) async fn stops_within(wait: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    timeout(wait, stop.wait_for(|stop| *stop)).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use rangehold_map::key::BucketId;

    use super::*;

    #[test]
    fn rows_of_an_upload_keep_its_blobs_and_rows_that_cannot_be_read_keep_all() {
        let partition = PartitionPrefix::object(BucketId(7), "a/b");
        let names = |row: ObjectRow<'_>, value: &'static [u8]| {
            row_names(&partition.object_row(&row), &Bytes::from_static(value), BlobId(1), "own")
        };
        let id = |text: &'static str| Cow::Borrowed(text);
        assert!(names(ObjectRow::Upload(id("own")), b""));
        assert!(names(ObjectRow::Part { upload: id("own"), part: 3 }, b""));
        assert!(!names(ObjectRow::Upload(id("other")), b""));
        assert!(!names(ObjectRow::Part { upload: id("other"), part: 3 }, b""));
        assert!(!names(ObjectRow::Answer(id("own")), b""));
        assert!(!names(ObjectRow::Content(ObjectGeneration(5)), b""));
        assert!(names(ObjectRow::Head, b"damaged"));
        assert!(names(ObjectRow::NotLive(ObjectGeneration(5)), b"damaged"));
        assert!(row_names(b"not a key of an object", &Bytes::new(), BlobId(1), "own"));
    }
}

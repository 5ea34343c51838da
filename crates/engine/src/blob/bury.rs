//! Deleting dead blobs: first the files, then the state row. A crash in between leaves a dead blob, which the audit
//! buries.

use tokio::time::timeout;

use rangehold_map::blob::BlobId;

use super::{BlobError, Blobs, directory_of, rows};
use crate::error::with_causes;
use crate::limits::BLOB_BURIAL_POLL;
use crate::steps::BlobStep;
use crate::store::ObjectError;

impl Blobs {
    /// Deletes a dead blob; later, if a download reads it or a copy holds it.
    pub(super) async fn bury(&self, blob: BlobId) -> Result<(), BlobError> {
        if self.0.in_use.is_pinned(blob) || self.is_held().await? {
            self.0.in_use.wait(blob);
            return Ok(());
        }
        self.delete_files(blob).await?;
        self.after(BlobStep::Emptied, blob).await;
        self.change(blob, None, |rows| Ok(rows::buried(rows))).await?;
        self.after(BlobStep::Buried, blob).await;
        Ok(())
    }

    /// Deletes the files of a blob that has no user.
    pub(super) async fn delete_files(&self, blob: BlobId) -> Result<(), BlobError> {
        let directory = directory_of(blob);
        self.0.databases.delete_objects(directory.as_ref()).await?;
        let removed = self.0.store.remove_directory(directory.as_ref()).await;
        Ok(removed.map_err(ObjectError::while_doing("removing", &directory))?)
    }

    /// Buries dead blobs that had to wait, without end. Run it as a task.
    pub(crate) async fn keep_burying(self) {
        loop {
            let _ = timeout(BLOB_BURIAL_POLL, self.0.in_use.freed()).await;
            for blob in self.0.in_use.take_waiting() {
                if let Err(error) = self.bury(blob).await {
                    let error = with_causes(&error);
                    tracing::warn!(%blob, error, "a blob without users stays for now");
                    self.0.in_use.wait(blob);
                }
            }
        }
    }
}

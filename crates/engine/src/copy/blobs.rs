//! Copies the chunk files of blobs, and checks each block of them on the way.
//!
//! All files are copied that are there after the moments were taken: at least those that the copied rows name, because
//! the hold keeps them. Files that no copied row names are found by the audit of the copy.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::moments::Moments;
use super::rows::while_there_is_room;
use super::{CopyError, CopyReport};
use crate::blob::{self, BLOBS};
use crate::error::Damaged;
use crate::limits::BLOB_BLOCKS_AT_ONCE;
use crate::store::{ObjectError, Store};

/// Copies all chunk files of `source` to `target`.
pub(super) async fn copy_blobs(
    moments: &mut Moments,
    source: &Store,
    target: &Store,
    report: &mut CopyReport,
    progress: &mut (dyn FnMut(&CopyReport) + Send),
) -> Result<(), CopyError> {
    let (from, to) = (source.object_store(), target.object_store());
    let directory = Path::from(BLOBS);
    let failed = ObjectError::while_doing("listing", &directory);
    let mut files = from.list(Some(&directory));
    while let Some(file) = files.try_next().await.map_err(&failed)? {
        let copied = copy_file(moments, &*from, &*to, &file.location, file.size);
        while_there_is_room(target, copied).await??;
        report.chunks += 1;
        report.chunk_bytes += file.size;
        progress(report);
    }
    Ok(())
}

/// Copies one file, and checks each of its blocks.
pub(super) async fn copy_file(
    moments: &mut Moments,
    from: &dyn ObjectStore,
    to: &dyn ObjectStore,
    path: &Path,
    bytes: u64,
) -> Result<(), CopyError> {
    let reading = ObjectError::while_doing("reading", path);
    let writing = ObjectError::while_doing("writing", path);
    let mut upload = to.put_multipart(path).await.map_err(&writing)?;
    let mut at = 0;
    while at < bytes {
        let end = bytes.min(at + BLOB_BLOCKS_AT_ONCE * blob::BLOCK_FILE_BYTES);
        let piece = from.get_range(path, at..end).await.map_err(&reading)?;
        if !blob::are_whole_blocks(piece.clone()) {
            return Err(
                Damaged::new(format!("{path}: a checksum between byte {at} and {end} does not fit")).into()
            );
        }
        upload.put_part(piece.into()).await.map_err(&writing)?;
        at = end;
        moments.renew_when_due().await?;
    }
    upload.complete().await.map_err(&writing)?;
    Ok(())
}

//! Copies a chunk file of a blob, and checks each block of it on the way.

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::CopyError;
use super::moments::Moments;
use crate::blob;
use crate::error::Damaged;
use crate::limits::BLOB_BLOCKS_AT_ONCE;
use crate::store::ObjectError;

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

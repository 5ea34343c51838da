//! Copies chunk files of blobs, and checks each block on the way.

use std::ops::Range;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::CopyError;
use super::moments::Moments;
use crate::blob;
use crate::error::Damaged;
use crate::limits::BLOB_BLOCKS_AT_ONCE;
use crate::store::{ObjectError, damaged_file};

/// How many bytes of a file are read at once.
const PIECE_BYTES: u64 = BLOB_BLOCKS_AT_ONCE * blob::BLOCK_FILE_BYTES;

/// A chunk file that two stores have, and how many bytes it has in each.
pub(super) struct Twice<'a> {
    pub(super) path: &'a Path,
    pub(super) from: (&'a dyn ObjectStore, u64),
    pub(super) to: (&'a dyn ObjectStore, u64),
}

impl Twice<'_> {
    /// Whether the file of `to` can stay: it has the same bytes, or that of `from` is damaged. False if that of `to` is damaged.
    /// Fails if both are whole and have different bytes: two stores that were one went on with the same upload, each for itself.
    pub(super) async fn can_stay(&self, moments: &mut Moments) -> Result<bool, CopyError> {
        let Self { path, from: (from, from_bytes), to: (to, to_bytes) } = *self;
        let mut same = from_bytes == to_bytes;
        for piece in pieces(to_bytes) {
            let Some(there) = whole_blocks(to, path, piece.clone()).await? else { return Ok(false) };
            if same {
                let Some(here) = whole_blocks(from, path, piece).await? else { return Ok(true) };
                same = here == there;
            }
            moments.renew_when_due().await?;
        }
        if same || !is_whole(moments, from, path, from_bytes).await? {
            return Ok(true);
        }
        Err(CopyError::OtherFile { path: path.to_string() })
    }
}

/// Whether no byte of a file is damaged.
async fn is_whole(
    moments: &mut Moments,
    store: &dyn ObjectStore,
    path: &Path,
    bytes: u64,
) -> Result<bool, CopyError> {
    // This looks at the end of the file, where a cut one has no seal.
    if store.head(path).await.is_err_and(|error| damaged_file(&error).is_some()) {
        return Ok(false);
    }
    for piece in pieces(bytes) {
        if whole_blocks(store, path, piece).await?.is_none() {
            return Ok(false);
        }
        moments.renew_when_due().await?;
    }
    Ok(true)
}

/// A file of so many bytes, in pieces of whole blocks.
fn pieces(bytes: u64) -> impl Iterator<Item = Range<u64>> {
    (0..bytes.div_ceil(PIECE_BYTES)).map(move |piece| {
        let at = piece * PIECE_BYTES;
        at..bytes.min(at + PIECE_BYTES)
    })
}

/// Some blocks of a file; `None` if they are damaged.
async fn whole_blocks(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: Range<u64>,
) -> Result<Option<Bytes>, ObjectError> {
    match store.get_range(path, bytes).await {
        Ok(blocks) => Ok(Some(blocks).filter(|blocks| blob::are_whole_blocks(blocks.clone()))),
        Err(error) if damaged_file(&error).is_some() => Ok(None),
        Err(error) => Err(ObjectError::while_doing("reading", path)(error)),
    }
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
    if bytes == 0 {
        // A file that was cut before its seal looks like this. No read of it would find that.
        return Err(Damaged::new(format!("{path} is empty, and a chunk has at least one byte")).into());
    }
    let mut upload = to.put_multipart(path).await.map_err(&writing)?;
    for Range { start, end } in pieces(bytes) {
        let piece = from.get_range(path, start..end).await.map_err(&reading)?;
        if !blob::are_whole_blocks(piece.clone()) {
            let what = format!("{path}: a checksum between byte {start} and {end} does not fit");
            return Err(Damaged::new(what).into());
        }
        upload.put_part(piece.into()).await.map_err(&writing)?;
        moments.renew_when_due().await?;
    }
    upload.complete().await.map_err(&writing)?;
    Ok(())
}

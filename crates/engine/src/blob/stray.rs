//! Stray files: files of blobs that no row names.
//!
//! A crash between a chunk and the row that would name it leaves such a file. So do requests of one upload that come at the
//! same time: the first one wins, and the row never names the chunks of the others. What is deleted:
//!
//! * All files of a blob that has no row. The row of a blob is there before its first file, so this blob was buried.
//! * Of a blob with users, the chunks that none of them names. An upload ends with a list of chunks, and whatever is copied or
//!   composed from its object names all of them. So all objects of a blob name the same chunks of it. That is not so after one
//!   range was restored from a backup in which the upload went on; then users do not agree, and nothing of the blob is deleted.
//!   Nothing is deleted either while one of the users is an upload: its next row names chunks that no row has named before.
//!
//! **A copy that has read a row and is not a user yet.** If the row goes meanwhile, the other users may name other chunks than it
//! did. So a copy reads the row once more when the user is durable. If the row is still there, the audit has asked its user or
//! the new one, and both name the same chunks.

use std::collections::BTreeSet;
use std::future::Future;

use object_store::ObjectStoreExt;
use object_store::path::Path;
use rangehold_map::blob::{BlobId, BlobUser, Extent};
use rangehold_map::key::BlobRow;
use rangehold_map::{KeyRange, PartitionPrefix};

use super::{BLOBS, BlobError, Blobs, chunk};
use crate::error::ReadError;
use crate::store::ObjectError;

/// What a look at the files of all blobs deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Blobs that had only files.
    pub blobs: u64,
    /// Chunks that no row named, in blobs that are used.
    pub chunks: u64,
}

impl Blobs {
    /// Deletes the files that no row names. Call it now and then; it looks at the directories of all blobs. Does nothing while
    /// a copy of the store is being made.
    ///
    /// `extents_of` gives the extents of the object by whose row this user names this blob. It gives `None` if there is no such
    /// object, or if the row cannot be read: perhaps the user is an upload that goes on. Then, and if it tells of damage, nothing
    /// of the blob is deleted.
    pub async fn audit_files<F>(&self, extents_of: impl Fn(BlobId, BlobUser) -> F) -> Result<Swept, BlobError>
    where
        F: Future<Output = Result<Option<Vec<Extent>>, ReadError>>,
    {
        let mut swept = Swept::default();
        if self.is_held().await? {
            return Ok(swept);
        }
        let directory = Path::from(BLOBS);
        let listed = self.objects().list_with_delimiter(Some(&directory)).await;
        let listed = listed.map_err(ObjectError::while_doing("listing", &directory))?;
        let blobs: BTreeSet<BlobId> = listed.common_prefixes.iter().filter_map(blob_in).collect();
        for blob in blobs {
            let Some(rows) = self.readable_rows_of(blob).await? else { continue };
            if rows.is_alive() {
                swept.chunks += self.delete_stray_chunks(blob, &extents_of).await?;
            } else if rows.is_unknown() && !self.0.in_use.is_pinned(blob) {
                self.delete_files(blob).await?;
                swept.blobs += 1;
            }
        }
        Ok(swept)
    }

    /// Deletes the chunks of a blob that none of its users names. Returns how many.
    async fn delete_stray_chunks<F>(
        &self,
        blob: BlobId,
        extents_of: &impl Fn(BlobId, BlobUser) -> F,
    ) -> Result<u64, BlobError>
    where
        F: Future<Output = Result<Option<Vec<Extent>>, ReadError>>,
    {
        // In this order: a chunk that is written after this is not deleted.
        let files = self.chunks_of(blob).await?;
        let (mut named, mut users): (Option<BTreeSet<u32>>, u64) = (None, 0);
        let mut next = Some(KeyRange::prefix(PartitionPrefix::blob(blob).as_bytes()));
        while let Some(keys) = next {
            let (rows, more) = self.rows_in(keys.clone()).await?;
            next = more.map(|key| keys.intersect(&KeyRange::new(key, None)));
            for (_, row) in rows {
                let BlobRow::User(user) = row else { continue };
                if self.0.in_use.is_under_way(&user) {
                    return Ok(0);
                }
                let extents = match extents_of(blob, user).await {
                    Ok(Some(extents)) => extents,
                    Ok(None) | Err(ReadError::Damaged(_)) => return Ok(0),
                    Err(error) => return Err(BlobError::Read(error)),
                };
                let of_user = extents.iter().filter(|extent| extent.blob == blob);
                let of_user: BTreeSet<u32> = of_user.flat_map(Extent::numbers).collect();
                if of_user == files || named.as_ref().is_some_and(|named| *named != of_user) {
                    return Ok(0);
                }
                (named, users) = (Some(of_user), users + 1);
            }
        }
        let Some(named) = named else { return Ok(0) };
        // A blob whose users name what is not there is damaged, and so is one whose users cannot all be read.
        let is_whole = named.is_subset(&files) && users == self.rows_of(blob).await?.users();
        if named.is_empty() || !is_whole || self.0.in_use.is_pinned(blob) {
            return Ok(0);
        }
        self.delete_chunks(blob, files.difference(&named)).await
    }

    async fn delete_chunks(
        &self,
        blob: BlobId,
        numbers: impl Iterator<Item = &u32>,
    ) -> Result<u64, BlobError> {
        let mut deleted = 0;
        for number in numbers {
            if self.is_held().await? {
                break;
            }
            let path = chunk::path_of(blob, *number);
            match self.objects().delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => deleted += 1,
                Err(error) => return Err(ObjectError::while_doing("deleting", &path)(error).into()),
            }
        }
        Ok(deleted)
    }
}

/// The blob whose directory this is.
fn blob_in(directory: &Path) -> Option<BlobId> {
    let name = directory.filename().filter(|name| name.len() == 32)?;
    u128::from_str_radix(name, 16).ok().map(BlobId)
}

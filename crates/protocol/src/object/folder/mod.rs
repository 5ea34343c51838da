//! Folders of a bucket with a hierarchical namespace.
//!
//! Each folder has an id, which is never used again in its bucket. An object lies under the id of its folder and its own name
//! there ([`stored_name`]), so that a rename of a folder moves all that lies in it and below it, and changes only rows of
//! folders. The rows of all folders of a bucket are one partition, that of the empty object name:
//!
//! | row | value |
//! |---|---|
//! | [`ObjectRow::Tree`] | [`Tree`]: how often folders were renamed or deleted, and the next id |
//! | [`ObjectRow::Folder`] | [`Folder`], by its id |
//! | [`ObjectRow::FolderName`] | the id of a folder, by the id of the folder above it and by its name there |
//!
//! Names of folders end with a slash in their keys too. So folders and objects of one folder, each in the order of their keys,
//! merge into the order of whole names: `a-b/` comes before `a/`, as `a-b/x` comes before `a/x`.
//!
//! Every slash of a name ends a folder, also a first one and one of two in a row: their folders have the name `/`.
//!
//! | change | judge | number of the change |
//! |---|---|---|
//! | new folders, one below the other | [`Make`] | none |
//! | rename | [`Rename`] | the next one |
//! | deletion of an empty folder | [`Remove`] | the next one |
//! | nothing, after a change was announced and not made | [`Raise`] | as announced |
//!
//! All of them are made only if no folder was renamed or deleted since the sender looked ([`Tree::changes`]); so the ids that
//! it found still stand for the names that it meant. Writes of objects are judged elsewhere, and cannot ask that row. They
//! are kept in order by fences: each range refuses writes that have not seen a change which was announced to it. See
//! `docs/design/0017-folders.md`.

mod judge;
mod name;

use rangehold_map::key::ObjectRow;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bucket::Bucket;
use super::condition::Seen;
use super::error::{ErrorKind, ObjectError};
use super::link::{bucket_link, segment};
use super::micros::Micros;
use super::row::{decode_row, encode_row};

pub use self::judge::{Make, Place, Raise, Remove, RemoveRow, Rename, not_empty};
pub use self::name::{check_folder, folders_of, parent_of, stored_name, stored_parts, with_slash};

/// The id of the bucket itself: what lies in no folder lies under it.
pub const ROOT: u64 = 0;

/// What a bucket remembers of its folders as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// How often folders were renamed or deleted.
    pub changes: u64,
    /// The id of the next new folder.
    pub next: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self { changes: 0, next: ROOT + 1 }
    }
}

impl Tree {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row. Without one, there was never a folder.
    pub fn read(row: Option<impl AsRef<[u8]>>) -> Result<Self, ObjectError> {
        row.map_or(Ok(Self::default()), |row| decode_row("the folders of a bucket", row.as_ref()))
    }
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// The folder above it, or [`ROOT`].
    pub parent: u64,
    /// Its name there, with a slash at its end.
    pub name: String,
    /// When it was made.
    pub created: Micros,
    /// When it was last changed.
    pub updated: Micros,
    /// How often it was written.
    pub metageneration: u64,
    /// How many folders lie in it.
    pub folders: u64,
}

impl Folder {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("a folder", row)
    }

    /// What conditions on a folder look at. A folder has no generation.
    pub fn seen(&self) -> Seen {
        Seen::of_metageneration(self.metageneration)
    }

    /// The resource of the folder with this whole name.
    pub fn json(&self, bucket: &Bucket, base: &str, whole: &str) -> Value {
        let link = format!("{}/folders/{}", bucket_link(base, &bucket.name), segment(whole));
        json!({
            "kind": "storage#folder",
            "id": format!("{}/{whole}", bucket.name),
            "selfLink": link,
            "bucket": bucket.name,
            "name": whole,
            "metageneration": self.metageneration.to_string(),
            "createTime": self.created,
            "updateTime": self.updated,
        })
    }
}

/// The value of the row of a folder's name.
pub fn encode_id(id: u64) -> Vec<u8> {
    encode_row(&id)
}

/// Reads what [`encode_id`] wrote.
pub fn decode_id(row: &[u8]) -> Result<u64, ObjectError> {
    decode_row("the name of a folder", row)
}

/// The row of a folder's name.
pub fn name_row(parent: u64, name: &str) -> ObjectRow<'_> {
    ObjectRow::FolderName { parent, name: name.into() }
}

/// There is no such folder.
pub fn no_such_folder(bucket: &str, whole: &str) -> ObjectError {
    ObjectError::new(ErrorKind::NotFound, format!("The folder does not exist: {bucket}/{whole}"))
}

#[cfg(test)]
mod tests;

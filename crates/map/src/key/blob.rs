//! Blobs: large payloads, and the rows that say which objects use them.

use std::fmt;

use super::partition::PartitionPrefix;
use super::{BucketId, KIND_BLOB};
use crate::codec::{MalformedKey, Reader, put_name, put_u64, put_u128};

const STATE: u8 = 0x00;
const USER: u8 = 0x01;

/// Names a blob. The upper half is the time at which the blob was begun, in ticks; the lower half is chance. So no id
/// is used twice, also after a clock was set back, and young blobs have great ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct BlobId(pub u128);

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

/// Something that uses a blob: the rows of one object name that came from one upload.
///
/// The upload is named and not the generation, because the blob is written before the write that makes the
/// generation. A session, its parts and the generation that they become have one upload id. So they are one user,
/// and the end of an upload changes no reference. The row of a generation keeps the upload id, to remove the
/// reference later. A copy has an upload id of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct BlobUser {
    /// The bucket of the name.
    pub bucket: BucketId,
    /// The object name.
    pub name: String,
    /// The upload id. It is never used again for this name.
    pub upload: String,
}

/// The rows of one blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobRow {
    /// How many users the blob has, and whether it is dead.
    State,
    /// One user.
    User(BlobUser),
}

impl BlobRow {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, MalformedKey> {
        Ok(match reader.u8()? {
            STATE => Self::State,
            USER => {
                let bucket = BucketId(reader.u64()?);
                let (name, upload) = (reader.name()?.into_owned(), reader.name()?.into_owned());
                Self::User(BlobUser { bucket, name, upload })
            }
            _ => return Err(reader.unknown_row()),
        })
    }
}

impl PartitionPrefix {
    /// The partition of a blob: the list of its users.
    pub fn blob(blob: BlobId) -> Self {
        let mut out = Vec::with_capacity(17);
        out.push(KIND_BLOB);
        put_u128(&mut out, blob.0);
        Self(out)
    }

    /// The stored key of a row of a blob. For [`PartitionPrefix::blob`] only.
    pub fn blob_row(&self, row: &BlobRow) -> Vec<u8> {
        let mut out = self.0.clone();
        match row {
            BlobRow::State => out.push(STATE),
            BlobRow::User(BlobUser { bucket, name, upload }) => {
                out.push(USER);
                put_u64(&mut out, bucket.0);
                put_name(&mut out, name);
                put_name(&mut out, upload);
            }
        }
        out
    }
}

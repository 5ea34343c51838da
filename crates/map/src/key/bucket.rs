//! Buckets and projects.

use super::partition::PartitionPrefix;
use super::{KIND_BUCKET, KIND_PROJECT};
use crate::codec::{MalformedKey, Reader, put_name, put_u64};

const BUCKET: u8 = 0x01;
const DELETED: u8 = 0x02;
const NOTIFICATION: u8 = 0x03;
const CAPACITY: u8 = 0x04;
const OPERATION: u8 = 0x05;
const LAST_ID: u8 = 0x06;

const HMAC_KEY: u8 = 0x01;

/// Names one life of a bucket, from its creation to its deletion. It is never given twice: see [`BucketRow::LastId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct BucketId(pub u64);

/// The rows of one bucket name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketRow {
    /// The bucket that has the name.
    Bucket,
    /// A bucket that had the name, was deleted, and can be restored.
    Deleted(BucketId),
    /// A notification configuration, by its id.
    Notification(String),
    /// What the bucket with this id bears: see [`capacity`](crate::capacity).
    Capacity(BucketId),
    /// A long-running operation of the bucket with this id, by its own id.
    Operation(BucketId, String),
    /// The id that was given last. It is the only row of the empty name, which no bucket can have.
    LastId,
}

impl BucketRow {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, MalformedKey> {
        Ok(match reader.u8()? {
            BUCKET => Self::Bucket,
            DELETED => Self::Deleted(BucketId(reader.u64()?)),
            NOTIFICATION => Self::Notification(reader.name()?.into_owned()),
            CAPACITY => Self::Capacity(BucketId(reader.u64()?)),
            OPERATION => Self::Operation(BucketId(reader.u64()?), reader.name()?.into_owned()),
            LAST_ID => Self::LastId,
            _ => return Err(reader.unknown_row()),
        })
    }
}

/// The rows of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectRow {
    /// An HMAC key, by its access id.
    HmacKey(String),
}

impl ProjectRow {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, MalformedKey> {
        match reader.u8()? {
            HMAC_KEY => Ok(Self::HmacKey(reader.name()?.into_owned())),
            _ => Err(reader.unknown_row()),
        }
    }
}

impl PartitionPrefix {
    /// The partition of everything that is known of one bucket name.
    pub fn bucket(name: &str) -> Self {
        Self::of_name(KIND_BUCKET, name)
    }

    /// The partition of the id that was given to a bucket last: it belongs to no bucket name.
    pub fn bucket_ids() -> Self {
        Self::bucket("")
    }

    /// The partition of a project.
    pub fn project(project: &str) -> Self {
        Self::of_name(KIND_PROJECT, project)
    }

    fn of_name(kind: u8, name: &str) -> Self {
        let mut out = Vec::with_capacity(name.len() + 12);
        out.push(kind);
        put_name(&mut out, name);
        Self(out)
    }

    /// The stored key of a row of a bucket. For [`PartitionPrefix::bucket`] only.
    pub fn bucket_row(&self, row: &BucketRow) -> Vec<u8> {
        let mut out = self.0.clone();
        match row {
            BucketRow::Bucket => out.push(BUCKET),
            BucketRow::Deleted(id) => {
                out.push(DELETED);
                put_u64(&mut out, id.0);
            }
            BucketRow::Notification(id) => {
                out.push(NOTIFICATION);
                put_name(&mut out, id);
            }
            BucketRow::Capacity(id) => {
                out.push(CAPACITY);
                put_u64(&mut out, id.0);
            }
            BucketRow::Operation(bucket, id) => {
                out.push(OPERATION);
                put_u64(&mut out, bucket.0);
                put_name(&mut out, id);
            }
            BucketRow::LastId => out.push(LAST_ID),
        }
        out
    }

    /// The stored key of a row of a project. For [`PartitionPrefix::project`] only.
    pub fn project_row(&self, row: &ProjectRow) -> Vec<u8> {
        let mut out = self.0.clone();
        let ProjectRow::HmacKey(access_id) = row;
        out.push(HMAC_KEY);
        put_name(&mut out, access_id);
        out
    }
}

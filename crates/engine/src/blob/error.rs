//! What can go wrong with a blob.

use std::fmt;

use rangehold_map::blob::BlobId;
use thiserror::Error;

use super::Refused;
use crate::error::{Damaged, ReadError, WriteError};
use crate::store::ObjectError;

/// Why something was not done with a blob.
#[derive(Debug, Error)]
pub enum BlobError {
    /// The blob has no users any more: the row that named it is gone. Read that row again.
    #[error("blob {0} is not used any more")]
    Gone(BlobId),
    /// An earlier call for the same writer failed, or its future was dropped before it ended.
    #[error("an earlier write into blob {0} was broken off; go on after what is durable")]
    BrokenOff(BlobId),
    /// The disk has too little space left.
    #[error("less than {} MiB are free on the disk", reserve_bytes >> 20)]
    DiskFull {
        /// Free bytes below which nothing is written.
        reserve_bytes: u64,
    },
    /// The rows that say who uses the blob could not be changed. After
    /// [`WriteError::OutcomeUnknown`] a user may be there; the audit finds it if no row names the blob.
    #[error("the users of blob {blob} could not be changed")]
    Row {
        /// The blob.
        blob: BlobId,
        /// Why.
        source: WriteError<Never>,
    },
    /// The rows that say who uses the blob could not be read.
    #[error("the users of a blob could not be read")]
    Read(#[source] ReadError),
    /// A file could not be written, read or deleted.
    #[error(transparent)]
    Store(#[from] ObjectError),
    /// Stored bytes are not what was written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

/// A refusal that does not happen.
#[derive(Debug)]
pub enum Never {}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for Never {}

impl BlobError {
    /// The error of a write of a blob's rows that was not refused by its judge.
    pub(super) fn row(blob: BlobId, error: WriteError<Refused>) -> Self {
        let source = match error {
            WriteError::Refused(Refused::Gone) => return Self::Gone(blob),
            WriteError::Refused(Refused::Damaged(damage)) => return Self::Damaged(damage),
            WriteError::DiskFull { reserve_bytes, .. } => return Self::DiskFull { reserve_bytes },
            WriteError::NotOwned => WriteError::NotOwned,
            WriteError::TableDropped => WriteError::TableDropped,
            WriteError::BucketClosed => WriteError::BucketClosed,
            WriteError::Fenced(fence) => WriteError::Fenced(fence),
            WriteError::Busy(why) => WriteError::Busy(why),
            WriteError::Offline(range) => WriteError::Offline(range),
            WriteError::Unavailable(why) => WriteError::Unavailable(why),
            WriteError::OutcomeUnknown(why) => WriteError::OutcomeUnknown(why),
            WriteError::Damaged(damage) => WriteError::Damaged(damage),
        };
        Self::Row { blob, source }
    }
}

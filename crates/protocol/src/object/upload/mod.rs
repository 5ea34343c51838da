//! Uploads that go on over several requests: their sessions, and the arithmetic of their chunks.
//!
//! A session begins with a request that says what object is wanted. Its bytes come in one or more further requests, each
//! of which says by `Content-Range` where its bytes belong ([`ContentRange`]). A reply tells how many bytes are safe
//! ([`told_range`]), and only ever tells of bytes that are durable. The request that brings the last byte makes the
//! object; the first answer is kept, for a client that did not hear it and asks again.
//!
//! ```text
//!   POST ?uploadType=resumable        200, Location: ...upload_id=U
//!   PUT  bytes 0-524287/*             308, Range: bytes=0-524287
//!   PUT  bytes */*                    308, Range: bytes=0-524287        where was I?
//!   PUT  bytes 524288-600000/600001   200, the object
//!   PUT  bytes */*                    200, the same object
//! ```

mod range;

use rangehold_map::blob::{BlobId, BlobUser, Extent};
use rangehold_map::key::BucketId;
use serde::{Deserialize, Serialize};

use super::checksum::{Announced, Crc32c};
use super::condition::Conditions;
use super::error::{ErrorKind, ObjectError};
use super::generation::{Content, Draft, Generation, Release};
use super::limits::UPLOAD_SECONDS;
use super::micros::Micros;
use super::row::{decode_row, encode_row};

pub use self::range::{ContentRange, Step, told_range, whole_chunks};

/// Which API began an upload. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UploadKind {
    /// One stream of bytes in order.
    Resumable,
    /// Parts by their numbers, of the XML API.
    Parts,
}

/// How far an upload is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Durable bytes.
    pub bytes: u64,
    /// The size of the object, if a request has said it.
    pub total: Option<u64>,
    /// CRC32C of the durable bytes.
    pub crc32c: Crc32c,
    /// The state of the MD5 after these bytes, as [`Running::save`](super::checksum::Running::save) writes it.
    pub md5_state: Vec<u8>,
    /// Where the bytes are.
    pub extents: Vec<Extent>,
}

impl Progress {
    /// The blobs that lose a user if the upload ends without an object.
    pub fn releases(&self, bucket: BucketId, name: &str, upload: &str) -> Vec<Release> {
        let blobs: Vec<BlobId> = Content::Extents(self.extents.clone()).blobs();
        let user = BlobUser { bucket, name: name.to_owned(), upload: upload.to_owned() };
        blobs.into_iter().map(|blob| (blob, user.clone())).collect()
    }
}

/// The stored row of an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Which API began it.
    pub kind: UploadKind,
    /// When it was begun.
    pub begun: Micros,
    /// The object that is wanted.
    pub draft: Draft,
    /// Conditions on the object that it replaces. They are checked when the upload ends.
    pub conditions: Conditions,
    /// Checksums of the whole that the first request announced.
    pub announced: Announced,
    /// The entity that began it, and owns the object.
    pub owner: String,
    /// How far it is. An upload in parts has a row for each part instead.
    pub progress: Progress,
}

impl Session {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row of an upload.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("an upload", row)
    }

    /// Whether it is too old at `now`.
    pub fn is_over(&self, now: Micros) -> bool {
        self.begun.plus_seconds(UPLOAD_SECONDS) <= now
    }
}

/// How an upload ended, for requests that come later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// It made this generation, which is kept without its bytes.
    Finished(Box<Generation>),
    /// The client cancelled it.
    Cancelled,
}

impl Answer {
    /// The stored row. `ended` is when the upload ended; the row is removed a week later.
    pub fn encode(&self, ended: Micros) -> Vec<u8> {
        encode_row(&(ended, self))
    }

    /// Reads the answer of a row.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        Ok(decode_row::<(Micros, Self)>("the answer of an upload", row)?.1)
    }

    /// Whether a row may be removed at `now`.
    pub fn is_over(row: &[u8], now: Micros) -> Result<bool, ObjectError> {
        let (ended, _) = decode_row::<(Micros, Self)>("the answer of an upload", row)?;
        Ok(ended.plus_seconds(UPLOAD_SECONDS) <= now)
    }

    /// The generation that the upload made; an error if it was cancelled.
    pub fn generation(self) -> Result<Generation, ObjectError> {
        match self {
            Self::Finished(generation) => Ok(*generation),
            Self::Cancelled => Err(ObjectError::new(ErrorKind::Cancelled, "The upload was cancelled.")),
        }
    }
}

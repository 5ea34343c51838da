//! Where the bytes of a large payload lie, as the row of an object stores it.
//!
//! The bytes of a *blob* lie in chunk files, which are numbered from 0 and never change. A payload is a list of
//! [`Extent`]s: runs of chunks, perhaps of several blobs. So an object that was made of others has its bytes where
//! theirs are.

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use crate::key::{BlobId, BlobUser};

/// A run of chunks of one blob. All chunks but the last have `chunk_bytes` bytes, the last has at least one and at
/// most `chunk_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    /// The blob.
    pub blob: BlobId,
    /// The number of the first chunk.
    pub first: u32,
    /// Bytes of each chunk but the last, or of the only chunk.
    pub chunk_bytes: u32,
    /// Bytes in all: at least 1.
    pub bytes: u64,
    /// CRC32C of all these bytes.
    pub crc32c: u32,
}

impl Extent {
    /// How many chunks it has.
    pub fn chunks(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.chunk_bytes))
    }

    /// The numbers of its chunks.
    pub fn numbers(&self) -> Range<u32> {
        let chunks = u32::try_from(self.chunks()).unwrap_or(u32::MAX);
        self.first..self.first.saturating_add(chunks)
    }
}

//! Where the bytes of a generation are: in its content row, or in blobs.

use bytes::Bytes;
use rangehold_map::blob::{BlobId, Extent};

use crate::object::error::ObjectError;
use crate::object::row::{decode_row, encode_row};

/// First byte of a content row that has the bytes themselves. Beside it, a row of extents begins with the version of
/// its form.
const INLINE: u8 = 0x80;

/// The content of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The bytes themselves.
    Inline(Bytes),
    /// The chunks of blobs that have the bytes, in order.
    Extents(Vec<Extent>),
}

impl Content {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Inline(bytes) => [&[INLINE], bytes.as_ref()].concat(),
            Self::Extents(extents) => encode_row(extents),
        }
    }

    /// Reads a content row. Bytes that are in the row are not copied.
    pub fn decode(row: &Bytes) -> Result<Self, ObjectError> {
        match row.first() {
            Some(&INLINE) => Ok(Self::Inline(row.slice(1..))),
            _ => Ok(Self::Extents(decode_row("a content", row)?)),
        }
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Extents(extents) => extents.iter().map(|extent| extent.bytes).sum(),
        }
    }

    /// The blobs that it uses, each once, in the order of their ids.
    pub fn blobs(&self) -> Vec<BlobId> {
        match self {
            Self::Inline(_) => Vec::new(),
            Self::Extents(extents) => {
                let mut blobs: Vec<BlobId> = extents.iter().map(|extent| extent.blob).collect();
                blobs.sort_unstable();
                blobs.dedup();
                blobs
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_read_as_they_were_written() {
        let extent = |blob, first| Extent { blob: BlobId(blob), first, chunk_bytes: 4, bytes: 10, crc32c: 1 };
        for (content, size, blobs) in [
            (Content::Inline(Bytes::new()), 0, vec![]),
            (Content::Inline(Bytes::from_static(b"hello")), 5, vec![]),
            (
                Content::Extents(vec![extent(2, 0), extent(1, 0), extent(2, 3)]),
                30,
                vec![BlobId(1), BlobId(2)],
            ),
        ] {
            let row = Bytes::from(content.encode());
            assert_eq!(Content::decode(&row), Ok(content.clone()));
            assert_eq!(content.size(), size);
            assert_eq!(content.blobs(), blobs);
        }
        assert!(Content::decode(&Bytes::from_static(b"\x07")).is_err());
    }
}

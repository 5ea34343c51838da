//! Chunk files: the bytes of a blob in blocks, each with a checksum, so that a part of a chunk can be read and checked.
//!
//! ```text
//!   | block of 64 KiB | CRC32C u32 | block of 64 KiB | CRC32C u32 | .. | last block, shorter | CRC32C u32 |
//! ```
//!
//! The checksum is big-endian. Chunks grow with their number, so that small blobs are few small files and an object of
//! 5 TiB is some ten thousand.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use object_store::PutPayload;
use object_store::path::Path;
use rangehold_map::blob::BlobId;

use super::directory_of;

/// Bytes of a whole block.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
const CHECK_BYTES: u64 = 4;
/// Bytes of a whole block in the file, with its checksum.
pub(crate) const BLOCK_FILE_BYTES: u64 = BLOCK_BYTES + CHECK_BYTES;
/// Bytes of the first chunks.
const FIRST_CHUNK_BYTES: u64 = 16 << 20;
/// After so many chunks, a chunk has twice as many bytes.
const CHUNKS_OF_ONE_SIZE: u32 = 16;
/// A chunk has at most `FIRST_CHUNK_BYTES` times two to this power: 512 MiB.
const DOUBLINGS_MAX: u32 = 5;

/// The most bytes that the chunk of this number takes.
pub(super) fn bytes_max(number: u32) -> u64 {
    FIRST_CHUNK_BYTES << (number / CHUNKS_OF_ONE_SIZE).min(DOUBLINGS_MAX)
}

/// The file of a chunk. Its ending tells the store that it may be read in parts.
pub(super) fn path_of(blob: BlobId, number: u32) -> Path {
    directory_of(blob).join(format!("{number}.chunk"))
}

/// The number of the chunk in this file; `None` if the file is not a chunk.
pub(super) fn number_of(path: &Path) -> Option<u32> {
    path.filename()?.strip_suffix(".chunk")?.parse().ok()
}

/// Puts checksums between the blocks.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// Bytes of the file that are kept: whole blocks, and the last one that has begun.
    kept: BytesMut,
    /// Bytes of the block that has begun.
    filled: u64,
    check: u32,
}

impl Encoder {
    /// Takes the next bytes of the chunk, and keeps a copy of them.
    pub(super) fn keep(&mut self, mut bytes: &[u8]) {
        let blocks_ended = (self.filled + bytes.len() as u64) / BLOCK_BYTES;
        self.kept.reserve(bytes.len() + (blocks_ended * CHECK_BYTES) as usize);
        while !bytes.is_empty() {
            let room = (BLOCK_BYTES - self.filled) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.check = crc32c::crc32c_append(self.check, now);
            self.kept.extend_from_slice(now);
            self.filled += now.len() as u64;
            if self.filled == BLOCK_BYTES {
                self.end_block();
            }
            bytes = later;
        }
    }

    fn end_block(&mut self) {
        self.kept.extend_from_slice(&self.check.to_be_bytes());
        (self.filled, self.check) = (0, 0);
    }

    /// Takes the next bytes of the chunk, and gives out the whole blocks of the file that there are now. It copies only the
    /// bytes at both ends of `bytes`: the rest of a block that had begun, and the beginning of the next block.
    pub(super) fn pass(&mut self, mut bytes: Bytes) -> PutPayload {
        let block = BLOCK_BYTES as usize;
        if self.filled > 0 {
            let rest = block - self.filled as usize;
            self.keep(&bytes.split_to(rest.min(bytes.len())));
        }
        let mut whole = Vec::with_capacity(2 * (bytes.len() / block) + 1);
        if self.filled == 0 {
            whole.extend((!self.kept.is_empty()).then(|| std::mem::take(&mut self.kept).freeze()));
            while bytes.len() >= block {
                let next = bytes.split_to(block);
                let check = Bytes::copy_from_slice(&crc32c::crc32c(&next).to_be_bytes());
                whole.extend([next, check]);
            }
        }
        self.keep(&bytes);
        PutPayload::from_iter(whole)
    }

    /// Ends the chunk, and gives out the rest of its file.
    pub(super) fn finish(mut self) -> Bytes {
        if self.filled > 0 {
            self.end_block();
        }
        self.kept.freeze()
    }
}

/// The bytes of the file that hold these blocks of a chunk of `chunk_bytes` bytes.
pub(super) fn in_file(blocks: Range<u64>, chunk_bytes: u64) -> Range<u64> {
    let file_bytes = chunk_bytes + chunk_bytes.div_ceil(BLOCK_BYTES) * CHECK_BYTES;
    blocks.start * BLOCK_FILE_BYTES..(blocks.end * BLOCK_FILE_BYTES).min(file_bytes)
}

/// Takes the first block off bytes that begin with a block. `None` if its checksum does not fit.
pub(super) fn take_block(bytes: &mut Bytes) -> Option<Bytes> {
    let length = bytes.len().min(BLOCK_FILE_BYTES as usize);
    let mut block = bytes.split_to(length);
    let check = block.split_off(length.checked_sub(CHECK_BYTES as usize)?);
    (crc32c::crc32c(&block).to_be_bytes()[..] == check[..]).then_some(block)
}

/// Whether these bytes of a file, from the beginning of a block on, are whole blocks whose checksums fit.
pub(crate) fn are_whole_blocks(mut bytes: Bytes) -> bool {
    while !bytes.is_empty() {
        if take_block(&mut bytes).is_none() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_read_back_and_damage_is_seen(
            pieces in prop::collection::vec(0usize..150_000, 0..6),
            kept in 0usize..4,
            damage in any::<prop::sample::Index>(),
        ) {
            let plain: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|i| (i * 31 % 251) as u8).collect();
            let (mut encoder, mut file, mut rest) = (Encoder::default(), Vec::new(), &plain[..]);
            for (number, length) in pieces.into_iter().enumerate() {
                let (now, later) = rest.split_at(length);
                if number < kept {
                    encoder.keep(now);
                } else {
                    let whole = encoder.pass(Bytes::copy_from_slice(now));
                    whole.iter().for_each(|bytes| file.extend_from_slice(bytes));
                    prop_assert!(are_whole_blocks(Bytes::copy_from_slice(&file)));
                }
                rest = later;
            }
            file.extend_from_slice(&encoder.finish());
            let blocks = (plain.len() as u64).div_ceil(BLOCK_BYTES);
            prop_assert_eq!(in_file(0..blocks, plain.len() as u64), 0..file.len() as u64);
            let mut read = Vec::new();
            for block in 0..blocks {
                let part = in_file(block..block + 1, plain.len() as u64);
                let mut bytes = Bytes::copy_from_slice(&file[part.start as usize..part.end as usize]);
                read.extend_from_slice(&take_block(&mut bytes).unwrap());
                prop_assert!(bytes.is_empty());
            }
            prop_assert_eq!(&read, &plain);
            if !file.is_empty() {
                let at = damage.index(file.len());
                file[at] ^= 0x10;
                let mut bytes = Bytes::from(file);
                let damaged = (0..blocks).filter(|_| take_block(&mut bytes).is_none()).count();
                prop_assert_eq!(damaged, 1);
            }
        }
    }

    #[test]
    fn the_chunks_of_five_tebibytes_are_some_ten_thousand() {
        let (mut number, mut left) = (0, 5u64 << 40);
        while left > 0 {
            left = left.saturating_sub(bytes_max(number));
            number += 1;
        }
        assert!((10_000..11_000).contains(&number), "{number}");
        assert!(u32::try_from(bytes_max(number)).is_ok());
        let path = path_of(BlobId(7), number);
        assert_eq!(number_of(&path), Some(number));
    }
}

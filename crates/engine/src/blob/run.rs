//! Runs of chunks: how the chunks of a blob become few extents. Pure.

use rangehold_map::blob::Extent;

/// Adds a chunk to a list of extents, as a part of the last extent if the two make one run.
pub(super) fn push(extents: &mut Vec<Extent>, chunk: Extent) {
    if let Some(last) = extents.last_mut() {
        let size = u64::from(last.chunk_bytes);
        let follows = u64::from(last.first) + last.chunks() == u64::from(chunk.first);
        // All chunks before the new one must have the full size, and it may not be larger.
        if last.blob == chunk.blob && follows && last.bytes % size == 0 && chunk.bytes <= size {
            last.crc32c = join(last.crc32c, &chunk);
            last.bytes += chunk.bytes;
            return;
        }
    }
    extents.push(chunk);
}

/// The CRC32C of the payload that these extents make.
pub fn crc32c_of(extents: &[Extent]) -> u32 {
    extents.iter().fold(0, join)
}

fn join(before: u32, next: &Extent) -> u32 {
    crc32c::crc32c_combine(before, next.crc32c, usize::try_from(next.bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::blob::BlobId;

    use super::*;

    proptest! {
        /// The extents of any chunks hold the same chunks, with the checksum of all bytes.
        #[test]
        fn extents_hold_the_chunks_they_were_made_of(
            chunks in prop::collection::vec((1u32..4, 0u32..2, any::<bool>()), 1..20)
        ) {
            let (mut extents, mut all, mut expected) = (Vec::new(), Vec::new(), Vec::new());
            let mut number = 0;
            for (i, (bytes, gap, other)) in chunks.into_iter().enumerate() {
                number += gap;
                let blob = BlobId(u128::from(other));
                let data: Vec<u8> = (0..bytes).map(|at| (i as u32 * 7 + at) as u8).collect();
                let crc32c = crc32c::crc32c(&data);
                push(&mut extents, Extent { blob, first: number, chunk_bytes: bytes, bytes: bytes.into(), crc32c });
                expected.push((blob, number, u64::from(bytes)));
                all.extend(data);
                number += 1;
            }
            let mut held = Vec::new();
            for extent in &extents {
                let (mut left, size) = (extent.bytes, u64::from(extent.chunk_bytes));
                for chunk in 0..extent.chunks() {
                    held.push((extent.blob, extent.first + chunk as u32, left.min(size)));
                    left = left.saturating_sub(size);
                }
            }
            prop_assert_eq!(held, expected);
            prop_assert_eq!(crc32c_of(&extents), crc32c::crc32c(&all));
        }
    }

    #[test]
    fn equal_chunks_in_a_row_are_one_extent() {
        let mut extents = Vec::new();
        for first in 0..1_000 {
            push(&mut extents, Extent { blob: BlobId(1), first, chunk_bytes: 8, bytes: 8, crc32c: 5 });
        }
        assert_eq!((extents.len(), extents[0].bytes), (1, 8_000));
    }
}

//! Reading blobs: some bytes of a list of extents, block by block, each checked.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin as BoxPin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt, try_unfold};
use object_store::ObjectStoreExt;
use rangehold_map::blob::Extent;

use super::chunk::{self, BLOCK_BYTES};
use super::in_use::Pin;
use super::{BlobError, Blobs, blobs_of};
use crate::error::Damaged;
use crate::limits::BLOB_BLOCKS_AT_ONCE;
use crate::store::{ObjectError, damaged_file};

/// The bytes that were asked for, in pieces of at most 64 KiB. While it is there, its files are not deleted.
pub struct BlobStream(BoxStream<'static, Result<Bytes, BlobError>>);

impl Stream for BlobStream {
    type Item = Result<Bytes, BlobError>;

    fn poll_next(mut self: BoxPin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl Blobs {
    /// Reads these bytes of the payload that `extents` make. Fails with [`BlobError::Gone`] if a blob died since the
    /// row with the extents was read: then read the row again.
    pub async fn read(&self, extents: &[Extent], bytes: Range<u64>) -> Result<BlobStream, BlobError> {
        let (part, at) = part_of(extents, &bytes);
        let mut pins = Vec::new();
        for blob in blobs_of(part) {
            // In this order: a blob that was alive after it was pinned is not buried before the pin is gone.
            pins.push(self.0.in_use.pin(blob));
            self.check_alive(blob).await?;
        }
        let reading = Reading {
            blobs: self.clone(),
            _pins: pins,
            extents: part.iter().copied().collect(),
            at,
            left: bytes.end.saturating_sub(bytes.start),
            ready: VecDeque::new(),
        };
        Ok(BlobStream(try_unfold(reading, Reading::next).boxed()))
    }
}

/// The extents that have some of these bytes, and where the bytes begin in the first of them.
fn part_of<'a>(extents: &'a [Extent], bytes: &Range<u64>) -> (&'a [Extent], u64) {
    let (mut before, mut first) = (0, 0);
    while let Some(extent) = extents.get(first).filter(|extent| before + extent.bytes <= bytes.start) {
        before += extent.bytes;
        first += 1;
    }
    let (mut end, mut last) = (before, first);
    while let Some(extent) = extents.get(last).filter(|_| end < bytes.end) {
        end += extent.bytes;
        last += 1;
    }
    (&extents[first..last], bytes.start.saturating_sub(before))
}

struct Reading {
    blobs: Blobs,
    _pins: Vec<Pin>,
    extents: VecDeque<Extent>,
    /// Where to go on in the first of the extents.
    at: u64,
    left: u64,
    /// Pieces that were read and checked.
    ready: VecDeque<Bytes>,
}

impl Reading {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BlobError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some((piece, self)));
            }
            let Some(extent) = self.extents.front().copied().filter(|_| self.left > 0) else {
                return Ok(None);
            };
            if self.at == extent.bytes {
                self.extents.pop_front();
                self.at = 0;
                continue;
            }
            self.read_blocks(&extent).await?;
        }
    }

    /// Reads the next blocks, all of one chunk.
    async fn read_blocks(&mut self, extent: &Extent) -> Result<(), BlobError> {
        let size = u64::from(extent.chunk_bytes);
        let (index, from) = (self.at / size, self.at % size);
        let chunk_bytes = size.min(extent.bytes - index * size);
        let first = from / BLOCK_BYTES;
        let wanted = chunk_bytes.min(from.saturating_add(self.left)).div_ceil(BLOCK_BYTES);
        let blocks = first..wanted.min(first + BLOB_BLOCKS_AT_ONCE);
        let number = u32::try_from(u64::from(extent.first) + index).expect("chunks have numbers of 32 bits");
        let path = chunk::path_of(extent.blob, number);
        let read = self.blobs.objects().get_range(&path, chunk::in_file(blocks.clone(), chunk_bytes)).await;
        let mut bytes = read.map_err(|error| match (&error, damaged_file(&error)) {
            (_, Some(file)) => BlobError::Damaged(Damaged::new(file.clone())),
            (object_store::Error::NotFound { .. }, None) => {
                BlobError::Damaged(Damaged::new(format!("{path} does not exist, and an object needs it")))
            }
            _ => ObjectError::while_doing("reading", &path)(error).into(),
        })?;
        let mut skipped = from % BLOCK_BYTES;
        for block in blocks {
            let damaged = || Damaged::new(format!("{path}: the checksum of block {block} does not fit"));
            let mut piece = chunk::take_block(&mut bytes).ok_or_else(damaged)?;
            if (piece.len() as u64) < skipped {
                return Err(damaged().into());
            }
            piece = piece.split_off(skipped as usize);
            skipped = 0;
            piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.at += piece.len() as u64;
            self.left -= piece.len() as u64;
            self.ready.push_back(piece);
        }
        Ok(())
    }
}

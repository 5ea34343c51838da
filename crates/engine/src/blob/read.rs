//! Reading blobs: some bytes of a list of extents, block by block, each checked.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin as BoxPin;
use std::task::{Context, Poll};
use std::vec;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, MaybeDone, maybe_done};
use futures::stream::Stream;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use rangehold_map::blob::Extent;

use super::chunk::{self, BLOCK_BYTES, BLOCK_FILE_BYTES};
use super::in_use::Pin;
use super::{BlobError, Blobs, blobs_of};
use crate::error::Damaged;
use crate::limits::BLOB_BLOCKS_AT_ONCE;
use crate::store::limits::INLINE_READ_BYTES_MAX;
use crate::store::{ObjectError, damaged_file};

// A store in a directory reads more than this on a thread of its own. Less would be read when the run is begun, and the client
// would wait for it.
const _: () = assert!(BLOB_BLOCKS_AT_ONCE * BLOCK_FILE_BYTES > INLINE_READ_BYTES_MAX);

/// A run that is read: its pieces.
type RunRead = BoxFuture<'static, Result<Vec<Bytes>, BlobError>>;

/// The bytes that were asked for, in pieces of at most 64 KiB. While it is there, its files are not deleted.
/// Nothing follows an error.
///
/// While the caller has the pieces of a run of blocks, the next run is read. With that 64 MiB come down in 34 to 40 ms, and
/// in 38 to 44 if a run is read only when the last one was given out.
pub struct BlobStream {
    blobs: Blobs,
    runs: Runs,
    /// The pieces of the last run that are still to be given out.
    pieces: vec::IntoIter<Bytes>,
    /// The run that is read meanwhile.
    next: Option<MaybeDone<RunRead>>,
    _pins: Vec<Pin>,
}

impl Stream for BlobStream {
    type Item = Result<Bytes, BlobError>;

    fn poll_next(mut self: BoxPin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let next = match self.begin_next() {
                Some(next) => next.poll_unpin(context),
                None => Poll::Ready(()),
            };
            if let Some(piece) = self.pieces.next() {
                return Poll::Ready(Some(Ok(piece)));
            }
            std::task::ready!(next);
            match self.next.take().and_then(|mut next| BoxPin::new(&mut next).take_output()) {
                None => return Poll::Ready(None),
                Some(Ok(pieces)) => self.pieces = pieces.into_iter(),
                Some(Err(error)) => {
                    self.runs.left = 0;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl BlobStream {
    /// The run that is read next, which is begun here if it was not before; `None` if there is none.
    fn begin_next(&mut self) -> Option<&mut MaybeDone<RunRead>> {
        if self.next.is_none() {
            let run = self.runs.next()?;
            self.next = Some(maybe_done(run.read(self.blobs.clone()).boxed()));
        }
        self.next.as_mut()
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
        let left = bytes.end.saturating_sub(bytes.start);
        let runs = Runs { extents: part.iter().copied().collect(), at, left };
        Ok(BlobStream { blobs: self.clone(), runs, pieces: Vec::new().into_iter(), next: None, _pins: pins })
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

/// What is still to be read, run by run.
struct Runs {
    extents: VecDeque<Extent>,
    /// Where to go on in the first of the extents.
    at: u64,
    left: u64,
}

/// Some blocks of one chunk that are read at once, and the bytes of them that are wanted.
struct Run {
    path: Path,
    chunk_bytes: u64,
    blocks: Range<u64>,
    /// Bytes of the first block before the first that is wanted.
    skipped: u64,
    wanted: u64,
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        while self.extents.front().is_some_and(|extent| self.at == extent.bytes) {
            self.extents.pop_front();
            self.at = 0;
        }
        let extent = self.extents.front().filter(|_| self.left > 0)?;
        let size = u64::from(extent.chunk_bytes);
        let (index, from) = (self.at / size, self.at % size);
        let chunk_bytes = size.min(extent.bytes - index * size);
        let first = from / BLOCK_BYTES;
        let end =
            chunk_bytes.min(from.saturating_add(self.left)).min((first + BLOB_BLOCKS_AT_ONCE) * BLOCK_BYTES);
        let number = u32::try_from(u64::from(extent.first) + index).expect("chunks have numbers of 32 bits");
        let run = Run {
            path: chunk::path_of(extent.blob, number),
            chunk_bytes,
            blocks: first..end.div_ceil(BLOCK_BYTES),
            skipped: from % BLOCK_BYTES,
            wanted: end - from,
        };
        self.at += run.wanted;
        self.left -= run.wanted;
        Some(run)
    }
}

impl Run {
    /// Reads the blocks and checks them. Returns the bytes that are wanted, in a piece for each block.
    async fn read(self, blobs: Blobs) -> Result<Vec<Bytes>, BlobError> {
        let Self { path, chunk_bytes, blocks, mut skipped, mut wanted } = self;
        let read = blobs.objects().get_range(&path, chunk::in_file(blocks.clone(), chunk_bytes)).await;
        let mut bytes = read.map_err(|error| match (&error, damaged_file(&error)) {
            (_, Some(file)) => BlobError::Damaged(Damaged::new(file.clone())),
            (object_store::Error::NotFound { .. }, None) => {
                BlobError::Damaged(Damaged::new(format!("{path} does not exist, and an object needs it")))
            }
            _ => ObjectError::while_doing("reading", &path)(error).into(),
        })?;
        let mut pieces = Vec::new();
        for block in blocks {
            let damaged = || Damaged::new(format!("{path}: the checksum of block {block} does not fit"));
            let mut piece = chunk::take_block(&mut bytes).ok_or_else(damaged)?;
            if (piece.len() as u64) < skipped {
                return Err(damaged().into());
            }
            piece = piece.split_off(skipped as usize);
            skipped = 0;
            piece.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
            wanted -= piece.len() as u64;
            pieces.push(piece);
        }
        if wanted > 0 {
            return Err(Damaged::new(format!("{path} is {wanted} bytes shorter than an object needs")).into());
        }
        Ok(pieces)
    }
}

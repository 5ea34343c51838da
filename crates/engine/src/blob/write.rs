//! Writing a blob: bytes come in, chunk files come out, with a bounded buffer in between.

use bytes::Bytes;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{
    MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UploadPart,
};
use rangehold_map::blob::{BlobId, BlobUser, Extent};

use super::chunk::{self, Encoder};
use super::in_use::{ChunkNumbers, UnderWay};
use super::{BlobError, Blobs, run};
use crate::limits::BLOB_PART_BYTES;
use crate::steps::BlobStep;
use crate::store::ObjectError;

/// Writes a payload into a blob. It keeps less than `BLOB_PART_BYTES` of the beginning of each chunk in memory and later less
/// than a block. One part of a chunk may still be on its way to the disk when a call returns. It is awaited before the next part:
/// the caller sums up the next bytes meanwhile, and that takes as long as to write them.
///
/// If a call fails or its future is dropped before it ends, the writer takes no more bytes: what was durable before
/// ([`BlobWriter::extents`]) counts.
pub struct BlobWriter {
    blobs: Blobs,
    user: BlobUser,
    _under_way: UnderWay,
    blob: BlobId,
    extents: Vec<Extent>,
    numbers: ChunkNumbers,
    chunk: Option<OpenChunk>,
    /// Set while a call is under way: a call that did not end leaves it set.
    broken_off: bool,
}

/// A chunk that is not durable yet.
struct OpenChunk {
    number: u32,
    path: Path,
    bytes: u64,
    crc32c: u32,
    encoder: Encoder,
    /// Begun when there is more than one part.
    upload: Option<Upload>,
}

/// A file that is written in parts, one after the other.
struct Upload {
    parts: Box<dyn MultipartUpload>,
    /// The part that is being written. Meanwhile the writer takes the bytes of the next one.
    writing: Option<UploadPart>,
}

impl Upload {
    /// Begins to write a part, as soon as the one before is written.
    async fn begin_part(&mut self, part: PutPayload) -> object_store::Result<()> {
        self.end_part().await?;
        self.writing = Some(self.parts.put_part(part));
        Ok(())
    }

    /// Waits until the part is written that was begun.
    async fn end_part(&mut self) -> object_store::Result<()> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        let written = writing.await;
        self.writing = None;
        written
    }

    /// Writes the rest, and gives the file its name. It is durable then.
    async fn complete(mut self, rest: PutPayload) -> object_store::Result<()> {
        if rest.content_length() > 0 {
            self.begin_part(rest).await?;
        }
        self.end_part().await?;
        self.parts.complete().await.map(drop)
    }

    async fn abort(mut self) -> object_store::Result<()> {
        // What came of it does not matter, but no part may be written after the end.
        let _ = self.end_part().await;
        self.parts.abort().await
    }
}

impl BlobWriter {
    pub(super) fn new(blobs: Blobs, user: BlobUser, under_way: UnderWay, blob: BlobId) -> Self {
        let numbers = blobs.0.in_use.chunk_numbers(blob, 0);
        Self {
            blobs,
            user,
            _under_way: under_way,
            blob,
            extents: Vec::new(),
            numbers,
            chunk: None,
            broken_off: false,
        }
    }

    /// A writer that goes on after `extents`, which are not empty, with the chunk `next` of the last blob or a later one.
    pub(super) fn resumed(
        blobs: Blobs,
        user: BlobUser,
        under_way: UnderWay,
        extents: Vec<Extent>,
        next: u32,
    ) -> Self {
        let blob = extents.last().expect("an upload without extents is begun").blob;
        let numbers = blobs.0.in_use.chunk_numbers(blob, next);
        Self { extents, numbers, ..Self::new(blobs, user, under_way, blob) }
    }

    /// What is durable: the extents of all bytes up to the last [`BlobWriter::persist`], or further.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Bytes taken so far, with those that are not durable yet.
    pub fn bytes(&self) -> u64 {
        let durable: u64 = self.extents.iter().map(|extent| extent.bytes).sum();
        durable + self.chunk.as_ref().map_or(0, |chunk| chunk.bytes)
    }

    /// Takes the next bytes of the payload. They need not be durable when this returns.
    pub fn write<'a>(&'a mut self, mut bytes: Bytes) -> BoxFuture<'a, Result<(), BlobError>> {
        Box::pin(async move {
            self.begin_call()?;
            while !bytes.is_empty() {
                if self.chunk.is_none() {
                    self.check_disk()?;
                    self.chunk = Some(OpenChunk::new(self.blob, self.numbers.take()));
                }
                let chunk = self.chunk.as_mut().expect("it was just begun");
                let room = chunk::bytes_max(chunk.number) - chunk.bytes;
                let now = bytes.split_to(bytes.len().min(BLOB_PART_BYTES).min(room as usize));
                let is_last = now.len() as u64 == room;
                let mut part = chunk.push(now);
                if part.content_length() > 0 {
                    if self.blobs.0.store.root().is_none() {
                        part = copied(&part);
                    }
                    chunk.send(part, self.blobs.objects()).await?;
                    self.check_disk()?;
                }
                if is_last {
                    self.end_chunk().await?;
                }
            }
            self.broken_off = false;
            Ok(())
        })
    }

    /// Makes everything durable that was taken so far. Returns the extents of the whole payload.
    pub fn persist<'a>(&'a mut self) -> BoxFuture<'a, Result<&'a [Extent], BlobError>> {
        Box::pin(async move {
            self.begin_call()?;
            self.end_chunk().await?;
            self.broken_off = false;
            Ok(self.extents.as_slice())
        })
    }

    /// Gives the payload up: removes its user from its blobs.
    pub fn discard(mut self) -> BoxFuture<'static, Result<(), BlobError>> {
        Box::pin(async move {
            if let Some(OpenChunk { upload: Some(upload), .. }) = self.chunk.take() {
                // What stays of the chunk is deleted with the blob.
                let _ = upload.abort().await;
            }
            self.blobs.release(&self.extents, &self.user).await?;
            match self.extents.iter().any(|extent| extent.blob == self.blob) {
                true => Ok(()),
                false => self.blobs.release_one(self.blob, &self.user).await,
            }
        })
    }

    fn begin_call(&mut self) -> Result<(), BlobError> {
        if self.broken_off {
            return Err(BlobError::BrokenOff(self.blob));
        }
        self.broken_off = true;
        Ok(())
    }

    async fn end_chunk(&mut self) -> Result<(), BlobError> {
        let Some(chunk) = self.chunk.take() else { return Ok(()) };
        let extent = chunk.finish(self.blob, self.blobs.objects()).await?;
        run::push(&mut self.extents, extent);
        self.blobs.after(BlobStep::Written, self.blob).await;
        Ok(())
    }

    fn check_disk(&self) -> Result<(), BlobError> {
        let disk = self.blobs.0.store.disk();
        if disk.is_low() {
            return Err(BlobError::DiskFull { reserve_bytes: disk.reserve_bytes() });
        }
        Ok(())
    }
}

/// The same bytes in memory of their own. A store in memory keeps a part as it is until the chunk ends, and with it all that
/// its slices belong to: here the room of the pieces in which they came, for which the next pieces would wait.
fn copied(part: &PutPayload) -> PutPayload {
    part.iter().map(Bytes::as_ref).collect::<Vec<&[u8]>>().concat().into()
}

impl OpenChunk {
    fn new(blob: BlobId, number: u32) -> Self {
        let path = chunk::path_of(blob, number);
        Self { number, path, bytes: 0, crc32c: 0, encoder: Encoder::default(), upload: None }
    }

    /// Takes the next bytes, and gives out what of the file is to be written now. The beginning is kept, so that the file of
    /// a small chunk is written at once.
    fn push(&mut self, bytes: Bytes) -> PutPayload {
        self.crc32c = crc32c::crc32c_append(self.crc32c, &bytes);
        self.bytes += bytes.len() as u64;
        if self.bytes < BLOB_PART_BYTES as u64 {
            self.encoder.keep(&bytes);
            return PutPayload::default();
        }
        self.encoder.pass(bytes)
    }

    /// Writes a part of the file.
    async fn send(
        &mut self,
        part: PutPayload,
        objects: &std::sync::Arc<dyn ObjectStore>,
    ) -> Result<(), ObjectError> {
        let failed = ObjectError::while_doing("writing", &self.path);
        let upload = match &mut self.upload {
            Some(upload) => upload,
            none => {
                let parts = objects.put_multipart(&self.path).await.map_err(&failed)?;
                none.insert(Upload { parts, writing: None })
            }
        };
        upload.begin_part(part).await.map_err(&failed)
    }

    /// Writes the rest. The file is durable when this returns.
    async fn finish(
        self,
        blob: BlobId,
        objects: &std::sync::Arc<dyn ObjectStore>,
    ) -> Result<Extent, ObjectError> {
        let failed = ObjectError::while_doing("writing", &self.path);
        let rest = PutPayload::from(self.encoder.finish());
        match self.upload {
            Some(upload) => upload.complete(rest).await.map_err(&failed)?,
            None => {
                let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
                objects.put_opts(&self.path, rest, options).await.map_err(&failed)?;
            }
        }
        let chunk_bytes = u32::try_from(self.bytes).expect("a chunk has at most 512 MiB");
        Ok(Extent { blob, first: self.number, chunk_bytes, bytes: self.bytes, crc32c: self.crc32c })
    }
}

//! The bytes of a new object while they arrive: summed, and kept.
//!
//! A small payload lies in a row of the object. As soon as it is larger, a blob takes it, so an upload of any
//! size holds less than 1 MiB. All bytes are charged to the bandwidth of their project here, in whatever form they come.

use bytes::{Bytes, BytesMut};
use rangehold_engine::blob::{BlobWriter, Blobs};
use rangehold_map::blob::BlobUser;
use rangehold_protocol::object::checksum::{Announced, Running};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::Content;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::parts::Part;
use rangehold_protocol::object::upload::Progress;
use rangehold_protocol::object::write::Payload;

use super::failure::Failure;
use super::meter::Meter;

/// A payload of at most so many bytes lies in a row of its object; one of few bytes, in the row of what is known of it.
pub(super) const INLINE_BYTES_MAX: usize = 64 << 10;

/// A payload that arrives.
pub(crate) struct Receiver {
    blobs: Blobs,
    user: BlobUser,
    meter: Meter,
    sums: Running,
    small: BytesMut,
    writer: Option<BlobWriter>,
}

/// A payload that has arrived. Keep it until the row that names its bytes is durable, or give it up.
pub(crate) struct Received {
    pub(crate) payload: Payload,
    writer: Option<BlobWriter>,
}

impl Receiver {
    /// Nothing has arrived of the payload that `user` brings. What arrives is charged by `meter`.
    pub(crate) fn new(blobs: Blobs, user: BlobUser, meter: Meter) -> Self {
        Self { blobs, user, meter, sums: Running::default(), small: BytesMut::new(), writer: None }
    }

    /// So much has arrived before, and is durable.
    pub(crate) async fn resume(
        blobs: Blobs,
        user: BlobUser,
        meter: Meter,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        if progress.bytes == 0 {
            return Ok(Self::new(blobs, user, meter));
        }
        let sums = Running::resume(progress.bytes, progress.crc32c, &progress.md5_state);
        let sums = sums.ok_or_else(|| ObjectError::damaged("the checksum of an upload"))?;
        let writer = Some(blobs.resume(user.clone(), progress.extents.clone()).await?);
        Ok(Self { blobs, user, meter, sums, small: BytesMut::new(), writer })
    }

    /// How many bytes have arrived.
    pub(crate) fn bytes(&self) -> u64 {
        self.sums.bytes()
    }

    /// Takes the next bytes. If this fails, they do not count as arrived, or nothing that arrived can be made durable any
    /// more.
    pub(crate) async fn take(&mut self, bytes: Bytes) -> Result<(), Failure> {
        self.meter.charge(bytes.len());
        if self.writer.is_none() && self.small.len() + bytes.len() <= INLINE_BYTES_MAX {
            self.sums.update(&bytes);
            self.small.extend_from_slice(&bytes);
            return Ok(());
        }
        // The sums say what has arrived, so a blob must be there to take it.
        self.writer().await?;
        self.sums.update(&bytes);
        self.writer().await?.write(bytes).await?;
        Ok(())
    }

    /// So many bytes have arrived that the payload does not need: it has them already, or they come again later.
    pub(crate) fn pass_over(&self, bytes: usize) {
        self.meter.charge(bytes);
    }

    /// Makes all that has arrived durable, and says how to go on from there.
    pub(crate) async fn persist(&mut self, total: Option<u64>) -> Result<Progress, Failure> {
        let extents = match self.bytes() {
            0 => Vec::new(),
            _ => self.writer().await?.persist().await?.to_vec(),
        };
        let (bytes, crc32c, md5_state) = (self.bytes(), self.sums.crc32c(), self.sums.save());
        Ok(Progress { bytes, total, crc32c, md5_state, extents })
    }

    /// Whether the bytes that have arrived are those that the client announced, perhaps in several requests.
    pub(crate) fn check(&self, announced: &[Announced]) -> Result<(), ObjectError> {
        let (crc32c, md5) = (self.sums.crc32c(), self.sums.md5());
        announced.iter().try_for_each(|announced| announced.check(crc32c, Some(md5)))
    }

    /// All bytes have arrived. Fails if they are not those that the client announced, perhaps in several requests; then
    /// nothing of them is kept.
    pub(crate) async fn finish(mut self, announced: &[Announced]) -> Result<Received, Failure> {
        if let Err(wrong) = self.check(announced) {
            self.give_up().await;
            return Err(wrong.into());
        }
        let (crc32c, md5) = (self.sums.crc32c(), self.sums.md5());
        let content = match &mut self.writer {
            None => Content::Inline(self.small.freeze()),
            Some(writer) => Content::Extents(writer.persist().await?.to_vec()),
        };
        let payload = Payload::new(&content, crc32c, Some(md5), &self.user.upload);
        Ok(Received { payload, writer: self.writer })
    }

    /// As [`finish`](Self::finish), for a part of a multipart upload: its bytes lie in a blob, however few they are.
    pub(crate) async fn finish_part(
        mut self,
        announced: &Announced,
        modified: Micros,
    ) -> Result<ReceivedPart, Failure> {
        if let Err(wrong) = self.check(std::slice::from_ref(announced)) {
            self.give_up().await;
            return Err(wrong.into());
        }
        let (crc32c, md5) = (self.sums.crc32c(), self.sums.md5());
        let extents = match self.bytes() {
            0 => Vec::new(),
            _ => self.writer().await?.persist().await?.to_vec(),
        };
        Ok(ReceivedPart { part: Part { modified, md5, crc32c, extents }, writer: self.writer })
    }

    /// Forgets what has arrived.
    pub(crate) async fn give_up(self) {
        discard(self.writer).await;
    }

    /// The writer of the blob, which takes what has arrived before.
    async fn writer(&mut self) -> Result<&mut BlobWriter, Failure> {
        if self.writer.is_none() {
            let begun = self.blobs.begin(self.user.clone()).await?;
            // A writer that fails here stays, since it refuses what comes later: its bytes would be missing.
            self.writer.insert(begun).write(std::mem::take(&mut self.small).freeze()).await?;
        }
        Ok(self.writer.as_mut().expect("it was just made"))
    }
}

impl Received {
    /// The row that would name the bytes was not written.
    pub(crate) async fn give_up(self) {
        discard(self.writer).await;
    }
}

/// A part that has arrived. Keep it until the row that names its bytes is durable, or give it up.
pub(crate) struct ReceivedPart {
    pub(crate) part: Part,
    writer: Option<BlobWriter>,
}

impl ReceivedPart {
    /// The row that would name the bytes was not written.
    pub(crate) async fn give_up(self) {
        discard(self.writer).await;
    }
}

/// If this fails, the audit of blobs finds what is left.
async fn discard(writer: Option<BlobWriter>) {
    if let Some(writer) = writer
        && let Err(error) = writer.discard().await
    {
        tracing::warn!(%error, "a blob that nobody uses stays until the next audit");
    }
}

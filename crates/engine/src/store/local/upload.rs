//! Uploads in parts: how SlateDB writes sorted files of more than 10 MiB.

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::super::seal::Sealer;

/// Seals what passes through it: the seal is one more part at the end.
#[derive(Debug)]
pub(super) struct SealedUpload {
    inner: Box<dyn MultipartUpload>,
    sealer: Sealer,
}

impl SealedUpload {
    pub(super) fn new(inner: Box<dyn MultipartUpload>) -> Self {
        Self {
            inner,
            sealer: Sealer::default(),
        }
    }
}

#[async_trait]
impl MultipartUpload for SealedUpload {
    /// Parts are in the order of the calls, whatever the order in which they are awaited.
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        data.iter().for_each(|piece| self.sealer.update(piece));
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let seal = self.sealer.finish().encode();
        self.inner.put_part(PutPayload::from(seal.to_vec())).await?;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

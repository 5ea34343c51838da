//! Uploads in parts: how SlateDB writes sorted files of more than 10 MiB.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{FutureExt, future};
use object_store::path::Path;
use object_store::{Error, MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::super::seal::Sealer;
use super::Inner;

/// Seals the bytes that pass through it: the seal is one more part at the end.
#[derive(Debug)]
pub(super) struct SealedUpload {
    parts: Box<dyn MultipartUpload>,
    sealer: Sealer,
    location: Path,
    target: PathBuf,
    store: Arc<Inner>,
}

impl SealedUpload {
    /// Seals `parts`, which become the object at `location`, in the file `target`.
    pub(super) fn new(
        parts: Box<dyn MultipartUpload>,
        location: Path,
        target: PathBuf,
        store: Arc<Inner>,
    ) -> Self {
        Self { parts, sealer: Sealer::default(), location, target, store }
    }
}

#[async_trait]
impl MultipartUpload for SealedUpload {
    /// Parts are in the order of the calls, in whatever order they are awaited.
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        if let Err(error) = self.store.admit(&self.location, &self.target, data.content_length() as u64) {
            return future::ready(Err(error)).boxed();
        }
        data.iter().for_each(|piece| self.sealer.update(piece));
        let (target, store) = (self.target.clone(), Arc::clone(&self.store));
        let part = self.parts.put_part(data);
        part.map(move |result| result.map_err(|error| store.upload_error(&target, error))).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let seal = self.sealer.finish().encode();
        let completed = match self.parts.put_part(PutPayload::from(seal.to_vec())).await {
            Ok(()) => self.parts.complete().await,
            Err(error) => Err(error),
        };
        completed.map_err(|error| self.store.upload_error(&self.target, error))
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.abort().await
    }
}

impl Inner {
    /// Adds the name of the file to the error of a part, since `LocalFileSystem` leaves it out.
    fn upload_error(&self, target: &std::path::Path, error: Error) -> Error {
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(io) = inner.downcast_ref::<io::Error>() {
                return self.io_error("write", target, io::Error::new(io.kind(), io.to_string()));
            }
            cause = inner.source();
        }
        error
    }
}

//! Uploads in parts: how SlateDB writes sorted files of more than 10 MiB.
//!
//! The parts go into one staging file, and the seal after them. Nothing has the name of the object until the upload is
//! complete and durable ([`publish`](super::publish)).

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, future};
use object_store::path::Path;
use object_store::{Error, MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::super::seal::Sealer;
use super::publish::{Publish, Staging};
use super::{SealedDirectory, read};

/// Seals the bytes that pass through it.
#[derive(Debug)]
pub(super) struct SealedUpload {
    store: SealedDirectory,
    location: Path,
    target: PathBuf,
    /// `None` once the upload is complete, or given up.
    staging: Option<Arc<Staging>>,
    sealer: Sealer,
    length: u64,
}

impl SealedUpload {
    /// An upload of the object at `location`, which is in the file `target`. Its parts go into `staging`.
    pub(super) fn new(store: SealedDirectory, location: Path, target: PathBuf, staging: Staging) -> Self {
        let staging = Some(Arc::new(staging));
        Self { store, location, target, staging, sealer: Sealer::default(), length: 0 }
    }

    fn ended(&self) -> Error {
        Error::Generic {
            store: "rangehold",
            source: format!("the upload of {} has ended", self.location).into(),
        }
    }
}

#[async_trait]
impl MultipartUpload for SealedUpload {
    /// Parts are in the order of the calls, in whatever order they are awaited. A part is written from this call on, also
    /// while nobody waits for it.
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let length = data.content_length() as u64;
        if let Err(error) = self.store.0.admit(&self.location, &self.target, length) {
            return future::ready(Err(error)).boxed();
        }
        let Some(staging) = self.staging.clone() else { return future::ready(Err(self.ended())).boxed() };
        data.iter().for_each(|piece| self.sealer.update(piece));
        let (store, target, offset) = (self.store.clone(), self.target.clone(), self.length);
        self.length += length;
        let write = move |inner: &super::Inner| {
            let written = staging.write_at(offset, data.iter().map(Bytes::as_ref));
            written.map_err(|error| inner.io_error("write", &target, error))
        };
        store.blocking(write).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        // Only a part that is still being written has it.
        let Some(Ok(staging)) = self.staging.take().map(Arc::try_unwrap) else { return Err(self.ended()) };
        let seal = self.sealer.finish();
        let (target, location, length) = (self.target.clone(), self.location.clone(), self.length);
        self.store
            .blocking(move |inner| {
                let published = staging
                    .write_at(length, [seal.encode().as_slice()].into_iter())
                    .and_then(|()| staging.publish(&target, Publish::Replace));
                let metadata = published.map_err(|error| inner.io_error("write", &target, error))?;
                // The file that was open under this name is not the one that now has it.
                inner.open_files.forget(&location);
                let e_tag = Some(read::e_tag(&metadata, &seal));
                Ok(PutResult { e_tag, version: None, extensions: Default::default() })
            })
            .await
    }

    async fn abort(&mut self) -> Result<()> {
        self.staging = None;
        Ok(())
    }
}

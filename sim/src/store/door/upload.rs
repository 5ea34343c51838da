//! An object that is written in parts: no part of it exists until all parts are there.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use object_store::path::Path;
use object_store::{Attributes, MultipartUpload, PutMode, PutPayload, PutResult, Result, UploadPart};

use super::Door;
use crate::events;
use crate::store::fate::Wish;

/// See the module.
#[derive(Debug)]
pub(crate) struct Upload {
    door: Door,
    path: Path,
    attributes: Attributes,
    /// Parts in their order; `None` until one has arrived.
    parts: Arc<Mutex<Vec<Option<Bytes>>>>,
}

impl Upload {
    pub(crate) fn new(door: Door, path: Path, attributes: Attributes) -> Self {
        Self { door, path, attributes, parts: Arc::default() }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (door, path, parts) = (self.door.clone(), self.path.clone(), Arc::clone(&self.parts));
        let bytes = Bytes::from(data);
        let number = {
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.push(None);
            parts.len() - 1
        };
        async move {
            let hash = events::hash([&bytes]);
            door.call(Wish::Part, &path, |_, _, _, _| {
                parts.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(bytes);
                (Ok(()), hash)
            })
            .await
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let parts: Option<Vec<Bytes>> =
            self.parts.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let Some(parts) = parts else {
            let source = "a part of the upload has not arrived".into();
            return Err(object_store::Error::Generic { store: "bucket", source });
        };
        let mut whole = BytesMut::new();
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        self.door.put(&self.path, whole.freeze(), self.attributes.clone(), PutMode::Overwrite).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}

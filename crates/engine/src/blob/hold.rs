//! Holds: while a copy of the store is made, no user of a blob is removed and no file is deleted.
//!
//! A hold is an object `holds/<number>` with the time at which it ends if nobody renews it. The process that copies need
//! not be the one that serves: so the hold is in the store. It is written before the copy takes its moments. So a row
//! that the copy has seen names only blobs whose users and files are still there when the copy comes to them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_map::Timestamp;
use tokio::time::Instant;

use super::{BlobError, Blobs};
use crate::clock::{Clock, ticks};
use crate::limits::{CHECKPOINT_LIFETIME, CHECKPOINT_RENEWED_EVERY};
use crate::store::ObjectError;

/// The directory of the holds.
const HOLDS: &str = "holds";

/// A hold of a copy that is under way. If it is not renewed, it ends by itself as a checkpoint does.
pub struct Hold {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    clock: Clock,
    renewed: Instant,
    /// When it ends if it is not renewed.
    until: Timestamp,
}

impl Hold {
    /// Holds all blobs of the store.
    pub fn place<'a>(
        objects: Arc<dyn ObjectStore>,
        clock: &'a Clock,
    ) -> BoxFuture<'a, Result<Self, ObjectError>> {
        Box::pin(async move {
            let path = Path::from(format!("{HOLDS}/{}", clock.now().ticks()));
            let (renewed, until) = (Instant::now(), clock.wall());
            let mut hold = Self { objects, path, clock: clock.clone(), renewed, until };
            hold.write().await?;
            Ok(hold)
        })
    }

    /// Lets it last for another while, if that is due and it is not over.
    pub(crate) async fn renew_when_due(&mut self) -> Result<(), ObjectError> {
        if self.renewed.elapsed() >= CHECKPOINT_RENEWED_EVERY {
            self.write().await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    /// Whether it has ended because it was not renewed in time. Others may have deleted files since.
    pub(crate) fn is_over(&self) -> bool {
        self.until <= self.clock.wall()
    }

    async fn write(&mut self) -> Result<(), ObjectError> {
        let until = self.clock.wall().saturating_add(ticks(CHECKPOINT_LIFETIME));
        let bytes = until.ticks().to_be_bytes().to_vec();
        let written = self.objects.put(&self.path, bytes.into()).await;
        written.map_err(ObjectError::while_doing("writing", &self.path))?;
        self.until = until;
        Ok(())
    }

    /// Ends it.
    pub fn release(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Err(error) = self.objects.delete(&self.path).await {
                let lasts: Duration = CHECKPOINT_LIFETIME;
                tracing::warn!(%error, ?lasts, "the files of deleted objects stay until the hold of the copy ends");
            }
        })
    }
}

impl Blobs {
    /// Whether a copy is being made.
    pub(super) async fn is_held(&self) -> Result<bool, BlobError> {
        let directory = Path::from(HOLDS);
        let mut holds = self.objects().list(Some(&directory));
        while let Some(hold) = holds.next().await {
            let path = hold.map_err(ObjectError::while_doing("listing", &directory))?.location;
            let read = async { self.objects().get(&path).await?.bytes().await };
            let until = match read.await {
                Ok(bytes) => bytes,
                // It was released just now.
                Err(object_store::Error::NotFound { .. }) => continue,
                Err(error) => return Err(ObjectError::while_doing("reading", &path)(error).into()),
            };
            let until = <[u8; 8]>::try_from(&until[..]).map(i64::from_be_bytes);
            // A hold that cannot be understood is one of a later program.
            let until = until.map_or(Timestamp::from_ticks(i64::MAX), Timestamp::from_ticks);
            if until > self.0.databases.clock.wall() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

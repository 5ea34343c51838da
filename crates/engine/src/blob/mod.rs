//! Blobs: large payloads as files of their own, outside of all ranges, and who uses them.
//!
//! ```text
//!   begin    the row of the blob and of its user            durable, then
//!   write    blobs/<id>/<n>.chunk, one after another        durable, then
//!            (the caller's row that names the extents)      durable
//!   refer    one more user's row                            durable, then the row of a copy
//!   release  (the caller's row is gone, then) the user's row goes; with the last user the blob is dead
//!   bury     a dead blob's files go, then its state row
//! ```
//!
//! A crash between two steps leaves a user too many, never one too few: a blob that nobody uses any more, which the
//! audit (`audit`) finds by asking each user. A crash may also leave a chunk that no row names (`stray`). Files are never deleted
//! because of their age.
//!
//! **Why the files of a dead blob may stay.** A download in this process *pins* its blobs, and the last pin buries a
//! blob that died meanwhile (`in_use`). A backup *holds* all blobs while it runs (`hold`): meanwhile no user is
//! removed and no file is deleted, and the audit makes good for that later.
//!
//! A chunk file never changes. Its bytes are checked at every read (`chunk`).

mod audit;
mod bury;
mod chunk;
mod error;
mod hold;
mod in_use;
mod read;
mod rows;
mod run;
mod stray;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::path::Path;
use rangehold_map::PartitionPrefix;
use rangehold_map::blob::{BlobId, BlobUser, Extent};
use rangehold_map::key::BlobRow;
use tokio::time::Instant;

pub(crate) use chunk::{BLOCK_FILE_BYTES, are_whole_blocks};

pub use audit::{AuditCursor, Audited};
pub use error::{BlobError, Never};
pub use hold::Hold;
use in_use::InUse;
pub use in_use::UnderWay;
pub use read::BlobStream;
use rows::Rows;
pub(crate) use rows::note_user;
pub use run::crc32c_of;
pub use stray::Swept;
pub use write::BlobWriter;

use crate::database::Databases;
use crate::limits::BLOB_ROWS_WITHIN;
use crate::range::{RowChanges, WriteRequest};
use crate::router::Router;
use crate::steps::{BlobHook, BlobStep};
use crate::store::{ObjectError, Space, Store};

/// The directory of all blobs.
pub(crate) const BLOBS: &str = "blobs";

/// All blobs of a node. Clones are the same.
#[derive(Clone)]
pub struct Blobs(Arc<Inner>);

struct Inner {
    store: Arc<Store>,
    databases: Databases,
    router: Router,
    in_use: InUse,
    begun: AtomicU64,
    after_step: BlobHook,
}

impl Blobs {
    pub(crate) fn new(store: Arc<Store>, databases: Databases, router: Router, after_step: BlobHook) -> Self {
        let (in_use, begun) = (InUse::default(), AtomicU64::default());
        Self(Arc::new(Inner { store, databases, router, in_use, begun, after_step }))
    }

    /// Begins a blob with its first user. When this returns, the user is durable.
    ///
    /// Keep the writer until the row that names the extents is durable: as long as it is there, the audit does not
    /// ask the user. If the row will not be written, call [`BlobWriter::discard`].
    pub fn begin<'a>(&'a self, user: BlobUser) -> BoxFuture<'a, Result<BlobWriter, BlobError>> {
        Box::pin(async move {
            let under_way = self.0.in_use.under_way(&user);
            let blob = self.new_id();
            self.change(blob, Some(&user), |rows| Ok(rows::begun(rows))).await?;
            self.after(BlobStep::Begun, blob).await;
            Ok(BlobWriter::new(self.clone(), user, under_way, blob))
        })
    }

    /// Goes on with an upload of which `extents` are durable, perhaps by an earlier process. The same as
    /// [`Blobs::begin`] if there are none yet. Only one writer of an upload may be in use at a time.
    pub fn resume<'a>(
        &'a self,
        user: BlobUser,
        extents: Vec<Extent>,
    ) -> BoxFuture<'a, Result<BlobWriter, BlobError>> {
        Box::pin(async move {
            let Some(last) = extents.last().copied() else {
                return self.begin(user).await;
            };
            let under_way = self.0.in_use.under_way(&user);
            self.check_alive(last.blob).await?;
            let named = extents.iter().filter(|extent| extent.blob == last.blob);
            let after_named = named.map(|extent| extent.numbers().end).max().unwrap_or(0);
            // Also after a chunk that no row names.
            let after_stored = self.chunks_of(last.blob).await?.last().map_or(0, |number| number + 1);
            let next = after_named.max(after_stored);
            Ok(BlobWriter::resumed(self.clone(), user, under_way, extents, next))
        })
    }

    /// Adds `user` to the users of each blob of `extents`, before a row of that user names them. Fails with
    /// [`BlobError::Gone`] if one of the blobs is dead: then the row that named it is gone too. Keep what is returned until
    /// the row is durable.
    pub fn refer<'a>(
        &'a self,
        extents: &'a [Extent],
        user: &'a BlobUser,
    ) -> BoxFuture<'a, Result<UnderWay, BlobError>> {
        Box::pin(async move {
            let under_way = self.0.in_use.under_way(user);
            for blob in blobs_of(extents) {
                self.change(blob, Some(user), |rows| rows::referred(rows).ok_or(Gone)).await?;
                self.after(BlobStep::Referred, blob).await;
            }
            Ok(under_way)
        })
    }

    /// Removes `user` from the users of each blob of `extents`, after the row of that user that named them is gone,
    /// durably. Blobs without users are deleted. Doing it again does no harm.
    pub fn release<'a>(
        &'a self,
        extents: &'a [Extent],
        user: &'a BlobUser,
    ) -> BoxFuture<'a, Result<(), BlobError>> {
        Box::pin(async move {
            for blob in blobs_of(extents) {
                self.release_one(blob, user).await?;
            }
            Ok(())
        })
    }

    /// As [`Blobs::release`], for one blob.
    pub fn release_one<'a>(
        &'a self,
        blob: BlobId,
        user: &'a BlobUser,
    ) -> BoxFuture<'a, Result<(), BlobError>> {
        Box::pin(async move {
            // A copy of the store may have read the row that named the blob, and not yet the rows of the blob.
            if self.is_held().await? {
                return Ok(());
            }
            let is_dead = self.change(blob, Some(user), |rows| Ok(rows::released(rows))).await?;
            self.after(BlobStep::Released, blob).await;
            if is_dead { self.bury(blob).await } else { Ok(()) }
        })
    }

    /// A name that was never used: the time, and chance.
    fn new_id(&self) -> BlobId {
        let number = self.0.begun.fetch_add(1, Ordering::Relaxed);
        let chance = self.0.databases.seed_of(&format!("{BLOBS}/{number}"));
        let ticks = self.0.databases.clock.now().ticks().cast_unsigned();
        BlobId(u128::from(ticks) << 64 | u128::from(chance))
    }

    /// Changes the rows of a blob by what `judge` makes of them, and returns what it made besides.
    async fn change<T: Send>(
        &self,
        blob: BlobId,
        user: Option<&BlobUser>,
        judge: impl Fn(Rows) -> Result<(Rows, T), Gone> + Send + Sync,
    ) -> Result<T, BlobError> {
        let partition = PartitionPrefix::blob(blob);
        let of_user = user.map(|user| BlobRow::User(user.clone()));
        let keys: Vec<_> =
            [BlobRow::State].iter().chain(&of_user).map(|row| partition.blob_row(row)).collect();
        let request = WriteRequest {
            space: Space::Returns,
            ..WriteRequest::new(&partition, &keys, Instant::now() + BLOB_ROWS_WITHIN)
        };
        let mut made = None;
        let written = self
            .0
            .router
            .write(&request, |current, _| {
                let before = Rows::decode(blob, current).map_err(Refused::Damaged)?;
                let (after, result) = judge(before).map_err(|Gone| Refused::Gone)?;
                made = Some(result);
                Ok::<RowChanges, Refused>(before.changes(after, &keys))
            })
            .await;
        match written {
            Ok(_) => Ok(made.expect("a write that was not refused was judged")),
            Err(error) => Err(BlobError::row(blob, error)),
        }
    }

    /// Fails unless the blob has a user.
    async fn check_alive(&self, blob: BlobId) -> Result<(), BlobError> {
        if self.rows_of(blob).await?.is_alive() { Ok(()) } else { Err(BlobError::Gone(blob)) }
    }

    async fn rows_of(&self, blob: BlobId) -> Result<Rows, BlobError> {
        let key = PartitionPrefix::blob(blob).blob_row(&BlobRow::State);
        let state = self.0.router.get(&key).await.map_err(BlobError::Read)?;
        Ok(Rows::decode(blob, &[state])?)
    }

    /// The numbers of a blob's chunk files.
    async fn chunks_of(&self, blob: BlobId) -> Result<BTreeSet<u32>, BlobError> {
        let directory = directory_of(blob);
        let mut found = self.objects().list(Some(&directory));
        let mut numbers = BTreeSet::new();
        while let Some(file) = found.next().await {
            let file = file.map_err(ObjectError::while_doing("listing", &directory))?;
            numbers.extend(chunk::number_of(&file.location));
        }
        Ok(numbers)
    }

    fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.0.databases.objects
    }

    async fn after(&self, step: BlobStep, blob: BlobId) {
        self.0.after_step.after(step, blob).await;
    }
}

/// The blob has no user any more.
struct Gone;

/// Why the rows of a blob were not changed.
enum Refused {
    Gone,
    Damaged(crate::error::Damaged),
}

/// The directory of a blob.
pub(crate) fn directory_of(blob: BlobId) -> Path {
    Path::from(format!("{BLOBS}/{blob}"))
}

/// The blobs of these extents, each once.
fn blobs_of(extents: &[Extent]) -> BTreeSet<BlobId> {
    extents.iter().map(|extent| extent.blob).collect()
}

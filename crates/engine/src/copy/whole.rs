//! Copies a whole store: range by range, then the files of large objects, then the map, which makes it one that can be
//! opened.

use futures::TryStreamExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_map::{KeyRange, RangeMap};

use super::base::{Base, Destination};
use super::blobs::copy_file;
use super::moments::Moments;
use super::notes::{CopiedRange, Notes};
use super::rows::{copy_rows, save, while_there_is_room};
use super::{CopyError, CopyReport, Work, check_apart, give_up, place};
use crate::blob::BLOBS;
use crate::clock::Clock;
use crate::database::{self, Databases};
use crate::map_store;
use crate::range::Identity;
use crate::store::{Filling, ObjectError, Store, StoreLocation, StoreOptions};

/// How a store is copied.
pub struct CopyOptions {
    /// A copy that was made earlier. What has not changed since is taken over from it, and takes no more room if both are on
    /// one volume. The new copy stays whole when the base is deleted.
    pub base: Option<StoreLocation>,
    /// The options of all stores.
    pub store: StoreOptions,
    /// The clock.
    pub clock: Clock,
    /// From which chance is drawn. No other process has or ever had the same.
    pub seed: u64,
}

/// Copies the store at `from`, which another process may be serving, to `to`, which must be empty or hold
/// an interrupted copy. `progress` is called after each batch of rows. The copy is durable when this
/// returns. A base that is not a copy, or one of an earlier release, is refused with [`CopyError::NoNotes`].
pub fn copy<'a>(
    from: &'a StoreLocation,
    to: &'a StoreLocation,
    options: &'a CopyOptions,
    progress: &'a mut (dyn FnMut(&CopyReport) + Send),
) -> BoxFuture<'a, Result<CopyReport, CopyError>> {
    Box::pin(async move {
        let (source, base, target) = open_all(from, to, options).await?;
        let work = Work::begin(target.store(), &options.clock, options.seed)?;
        let databases = &work.databases;
        let (stored, mut moments) = Moments::hold(&source, &KeyRange::whole(), databases, true).await?;
        let report = CopyReport {
            ranges_total: stored.entries().len() as u64,
            files_bytes: moments.files_bytes(),
            ..CopyReport::default()
        };
        let mut copying =
            Copying { source: &source, target: target.store(), base, databases, report, progress };
        let copied = copying.copy(&stored, &mut moments).await;
        let report = copying.report;
        moments.release().await;
        copied?;
        map_store::create(&databases.objects, &stored, "copy").await?;
        target.finish()?;
        Ok(report)
    })
}

/// Opens the source, the base and the target. Nothing is made before all of it is checked.
async fn open_all(
    from: &StoreLocation,
    to: &StoreLocation,
    options: &CopyOptions,
) -> Result<(Store, Option<Base>, Filling), CopyError> {
    let root =
        |location: &'_ StoreLocation| location.directory().map(ToOwned::to_owned).ok_or(CopyError::InMemory);
    let (from_root, to_root) = (root(from)?, root(to)?);
    let source = Store::open_beside(&from_root, options.store)?;
    check_apart(from, &source, to)?;
    let mut base = None;
    if let Some(location) = &options.base {
        let opened = Store::open_beside(&root(location)?, options.store)?;
        check_apart(location, &opened, to)?;
        check_apart(location, &opened, from)?;
        base = Some(Base::open(opened).await?);
    }
    Ok((source, base, Store::fill(&to_root, options.store)?))
}

/// A copy that is under way.
struct Copying<'a> {
    source: &'a Store,
    target: &'a Store,
    base: Option<Base>,
    databases: &'a Databases,
    report: CopyReport,
    progress: &'a mut (dyn FnMut(&CopyReport) + Send),
}

impl Copying<'_> {
    async fn copy(&mut self, stored: &RangeMap, moments: &mut Moments) -> Result<(), CopyError> {
        let mut notes = Notes::default();
        for entry in stored.entries() {
            self.copy_range(moments, &Identity::of(entry), &mut notes).await?;
            moments.release_one(entry.id).await;
            moments.renew_when_due().await?;
            self.report.ranges += 1;
            (self.progress)(&self.report);
        }
        self.copy_blobs(moments).await?;
        notes.store(self.target).await
    }

    async fn copy_range(
        &mut self,
        moments: &mut Moments,
        identity: &Identity,
        notes: &mut Notes,
    ) -> Result<(), CopyError> {
        let moment = moments.of(identity.id).expect("a moment of each range was taken");
        let contents = moment.contents().expect("each moment of a whole copy notes them").clone();
        let files_bytes = moment.files_bytes();
        if let Some(base) = &self.base {
            let mut into = Destination {
                target: self.target,
                databases: self.databases,
                moments: &mut *moments,
                report: &mut self.report,
                progress: &mut *self.progress,
            };
            if let Some(taken) = base.take_range(&contents, identity.database, &mut into).await? {
                self.report.rows += taken.rows;
                self.report.bytes += taken.bytes;
                self.report.files_bytes_done += files_bytes;
                notes.add(contents, taken);
                return Ok(());
            }
        }
        let copied = self.copy_rows(moments, identity).await?;
        notes.add(contents, CopiedRange::of(identity.database, self.databases, copied).await?);
        Ok(())
    }

    /// Makes the database of a range. Returns its rows, and the bytes of their keys and values. It is durable when this
    /// returns, and nothing changes it any more.
    async fn copy_rows(
        &mut self,
        moments: &mut Moments,
        identity: &Identity,
    ) -> Result<(u64, u64), CopyError> {
        let (target, range, place) = (self.target, identity.id, place(identity));
        let db = while_there_is_room(target, database::create(self.databases, &place)).await??;
        let (rows, bytes) = (self.report.rows, self.report.bytes);
        let copied = async {
            copy_rows(moments, target, &db, range, None, &mut self.report, self.progress).await?;
            save(target, &db, range).await
        };
        if let Err(error) = copied.await {
            give_up(&db).await;
            return Err(error);
        }
        while_there_is_room(target, self.databases.housekeeper.leave(&place.path)).await?;
        let closed = while_there_is_room(target, db.close()).await?;
        closed.map_err(CopyError::writing(target, range))?;
        Ok((self.report.rows - rows, self.report.bytes - bytes))
    }

    /// Copies all files of large objects that are there after the moments were taken: at least those that the copied rows
    /// name, because the hold keeps them. Files that no copied row names are found by the audit of the copy.
    async fn copy_blobs(&mut self, moments: &mut Moments) -> Result<(), CopyError> {
        let (from, to) = (self.source.object_store(), self.target.object_store());
        let directory = Path::from(BLOBS);
        let mut files = from.list(Some(&directory));
        while let Some(file) =
            files.try_next().await.map_err(ObjectError::while_doing("listing", &directory))?
        {
            let is_taken = match &self.base {
                Some(base) => {
                    base.take_chunk(self.source, &file.location, self.target, &mut self.report).await?
                }
                None => false,
            };
            if !is_taken {
                let copied = copy_file(moments, &*from, &*to, &file.location, file.size);
                match while_there_is_room(self.target, copied).await? {
                    // It was being deleted when the hold was placed. The copied rows are younger, so none of them names it.
                    Err(CopyError::Object(_)) if is_missing(&*from, &file.location).await => continue,
                    copied => copied?,
                }
            }
            self.report.chunks += 1;
            self.report.chunk_bytes += file.size;
            (self.progress)(&self.report);
            moments.renew_when_due().await?;
        }
        moments.renew_when_due().await
    }
}

/// Whether a file is not there any more.
async fn is_missing(store: &dyn ObjectStore, file: &Path) -> bool {
    matches!(store.head(file).await, Err(object_store::Error::NotFound { .. }))
}

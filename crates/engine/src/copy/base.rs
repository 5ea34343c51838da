//! A copy that another one is based on. What has not changed since is taken over from it: the databases of ranges, and files of
//! large objects.
//!
//! A copy [notes](super::notes) what each database held that it copied. A database of the base is taken over if the source holds
//! the same today, and if the base's database still holds what it held when the base was complete: somebody may have changed it
//! since. Its sorted files are checked as a whole and then shared by links. Its newest manifest and
//! the end of its log, which are small, are written again. Nothing else comes along: a list of compactions could name files that no
//! manifest names. At the end the new database must hold what was noted, since another process may have written to the base
//! meanwhile.
//!
//! A chunk file of a large object is taken over if the base has one of the same name, length and checksum.
//!
//! What is damaged in the base is copied from the source, as without a base, and the report counts it.

use std::collections::BTreeSet;

use object_store::ObjectStoreExt;
use object_store::path::Path;
use rangehold_map::DatabaseName;
use slatedb::PathResolver;
use slatedb::manifest::VersionedManifest;

use super::contents::Contents;
use super::moments::Moments;
use super::notes::{CopiedRange, Notes, held_by};
use super::rows::while_there_is_room;
use super::{CopyError, CopyReport};
use crate::database::{Databases, database_path};
use crate::store::{ObjectError, Store, check_log, log_file};

/// A copy that was made earlier.
pub(super) struct Base {
    store: Store,
    notes: Notes,
}

/// Where a range is taken over to, what is renewed meanwhile, and who is told of it.
pub(super) struct Destination<'a> {
    pub(super) target: &'a Store,
    pub(super) databases: &'a Databases,
    pub(super) moments: &'a mut Moments,
    pub(super) report: &'a mut CopyReport,
    pub(super) progress: &'a mut (dyn FnMut(&CopyReport) + Send),
}

impl Base {
    pub(super) async fn open(store: Store) -> Result<Self, CopyError> {
        Ok(Self { notes: Notes::read(&store).await?, store })
    }

    /// Takes over the database of a range that holds `contents`, as the database `to` of the target. `None` if the base has
    /// no such database. Then nothing is left at `to`.
    pub(super) async fn take_range(
        &self,
        contents: &Contents,
        to: DatabaseName,
        into: &mut Destination<'_>,
    ) -> Result<Option<CopiedRange>, CopyError> {
        let Some(copied) = self.notes.find(contents) else { return Ok(None) };
        let Some(from) = copied.database() else { return Ok(None) };
        if self.store.has_objects() {
            into.target.mark_objects()?;
        }
        let target = into.target;
        let taken = while_there_is_room(target, self.take_database(copied, from, to, into)).await?;
        match taken {
            Ok(Some(shared_bytes)) => {
                into.report.shared_bytes += shared_bytes;
                into.report.ranges_taken += 1;
                return Ok(Some(copied.at(to)));
            }
            Ok(None) => {}
            Err(error) => into.report.note_not_taken(&error),
        }
        into.databases.delete_objects(&database_path(to)).await?;
        Ok(None)
    }

    /// Returns the bytes that are shared. `None` if the database has changed since it was copied.
    async fn take_database(
        &self,
        copied: &CopiedRange,
        from: DatabaseName,
        to: DatabaseName,
        into: &mut Destination<'_>,
    ) -> Result<Option<u64>, CopyError> {
        let databases = Databases { objects: self.store.object_store(), ..into.databases.clone() };
        // It is gone if the base was served, and the range was split there.
        let Some((manifest, contents)) = held_by(from, &databases).await? else { return Ok(None) };
        if contents != copied.contents {
            return Ok(None);
        }
        let (path, new_path) = (database_path(from), database_path(to));
        let mut shared_bytes = 0;
        for file in sorted_files(&path, &manifest) {
            let adopted = into.target.adopt(&self.store, &file, &moved(&file, &path, &new_path)).await;
            let adopted = adopted.map_err(ObjectError::while_doing("taking over", &file))?;
            shared_bytes += adopted.shared_bytes();
            into.moments.renew_when_due().await?;
            (into.progress)(into.report);
        }
        self.copy_small_files(&manifest, &path, into.target, &new_path).await?;
        let held = held_by(to, into.databases).await?;
        Ok(held.is_some_and(|(_, contents)| contents == copied.contents).then_some(shared_bytes))
    }

    /// Copies a manifest, and the files of the log whose rows are in no sorted file of it.
    async fn copy_small_files(
        &self,
        manifest: &VersionedManifest,
        from: &str,
        target: &Store,
        to: &str,
    ) -> Result<(), CopyError> {
        let (source, objects) = (self.store.object_store(), target.object_store());
        let log = check_log(&source, from, manifest.replay_after_wal_id()).await;
        let log = log.map_err(ObjectError::while_doing("listing the log of", &from))?;
        let log = log.into_iter().map(|number| log_file(from, number));
        let newest = Path::from(format!("{from}/manifest/{:020}.manifest", manifest.id()));
        for file in log.chain([newest]) {
            let read = async { source.get(&file).await?.bytes().await };
            let bytes = read.await.map_err(ObjectError::while_doing("reading", &file))?;
            let written = objects.put(&moved(&file, from, to), bytes.into()).await;
            written.map_err(ObjectError::while_doing("writing", &file))?;
        }
        Ok(())
    }

    /// Takes over a chunk file. Returns whether that was done.
    pub(super) async fn take_chunk(
        &self,
        source: &Store,
        file: &Path,
        target: &Store,
        report: &mut CopyReport,
    ) -> Result<bool, CopyError> {
        let taken = async {
            if source.has_same(&self.store, file).await? {
                target.adopt(&self.store, file, file).await.map(Some)
            } else {
                Ok(None)
            }
        };
        match while_there_is_room(target, taken).await? {
            Ok(Some(adopted)) => {
                report.shared_bytes += adopted.shared_bytes();
                report.chunks_taken += 1;
                return Ok(true);
            }
            Ok(None) => {}
            Err(error) => report.note_not_taken(&ObjectError::while_doing("taking over", file)(error).into()),
        }
        Ok(false)
    }
}

/// The sorted files that a manifest names.
fn sorted_files(database: &str, manifest: &VersionedManifest) -> BTreeSet<Path> {
    let paths = PathResolver::new(database, manifest);
    manifest.all_sst_views().map(|view| paths.sst_path(&view.sst.id)).collect()
}

/// The place of a file of the database at `from` in the one at `to`.
fn moved(file: &Path, from: &str, to: &str) -> Path {
    Path::from(format!("{to}{}", file.as_ref().strip_prefix(from).unwrap_or_default()))
}

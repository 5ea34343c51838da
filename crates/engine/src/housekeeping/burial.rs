//! Burial: deletes the directories of databases that no range uses any more.
//!
//! Under `ranges/` there are the databases of the ranges in the map, those that a change under way is
//! making, and dead ones: parents of a split or merge, attempts that do not count, and what a crash left
//! unfinished. The deletion of the engine below has no guard: it was seen to delete files that a clone was
//! reading. So these conditions must all hold before a database is deleted:
//!
//! 1. The directory's name is that of a database, `<range>-<generation>-<attempt>`.
//! 2. It was listed before the list of living databases was read, so that a database that was made in
//!    between is not taken for dead. And it was dead at every look for half a minute.
//! 3. No checkpoint is left in it. Every child holds one as long as it may read a file, and a backup holds
//!    one while it copies. (Checkpoints whose time is over are removed first.)
//! 4. No living database's manifest names it.
//!
//! Deleting a dead child releases what it pinned in its own parents, so one look may bury a whole line of
//! ancestors. A database without a manifest has never had a row, or its deletion was broken off. It has no
//! checkpoint that could be looked at, so for such a database only 1, 2 and 4 are checked. A deletion that was broken off may also leave *older* manifests,
//! since a directory lists its files in any order, and such a manifest may name checkpoints that nothing
//! holds any more. A mark shows such a deletion: where the mark is, 3 held once and is not checked again.
//!
//! The newest manifest of a dead database may be damaged: that is why a range is restored from a backup. The manifest is
//! deleted, and the one before it counts, if the collector has left one. That one names all that a later one pins in other databases,
//! since a database borrows only when it is made. It may lack checkpoints that others hold here: for these 4 stands, and a backup
//! of this database may fail. If no sound manifest is left, what the database pins in others stays.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use slatedb::manifest::VersionedManifest;
use thiserror::Error;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::garbage::{self, Due};
use super::limits::{BURIAL_POLL, UNUSED_BEFORE_BURIAL};
use super::records::Records;
use super::step_is_done;
use crate::database::{Databases, RANGES, lenders};
use crate::error::with_causes;
use crate::map_store::MapError;
use crate::steps::SpaceStep;
use crate::store::{ObjectError, Store, damaged_file};

/// An object that the engine below puts into a database before it deletes the first file, and deletes last.
const DELETION_MARK: &str = ".deleting";

/// Why unused databases were not looked for, or not all of them deleted. The next look tries again.
#[derive(Debug, Error)]
pub(crate) enum BurialError {
    /// It is not known which databases are in use.
    #[error("it is not known which databases are in use")]
    Living(#[source] MapError),
    /// A database could not be looked at or deleted.
    #[error("{0} could not be read or deleted")]
    Database(String, #[source] slatedb::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ObjectError),
}

impl BurialError {
    /// Makes an error of what SlateDB says about the database at `path`.
    fn of(path: &str) -> impl Fn(slatedb::Error) -> Self {
        move |source| Self::Database(path.to_owned(), source)
    }
}

/// Looks for dead databases again and again. Run it as a task. `living` returns the paths of all databases
/// that are in use or being made. It is called *after* the
/// directories were listed. So a process that makes a database must make sure that `living` names it before
/// its first file is there.
pub(crate) async fn keep_burying<F>(databases: Databases, store: Arc<Store>, living: impl Fn() -> F)
where
    F: Future<Output = Result<BTreeSet<String>, MapError>>,
{
    let mut poll = interval(BURIAL_POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut burial = Burial::default();
    loop {
        poll.tick().await;
        match burial.look(&databases, &store, &living).await {
            Ok(buried) if buried.is_empty() => {}
            Ok(buried) => tracing::info!(?buried, "deleted what no range uses any more"),
            Err(error) => tracing::warn!(error = with_causes(&error), "unused databases stay for now"),
        }
    }
}

/// Remembers since when each directory has been dead, and what the [`Records`] of each range wait for.
#[derive(Debug, Default)]
pub(crate) struct Burial {
    dead_since: BTreeMap<String, Instant>,
    records: Records,
}

impl Burial {
    /// Looks at all directories once, and returns the paths of those that it deleted.
    pub(crate) async fn look<F>(
        &mut self,
        databases: &Databases,
        store: &Store,
        living: impl Fn() -> F,
    ) -> Result<Vec<String>, BurialError>
    where
        F: Future<Output = Result<BTreeSet<String>, MapError>>,
    {
        let (found, recorded) = (directories(databases).await?, Records::list(databases).await?);
        let living = living().await.map_err(BurialError::Living)?;
        let now = Instant::now();
        self.dead_since.retain(|path, _| found.contains(path) && !living.contains(path));
        let mut due = BTreeSet::new();
        for path in found.into_iter().filter(|path| !living.contains(path)) {
            let since = *self.dead_since.entry(path.clone()).or_insert(now);
            if now - since >= UNUSED_BEFORE_BURIAL {
                due.insert(path);
            }
        }
        let mut buried = Vec::new();
        if !due.is_empty() {
            let named = named_by(databases, &living).await?;
            due.retain(|path| !named.contains(path));
            buried = self.bury(databases, store, due).await?;
        }
        let oldest = self.dead_since.values().min().copied();
        self.records.forget(databases, store, recorded, &living, (now, oldest)).await?;
        Ok(buried)
    }

    /// Buries the databases of `due` that may be buried, in several rounds: each may have pinned the next.
    async fn bury(
        &mut self,
        databases: &Databases,
        store: &Store,
        mut due: BTreeSet<String>,
    ) -> Result<Vec<String>, BurialError> {
        let mut buried = Vec::new();
        loop {
            let (before, mut failed) = (buried.len(), None);
            // Children have greater numbers than their parents, so most of them are buried in one round.
            for path in due.iter().rev() {
                match bury_one(databases, store, path).await {
                    Ok(false) => {}
                    Ok(true) => {
                        databases.marks.forget(path);
                        self.dead_since.remove(path);
                        buried.push(path.clone());
                    }
                    // One that cannot be buried must not keep the others.
                    Err(error) => failed = Some(error),
                }
            }
            if buried.len() == before {
                return failed.map_or(Ok(buried), Err);
            }
            due.retain(|path| !buried.contains(path));
        }
    }
}

/// The paths of all directories whose names are those of databases.
async fn directories(databases: &Databases) -> Result<BTreeSet<String>, ObjectError> {
    let prefix = Path::from(RANGES);
    let listed = databases.objects.list_with_delimiter(Some(&prefix)).await;
    let listed = listed.map_err(ObjectError::while_doing("listing", &prefix))?;
    let paths = listed.common_prefixes.iter().filter(|path| path.filename().is_some_and(is_database_name));
    Ok(paths.map(ToString::to_string).collect())
}

/// Whether this is the name of a database's directory: three numbers.
fn is_database_name(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    name.split('-').count() == 3 && name.split('-').all(is_number)
}

/// The paths of all databases that the manifest of a living one names. The manifests of databases that are
/// open here need not be read again. With a thousand databases that saves much: for minutes there is always
/// one to be buried somewhere.
async fn named_by(databases: &Databases, living: &BTreeSet<String>) -> Result<BTreeSet<String>, BurialError> {
    let mut open = databases.housekeeper.pins().await;
    let mut named = BTreeSet::new();
    for path in living {
        if let Some(pins) = open.remove(path) {
            named.extend(pins);
            continue;
        }
        let manifest = databases.manifest(path).await.map_err(BurialError::of(path))?;
        // A database that is being made may have no manifest yet, and then it names no other.
        if let Some(manifest) = manifest {
            named.extend(lenders(&manifest).map(str::to_owned));
        }
    }
    Ok(named)
}

/// Deletes a dead database, unless its files may still be read. True when it is gone.
async fn bury_one(databases: &Databases, store: &Store, path: &str) -> Result<bool, BurialError> {
    let failed = BurialError::of(path);
    let admin = databases.admin(path);
    if sound_manifest(databases, path).await?.is_none() {
        databases.delete_objects(path).await?;
    } else if deletion_was_begun(databases, path).await? {
        admin.delete_db(true).await.map_err(&failed)?;
    } else {
        // This deletes files that no child reads, and checkpoints whose time is over.
        garbage::run(databases, path, Due::Rest).await;
        if !admin.list_checkpoints(None).await.map_err(&failed)?.is_empty() {
            return Ok(false);
        }
        step_is_done(databases, SpaceStep::Expired, path).await;
        admin.delete_db(true).await.map_err(&failed)?;
    }
    step_is_done(databases, SpaceStep::Emptied, path).await;
    store.remove_directory(path).await.map_err(ObjectError::while_doing("removing", &path))?;
    step_is_done(databases, SpaceStep::Buried, path).await;
    Ok(true)
}

/// The newest manifest that is not damaged; `None` if there is none. Damaged ones after it are deleted.
async fn sound_manifest(databases: &Databases, path: &str) -> Result<Option<VersionedManifest>, BurialError> {
    loop {
        let error = match databases.manifest(path).await {
            Ok(manifest) => return Ok(manifest),
            Err(error) => error,
        };
        let Some(damaged) = damaged_file(&error).cloned() else {
            return Err(BurialError::of(path)(error));
        };
        let directory = Path::from(format!("{path}/manifest"));
        let listing = ObjectError::while_doing("listing", &directory);
        let listed = databases.objects.list(Some(&directory)).map_ok(|object| object.location);
        let files: Vec<Path> = listed.try_collect().await.map_err(listing)?;
        let newest = files.into_iter().filter(|file| file.extension() == Some("manifest")).max();
        let Some(newest) = newest.filter(|file| damaged.file.ends_with(file.as_ref())) else {
            return Err(BurialError::of(path)(error));
        };
        tracing::info!(file = %newest, "deleted a damaged manifest of a database that no range uses");
        databases.objects.delete(&newest).await.map_err(ObjectError::while_doing("deleting", &newest))?;
    }
}

/// Whether all conditions held once, and the deletion of the database was begun and broken off. Then its
/// newest manifest may be gone and an older one be left, which names pins that were released long ago.
async fn deletion_was_begun(databases: &Databases, path: &str) -> Result<bool, ObjectError> {
    let mark = Path::from(format!("{path}/{DELETION_MARK}"));
    match databases.objects.head(&mark).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(ObjectError::while_doing("looking for", &mark)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_numbers_name_a_database() {
        assert!(is_database_name("7-3-1"));
        for other in ["7-3", "7-3-1-", "7-3-x", "", "--", "7--1", "lost+found", "7-3-1-2"] {
            assert!(!is_database_name(other), "{other}");
        }
    }
}

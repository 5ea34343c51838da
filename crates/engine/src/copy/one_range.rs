//! Restores one range from a backup, into a directory that nobody serves.
//!
//! Every other range stays as it is. So afterwards the rows of one range are as of the backup, and those of all others as
//! they were. The command is for a range with a damaged file, but it asks nothing of the range: it also works if every
//! file of it is gone, or if none is damaged.
//!
//! ```text
//!   1 take moments of the ranges of the backup that have the keys      the backup may be cut otherwise
//!   2 make a new database, by a name that no map has named             ranges/<range>-<next generation>-<attempt>
//!   3 delete what interrupted attempts left                            after 2, so that no name is free again
//!   4 copy the rows, and write the rows that the range keeps about itself
//!   5 copy files of large objects, and note who uses them              see [`super::objects`]
//!   6 store the next version of the map, which names the new database  COMMIT
//! ```
//!
//! A change of the range that was broken off is undone first: the process that would do it could not open the range.
//! Before 6 the directory is served as it was: nobody looks for the new database, and what was noted in 5 are users too
//! many, which the audit of blobs removes. Step 6 creates one object, so there is no state in between. The range gets its
//! next generation, as at every change of hands.
//!
//! The old database stays where it is. When the directory is served again, it is one that no range uses, and is buried as
//! all of them are (`housekeeping::burial`): only that code knows what it pins in other databases, and it works after a crash.
//!
//! **What the range knows about itself** ([`Inheritance`]) comes from the ranges of the backup and, if they can still be
//! read, from the rows of the old database:
//!
//! * No timestamp may be given twice. The old range gave timestamps after the backup, and where their reservation cannot
//!   be read, the clock stands for it: a range gives no time that lies far ahead of the clock.
//! * Tables that were dropped before the backup stay dropped by their notes. The others that were dropped are in the
//!   catalogue until no range has rows of them, and the process that opens the range reads it. After that nothing names
//!   them: their rows are never shown, and stay.

use std::collections::BTreeSet;
use std::str::FromStr;

use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::path::Path;
use rangehold_map::{DatabaseName, KeyRange, RangeEntry, RangeId, RangeMap};
use slatedb::{Db, WriteBatch};

use super::moment::{Moment, OwnRows};
use super::moments::Moments;
use super::objects::{ObjectRows, Objects};
use super::rows::{copy_rows, save, while_there_is_room, write};
use super::{CopyError, CopyReport, Work, check_apart, give_up, location, place};
use crate::change::undo_unserved;
use crate::clock::Clock;
use crate::database::{self, Databases, RANGES, database_path};
use crate::error::{ReadError, with_causes};
use crate::map_store::{self, Maps};
use crate::range::{Identity, Inheritance};
use crate::store::{ObjectError, Store, StoreLocation, StoreOptions};

/// Which range is to be restored, and with what.
pub struct OneRange<'a> {
    /// The range, by the map of the directory into which it is restored.
    pub range: RangeId,
    /// What rows of objects say.
    pub objects: ObjectRows,
    /// The clock.
    pub clock: &'a Clock,
    /// From which chance is drawn. No other process has or ever had the same.
    pub seed: u64,
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRestored {
    /// What was copied. The ranges are those of the backup.
    pub copied: CopyReport,
    /// The keys of the range.
    pub keys: KeyRange,
    /// The version of the map that names the new database.
    pub map_version: u64,
    /// The new database.
    pub database: DatabaseName,
    /// The database that it replaces.
    pub replaced: DatabaseName,
    /// Other ranges that are damaged and have rows about the blobs of the restored range. They have to be restored from the
    /// backup too.
    pub damaged: BTreeSet<RangeId>,
}

impl OneRange<'_> {
    /// Restores the range of the directory `to` from the backup `from`. Fails with
    /// [`StoreError::Locked`](crate::store::StoreError) while `to` is served. The range is durable when this returns; after
    /// an error or a crash the directory is as it was, and the call may be repeated.
    pub fn restore<'a>(
        &'a self,
        from: &'a StoreLocation,
        to: &'a StoreLocation,
        options: StoreOptions,
        progress: &'a mut (dyn FnMut(&CopyReport) + Send),
    ) -> BoxFuture<'a, Result<RangeRestored, CopyError>> {
        Box::pin(async move {
            let (Some(from_root), Some(to_root)) = (from.directory(), to.directory()) else {
                return Err(CopyError::InMemory);
            };
            let source = Store::open_beside(from_root, options)?;
            check_apart(from, &source, to)?;
            // `open` makes a directory that is missing.
            drop(Store::open_beside(to_root, options)?);
            let target = Store::open(to, options)?;
            self.restore_in(&source, &target, progress).await
        })
    }

    /// As [`Self::restore`], with stores that are open. The target must be open for this alone.
    pub fn restore_in<'a>(
        &'a self,
        source: &'a Store,
        target: &'a Store,
        progress: &'a mut (dyn FnMut(&CopyReport) + Send),
    ) -> BoxFuture<'a, Result<RangeRestored, CopyError>> {
        Box::pin(async move {
            let objects = target.object_store();
            let loaded = map_store::load(&objects).await?;
            let map = loaded.ok_or_else(|| CopyError::NeverServed { from: location(target) })?;
            let maps = Maps::new(objects, map, format!("restore-{:016x}", self.seed));
            let entry = settled(&maps, self.range, target).await?;
            let map = maps.current();
            let work = Work::begin(target, self.clock, self.seed)?;
            let (stored, mut moments) = Moments::hold(source, &entry.keys, &work.databases, false).await?;
            let made = self.make(&entry, (&*map, &stored), (source, target), &work, &mut moments, progress);
            let made = made.await;
            moments.release().await;
            let (database, copied, damaged) = made?;
            let changed = maps.change(|map| map.restored(entry.id, entry.generation, database)).await?;
            Ok(RangeRestored {
                copied,
                keys: entry.keys,
                map_version: changed.map_err(CopyError::Refused)?.version(),
                database,
                replaced: entry.place.database,
                damaged,
            })
        })
    }

    /// Makes the new database. It is closed and durable when this returns.
    async fn make(
        &self,
        entry: &RangeEntry,
        (map, stored): (&RangeMap, &RangeMap),
        (source, target): (&Store, &Store),
        work: &Work,
        moments: &mut Moments,
        progress: &mut (dyn FnMut(&CopyReport) + Send),
    ) -> Result<(DatabaseName, CopyReport, BTreeSet<RangeId>), CopyError> {
        let databases = &work.databases;
        let attempts = attempts(databases, entry).await?;
        let database = map_store::restored(entry, attempts.last().map_or(1, |last| last.attempt + 1));
        let identity = Identity { database, ..Identity::of(entry) };
        let place = place(&identity);
        let db = while_there_is_room(target, database::create(databases, &place)).await??;
        let filled = async {
            for left in attempts {
                delete(databases, target, left).await?;
            }
            let mut report = CopyReport::default();
            let own = copy_parts(entry, stored, target, &db, moments, (&mut report, progress)).await?;
            write_own(entry, own, target, databases, &db).await?;
            let mut objects = Objects::new(self.objects, (source, target), databases, map, entry, &db);
            let damaged = objects.settle(moments, &mut report, progress).await?;
            save(target, &db, entry.id).await?;
            Ok((report, damaged))
        };
        let (report, damaged) = match filled.await {
            Ok(report) => report,
            Err(error) => {
                give_up(&db).await;
                return Err(error);
            }
        };
        let closed = while_there_is_room(target, db.close()).await?;
        closed.map_err(CopyError::writing(target, entry.id))?;
        Ok((database, report, damaged))
    }
}

/// The entry of the range. If a change of it was broken off, that is undone: nobody can open the range to do it.
async fn settled(maps: &Maps, range: RangeId, target: &Store) -> Result<RangeEntry, CopyError> {
    let map = maps.current();
    let Some(entry) = map.get(range) else {
        let known: Vec<_> = map.entries().iter().map(|entry| entry.id.to_string()).collect();
        return Err(CopyError::NoSuchRange { store: location(target), range, known: known.join(", ") });
    };
    let Some(intent) = &entry.intent else { return Ok(entry.clone()) };
    if !undo_unserved(maps, range).await.map_err(CopyError::NotUndone)? {
        return Err(CopyError::Begun { store: location(target), range, doing: intent.doing() });
    }
    Ok(maps.current().get(range).expect("an undone change leaves its ranges").clone())
}

/// The databases that attempts to restore this entry have left, in their order.
async fn attempts(databases: &Databases, entry: &RangeEntry) -> Result<Vec<DatabaseName>, CopyError> {
    let prefix = Path::from(RANGES);
    let listed = databases.objects.list_with_delimiter(Some(&prefix)).await;
    let listed = listed.map_err(ObjectError::while_doing("listing", &prefix))?;
    let names =
        listed.common_prefixes.iter().filter_map(|path| DatabaseName::from_str(path.filename()?).ok());
    let is_attempt = |name: &DatabaseName| *name == map_store::restored(entry, name.attempt);
    let mut attempts: Vec<_> = names.filter(is_attempt).collect();
    attempts.sort();
    Ok(attempts)
}

async fn delete(databases: &Databases, target: &Store, name: DatabaseName) -> Result<(), CopyError> {
    let path = database_path(name);
    databases.delete_objects(&path).await?;
    let removed = target.remove_directory(&path).await;
    removed.map_err(ObjectError::while_doing("removing", &path))?;
    Ok(())
}

/// Copies the rows of the range from all ranges of the backup that have some. Returns what these say about themselves.
async fn copy_parts(
    entry: &RangeEntry,
    stored: &RangeMap,
    target: &Store,
    db: &Db,
    moments: &mut Moments,
    (report, progress): (&mut CopyReport, &mut (dyn FnMut(&CopyReport) + Send)),
) -> Result<OwnRows, CopyError> {
    let mut own = OwnRows::new();
    let sources: Vec<_> = stored.overlapping(&entry.keys).collect();
    report.ranges_total = sources.len() as u64;
    for source in sources {
        let keys = source.keys.intersect(&entry.keys);
        own.extend(moments.begin_at(source.id, &keys).await?);
        copy_rows(moments, target, db, source.id, keys.high(), report, progress).await?;
        moments.release_one(source.id).await;
        report.ranges += 1;
        progress(report);
    }
    Ok(own)
}

/// Writes the rows that the range keeps about itself; see the module.
async fn write_own(
    entry: &RangeEntry,
    backup: OwnRows,
    target: &Store,
    databases: &Databases,
    db: &Db,
) -> Result<(), CopyError> {
    let unreadable = |source| CopyError::read(target, entry.id, source);
    let mut inheritance = Inheritance::read(&backup).map_err(unreadable)?;
    match replaced(entry, target, databases).await {
        Ok(old) => inheritance = inheritance.union(old),
        Err(why) => {
            tracing::info!(range = %entry.id, why, "the rows of the range about itself are those of the backup")
        }
    }
    inheritance.high_water = inheritance.high_water.max(databases.clock.now());
    let mut batch = WriteBatch::new();
    inheritance.write_into(&mut batch);
    inheritance.write_fences_into(&mut batch);
    write(target, db, entry.id, batch).await
}

/// What the old database says about the range, or why it says nothing.
async fn replaced(entry: &RangeEntry, target: &Store, databases: &Databases) -> Result<Inheritance, String> {
    let held = Moment::hold(target, &Identity::of(entry), databases, false).await;
    let mut moment = held.map_err(|error| with_causes(&error))?;
    let own = moment.own_rows().await;
    moment.release().await;
    let own = own.map_err(|error| with_causes(&error))?;
    Inheritance::read(&own).map_err(|error: ReadError| with_causes(&error))
}

//! Garbage: when the garbage of a database is collected, and how.
//!
//! Files become garbage only when a new manifest replaces an older one. So if the manifest has not changed
//! since the last collection, there is no garbage. Files that a manifest has replaced stay for two minutes,
//! for reads that began before. So a database is collected once when it has not changed for that long, and
//! then not again until it changes. A database that never stays unchanged for that long is collected every
//! few minutes; one that changes often, every minute. Files of the log, of which there may be thousands a
//! second, are collected every ten seconds.
//!
//! A collection also *detaches* a child: when neither its manifest nor its checkpoints name a file of its
//! parent any more, it releases the pin in the parent.
//!
//! **Files that get stuck.** The collector of the engine below deletes no file that is younger than the
//! newest file of level 0, since a younger file could be a flush that no manifest names yet. If a database
//! is compacted and then gets no more writes, this rule keeps the very files that the compaction replaced.
//! If they take much space, the housekeeper has a new file made, by writing a row that means nothing. It does the same
//! if a database that gets no writes has a long log, of marks of many starts ([`marks`](crate::database::Marks)): as long as the log is
//! needed, no file of it can go.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use object_store::path::Path;
use slatedb::config::{
    FlushType, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, GarbageCollectorScheduleOptions,
};
use slatedb::{GarbageCollectorBuilder, GcFilter};
use slatedb_common::ObjectMetadata;
use tokio::time::Instant;

use super::limits::{
    GARBAGE_AGE_MIN, GARBAGE_BUSY, GARBAGE_BUSY_MANIFESTS, GARBAGE_LATEST, GARBAGE_SETTLED,
    LOG_FILES_READ_MAX, LOG_GARBAGE_AGE_MIN, LOG_GARBAGE_FILES, LOG_GARBAGE_POLL, STUCK_BYTES_MIN,
    STUCK_PART_MIN,
};
use super::{OpenDatabase, step_is_done};
use crate::database::{Databases, NEWEST_FILE_KEY, borrowed_files, flush};
use crate::error::with_causes;
use crate::steps::SpaceStep;

/// What must be collected now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Only files of the log. There may be many.
    Log,
    /// Everything; the database goes on changing.
    All,
    /// Everything. Nothing has changed for so long that no garbage is left afterwards.
    Rest,
}

/// When one database was last changed and collected.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The newest manifest, and since when it is the newest.
    manifest: u64,
    since: Instant,
    /// Since when there may be garbage; `None` while there can be none.
    dirty_since: Option<Instant>,
    /// The manifest at the last collection.
    collected: u64,
    collected_at: Instant,
    /// After the last collection: the end of the part of the log that is no longer needed.
    log_collected: u64,
    log_collected_at: Instant,
}

impl Schedule {
    /// The schedule of a database that was opened now with this manifest, and that needs its log from this
    /// file on. Opening it has changed it already, so the garbage of an earlier process is collected too.
    pub(super) fn new(manifest: u64, log_replaced_until: u64, now: Instant) -> Self {
        Self {
            manifest,
            since: now,
            dirty_since: Some(now),
            collected: manifest,
            collected_at: now,
            log_collected: log_replaced_until,
            log_collected_at: now,
        }
    }

    /// Whether everything is collected, and nothing has changed since.
    pub(super) fn is_clean(&self) -> bool {
        self.dirty_since.is_none()
    }

    /// Returns what is due, when this is the newest manifest.
    pub(super) fn look(&mut self, manifest: u64, log_replaced_until: u64, now: Instant) -> Due {
        if self.manifest != manifest {
            (self.manifest, self.since) = (manifest, now);
            self.dirty_since.get_or_insert(now);
        }
        let Some(dirty_since) = self.dirty_since else {
            return Due::Nothing;
        };
        let busy = manifest.saturating_sub(self.collected) >= GARBAGE_BUSY_MANIFESTS
            && now - self.collected_at >= GARBAGE_BUSY;
        if now - self.since >= GARBAGE_SETTLED {
            Due::Rest
        } else if busy || now - dirty_since >= GARBAGE_LATEST {
            Due::All
        } else if log_replaced_until.saturating_sub(self.log_collected) >= LOG_GARBAGE_FILES
            && now - self.log_collected_at >= LOG_GARBAGE_POLL
        {
            Due::Log
        } else {
            Due::Nothing
        }
    }

    /// Notes that `due` was collected, and that this is the newest manifest afterwards. If a checkpoint
    /// that will end by itself still holds something (`held`), the database is collected once more later:
    /// after a clock was set back, such a checkpoint lives longer than anything else here.
    pub(super) fn collected(
        &mut self,
        due: Due,
        manifest: u64,
        log_replaced_until: u64,
        held: bool,
        now: Instant,
    ) {
        if due == Due::Nothing {
            return;
        }
        (self.log_collected, self.log_collected_at) = (log_replaced_until, now);
        if due == Due::Log {
            return;
        }
        (self.collected, self.collected_at) = (manifest, now);
        if due == Due::Rest && !held {
            // A collection may change the manifest itself. That alone does not call for another collection.
            (self.manifest, self.dirty_since) = (manifest, None);
        } else if due == Due::Rest {
            (self.manifest, self.since, self.dirty_since) = (manifest, now, Some(now));
        } else {
            // Files that were replaced only a moment ago are still there.
            self.dirty_since = Some(now);
        }
    }
}

/// Collects what is due.
pub(super) async fn collect(databases: &Databases, database: &OpenDatabase, due: Due) {
    // First the database must learn which files it may still read.
    if let Err(error) = database.db.refresh_manifest().await {
        tracing::debug!(path = database.place.path, error = %with_causes(&error), "not collected: it is closed");
        return;
    }
    run(databases, &database.place.path, due).await;
    if due == Due::Rest {
        match stuck_bytes(databases, database).await {
            Ok(bytes) if is_worth_it(bytes, database) || has_long_log(databases, database) => {
                tracing::debug!(path = database.place.path, bytes, "a new file, so that these can go");
                match make_newest_file(database).await {
                    Ok(()) => run(databases, &database.place.path, due).await,
                    Err(error) => {
                        let error = with_causes(&error);
                        tracing::warn!(path = database.place.path, error, "replaced files stay for now")
                    }
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(path = database.place.path, %error, "its files could not be listed"),
        }
    }
    let _ = database.db.refresh_manifest().await;
    step_is_done(databases, SpaceStep::Collected, &database.place.path).await;
}

/// Collects what is due in the database at `path`, no matter which process has it open. The collector of
/// the engine below logs errors. A file that it could not delete is garbage at the next collection as well.
pub(super) async fn run(databases: &Databases, path: &str, due: Due) {
    let old_marks = databases.marks.may_go_up_to(path);
    // The `Admin` of the database is not used here: it collects the log by a clock of its own.
    let mut collector = GarbageCollectorBuilder::new(path, Arc::clone(&databases.objects))
        .with_system_clock(databases.clock.for_database())
        .with_seed(databases.seed_of(path))
        .with_options(options(due, old_marks.is_some()));
    if let Some(last) = old_marks {
        collector = collector.with_gc_filter(Arc::new(OldMarks { last }));
    }
    collector.build().run_gc_once().await;
}

/// Keeps the marks that come after `last`.
struct OldMarks {
    last: u64,
}

#[async_trait]
impl GcFilter for OldMarks {
    async fn filter(&self, mut garbage: HashSet<ObjectMetadata>) -> HashSet<ObjectMetadata> {
        garbage.retain(|file| {
            file.size > 0 || log_file(&file.location).is_none_or(|number| number <= self.last)
        });
        garbage
    }
}

/// The number of a file of the log; `None` for other files.
fn log_file(path: &Path) -> Option<u64> {
    let (directory, name) = path.as_ref().rsplit_once('/')?;
    name.strip_suffix(".sst").filter(|_| directory.ends_with("/wal"))?.parse().ok()
}

fn options(due: Due, has_old_marks: bool) -> GarbageCollectorOptions {
    let older_than = |min_age| Some(GarbageCollectorDirectoryOptions { min_age, ..Default::default() });
    let rest = if due == Due::Log { None } else { older_than(GARBAGE_AGE_MIN) };
    GarbageCollectorOptions {
        manifest_options: rest,
        wal_options: older_than(LOG_GARBAGE_AGE_MIN),
        wal_fence_options: if has_old_marks { older_than(LOG_GARBAGE_AGE_MIN) } else { None },
        compacted_options: rest,
        compactions_options: rest,
        detach_options: rest.map(|_| GarbageCollectorScheduleOptions::default()),
        ..GarbageCollectorOptions::default()
    }
}

/// The bytes of the database's own files that no manifest names and that were not collected. It is 0 if
/// there is a checkpoint: the files that it holds are collected when it ends.
async fn stuck_bytes(databases: &Databases, database: &OpenDatabase) -> Result<u64, object_store::Error> {
    let named: BTreeSet<String> = {
        let status = database.status.borrow();
        if !status.current_manifest.checkpoints().is_empty() {
            return Ok(0);
        }
        let views = status.current_manifest.all_sst_views();
        views.map(|view| format!("{}.sst", view.sst.id.value())).collect()
    };
    let directory = Path::from(format!("{}/compacted", database.place.path));
    let is_stuck = |object: &Path| object.filename().is_some_and(|name| !named.contains(name));
    databases
        .objects
        .list(Some(&directory))
        .try_fold(0, |bytes, object| {
            let stuck = if is_stuck(&object.location) { object.size } else { 0 };
            futures::future::ok(bytes + stuck)
        })
        .await
}

/// Whether there are many stuck bytes, compared with the bytes in use.
fn is_worth_it(stuck: u64, database: &OpenDatabase) -> bool {
    let status = database.status.borrow();
    let others = borrowed_files(&status.current_manifest);
    let own = status.current_manifest.all_sst_views().filter(|view| !others.contains(&view.sst.id));
    let used: u64 = own.map(|view| view.estimate_size()).sum();
    stuck >= STUCK_BYTES_MIN && stuck >= used / STUCK_PART_MIN
}

/// Whether the next opening would read a long log again that earlier processes have left.
fn has_long_log(databases: &Databases, database: &OpenDatabase) -> bool {
    let replaced_until = database.status.borrow().current_manifest.replay_after_wal_id();
    databases.marks.still_read(&database.place.path, replaced_until) >= LOG_FILES_READ_MAX
}

/// Makes a new file of level 0, by writing a row that means nothing.
async fn make_newest_file(database: &OpenDatabase) -> Result<(), slatedb::Error> {
    database.db.put(NEWEST_FILE_KEY, []).await?;
    flush(&database.db, FlushType::Wal).await?;
    flush(&database.db, FlushType::MemTable).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns what becomes due at which second, for a database with the manifest and the log that `at`
    /// gives for each second.
    fn life(seconds: u64, at: impl Fn(u64) -> (u64, u64)) -> Vec<(u64, Due)> {
        life_held(seconds, 0, at)
    }

    /// The same, with a checkpoint that holds something until a given second.
    fn life_held(seconds: u64, held_until: u64, at: impl Fn(u64) -> (u64, u64)) -> Vec<(u64, Due)> {
        let began = Instant::now();
        let mut schedule = Schedule::new(1, 0, began);
        let mut done = Vec::new();
        for second in 0..seconds {
            let now = began + Duration::from_secs(second);
            let (manifest, log) = at(second);
            let due = schedule.look(manifest, log, now);
            schedule.collected(due, manifest, log, second < held_until, now);
            if due != Due::Nothing {
                done.push((second, due));
            }
        }
        done
    }

    #[test]
    fn one_that_is_left_alone_is_collected_once_after_each_change() {
        assert_eq!(life(2_000, |_| (1, 0)), [(125, Due::Rest)]);
        let twice = life(2_000, |second| if second < 500 { (1, 0) } else { (2, 0) });
        assert_eq!(twice, [(125, Due::Rest), (625, Due::Rest)]);
    }

    #[test]
    fn what_a_checkpoint_holds_is_collected_after_its_end() {
        let held = life_held(2_000, 140, |_| (1, 0));
        assert_eq!(held, [(125, Due::Rest), (250, Due::Rest)]);
    }

    #[test]
    fn one_that_goes_on_changing_is_collected_now_and_then() {
        let slowly = life(1_000, |second| (1 + second / 60, 0));
        assert_eq!(slowly, [(300, Due::All), (600, Due::All), (900, Due::All)]);
        let busy = life(200, |second| (1 + second, 0));
        assert_eq!(busy, [(60, Due::All), (120, Due::All), (180, Due::All)]);
    }

    #[test]
    fn a_long_log_is_collected_in_a_hurry() {
        let logs = life(60, |second| (1, second * 20));
        assert_eq!(logs, [(13, Due::Log), (26, Due::Log), (39, Due::Log), (52, Due::Log)]);
    }
}

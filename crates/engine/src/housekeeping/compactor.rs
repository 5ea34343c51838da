//! The compactor of one database. It runs as long as there is something to do.
//!
//! The engine below has a compactor that decides, compacts and records what it did. If each database kept
//! one running, each would ask the store every second, forever. Here a compactor is started when a manifest
//! calls for it, and stopped when it has nothing more to propose. While it runs, its proposals come from
//! this module: first the steps to the goal of a rewriting, and then tidying by the rule of the engine.
//!
//! It may be broken off anywhere. The next compactor of the database goes on with a compaction that was
//! under way, at the latest ten seconds after its last sign of life
//! ([`COMPACTION_HEARTBEAT_MISSED`]).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use slatedb::compactor::{
    CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, Compactor, CompactorStateView,
    SizeTieredCompactionSchedulerSupplier, SourceId,
};
use slatedb::config::{CompactionWorkerOptions, CompactorOptions};
use slatedb::manifest::{SsTableId, VersionedManifest};
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, CompactorBuilder, RowEntry,
};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::budget::Budget;
use super::limits::{
    COMPACTED_FILE_BYTES, COMPACTION_ATTEMPTS_MAX, COMPACTION_FETCH_BYTES, COMPACTION_HEARTBEAT,
    COMPACTION_HEARTBEAT_MISSED, COMPACTION_POLL, COMPACTIONS_AT_ONCE_MAX, REPLACED_FILES_KEPT,
    REWRITTEN_BYTES_AT_ONCE,
};
use super::plan::rewriting_step;
use super::{OpenDatabase, step_is_done};
use crate::database::{BLOCK_SIZE, CompactionError, Databases, borrowed_files};
use crate::steps::SpaceStep;

/// Files that must be replaced, whatever else is compacted. Clones share one set, which may change while a
/// compactor works towards it.
#[derive(Debug, Clone, Default)]
pub(super) struct Goal(Arc<Mutex<BTreeSet<SsTableId>>>);

impl Goal {
    /// Sets the files.
    pub(super) fn set(&self, files: BTreeSet<SsTableId>) {
        *self.0.lock() = files;
    }
}

/// Compacts `database` until nothing calls for it, or the database leaves. An error says why the work makes
/// no progress.
pub(super) async fn compact(
    databases: Databases,
    database: Arc<OpenDatabase>,
    budget: Arc<Budget>,
) -> Result<(), CompactionError> {
    let course = Arc::new(Course {
        goal: database.goal.clone(),
        budget,
        progress: Mutex::default(),
        stage: watch::Sender::new(Stage::Starting),
    });
    let mut stage = course.stage.subscribe();
    let mut left = database.left.subscribe();
    let borrows = || !borrowed_files(&database.status.borrow().current_manifest).is_empty();
    let borrowed_before = borrows();
    let running = Running {
        compactor: build(&databases, &database, &course),
        background: databases.background.clone(),
    };
    let outcome = tokio::select! {
        ended = running.compactor.run() => {
            Err(ended.map_or_else(|error| CompactionError::Failed(Arc::new(error)), |()| CompactionError::Stopped))
        }
        ended = ended(&mut stage, &mut left) => ended,
    };
    running.stop().await;
    // Lets the database use the new files. If it is closed, that does not matter.
    let _ = database.db.refresh_manifest().await;
    if borrowed_before && !borrows() {
        step_is_done(&databases, SpaceStep::Rewritten, &database.place.path).await;
    }
    outcome
}

/// Waits for the end of the work, or for the database to leave.
async fn ended(
    stage: &mut watch::Receiver<Stage>,
    left: &mut watch::Receiver<bool>,
) -> Result<(), CompactionError> {
    // A compactor cannot be stopped before its first proposal: it would go on by itself. (If a sender is
    // gone, the compactor or the database is gone too.)
    let _ = stage.wait_for(|stage| *stage != Stage::Starting).await;
    let over = |stage: &Stage| matches!(stage, Stage::Done | Stage::Stuck);
    tokio::select! {
        _ = left.wait_for(|left| *left) => Ok(()),
        stage = stage.wait_for(over) => match stage.as_deref() {
            Ok(Stage::Stuck) => Err(CompactionError::Stuck),
            _ => Ok(()),
        }
    }
}

fn build(databases: &Databases, database: &OpenDatabase, course: &Arc<Course>) -> Compactor {
    let filter = Paced { inner: Arc::clone(&database.place.filter), course: Arc::clone(course) };
    CompactorBuilder::new(database.place.path.as_str(), Arc::clone(&databases.objects))
        .with_options(options())
        .with_runtime(databases.background.clone())
        .with_system_clock(databases.clock.for_database())
        .with_seed(databases.seed_of(&database.place.path))
        .with_sst_block_size(BLOCK_SIZE)
        .with_scheduler_supplier(Arc::new(Proposals(Arc::clone(course))))
        .with_compaction_filter_supplier(Arc::new(filter))
        .build()
}

fn options() -> CompactorOptions {
    CompactorOptions {
        poll_interval: COMPACTION_POLL,
        commit_compacted_interval: COMPACTION_POLL,
        max_concurrent_compactions: COMPACTIONS_AT_ONCE_MAX,
        checkpoint_lifetime: REPLACED_FILES_KEPT,
        worker_heartbeat_timeout: COMPACTION_HEARTBEAT_MISSED,
        worker: Some(CompactionWorkerOptions {
            max_concurrent_compactions: COMPACTIONS_AT_ONCE_MAX,
            compactions_poll_interval: COMPACTION_POLL,
            heartbeat_interval: COMPACTION_HEARTBEAT,
            max_sst_size: COMPACTED_FILE_BYTES,
            max_fetch_tasks: 2,
            bytes_to_fetch: COMPACTION_FETCH_BYTES,
            max_subcompactions: 1,
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

/// A compactor that is stopped when this is dropped. Otherwise it would go on by itself.
struct Running {
    compactor: Compactor,
    background: Handle,
}

impl Running {
    async fn stop(&self) {
        // An error is the one that ended the compactor, and it was reported already.
        let _ = self.compactor.stop().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have been stopped already. Then this does nothing.
        let compactor = self.compactor.clone();
        self.background.spawn(async move { compactor.stop().await });
    }
}

/// How far a compactor got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has not proposed anything yet.
    Starting,
    Working,
    /// Nothing is under way, and nothing is left to do.
    Done,
    /// It tries again and again without a result.
    Stuck,
}

/// Shared by the scheduler, the filters, and the code that waits for them.
struct Course {
    goal: Goal,
    budget: Arc<Budget>,
    progress: Mutex<Progress>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Default)]
struct Progress {
    /// A hash of the files as they were after the last result.
    files: u64,
    /// Proposals and started compactions since then.
    attempts: u32,
    /// The run that a rewriting makes. The compaction that makes it keeps to the budget.
    rewriting: Option<u32>,
}

impl Course {
    /// Notes how many compactions are proposed for these files, and whether any compaction is under way.
    fn note(&self, manifest: &VersionedManifest, proposed: usize, under_way: bool) {
        let mut hasher = DefaultHasher::new();
        manifest.all_sst_views().for_each(|view| (view.id, view.sst.id).hash(&mut hasher));
        let files = hasher.finish();
        let mut progress = self.progress.lock();
        if progress.files != files {
            (progress.files, progress.attempts) = (files, 0);
        }
        progress.attempts += u32::try_from(proposed).unwrap_or(u32::MAX);
        let stage = if progress.attempts > COMPACTION_ATTEMPTS_MAX {
            Stage::Stuck
        } else if proposed == 0 && !under_way {
            Stage::Done
        } else {
            Stage::Working
        };
        drop(progress);
        self.stage.send_replace(stage);
    }
}

/// Makes the scheduler of a compactor.
struct Proposals(Arc<Course>);

impl CompactionSchedulerSupplier for Proposals {
    fn compaction_scheduler(&self, options: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        let tidying = SizeTieredCompactionSchedulerSupplier::new().compaction_scheduler(options);
        Box::new(Scheduler { tidying, course: Arc::clone(&self.0) })
    }
}

/// Proposes the next step of a rewriting, if there is a goal, and also tidying.
struct Scheduler {
    tidying: Box<dyn CompactionScheduler + Send + Sync>,
    course: Arc<Course>,
}

impl CompactionScheduler for Scheduler {
    fn propose(&self, view: &CompactorStateView) -> Vec<CompactionSpec> {
        let recent = view.compactions().into_iter().flat_map(|list| list.recent_compactions());
        let under_way: Vec<&CompactionSpec> =
            recent.filter(|compaction| compaction.active()).map(|compaction| compaction.spec()).collect();
        let taken = under_way.iter().filter_map(|spec| spec.destination());
        let step = rewriting_step(view.manifest(), &self.course.goal.0.lock(), taken);
        let mut specs = self.tidying.propose(view);
        self.course.progress.lock().rewriting = None;
        if let Some(step) = step {
            // A merge of runs would block the step, again and again.
            specs.retain(|spec| !spec.has_sr_sources() && disjoint(spec, &step));
            if step.has_sr_sources() {
                self.course.progress.lock().rewriting = step.destination();
            }
            if under_way.iter().all(|spec| disjoint(spec, &step)) {
                specs.insert(0, step);
            }
        }
        self.course.note(view.manifest(), specs.len(), !under_way.is_empty());
        specs
    }

    fn validate(&self, view: &CompactorStateView, spec: &CompactionSpec) -> Result<(), slatedb::Error> {
        self.tidying.validate(view, spec)
    }
}

/// Whether two compactions read and make different things.
fn disjoint(one: &CompactionSpec, other: &CompactionSpec) -> bool {
    let made = |spec: &CompactionSpec| spec.destination().map(SourceId::SortedRun);
    let touched: Vec<SourceId> = one.sources().iter().copied().chain(made(one)).collect();
    !other.sources().iter().copied().chain(made(other)).any(|source| touched.contains(&source))
}

/// Makes the filters of a compactor: the filters of the database, which in a rewriting also keep to the
/// budget.
struct Paced {
    inner: Arc<dyn CompactionFilterSupplier>,
    course: Arc<Course>,
}

#[async_trait]
impl CompactionFilterSupplier for Paced {
    async fn create_compaction_filter(
        &self,
        job: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        let inner = self.inner.create_compaction_filter(job).await?;
        let paced = {
            let mut progress = self.course.progress.lock();
            progress.attempts += 1;
            progress.rewriting == Some(job.destination)
        };
        if !paced {
            return Ok(inner);
        }
        Ok(Box::new(PacedFilter { inner, budget: Arc::clone(&self.course.budget), bytes: 0 }))
    }
}

struct PacedFilter {
    inner: Box<dyn CompactionFilter>,
    budget: Arc<Budget>,
    /// Bytes that were read and not yet taken from the budget.
    bytes: u64,
}

#[async_trait]
impl CompactionFilter for PacedFilter {
    async fn filter(&mut self, row: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        self.bytes += (row.key.len() + row.value.len()) as u64;
        if self.bytes >= REWRITTEN_BYTES_AT_ONCE {
            self.budget.spend(std::mem::take(&mut self.bytes)).await;
        }
        self.inner.filter(row).await
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        self.inner.on_compaction_end().await
    }
}

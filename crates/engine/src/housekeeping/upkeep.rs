//! One database, what is known of it, and what it needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use slatedb::DbStatus;
use slatedb::manifest::SsTableId;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::OpenDatabase;
use super::garbage::{Due, Schedule};
use super::limits::{CHILD_LEFT_ALONE, COMPACTION_RETRY_MAX, COMPACTION_RETRY_MIN, TIDY_L0_FILES_MIN};
use super::plan::Outline;
use crate::database::borrowed_files;
use crate::limits::L0_FILES_MAX;

/// Which compactor a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Tidying,
    Rewriting,
}

/// One database, and what is known of it.
pub(super) struct Upkeep {
    pub(super) number: u64,
    pub(super) database: Arc<OpenDatabase>,
    status: watch::Receiver<DbStatus>,
    /// Of the manifest that was the newest when it was last looked at.
    outline: Outline,
    /// The manifest that was the newest when it was opened, and the end of its log's part that is no longer needed.
    found: (u64, u64),
    entered: Instant,
    pub(super) compactor: Option<Lane>,
    pub(super) collecting: bool,
    pub(super) schedule: Schedule,
    /// Runs at which the last compactor found nothing to do.
    tidy_runs: Vec<u32>,
    failures: u32,
    /// No compactor is started before.
    retry_at: Instant,
    orders: Vec<Order>,
    /// Those that wait until nothing is done here any more.
    leaving: Vec<oneshot::Sender<()>>,
}

/// None of these files is to be there any more.
struct Order {
    files: BTreeSet<SsTableId>,
    /// The caller that waits for that; `None` if nobody asked.
    done: Option<oneshot::Sender<Result<(), String>>>,
}

impl Order {
    fn answer(self, result: Result<(), String>) {
        // The caller may not wait any more.
        let _ = self.done.map(|done| done.send(result));
    }
}

/// What a database needs.
#[derive(Default)]
pub(super) struct Needs {
    /// How many of its files overlap, if they do.
    pub(super) tidying: Option<usize>,
    /// How much it has to be rewritten; 0 for not at all.
    pub(super) rewriting: usize,
}

impl Upkeep {
    pub(super) fn new(number: u64, database: OpenDatabase) -> Self {
        let now = Instant::now();
        let status = database.status.clone();
        // Not as seen: should it have been closed by now, the first look finds that.
        let outline = Outline::of(&status.borrow().current_manifest);
        Self {
            number,
            database: Arc::new(database),
            status,
            entered: now,
            found: (outline.manifest, outline.log_replaced_until),
            schedule: Schedule::new(outline.manifest, outline.log_replaced_until, now),
            outline,
            compactor: None,
            collecting: false,
            tidy_runs: Vec::new(),
            failures: 0,
            retry_at: now,
            orders: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Looks at the database, if it has changed since the last look. One that is closed leaves.
    pub(super) fn look(&mut self) {
        // An error means that the database is gone.
        if !self.status.has_changed().unwrap_or(true) {
            return;
        }
        let (newer, closed) = {
            let status = self.status.borrow_and_update();
            let manifest = &status.current_manifest;
            let newer = (!self.outline.is_of(manifest)).then(|| Outline::of(manifest));
            (newer, status.close_reason.is_some())
        };
        if let Some(newer) = newer {
            self.outline = newer;
        }
        if closed && !self.leaves() {
            self.leave(None);
        }
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        self.database.place.path == path && !self.leaves()
    }

    fn leaves(&self) -> bool {
        *self.database.left.borrow()
    }

    /// Ends what is done here; `left` is told when it has ended.
    pub(super) fn leave(&mut self, left: Option<oneshot::Sender<()>>) {
        self.database.left.send_replace(true);
        self.orders.clear();
        self.leaving.extend(left);
    }

    /// False when it leaves and nothing is done here any more; then those who waited are told.
    pub(super) fn stays(&mut self) -> bool {
        if !self.leaves() || self.compactor.is_some() || self.collecting {
            return true;
        }
        for left in self.leaving.drain(..) {
            let _ = left.send(());
        }
        false
    }

    /// Takes an order to replace every file that is there now.
    pub(super) fn order(&mut self, done: Option<oneshot::Sender<Result<(), String>>>) {
        let files: BTreeSet<SsTableId> = {
            let manifest = &self.database.status.borrow().current_manifest;
            manifest.all_sst_views().map(|view| view.sst.id).collect()
        };
        let order = Order { files, done };
        if order.files.is_empty() {
            order.answer(Ok(()));
            return;
        }
        self.orders.push(order);
        if self.compactor == Some(Lane::Rewriting) {
            self.database.goal.set(self.goal());
        }
    }

    /// The files that have to go.
    pub(super) fn goal(&self) -> BTreeSet<SsTableId> {
        let manifest = &self.database.status.borrow().current_manifest;
        let ordered = self.orders.iter().flat_map(|order| order.files.iter().copied());
        ordered.chain(borrowed_files(manifest)).collect()
    }

    /// What it needs now.
    pub(super) fn needs(&mut self, now: Instant) -> Needs {
        self.look();
        if self.leaves() || now < self.retry_at {
            return Needs::default();
        }
        let Outline { lenders, new_files, .. } = self.outline;
        let untidy = self.outline.untidy && !self.was_found_tidy();
        let grown_up = untidy || now - self.entered >= CHILD_LEFT_ALONE;
        // A child's files would be made twice; but writes must not have to wait.
        let tidying = untidy && (lenders == 0 || new_files >= L0_FILES_MAX / 2);
        Needs {
            rewriting: if self.orders.is_empty() { lenders * usize::from(grown_up) } else { usize::MAX },
            tidying: tidying.then_some(new_files),
        }
    }

    /// What is to be collected now; nothing while it is being collected.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        self.look();
        if self.collecting || self.leaves() {
            return Due::Nothing;
        }
        match self.schedule.look(self.outline.manifest, self.outline.log_replaced_until, now) {
            // The compactor's own files would look like garbage that is stuck.
            Due::Rest if self.compactor.is_some() => Due::All,
            due => due,
        }
    }

    /// Whether nothing has changed since it was opened, and no pin waits to be released.
    pub(super) fn is_as_found(&self) -> bool {
        let Outline { manifest, log_replaced_until, lenders, ref pinned, .. } = self.outline;
        (manifest, log_replaced_until) == self.found && pinned.len() == lenders
    }

    /// Its path, and those of the databases that it pins something in; none if it leaves. By a manifest that may
    /// be old, which names no fewer than the newest: they are named when a database is made, and let go since.
    pub(super) fn pins(&self) -> Option<(String, Vec<String>)> {
        (!self.leaves()).then(|| (self.database.place.path.clone(), self.outline.pinned.clone()))
    }

    /// Whether it was left alone although its layers should be one run.
    pub(super) fn is_left_in_layers(&self, now: Instant) -> bool {
        self.outline.layered
            && self.schedule.is_clean()
            && !self.leaves()
            && self.orders.is_empty()
            && now >= self.retry_at
    }

    /// Whether only the runs call for tidying, and a compactor saw them and did nothing.
    fn was_found_tidy(&self) -> bool {
        self.outline.new_files < TIDY_L0_FILES_MIN && self.outline.runs == self.tidy_runs
    }

    /// Notes that what was due was collected.
    pub(super) fn collected(&mut self, due: Due) {
        self.look();
        self.collecting = false;
        let held = {
            let manifest = &self.database.status.borrow().current_manifest;
            manifest.checkpoints().iter().any(|checkpoint| checkpoint.expire_time.is_some())
        };
        let Outline { manifest, log_replaced_until, .. } = self.outline;
        self.schedule.collected(due, manifest, log_replaced_until, held, Instant::now());
    }

    /// Notes how a compactor ended.
    pub(super) fn compacted(&mut self, result: Result<(), String>) {
        self.look();
        self.compactor = None;
        self.database.goal.set(BTreeSet::new());
        match result {
            Ok(()) => {
                self.failures = 0;
                self.tidy_runs.clone_from(&self.outline.runs);
            }
            Err(why) => {
                let wait = COMPACTION_RETRY_MIN * 2u32.saturating_pow(self.failures.min(16));
                self.failures += 1;
                self.retry_at = Instant::now() + wait.min(COMPACTION_RETRY_MAX);
                tracing::warn!(
                    path = self.database.place.path,
                    why,
                    "a database was not compacted; trying again"
                );
                for order in self.orders.drain(..) {
                    order.answer(Err(why.clone()));
                }
            }
        }
        let manifest = &self.database.status.borrow().current_manifest;
        let there =
            |files: &BTreeSet<SsTableId>| manifest.all_sst_views().any(|view| files.contains(&view.sst.id));
        let (open, done): (Vec<Order>, Vec<Order>) =
            self.orders.drain(..).partition(|order| there(&order.files));
        self.orders = open;
        for order in done {
            order.answer(Ok(()));
        }
    }
}

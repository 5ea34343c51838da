//! One database: what is known of it, and what it needs.

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
use crate::database::{CompactionError, borrowed_files};
use crate::error::with_causes;
use crate::limits::L0_FILES_MAX;

/// The kind of compactor that a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Tidying,
    Rewriting,
}

/// One database and its state.
pub(super) struct Upkeep {
    pub(super) number: u64,
    pub(super) database: Arc<OpenDatabase>,
    status: watch::Receiver<DbStatus>,
    /// The outline of the manifest that was the newest at the last look.
    outline: Outline,
    /// The manifest that was the newest when the database was opened, and the end of the part of its log
    /// that was no longer needed then.
    found: (u64, u64),
    entered: Instant,
    pub(super) compactor: Option<Lane>,
    pub(super) collecting: bool,
    pub(super) schedule: Schedule,
    /// The runs with which the last compactor found nothing to do.
    tidy_runs: Vec<u32>,
    failures: u32,
    /// No compactor is started before this time.
    retry_at: Instant,
    orders: Vec<Order>,
    /// The callers that wait until no work is done on the database any more.
    leaving: Vec<oneshot::Sender<()>>,
}

/// An order to replace these files.
struct Order {
    files: BTreeSet<SsTableId>,
    /// The caller that waits until that is done; `None` if the housekeeper ordered it itself.
    done: Option<oneshot::Sender<Result<(), CompactionError>>>,
}

impl Order {
    fn answer(self, result: Result<(), CompactionError>) {
        // The caller may have stopped waiting.
        let _ = self.done.map(|done| done.send(result));
    }
}

/// What a database needs.
#[derive(Default)]
pub(super) struct Needs {
    /// How many of its files overlap; `None` if it need not be tidied.
    pub(super) tidying: Option<usize>,
    /// How urgent it is to rewrite it; 0 if it need not be rewritten.
    pub(super) rewriting: usize,
}

impl Upkeep {
    pub(super) fn new(number: u64, database: OpenDatabase) -> Self {
        let now = Instant::now();
        let status = database.status.clone();
        // The status is not marked as seen. So if the database was closed by now, the first look finds
        // that.
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

    /// Looks at the database, if it has changed since the last look. A database that is closed leaves.
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

    /// Ends the work on the database; `left` is told when it has ended.
    pub(super) fn leave(&mut self, left: Option<oneshot::Sender<()>>) {
        self.database.left.send_replace(true);
        self.orders.clear();
        self.leaving.extend(left);
    }

    /// False if it leaves and no work is done on it any more. Then the waiting callers are told.
    pub(super) fn stays(&mut self) -> bool {
        if !self.leaves() || self.compactor.is_some() || self.collecting {
            return true;
        }
        for left in self.leaving.drain(..) {
            let _ = left.send(());
        }
        false
    }

    /// Takes an order to replace every file that the database has now.
    pub(super) fn order(&mut self, done: Option<oneshot::Sender<Result<(), CompactionError>>>) {
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

    /// The files that must be replaced.
    pub(super) fn goal(&self) -> BTreeSet<SsTableId> {
        let manifest = &self.database.status.borrow().current_manifest;
        let ordered = self.orders.iter().flat_map(|order| order.files.iter().copied());
        ordered.chain(borrowed_files(manifest)).collect()
    }

    /// What the database needs now.
    pub(super) fn needs(&mut self, now: Instant) -> Needs {
        self.look();
        if self.leaves() || now < self.retry_at {
            return Needs::default();
        }
        let Outline { lenders, new_files, .. } = self.outline;
        let untidy = self.outline.untidy && !self.was_found_tidy();
        let grown_up = untidy || now - self.entered >= CHILD_LEFT_ALONE;
        // The files of a child would be made twice, once more by the rewriting. But writes must not have to
        // wait.
        let tidying = untidy && (lenders == 0 || new_files >= L0_FILES_MAX / 2);
        Needs {
            rewriting: if self.orders.is_empty() { lenders * usize::from(grown_up) } else { usize::MAX },
            tidying: tidying.then_some(new_files),
        }
    }

    /// What must be collected now; nothing while a collection is under way.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        self.look();
        if self.collecting || self.leaves() {
            return Due::Nothing;
        }
        match self.schedule.look(self.outline.manifest, self.outline.log_replaced_until, now) {
            // The files that the compactor is making would look like stuck garbage.
            Due::Rest if self.compactor.is_some() => Due::All,
            due => due,
        }
    }

    /// Whether nothing has changed since it was opened, and no pin waits to be released.
    pub(super) fn is_as_found(&self) -> bool {
        let Outline { manifest, log_replaced_until, lenders, ref pinned, .. } = self.outline;
        (manifest, log_replaced_until) == self.found && pinned.len() == lenders
    }

    /// Its path, and the paths of the databases in which it pins something; `None` if it leaves. The
    /// manifest may be an old one, but it names no fewer than the newest: they are all named when a
    /// database is made, and after that they are only released.
    pub(super) fn pins(&self) -> Option<(String, Vec<String>)> {
        (!self.leaves()).then(|| (self.database.place.path.clone(), self.outline.pinned.clone()))
    }

    /// Whether it has not changed for a while, and has layers that should be one run.
    pub(super) fn is_left_in_layers(&self, now: Instant) -> bool {
        self.outline.layered
            && self.schedule.is_clean()
            && !self.leaves()
            && self.orders.is_empty()
            && now >= self.retry_at
    }

    /// Whether only the runs call for tidying, and a compactor already saw the same runs and did nothing.
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
    pub(super) fn compacted(&mut self, result: Result<(), CompactionError>) {
        self.look();
        self.compactor = None;
        self.database.goal.set(BTreeSet::new());
        match result {
            Ok(()) => {
                self.failures = 0;
                self.tidy_runs.clone_from(&self.outline.runs);
            }
            Err(error) => {
                let wait = COMPACTION_RETRY_MIN * 2u32.saturating_pow(self.failures.min(16));
                self.failures += 1;
                self.retry_at = Instant::now() + wait.min(COMPACTION_RETRY_MAX);
                let (path, why) = (&self.database.place.path, with_causes(&error));
                if error.is_handed_over() {
                    tracing::debug!(path, error = why, "a database was handed over while it was compacted");
                } else {
                    tracing::warn!(path, error = why, "a database was not compacted; trying again");
                }
                for order in self.orders.drain(..) {
                    order.answer(Err(error.clone()));
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

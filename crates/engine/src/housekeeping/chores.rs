//! One database, what is known of it, and what it needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use slatedb::manifest::{SsTableId, VersionedManifest};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Tenant;
use super::borrowed;
use super::garbage::Schedule;
use super::limits::{CHILD_LEFT_ALONE, COMPACTION_RETRY_MAX, COMPACTION_RETRY_MIN, TIDY_L0_FILES_MIN};
use super::plan::{is_layered, untidy};
use crate::limits::L0_FILES_MAX;

/// Which compactor a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Tidying,
    Rewriting,
}

/// One database, and what is known of it.
pub(super) struct Chores {
    pub(super) number: u64,
    pub(super) tenant: Arc<Tenant>,
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
    /// Who waits until nothing is done here any more; none while it stays.
    leaving: Vec<oneshot::Sender<()>>,
}

/// None of these files is to be there any more.
struct Order {
    files: BTreeSet<SsTableId>,
    /// Who waits for that; `None` if it was our own idea.
    done: Option<oneshot::Sender<Result<(), String>>>,
}

impl Order {
    fn answer(self, result: Result<(), String>) {
        // He may not wait any more.
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

impl Chores {
    pub(super) fn new(number: u64, tenant: Tenant) -> Self {
        let now = Instant::now();
        let schedule = {
            let manifest = &tenant.status.borrow().current_manifest;
            Schedule::new(manifest.id(), manifest.replay_after_wal_id(), now)
        };
        Self {
            number,
            tenant: Arc::new(tenant),
            entered: now,
            compactor: None,
            collecting: false,
            schedule,
            tidy_runs: Vec::new(),
            failures: 0,
            retry_at: now,
            orders: Vec::new(),
            leaving: Vec::new(),
        }
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        self.tenant.place.path == path && !self.leaves()
    }

    /// Ends what is done here; `left` is told when it has ended.
    pub(super) fn leave(&mut self, left: Option<oneshot::Sender<()>>) {
        self.tenant.left.send_replace(true);
        self.orders.clear();
        self.leaving.extend(left);
    }

    pub(super) fn leaves(&self) -> bool {
        *self.tenant.left.borrow()
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
            let manifest = &self.tenant.status.borrow().current_manifest;
            manifest.all_sst_views().map(|view| view.sst.id).collect()
        };
        let order = Order { files, done };
        if order.files.is_empty() {
            order.answer(Ok(()));
            return;
        }
        self.orders.push(order);
        if self.compactor == Some(Lane::Rewriting) {
            self.tenant.goal.set(self.goal());
        }
    }

    /// The files that have to go.
    pub(super) fn goal(&self) -> BTreeSet<SsTableId> {
        let manifest = &self.tenant.status.borrow().current_manifest;
        let ordered = self.orders.iter().flat_map(|order| order.files.iter().copied());
        ordered.chain(borrowed::files(manifest)).collect()
    }

    /// What it needs now.
    pub(super) fn needs(&self, now: Instant) -> Needs {
        if self.leaves() || now < self.retry_at {
            return Needs::default();
        }
        let manifest = &self.tenant.status.borrow().current_manifest;
        let lenders = borrowed::lenders_read(manifest).len();
        let untidy = untidy(manifest).filter(|_| !self.was_found_tidy(manifest));
        let grown_up = untidy.is_some() || now - self.entered >= CHILD_LEFT_ALONE;
        Needs {
            rewriting: if self.orders.is_empty() { lenders * usize::from(grown_up) } else { usize::MAX },
            // A child's files would be made twice; but writes must not have to wait.
            tidying: untidy.filter(|files| lenders == 0 || *files >= L0_FILES_MAX / 2),
        }
    }

    /// Whether it was left alone although its layers should be one run.
    pub(super) fn is_left_in_layers(&self, now: Instant) -> bool {
        self.schedule.is_clean()
            && !self.leaves()
            && self.orders.is_empty()
            && now >= self.retry_at
            && is_layered(&self.tenant.status.borrow().current_manifest)
    }

    /// Whether only the runs call for tidying, and a compactor saw them and did nothing.
    fn was_found_tidy(&self, manifest: &VersionedManifest) -> bool {
        manifest.l0().len() < TIDY_L0_FILES_MIN && run_ids(manifest) == self.tidy_runs
    }

    /// Notes how a compactor ended.
    pub(super) fn compacted(&mut self, result: Result<(), String>) {
        self.compactor = None;
        self.tenant.goal.set(BTreeSet::new());
        let manifest = &self.tenant.status.borrow().current_manifest;
        match result {
            Ok(()) => {
                self.failures = 0;
                self.tidy_runs = run_ids(manifest);
            }
            Err(why) => {
                let wait = COMPACTION_RETRY_MIN * 2u32.saturating_pow(self.failures.min(16));
                self.failures += 1;
                self.retry_at = Instant::now() + wait.min(COMPACTION_RETRY_MAX);
                tracing::warn!(
                    path = self.tenant.place.path,
                    why,
                    "a database was not compacted; trying again"
                );
                for order in self.orders.drain(..) {
                    order.answer(Err(why.clone()));
                }
            }
        }
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

fn run_ids(manifest: &VersionedManifest) -> Vec<u32> {
    manifest.compacted().iter().map(|run| run.id).collect()
}

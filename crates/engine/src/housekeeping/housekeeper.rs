//! The housekeeper: one task that decides what is done to which database, and when.
//!
//! It owns what is known of each (when it failed last, what was collected), looks at all manifests
//! once a second and whenever something ended, and starts work as far as its lanes are free. The
//! work itself is done by tasks of their own; they touch nothing here and say only how it ended.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;

use slatedb::manifest::{SsTableId, VersionedManifest};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::borrowed;
use super::budget::Budget;
use super::compactor::compact;
use super::garbage::{Due, Schedule, collect};
use super::limits::{
    CHILD_LEFT_ALONE, COMPACTION_RETRY_MAX, COMPACTION_RETRY_MIN, GARBAGE_PER_POLL_MAX, HOUSEKEEPING_POLL,
    LAYERED_EVERY, REWRITING_AT_ONCE_MAX, REWRITTEN_BYTES_PER_SECOND, TIDY_L0_FILES_MIN, TIDYING_AT_ONCE_MAX,
};
use super::plan::{is_layered, untidy};
use super::{Request, Tenant};
use crate::limits::L0_FILES_MAX;
use crate::range::Surroundings;

/// See the module.
pub(super) struct Housekeeper {
    around: Surroundings,
    budget: Arc<Budget>,
    chores: Vec<Chores>,
    /// Counts tenants; a number is never given twice.
    numbers: u64,
    work: JoinSet<(u64, Ended)>,
    /// How many may be collected before the next look, those in a hurry apart.
    collections_left: usize,
    /// No database is made one run before, only because it was left alone.
    layers_at: Instant,
}

/// How a piece of work ended.
enum Ended {
    Compacted(Result<(), String>),
    Collected(Due),
}

/// Which compactor a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Tidying,
    Rewriting,
}

/// One database, and what is known of it.
struct Chores {
    number: u64,
    tenant: Arc<Tenant>,
    entered: Instant,
    compactor: Option<Lane>,
    collecting: bool,
    schedule: Schedule,
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

impl Housekeeper {
    pub(super) fn new(around: Surroundings) -> Self {
        Self {
            around,
            budget: Arc::new(Budget::new(REWRITTEN_BYTES_PER_SECOND)),
            chores: Vec::new(),
            numbers: 0,
            work: JoinSet::new(),
            collections_left: 0,
            layers_at: Instant::now(),
        }
    }

    /// Keeps house for ever.
    pub(super) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut poll = interval(HOUSEKEEPING_POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = poll.tick() => {
                    self.collections_left = GARBAGE_PER_POLL_MAX;
                    self.forget_closed();
                    self.assign_collections();
                    self.order_one_run();
                }
                Some(request) = requests.recv() => {
                    self.serve(request);
                    // A thousand of them come at once when a server opens.
                    while let Ok(request) = requests.try_recv() {
                        self.serve(request);
                    }
                }
                Some(ended) = self.work.join_next() => match ended {
                    Ok((number, ended)) => self.note(number, ended),
                    Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                    Err(_) => {}
                }
            }
            self.assign_compactors();
        }
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::Enter(tenant) => {
                // The one before was closed, or will be told by the epoch that it was.
                let before = self.chores.iter_mut().filter(|chores| chores.is_at(&tenant.place.path));
                before.for_each(|chores| chores.leave(None));
                self.numbers += 1;
                self.chores.push(Chores::new(self.numbers, tenant));
            }
            Request::Leave { path, left } => {
                match self.chores.iter_mut().find(|chores| chores.is_at(&path)) {
                    Some(chores) => chores.leave(Some(left)),
                    None => drop(left.send(())),
                }
            }
            Request::Rewrite { path, done } => {
                match self.chores.iter_mut().find(|chores| chores.is_at(&path)) {
                    Some(chores) => chores.order(Some(done)),
                    None => drop(done.send(Err("the database is not open here".to_owned()))),
                }
            }
        }
        self.chores.retain_mut(Chores::stays);
    }

    fn forget_closed(&mut self) {
        let closed = |chores: &Chores| chores.tenant.status.borrow().close_reason.is_some();
        self.chores.iter_mut().filter(|chores| closed(chores)).for_each(|chores| chores.leave(None));
        self.chores.retain_mut(Chores::stays);
    }

    fn note(&mut self, number: u64, ended: Ended) {
        let Some(chores) = self.chores.iter_mut().find(|chores| chores.number == number) else {
            return;
        };
        match ended {
            Ended::Compacted(result) => chores.compacted(result),
            Ended::Collected(due) => {
                chores.collecting = false;
                let manifest = &chores.tenant.status.borrow().current_manifest;
                let (id, log) = (manifest.id(), manifest.replay_after_wal_id());
                let held = manifest.checkpoints().iter().any(|checkpoint| checkpoint.expire_time.is_some());
                chores.schedule.collected(due, id, log, held, Instant::now());
            }
        }
        self.chores.retain_mut(Chores::stays);
    }

    /// Starts collections: of all that are in a hurry, and of a few others.
    fn assign_collections(&mut self) {
        let now = Instant::now();
        for chores in &mut self.chores {
            if chores.collecting || chores.leaves() {
                continue;
            }
            let due = {
                let manifest = &chores.tenant.status.borrow().current_manifest;
                chores.schedule.look(manifest.id(), manifest.replay_after_wal_id(), now)
            };
            let due = match due {
                // The compactor's own files would look like garbage that is stuck.
                Due::Rest if chores.compactor.is_some() => Due::All,
                due => due,
            };
            match due {
                Due::Nothing => continue,
                Due::Rest if self.collections_left == 0 => continue,
                Due::Rest => self.collections_left -= 1,
                Due::Log | Due::All => {}
            }
            chores.collecting = true;
            let (around, tenant, number) = (self.around.clone(), Arc::clone(&chores.tenant), chores.number);
            self.work.spawn(async move {
                collect(&around, &tenant, due).await;
                (number, Ended::Collected(due))
            });
        }
    }

    /// Starts compactors while there are lanes: where most files overlap, and where most is
    /// borrowed, first.
    fn assign_compactors(&mut self) {
        let now = Instant::now();
        let mut tidying: Vec<(usize, usize)> = Vec::new();
        let mut rewriting: Vec<(usize, usize)> = Vec::new();
        for (index, chores) in self.chores.iter_mut().enumerate() {
            let needs = chores.needs(now);
            if let (Some(overlapping), None) = (needs.tidying, chores.compactor) {
                tidying.push((overlapping, index));
            }
            if needs.rewriting > 0 && chores.compactor != Some(Lane::Rewriting) {
                rewriting.push((needs.rewriting, index));
            }
        }
        // Of equals the one that entered first.
        tidying.sort_by_key(|&(overlapping, index)| (usize::MAX - overlapping, index));
        rewriting.sort_by_key(|&(urgency, index)| (usize::MAX - urgency, index));
        for (_, index) in rewriting {
            if self.count(Lane::Rewriting) < REWRITING_AT_ONCE_MAX {
                self.start(index, Lane::Rewriting);
            }
        }
        for (_, index) in tidying {
            if self.chores[index].compactor.is_none() && self.count(Lane::Tidying) < TIDYING_AT_ONCE_MAX {
                self.start(index, Lane::Tidying);
            }
        }
    }

    /// Has one database made one run that was left alone in layers, if nothing else is rewritten.
    fn order_one_run(&mut self) {
        let now = Instant::now();
        if now < self.layers_at || self.count(Lane::Rewriting) > 0 {
            return;
        }
        if let Some(chores) = self.chores.iter_mut().find(|chores| chores.is_left_in_layers(now)) {
            self.layers_at = now + LAYERED_EVERY;
            chores.order(None);
        }
    }

    fn count(&self, lane: Lane) -> usize {
        self.chores.iter().filter(|chores| chores.compactor == Some(lane)).count()
    }

    /// Starts a compactor in a lane, or has the one that tidies go on to rewrite.
    fn start(&mut self, index: usize, lane: Lane) {
        let chores = &mut self.chores[index];
        if lane == Lane::Rewriting {
            chores.tenant.goal.set(chores.goal());
        }
        if chores.compactor.replace(lane).is_some() {
            return;
        }
        let (around, tenant) = (self.around.clone(), Arc::clone(&chores.tenant));
        let (budget, number) = (Arc::clone(&self.budget), chores.number);
        self.work.spawn(async move { (number, Ended::Compacted(compact(around, tenant, budget).await)) });
    }
}

/// What a database needs.
#[derive(Default)]
struct Needs {
    /// How many of its files overlap, if they do.
    tidying: Option<usize>,
    /// How much it has to be rewritten; 0 for not at all.
    rewriting: usize,
}

impl Chores {
    fn new(number: u64, tenant: Tenant) -> Self {
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

    fn is_at(&self, path: &str) -> bool {
        self.tenant.place.path == path && !self.leaves()
    }

    /// Ends what is done here; `left` is told when it has ended.
    fn leave(&mut self, left: Option<oneshot::Sender<()>>) {
        self.tenant.left.send_replace(true);
        self.orders.clear();
        self.leaving.extend(left);
    }

    fn leaves(&self) -> bool {
        *self.tenant.left.borrow()
    }

    /// False when it leaves and nothing is done here any more; then those who waited are told.
    fn stays(&mut self) -> bool {
        if !self.leaves() || self.compactor.is_some() || self.collecting {
            return true;
        }
        for left in self.leaving.drain(..) {
            let _ = left.send(());
        }
        false
    }

    /// Takes an order to replace every file that is there now.
    fn order(&mut self, done: Option<oneshot::Sender<Result<(), String>>>) {
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
    fn goal(&self) -> BTreeSet<SsTableId> {
        let manifest = &self.tenant.status.borrow().current_manifest;
        let ordered = self.orders.iter().flat_map(|order| order.files.iter().copied());
        ordered.chain(borrowed::files(manifest)).collect()
    }

    /// What it needs now.
    fn needs(&self, now: Instant) -> Needs {
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
    fn is_left_in_layers(&self, now: Instant) -> bool {
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
    fn compacted(&mut self, result: Result<(), String>) {
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

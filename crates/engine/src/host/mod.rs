//! The parts that all partition servers of one process share: store, clock, caches, memory, background threads.

mod error;
mod memtables;
mod seconds;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rangehold_map::load::{LoadPolicy, Tally};
use rangehold_map::{KeyRange, RangeId, ServerId};

use crate::clock::Clock;
use crate::database::{Background, Databases, Marks, Shares};
use crate::housekeeping::keep_house;
use crate::lease::Lease;
use crate::limits::DROPPED_REMEMBERED;
use crate::range::{HeldBytes, OpenRanges, RangeContext, RowBudget};
use crate::steps::{BlobHook, NamesHook, ScanHook, SpaceHook, Step, StepHook};
use crate::store::Store;
use crate::tasks::{Panicked, Tasks};
pub use error::HostError;
use memtables::watch_memtables;
use seconds::end_seconds;

/// The settings with which a process is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory for caches, memtables and held requests together, in bytes.
    pub memory_bytes: u64,
    /// Memory for rows that are kept beside the databases, in bytes; `None` for the usual share of `memory_bytes`.
    pub row_cache_bytes: Option<u64>,
    /// The process's clock.
    pub clock: Clock,
    /// The seed of all random choices in the databases.
    pub seed: u64,
    /// How many partition servers the process has, at least one.
    pub servers: u64,
    /// The number of the first partition server; the others have the numbers that follow. Two processes over one
    /// store must have no server in common.
    pub first_server: ServerId,
    /// The shortest time for which a dropped table's id stays refused. It must be longer than any request may take.
    pub dropped_remembered: Duration,
    /// The rules that say when the load of a range is hot, and why.
    pub load: LoadPolicy,
    /// Whether compaction runs on the caller's runtime, as in the simulation, and not on a thread of its own
    /// with low priority.
    pub compact_on_callers_runtime: bool,
    /// Called after each step of a change of ranges.
    pub after_step: StepHook,
    /// Called after each step of the work that gives space back.
    pub after_space_step: SpaceHook,
    /// Called after each step of the life of a blob.
    pub after_blob_step: BlobHook,
    /// Called after each step of a change of several object names.
    pub after_names_step: NamesHook,
    /// Called after each step of a scan over several ranges.
    pub after_scan_step: ScanHook,
}

impl Options {
    /// The usual options: one partition server, the load policy `fast`, compaction on a thread of its own, no hooks.
    pub fn new(memory_bytes: u64, clock: Clock, seed: u64) -> Self {
        Self {
            memory_bytes,
            row_cache_bytes: None,
            clock,
            seed,
            servers: 1,
            first_server: ServerId(1),
            dropped_remembered: DROPPED_REMEMBERED,
            load: LoadPolicy::fast(),
            compact_on_callers_runtime: false,
            after_step: StepHook::default(),
            after_space_step: SpaceHook::default(),
            after_blob_step: BlobHook::default(),
            after_names_step: NamesHook::default(),
            after_scan_step: ScanHook::default(),
        }
    }
}

/// See the module. Clones are the same host.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    store: Arc<Store>,
    databases: Databases,
    shares: Shares,
    options: Options,
    held_bytes: Arc<HeldBytes>,
    rows: Arc<RowBudget>,
    load: Arc<LoadPolicy>,
    ranges: Arc<OpenRanges>,
    tasks: Mutex<Tasks>,
    panicked: Panicked,
    /// Declared after the tasks, so that it is dropped after them.
    _background: Background,
}

impl Host {
    /// Divides the memory and starts the background threads.
    pub fn start(store: Store, options: Options) -> Result<Self, HostError> {
        let shares = Shares::of(options.memory_bytes)?;
        let background = if options.compact_on_callers_runtime {
            Background::shared()
        } else {
            Background::own().map_err(HostError::Runtime)?
        };
        let clock = options.clock.clone();
        let row_cache_bytes = options.row_cache_bytes.unwrap_or(shares.row_cache_bytes);
        let databases = Databases {
            after_space_step: options.after_space_step.clone(),
            marks: Marks::new(store.others_are_over()),
            ..Databases::new(store.object_store(), shares, clock, options.seed, background.handle())
        };
        if store.root().is_some() && !store.others_are_over() {
            tracing::info!(
                "the lock file of the directory was made later than the data: empty files in logs are deleted once the machine was \
                 started again"
            );
        }
        let store = Arc::new(store);
        let ranges = Arc::<OpenRanges>::default();
        let mut tasks = Tasks::default();
        let open = Arc::clone(&ranges);
        tasks.spawn("the limit of memtables".to_owned(), watch_memtables(move || open.list(), shares));
        tasks.spawn_on(&databases.background, "the housekeeper".to_owned(), keep_house(databases.clone()));
        tasks.spawn("the meter of load".to_owned(), end_seconds(Arc::clone(&ranges)));
        Ok(Self(Arc::new(Inner {
            store,
            databases,
            shares,
            load: Arc::new(options.load.clone()),
            options,
            held_bytes: Arc::default(),
            rows: RowBudget::new(row_cache_bytes),
            ranges,
            panicked: tasks.panicked(),
            tasks: Mutex::new(tasks),
            _background: background,
        })))
    }

    /// How the memory is divided.
    pub fn shares(&self) -> Shares {
        self.0.shares
    }

    /// The clock of the process.
    pub fn clock(&self) -> &Clock {
        &self.0.options.clock
    }

    /// The store that holds all data.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// What each range here has counted since this was last called, with its keys. Ranges that
    /// counted nothing are left out. Only one caller may use this: if there were two, each would get only a part.
    pub fn take_tallies(&self) -> Vec<(KeyRange, Tally)> {
        let open = self.0.ranges.list();
        // Clone the keys only after the tally is taken: most ranges have no tally.
        let tallies = open.iter().filter_map(|range| Some((range.take_tally()?, range.keys().clone())));
        tallies.map(|(tally, keys)| (keys, tally)).chain(self.0.ranges.take_left()).collect()
    }

    pub(crate) fn store_handle(&self) -> Arc<Store> {
        Arc::clone(&self.0.store)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn databases(&self) -> &Databases {
        &self.0.databases
    }

    pub(crate) fn ranges(&self) -> &OpenRanges {
        &self.0.ranges
    }

    /// The context for the ranges of a server that has this lease.
    pub(crate) fn range_context(&self, lease: Lease) -> RangeContext {
        RangeContext {
            databases: self.0.databases.clone(),
            store: Arc::clone(&self.0.store),
            lease,
            held_bytes: Arc::clone(&self.0.held_bytes),
            rows: Arc::clone(&self.0.rows),
            load: Arc::clone(&self.0.load),
        }
    }

    pub(crate) fn spawn(&self, name: String, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.lock().spawn(name, task);
    }

    /// The background tasks that ended by a panic, each with a message.
    pub(crate) fn panics(&self) -> Vec<String> {
        self.0.panicked.list().clone()
    }

    pub(crate) async fn after(&self, step: Step, range: RangeId) {
        self.0.options.after_step.after(step, range).await;
    }

    /// Stops all background tasks, whatever they are doing.
    pub(crate) async fn stop_tasks(&self) {
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock());
        tasks.shutdown().await;
    }
}

/// The numbers of the partition servers of a process.
pub(crate) fn server_ids(options: &Options) -> impl Iterator<Item = ServerId> {
    let first = options.first_server.0;
    (first..first + options.servers.max(1)).map(ServerId)
}

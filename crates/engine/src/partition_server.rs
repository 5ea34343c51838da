//! The partition server: holds ranges, and answers for their keys.
//!
//! It keeps no data of its own; everything is in the store. Requests are routed by the map, even
//! while there is one range only: who asks for a key that no range here holds is told so.
//!
//! **Opening.** The newest map names the databases. Where there is no map there is a new store, or
//! a creation or copy that was broken off: the map is written last. A database without a row that
//! lies where the first one belongs is what a broken creation leaves, and is taken; one with rows
//! is not ours to guess about.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rangehold_map::{KeyRange, PartitionPrefix, RangeId, TableId, Timestamp};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::compaction::Background;
use crate::error::{OpenError, ReadError, WriteError};
use crate::governor::{Shares, watch_memtables};
use crate::housekeeping::bury_for_ever;
use crate::limits::{DROPPED_REMEMBERED, OPENINGS_AT_ONCE_MAX};
use crate::map_store::{self, StoredMap};
use crate::range::{Admission, Changes, Range, RangeStatistics, RunToEnd, ScanEnd, Surroundings};
use crate::routes::Routes;
use crate::store::Store;
use crate::sweeper::Sweeper;
use crate::tasks::{Panicked, Tasks};

/// What a partition server is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory for caches, memtables and held requests together, in bytes.
    pub memory_bytes: u64,
    /// The process's clock.
    pub clock: Clock,
    /// Seed of everything that chance decides in the databases.
    pub seed: u64,
    /// How long a dropped table's id stays refused at least: longer than any request may take.
    pub dropped_remembered: Duration,
    /// Whether compaction runs on the caller's runtime, as in simulation, and not on its own
    /// thread of low priority.
    pub compact_on_callers_runtime: bool,
}

impl Options {
    /// The usual ones.
    pub fn new(memory_bytes: u64, clock: Clock, seed: u64) -> Self {
        Self {
            memory_bytes,
            clock,
            seed,
            dropped_remembered: DROPPED_REMEMBERED,
            compact_on_callers_runtime: false,
        }
    }
}

/// Holds ranges and answers for their keys. Clones are the same server. One that is dropped
/// without [`PartitionServer::close`] stops as in a crash: what was acknowledged is safe.
#[derive(Clone)]
pub struct PartitionServer(Arc<Inner>);

struct Inner {
    routes: Arc<Routes>,
    store: Arc<Store>,
    shares: Shares,
    dropped: Arc<Notify>,
    tasks: Mutex<Tasks>,
    panicked: Panicked,
    /// After the tasks, so that it is dropped after them.
    _background: Background,
}

/// What the server counts, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// The version of the map.
    pub map_version: u64,
    /// Each range that is held here.
    pub ranges: Vec<(RangeId, RangeStatistics)>,
    /// Free bytes on the disk.
    pub disk_free_bytes: u64,
    /// Whether writes are refused because of it.
    pub disk_low: bool,
    /// Damaged files met so far, each with the reason.
    pub damaged_files: Vec<String>,
    /// What keeps it from working as it should now, in words that name the range or the task:
    /// ranges that cannot be asked, background tasks that ended. Empty when all is well.
    pub troubles: Vec<String>,
}

impl PartitionServer {
    /// Opens everything in `store`, or makes the first range in an empty one.
    pub async fn open(store: Store, options: Options) -> Result<Self, OpenError> {
        let shares = Shares::of(options.memory_bytes)?;
        let background = if options.compact_on_callers_runtime {
            Background::shared()
        } else {
            Background::own().map_err(OpenError::Runtime)?
        };
        let around = Surroundings::new(
            store.object_store(),
            shares,
            options.clock.clone(),
            options.seed,
            background.handle(),
        );
        let store = Arc::new(store);
        let mut tasks = Tasks::default();
        tasks.spawn_on(
            &around.background,
            "the housekeeper".to_owned(),
            around.housekeeping.clone().run(around.clone()),
        );
        let routes = Arc::new(open_ranges(&around, &store).await?);
        routes.inherit_dropped(options.clock.now()).await.map_err(|error| match error {
            ReadError::Damaged(damage) => OpenError::Damaged(damage),
            other => OpenError::Catalogue(other),
        })?;
        let dropped = Arc::new(Notify::new());
        for range in &routes.ranges {
            tasks.spawn(format!("the keeper of range {}", range.id()), Arc::clone(range).keep());
        }
        let held = Arc::clone(&routes);
        tasks.spawn("the memory governor".to_owned(), watch_memtables(move || held.ranges.clone(), shares));
        let (objects, living) = (Arc::clone(&around.objects), map_store::living);
        tasks.spawn_on(
            &around.background,
            "the burial of unused databases".to_owned(),
            bury_for_ever(around.clone(), Arc::clone(&store), move || living(Arc::clone(&objects))),
        );
        let sweeper = Sweeper {
            routes: Arc::clone(&routes),
            clock: options.clock,
            remembered: options.dropped_remembered,
            dropped: Arc::clone(&dropped),
            empty: Default::default(),
        };
        tasks.spawn("the sweeper of dropped tables".to_owned(), sweeper.run());
        dropped.notify_one();
        Ok(Self(Arc::new(Inner {
            routes,
            store,
            shares,
            dropped,
            panicked: tasks.panicked(),
            tasks: Mutex::new(tasks),
            _background: background,
        })))
    }

    /// The value of `key`, if it has a row that is durable.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.0.routes.get(key).await
    }

    /// Visits the durable rows of `keys` in order, each range as of one moment, until the visitor
    /// breaks. On an error the caller throws away what the visitor saw: it may not be told.
    pub async fn scan(
        &self,
        keys: &KeyRange,
        visitor: impl FnMut(&[u8], &Bytes) -> ControlFlow<()> + Send,
    ) -> Result<ScanEnd, ReadError> {
        self.0.routes.scan(keys, visitor).await
    }

    /// Reads `keys`, all of `partition`, as new as they are; lets `judge` decide with them and the
    /// write's timestamp; and makes the changes that it wants, all or none of them, durable.
    ///
    /// No other write of the partition comes between reading and changing. Timestamps strictly
    /// grow within a range. A refusal of the judge is returned when the rows that it was judged on
    /// are durable, so that it tells nothing that a crash takes back. Changes of keys outside the
    /// partition are a bug of the caller and panic.
    ///
    /// After `deadline` the answer is [`WriteError::Busy`] as long as nothing was put into the log,
    /// and [`WriteError::OutcomeUnknown`] from then on.
    pub async fn write<E>(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
        deadline: Instant,
        judge: impl FnOnce(&[Option<Bytes>], Timestamp) -> Result<Changes, E>,
    ) -> Result<Timestamp, WriteError<E>> {
        self.0.routes.write(partition, keys, deadline, Admission::Usual, judge).await
    }

    /// [`PartitionServer::write`] for changes that give space back, such as the catalogue's when a
    /// table is dropped. They are let in until half of the disk's reserve is gone, so that whoever
    /// is refused for want of space can make some.
    pub async fn write_giving_space_back<E>(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
        deadline: Instant,
        judge: impl FnOnce(&[Option<Bytes>], Timestamp) -> Result<Changes, E>,
    ) -> Result<Timestamp, WriteError<E>> {
        self.0.routes.write(partition, keys, deadline, Admission::GivesSpaceBack, judge).await
    }

    /// Refuses every later read and write of the table and lets its rows go in the background.
    /// Durable when it returns, and harmless to repeat.
    ///
    /// The caller has written `Key::DroppedTable` into the account's catalogue before, in the batch
    /// that deletes the table's own row. The sweeper deletes that row when nothing is left.
    ///
    /// What was begun goes on after `deadline`, and when the caller gives up; and because of the
    /// catalogue's row a failure, too, is made good in the background. So an error means that it
    /// is not done *yet*.
    pub async fn drop_table(
        &self,
        account: &str,
        table: TableId,
        deadline: Instant,
    ) -> Result<(), ReadError> {
        let (inner, account) = (Arc::clone(&self.0), account.to_owned());
        let noting = RunToEnd::new(async move {
            let noted = inner.routes.drop_table(&account, table).await;
            inner.dropped.notify_one();
            noted
        });
        timeout_at(deadline, noting).await.unwrap_or_else(|_| {
            let why = "the deadline passed before every range had noted that the table is dropped";
            Err(ReadError::Unavailable(why.to_owned()))
        })
    }

    /// Lets the writes under way finish, saves everything and stops. Later requests, of clones,
    /// are refused.
    pub async fn close(self) {
        let closing = stream::iter(self.0.routes.ranges.iter().map(Arc::clone));
        closing.for_each_concurrent(OPENINGS_AT_ONCE_MAX, |range| async move { range.close().await }).await;
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }

    /// How the memory is divided.
    pub fn shares(&self) -> Shares {
        self.0.shares
    }

    /// What it counts.
    pub fn statistics(&self) -> Statistics {
        let ranges = self.0.routes.map.entries().iter().zip(&self.0.routes.ranges);
        Statistics {
            map_version: self.0.routes.map.version(),
            ranges: ranges.map(|(entry, range)| (entry.id, range.statistics())).collect(),
            disk_free_bytes: self.0.store.disk().free_bytes(),
            disk_low: self.0.store.disk().is_low(),
            damaged_files: self.0.store.damaged_files().iter().map(ToString::to_string).collect(),
            troubles: self.troubles(),
        }
    }

    fn troubles(&self) -> Vec<String> {
        let ranges = self.0.routes.ranges.iter().filter_map(|range| range.trouble());
        ranges.chain(self.0.panicked.list().iter().cloned()).collect()
    }
}

/// Opens the ranges that the newest map names, or makes the first one.
async fn open_ranges(around: &Surroundings, store: &Arc<Store>) -> Result<Routes, OpenError> {
    let (stored, ranges) = match map_store::load(&around.objects).await? {
        Some(stored) => {
            let mut ranges = Vec::new();
            // Several at a time, since each waits for the disk; in the order of the map.
            let openings = stored.identities.iter().cloned();
            let mut opened = stream::iter(openings)
                .map(|identity| Range::open(identity, around.clone(), Arc::clone(store)))
                .buffered(OPENINGS_AT_ONCE_MAX);
            while let Some(range) = opened.try_next().await? {
                ranges.push(range);
            }
            drop(opened);
            (stored, ranges)
        }
        None => make_first(around, store).await?,
    };
    Ok(Routes { map: stored.map, ranges })
}

async fn make_first(
    around: &Surroundings,
    store: &Arc<Store>,
) -> Result<(StoredMap, Vec<Arc<Range>>), OpenError> {
    let stored = StoredMap::first();
    let mut ranges = Vec::new();
    for identity in &stored.identities {
        let range = if Range::exists(identity, around).await? {
            let range = Range::open(identity.clone(), around.clone(), Arc::clone(store)).await?;
            if !range.is_empty().await? {
                return Err(OpenError::NoMap { path: identity.path() });
            }
            range
        } else {
            Range::create(identity.clone(), around.clone(), Arc::clone(store)).await?
        };
        ranges.push(range);
    }
    map_store::create(&around.objects, &stored).await?;
    Ok((stored, ranges))
}

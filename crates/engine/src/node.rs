//! A node: one process in all its roles, over a store of its own.
//!
//! ```text
//!   Router  --map-->  PartitionServer 1..n  --share-->  Host (store, caches, threads)
//!      \________________  Executor  ___________/          (changes the map)
//! ```
//!
//! **Opening.** The newest map names the databases. If there is no map, the store is new, or its creation or
//! a copy into it was broken off: the map is written last. A database without rows in the place of the first
//! database is left from a creation that was broken off, and is used. A database with rows there is refused, since
//! we cannot know what it is. Changes of ranges that were broken off are brought to their end, and then every
//! range is opened.

mod error;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rangehold_map::{DatabaseName, Generation, Home, RangeId, RangeMap, ServerId};

use crate::blob::Blobs;
use crate::change;
use crate::database::Shares;
use crate::executor::Executor;
use crate::host::{Host, Options, server_ids};
use crate::housekeeping::keep_burying;
use crate::map_store::{self, MapError, Maps, living};
use crate::partition_server::PartitionServer;
use crate::range::RangeStatistics;
use crate::router::Router;
use crate::steps::NamesHook;
use crate::store::Store;
use crate::sweeping::DroppedTableSweeper;
use crate::tasks::{Panicked, Tasks};
pub use error::OpenError;

/// See the module. Clones are the same node. A node that is dropped without [`Node::close`] stops as
/// in a crash: what was acknowledged is safe.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    host: Host,
    router: Router,
    executor: Executor,
    blobs: Blobs,
    closed: AtomicBool,
    /// These tasks do not belong to the host: they hold the servers, and the servers hold the host.
    tasks: Mutex<Tasks>,
    panicked: Panicked,
}

/// What a node counts, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// The version of the map.
    pub map_version: u64,
    /// Each range that is held here.
    pub ranges: Vec<(RangeId, RangeStatistics)>,
    /// Free bytes on the disk.
    pub disk_free_bytes: u64,
    /// Whether writes are refused because the disk has too little free space.
    pub disk_low: bool,
    /// Marks that openings of databases have left in their logs since the start. They are deleted after the next
    /// start, if the lock of the directory proves that this process has ended.
    pub log_marks: u64,
    /// Damaged files that were found so far, each with the reason.
    pub damaged_files: Vec<String>,
    /// What keeps it from working as it should now. Empty when all is well.
    pub troubles: Vec<Trouble>,
}

/// Something that keeps a node from working as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A range that is meant to be served here answers nothing.
    #[error("{range} cannot be asked: {why}")]
    Range {
        /// The range.
        range: RangeId,
        /// Why.
        why: String,
    },
    /// The lease of a partition server was ended by the process that takes its ranges over. The server answers no
    /// reads any more, and comes back when its process is started again.
    #[error("the partition server {server} has lost its lease; restart the process to have it back")]
    Server {
        /// The server.
        server: ServerId,
        /// How many ranges it still holds.
        ranges: usize,
    },
    /// All ranges were taken offline.
    #[error("all ranges are offline: nothing is served until one is brought online")]
    AllOffline,
    /// A background task ended.
    #[error("{0}")]
    Task(String),
}

impl Node {
    /// Opens everything in `store`, or makes the first range in an empty one. A range whose stored files are damaged is
    /// left out: requests for it are told of the damage, and it is opened when its files are back. If it holds a part of
    /// the catalogue, the node is not opened.
    pub fn open(store: Store, options: Options) -> BoxFuture<'static, Result<Self, OpenError>> {
        Box::pin(async move {
            let node = Self::join(store, options).await?;
            if let Err(error) = node.0.executor.open_all().await
                // One bad file must not stop the service of all other ranges. Without the catalogue no table is found.
                && (error.damage().is_none() || node.0.executor.has_damaged_catalogue())
            {
                // Stop the tasks, so that nothing from this try holds the store any more.
                node.0.host.stop_tasks().await;
                return Err(error.into());
            }
            node.0.router.dropped().notify_one();
            node.0.host.store().disk().keep_spare();
            Ok(node)
        })
    }

    /// Starts the servers of one of several processes over one store; if the store is empty, also makes the first
    /// range. The servers do not know those of other processes, and open no ranges from the map, until the code
    /// that leads all processes calls [`Router::set_servers`], [`Executor::set_servers`] and
    /// [`Executor::open_all`].
    pub fn join(store: Store, options: Options) -> BoxFuture<'static, Result<Self, OpenError>> {
        Box::pin(async move {
            let host = Host::start(store, options)?;
            let joined = Self::join_on(&host).await;
            if joined.is_err() {
                host.stop_tasks().await;
            }
            joined
        })
    }

    async fn join_on(host: &Host) -> Result<Self, OpenError> {
        let mut servers = Vec::new();
        for id in server_ids(host.options()) {
            servers.push(PartitionServer::start(host, id).await?);
        }
        let objects = Arc::clone(&host.databases().objects);
        let map = match map_store::load(&objects).await? {
            Some(map) => map,
            None => make_first(host, &servers[0]).await?,
        };
        let maps = Maps::new(objects, map, servers[0].name_of_life());
        let router = Router::new(maps.clone(), servers.clone());
        let executor = Executor::new(maps, router.clone(), servers);
        let sweeper = DroppedTableSweeper::new(host, &executor);
        let mut tasks = Tasks::default();
        let (databases, objects) = (host.databases(), Arc::clone(&host.databases().objects));
        tasks.spawn_on(
            &databases.background,
            "the burial of unused databases".to_owned(),
            keep_burying(databases.clone(), host.store_handle(), move || living(Arc::clone(&objects))),
        );
        tasks.spawn("the sweeper of dropped tables".to_owned(), sweeper.run());
        let hook = host.options().after_blob_step.clone();
        let blobs = Blobs::new(host.store_handle(), databases.clone(), router.clone(), hook);
        tasks.spawn("the burial of blobs".to_owned(), blobs.clone().keep_burying());
        Ok(Self(Arc::new(Inner {
            host: host.clone(),
            router,
            executor,
            blobs,
            closed: AtomicBool::new(false),
            panicked: tasks.panicked(),
            tasks: Mutex::new(tasks),
        })))
    }

    /// The router that leads requests to its ranges.
    pub fn router(&self) -> &Router {
        &self.0.router
    }

    /// The executor that changes its ranges.
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// The blobs of its store.
    pub fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    /// The hook that is called after each step of a change of several object names.
    pub fn names_hook(&self) -> &NamesHook {
        &self.0.host.options().after_names_step
    }

    /// What its servers share.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// How the memory is divided.
    pub fn shares(&self) -> Shares {
        self.0.host.shares()
    }

    /// Lets the writes under way finish, saves everything and stops. Later requests are refused.
    pub fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if self.0.closed.swap(true, Ordering::AcqRel) {
                return;
            }
            let servers = self.0.executor.servers();
            futures::future::join_all(servers.iter().map(PartitionServer::close)).await;
            let mut tasks = std::mem::take(&mut *self.0.tasks.lock());
            tasks.shutdown().await;
            self.0.host.stop_tasks().await;
        })
    }

    /// What the node counts, and what is wrong with it now.
    pub fn statistics(&self) -> Statistics {
        let store = self.0.host.store();
        let servers = self.0.executor.servers();
        let mut ranges: Vec<_> = servers.iter().flat_map(PartitionServer::statistics).collect();
        ranges.sort_by_key(|(id, _)| *id);
        Statistics {
            map_version: self.0.executor.maps().current().version(),
            ranges,
            disk_free_bytes: store.disk().free_bytes(),
            disk_low: store.disk().is_low(),
            log_marks: self.0.host.databases().marks.made(),
            damaged_files: store.damaged_files().iter().map(ToString::to_string).collect(),
            troubles: self.troubles(&servers),
        }
    }

    fn troubles(&self, servers: &[PartitionServer]) -> Vec<Trouble> {
        let mut ranges: BTreeMap<RangeId, String> = BTreeMap::new();
        let map = self.0.executor.maps().current();
        let all_offline = map.entries().iter().all(|entry| !entry.online).then_some(Trouble::AllOffline);
        for entry in map.entries() {
            // A range that is changing hands is held by some server, and the map says only later by which.
            let is_meant_to_be_served = entry.online && entry.intent.is_none();
            let owner = servers.iter().find(|server| server.id() == entry.place.server);
            if is_meant_to_be_served && !owner.is_some_and(|owner| owner.holds(entry.id)) {
                ranges.insert(entry.id, format!("{} does not have it open", entry.place.server));
            }
        }
        ranges.extend(servers.iter().flat_map(PartitionServer::troubles));
        let mut tasks = self.0.host.panics();
        tasks.extend_from_slice(&self.0.panicked.list());
        let ended = servers.iter().filter(|server| server.has_ended());
        ended
            .map(|server| Trouble::Server { server: server.id(), ranges: server.ranges_held() })
            .chain(all_offline)
            .chain(ranges.into_iter().map(|(range, why)| Trouble::Range { range, why }))
            .chain(tasks.into_iter().map(Trouble::Task))
            .collect()
    }
}

async fn make_first(host: &Host, server: &PartitionServer) -> Result<RangeMap, OpenError> {
    let map = first_map();
    let range = server.make_first(&map.entries()[0]).await?;
    let objects = &host.databases().objects;
    if map_store::create(objects, &map, &server.name_of_life()).await? {
        server.replace_in_set(&[], &[range]);
        return Ok(map);
    }
    // Another process made the store at the same time, and its map counts.
    change::end_all(&[range]).await;
    Ok(map_store::load(objects).await?.ok_or(MapError::None)?)
}

/// The first map: one range that holds everything.
pub(crate) fn first_map() -> RangeMap {
    let database = DatabaseName { range: RangeId(1), generation: Generation::FIRST, attempt: 1 };
    RangeMap::single(RangeId(1), Home { server: ServerId(1), database })
}

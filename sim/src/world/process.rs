//! One process of the cluster, in one of its lives.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rangehold_engine::store::Store;
use rangehold_engine::{
    Clock, Executor, Maps, Node, OpenError, Options, PartitionServer, Router, ScanHook, StepHook, with_causes,
};
use rangehold_map::key::{KIND_BLOB, KIND_OBJECT};
use rangehold_map::{KeyRange, ServerId};
use rangehold_server::accounts::{Accounts, SharedAccounts};
use rangehold_server::limits::{AGEING_EVERY, BLOB_AUDIT_AFTER_START, BLOB_AUDIT_EVERY, PAGE_WITHIN};
use rangehold_server::listener::serve_stream;
use rangehold_server::manager::{LoadPolicy, Manager};
use rangehold_server::metrics::Metrics;
use rangehold_server::object::{
    Access, Hosts, ObjectKeys, ObjectService, Options as ObjectOptions, SharedObjectKeys,
};
use rangehold_server::profile::{Budget, Profile};
use rangehold_server::table::{Options as TableOptions, TableService};
use tokio::io::DuplexStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Freezer, Planned, Planner};
use crate::events::Events;
use crate::faults::{Fault, Weather};
use crate::store::{Door, Passage, Refused};

/// Memory of one process: the least that the engine takes.
const MEMORY_BYTES: u64 = 64 << 20;
/// Memory for cached rows, by seed: one that evicts rows all the time, one that sometimes does, and the usual share.
const ROW_CACHE_BYTES: [Option<u64>; 3] = [Some(4 << 10), Some(64 << 10), None];
/// Bytes under way on one connection, in each direction.
const PIPE_BYTES: usize = 64 << 10;
/// How much unused budget is saved in a cluster with the rules of the cloud.
const BUDGET_CREDIT: Duration = Duration::from_secs(2);
/// How often it is checked whether a manager is there.
const MANAGER_LOOKED_AFTER: Duration = Duration::from_millis(200);
/// How often a process looks for a newer map in the store.
const MAP_POLL: Duration = Duration::from_secs(1);
/// How long a walk over buckets and an audit may take together. A process asks the servers of another one directly, and a
/// server whose process has crashed never answers: between real processes such a call would break off.
const TIDIED_WITHIN: Duration = Duration::from_secs(20);

/// See the module.
pub struct Process {
    /// Which process of the cluster.
    pub number: usize,
    /// Which of its lives, from 1.
    pub life: u64,
    /// Its clock.
    pub clock: Clock,
    node: Node,
    own: Vec<PartitionServer>,
    /// The front end's own router: it may believe in an older map than the rest of the process.
    router: Router,
    door: Door,
    freezer: Freezer,
    tables: Arc<TableService>,
    objects: Arc<ObjectService>,
    tasks: Mutex<JoinSet<()>>,
    connections: AtomicU16,
}

/// What a process is started with.
pub(crate) struct Start {
    pub(crate) number: usize,
    pub(crate) life: u64,
    pub(crate) servers: u64,
    /// With a real manager that plans.
    pub(crate) planner: Option<Planner>,
    /// Answers by the rules of the cloud; see [`super::Size`].
    pub(crate) cloud: Option<f64>,
    /// After what time a page ends, if it is not the time of the profile.
    pub(crate) page_within: Option<Duration>,
    /// The counts of what it does.
    pub(crate) planned: Arc<Planned>,
    pub(crate) events: Events,
    pub(crate) clock: Clock,
    pub(crate) door: Door,
    pub(crate) freezer: Freezer,
    pub(crate) seed: u64,
    pub(crate) weather: Weather,
    pub(crate) after_step: StepHook,
    pub(crate) after_scan_step: ScanHook,
}

impl Process {
    /// Starts it: the same steps as those of the program, except for sockets.
    pub(crate) async fn start(start: Start) -> Result<Self, OpenError> {
        let Start { number, life, servers, planner, clock, door, freezer, seed, .. } = start;
        let options = Options {
            compact_on_callers_runtime: true,
            row_cache_bytes: ROW_CACHE_BYTES[(seed % 3) as usize],
            servers,
            first_server: first_server(number, servers),
            after_step: start.after_step,
            after_scan_step: start.after_scan_step,
            load: planner.map_or_else(LoadPolicy::fast, Planner::load),
            ..Options::new(MEMORY_BYTES, clock.clone(), seed)
        };
        let node = Node::join(Store::on(Arc::new(door.clone())), options).await?;
        let known = node.executor().maps().apart();
        let mut tasks = JoinSet::new();
        tasks.spawn(freezer.hold(look_for_maps(
            node.executor().clone(),
            known.clone(),
            start.weather.clone(),
        )));
        let own = node.executor().servers();
        let router = Router::new(known, own.iter().cloned());
        let tables = Arc::new(TableService::new(
            router.clone(),
            SharedAccounts::new(Accounts::well_known()),
            None,
            clock.clone(),
            TableOptions {
                seed: seed ^ 1,
                memory_bytes: MEMORY_BYTES,
                cores: 1,
                profile: profile(start.cloud, start.page_within),
            },
            Metrics::new(),
        ));
        let options = object_options(seed, start.page_within);
        let objects = ObjectService::new(&node, clock.clone(), options, &tables, Metrics::new());
        let objects = Arc::new(objects);
        if let Some(planner) = planner {
            let second = start.weather.is_on(Fault::TwoManagers);
            for place in [Place::First, Place::Second].into_iter().take(1 + usize::from(second)) {
                let manager = Manager::new(&node, tables.rehearsals(), planner.options());
                let followed =
                    Arc::clone(&start.planned).follow(number, manager.events().clone(), start.events.clone());
                tasks.spawn(freezer.hold(followed));
                tasks.spawn(freezer.hold(plan(manager, place, start.weather.clone())));
            }
        }
        let tasks = Mutex::new(tasks);
        let connections = AtomicU16::new(1);
        Ok(Self {
            number,
            life,
            clock,
            node,
            own,
            router,
            door,
            freezer,
            tables,
            objects,
            tasks,
            connections,
        })
    }

    /// Its partition servers.
    pub fn servers(&self) -> &[PartitionServer] {
        &self.own
    }

    /// The way to change ranges, for a manager in this process.
    pub fn executor(&self) -> &Executor {
        self.node.executor()
    }

    /// These are the cluster's servers from now on.
    pub(crate) fn introduce(&self, servers: &[PartitionServer]) {
        self.node.router().set_servers(servers.iter().cloned());
        self.node.executor().set_servers(servers.iter().cloned());
        self.router.set_servers(servers.iter().cloned());
    }

    /// A new connection to its front end.
    pub fn connect(&self) -> DuplexStream {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        let tables = Arc::clone(&self.tables);
        let handler = move |connection, request| {
            let tables = Arc::clone(&tables);
            async move { tables.handle(connection, request).await }
        };
        self.spawn(serve_stream(server, self.peer(), handler));
        client
    }

    /// A new connection to its object service.
    pub fn connect_objects(&self) -> DuplexStream {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        let objects = Arc::clone(&self.objects);
        let handler = move |connection, request| {
            let objects = Arc::clone(&objects);
            async move { objects.handle(connection, request).await }
        };
        self.spawn(serve_stream(server, self.peer(), handler));
        client
    }

    /// The address of the client of a new connection: always the same machine, and a port of its own.
    fn peer(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.connections.fetch_add(1, Ordering::Relaxed)))
    }

    /// Has the buckets walked over, and then the blobs audited. The receiver learns how it ended, or nothing if the
    /// process ends before, or if that takes longer than `TIDIED_WITHIN`.
    pub fn tidy_objects(&self) -> oneshot::Receiver<Result<(), String>> {
        let (told, ended) = oneshot::channel();
        let objects = Arc::clone(&self.objects);
        self.spawn(async move {
            let tidied = timeout(TIDIED_WITHIN, async {
                objects.age_buckets().await;
                objects.audit_blobs().await.map_err(|error| with_causes(&error))
            });
            if let Ok(audited) = tidied.await {
                let _ = told.send(audited);
            }
        });
        ended
    }

    /// All rows of objects and of their blobs, as they are now; `None` if they cannot be read.
    pub async fn rows_of_objects(&self) -> Option<Vec<(Vec<u8>, Bytes)>> {
        let mut rows = Vec::new();
        for kind in [KIND_OBJECT, KIND_BLOB] {
            let take = |rows: &mut Vec<_>, key: &[u8], row: &Bytes| {
                rows.push((key.to_vec(), row.clone()));
                ControlFlow::Continue(())
            };
            rows.extend(self.node.router().scan(&KeyRange::prefix(&[kind]), Vec::new, take).await.ok()?);
        }
        Some(rows)
    }

    /// Runs something in the process: it stands still and ends with it.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(self.freezer.hold(work));
    }

    /// Ends it at once: it does nothing any more, and its connections break.
    pub(crate) fn crash(&self) {
        self.door.set(Passage::Closed);
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Stops it where it is, or lets it go on from there.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.freezer.set(paused);
        self.door.set(if paused { Passage::Held } else { Passage::Open });
    }

    /// Whether it stands still.
    pub fn is_paused(&self) -> bool {
        self.freezer.is_frozen()
    }

    /// Lets the store refuse these of its calls, and no others.
    pub(crate) fn set_refused(&self, refused: Refused) {
        self.door.set_refused(refused);
    }

    /// Which of its calls the store refuses.
    pub(crate) fn refused(&self) -> Refused {
        self.door.refused()
    }

    /// Whether it can do its work: it does not stand still, and the store takes all its calls.
    pub(crate) fn is_able(&self) -> bool {
        !self.is_paused() && self.refused() == Refused::Nothing
    }

    /// Makes its calls of the store slow, or as fast as those of others.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.door.set_slow(slow);
    }
}

/// Everybody may do everything, as in development. The walk over buckets is asked for ([`Process::tidy_objects`]).
fn object_options(seed: u64, page_within: Option<Duration>) -> ObjectOptions {
    let mut secret_seed = [0; 32];
    secret_seed[..8].copy_from_slice(&seed.to_be_bytes());
    ObjectOptions {
        seed: seed ^ 2,
        secret_seed,
        access: Access::Open,
        keys: SharedObjectKeys::new(ObjectKeys::development()),
        hosts: Hosts::new(["sim".to_owned()]),
        retry_tests: false,
        page_within: page_within.unwrap_or(PAGE_WITHIN),
        ageing_every: AGEING_EVERY,
        audit_after_start: BLOB_AUDIT_AFTER_START,
        audit_every: BLOB_AUDIT_EVERY,
    }
}

/// The numbers by which the service lets requests in and answers them. Those of the cloud are scaled down to the few
/// requests of a run.
fn profile(cloud: Option<f64>, page_within: Option<Duration>) -> Profile {
    let mut profile = cloud.map_or_else(Profile::fast, |entities| {
        let budget = |share: f64| Some(Budget { per_second: entities * share, credit: BUDGET_CREDIT });
        Profile { account: budget(3.0), table: budget(2.0), partition: budget(1.0), ..Profile::cloud() }
    });
    profile.pages.within = page_within.unwrap_or(profile.pages.within);
    profile
}

/// The first server of process `number`, if each process has `servers`.
fn first_server(number: usize, servers: u64) -> ServerId {
    ServerId(u64::try_from(number).unwrap_or(0) * servers + 1)
}

/// Which of the managers that believe to be the only one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    /// Works only while [`Fault::TwoManagers`] is active.
    Second,
}

/// Lets a real manager plan as long as the process lives, except while the manager is dead or not wanted.
async fn plan(manager: Manager, place: Place, weather: Weather) {
    // It is never told to stop: it ends with the process.
    let (_told, stop) = watch::channel(false);
    let absent = Freezer::default();
    let attended = async {
        loop {
            let wanted = place == Place::First || weather.rages(Fault::TwoManagers);
            absent.set(!wanted || weather.rages(Fault::ManagerDead));
            sleep(MANAGER_LOOKED_AFTER).await;
        }
    };
    tokio::join!(biased; attended, absent.hold(manager.run(stop)));
}

/// Reads the map now and then, since other processes change it too, and shows it to the front end.
async fn look_for_maps(executor: Executor, known: Maps, weather: Weather) {
    let mut own = executor.maps().subscribe();
    loop {
        tokio::select! {
            biased;
            changed = own.changed() => if changed.is_err() { return },
            () = sleep(MAP_POLL) => {
                // A read that fails is tried again.
                let _ = executor.maps().refresh().await;
            }
        }
        if !weather.rages(Fault::StaleMap) {
            known.show(own.borrow().clone());
        }
    }
}

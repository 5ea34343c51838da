//! One process of the cluster, in one of its lives.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rangehold_engine::store::Store;
use rangehold_engine::{Clock, OpenError, Options, PartitionServer};
use rangehold_server::accounts::{Accounts, SharedAccounts};
use rangehold_server::listener::serve_stream;
use rangehold_server::metrics::Metrics;
use rangehold_server::table::TableService;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;

use super::Freezer;
use crate::store::{Door, Passage};

/// Memory of one process: the least that is taken.
const MEMORY_BYTES: u64 = 64 << 20;
/// Bytes under way on one connection, in each direction.
const PIPE_BYTES: usize = 64 << 10;

/// See the module.
pub struct Process {
    /// Which process of the cluster.
    pub number: usize,
    /// Which of its lives, from 1.
    pub life: u64,
    /// Its clock.
    pub clock: Clock,
    /// Its partition server.
    pub partitions: PartitionServer,
    door: Door,
    freezer: Freezer,
    tables: Arc<TableService>,
    connections: Mutex<JoinSet<()>>,
    was_paused: AtomicBool,
}

/// What a process is started with.
pub(crate) struct Start {
    pub(crate) number: usize,
    pub(crate) life: u64,
    pub(crate) clock: Clock,
    pub(crate) door: Door,
    pub(crate) freezer: Freezer,
    pub(crate) seed: u64,
}

impl Process {
    /// Starts it: the same steps as those of the program, but for sockets.
    pub(crate) async fn start(start: Start) -> Result<Self, OpenError> {
        let Start { number, life, clock, door, freezer, seed } = start;
        let options =
            Options { compact_on_callers_runtime: true, ..Options::new(MEMORY_BYTES, clock.clone(), seed) };
        let partitions = PartitionServer::open(Store::on(Arc::new(door.clone())), options).await?;
        let tables = Arc::new(TableService::new(
            partitions.clone(),
            SharedAccounts::new(Accounts::well_known()),
            None,
            clock.clone(),
            seed ^ 1,
            MEMORY_BYTES,
            Metrics::new(),
        ));
        let (connections, was_paused) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self { number, life, clock, partitions, door, freezer, tables, connections, was_paused })
    }

    /// A new connection to its front end.
    pub fn connect(&self) -> DuplexStream {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        let tables = Arc::clone(&self.tables);
        let handler = move |connection, request| {
            let tables = Arc::clone(&tables);
            async move { tables.handle(connection, request).await }
        };
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let serving = self.freezer.hold(serve_stream(server, peer, handler));
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(serving);
        client
    }

    /// Ends it at once: nothing it is about to do takes place, and its connections break.
    pub(crate) fn crash(&self) {
        self.door.set(Passage::Closed);
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Stops it where it is, or lets it go on from there.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.was_paused.fetch_or(paused, Ordering::Relaxed);
        self.freezer.set(paused);
        self.door.set(if paused { Passage::Held } else { Passage::Open });
    }

    /// Whether it stands still.
    pub fn is_paused(&self) -> bool {
        self.freezer.is_frozen()
    }

    /// Whether it ever stood still.
    pub fn was_paused(&self) -> bool {
        self.was_paused.load(Ordering::Relaxed)
    }

    /// Makes its calls of the store slow, or as fast as others'.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.door.set_slow(slow);
    }
}

//! The servers of a trial, the map over them, and who knows when which server was down.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rangehold_shardmap::operation::StepHook;
use rangehold_shardmap::routing::Routing;
use rangehold_shardmap::{CreateMode, Location, ManagerOptions, RangeShardMap, ShardMapManager};
use rangehold_testkit::microseconds_since_1970;
use rangehold_testkit::pooler::Pooler;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, NoTls};

use super::stalls::Spell;
use crate::support::access;
use crate::support::postgres::PostgresServer;
use crate::support::roles::{self, APPLICATION, MANAGER, OWNER};

/// Keys of the map: 0 and below this.
pub const TENANTS: i64 = 24;
/// How many shards.
pub const SHARDS: usize = 3;
/// The first database of each shard.
pub const DATABASE: &str = "shard";
/// After how long without a sign of life an operation is taken over.
pub const LEASE: Duration = Duration::from_millis(600);
/// How long sessions have before they are ended.
pub const GRACE: Duration = Duration::from_millis(250);
/// How long one waits until a server that was started again is reached through its pooler, and between two looks.
const BACK_LOOKS_MAX: usize = 1_000;
const BACK_PAUSE: Duration = Duration::from_millis(20);
/// Enough sessions of the server for all clients, and a server that came back is tried again at once.
const POOLER: &str = "default_pool_size = 30\nserver_login_retry = 1";

/// Tables of the application. Each row written leaves a trace that no rollback takes away: a sequence of its
/// tenant goes on. `guarded` has the guard, so that the trace of a refused row is not left.
const TABLES: &str = "
    CREATE TABLE events (tenant bigint, writer int, n bigint);
    CREATE TABLE guarded (LIKE events);
    CREATE INDEX ON events (tenant); CREATE INDEX ON guarded (tenant);
    DO $$ BEGIN FOR t IN 0..23 LOOP EXECUTE 'CREATE SEQUENCE trace_' || t; END LOOP; END $$;
    CREATE FUNCTION leave_trace() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM nextval(''trace_'' || new.tenant); RETURN NULL; END';
    CREATE TRIGGER t AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION leave_trace();
    CREATE TRIGGER t AFTER INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION leave_trace();";

/// Why a connection ended, once it has.
pub type End = JoinHandle<Option<String>>;

/// A plain connection.
pub async fn plain(port: u16, database: &str, role: &str) -> Result<(Client, End), Error> {
    let address = format!("host=127.0.0.1 port={port} user={role} dbname={database}");
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
    let end = tokio::spawn(async move {
        connection.await.err().and_then(|error| error.code().map(|code| code.code().to_owned()))
    });
    Ok((client, end))
}

fn port_and_database(place: &Location) -> (u16, &str) {
    match place {
        Location::Postgres { port, database, .. } => (*port, database),
        Location::Sqlite { .. } => unreachable!("all places are on servers"),
    }
}

/// How any process of a trial takes part.
pub struct Reach {
    global: Location,
    pub routing: Routing,
    /// A tenant of the change that is being made: where writers find trouble.
    pub hot: AtomicI64,
}

impl Reach {
    pub fn new(global: Location) -> Self {
        Self { global, routing: Routing::new(access(APPLICATION)), hot: AtomicI64::new(0) }
    }

    pub fn global(&self) -> &Location {
        &self.global
    }

    /// The map, for the application.
    pub async fn route(&self, owner: &str) -> RangeShardMap<i64> {
        self.open(APPLICATION, owner, StepHook::default()).await
    }

    /// The map, for a manager.
    pub async fn manage(&self, owner: &str, hook: StepHook) -> RangeShardMap<i64> {
        self.open(MANAGER, owner, hook).await
    }

    async fn open(&self, role: &str, owner: &str, hook: StepHook) -> RangeShardMap<i64> {
        let options = ManagerOptions { hook, ..options(role, owner) };
        let manager = ShardMapManager::open(self.global.clone(), options).await.expect("the global map");
        manager.range_map("tenants").await.expect("the map")
    }

    /// A plain connection of the application.
    pub async fn connect(&self, place: &Location) -> Result<(Client, End), Error> {
        let (port, database) = port_and_database(place);
        plain(port, database, APPLICATION).await
    }
}

fn options(role: &str, owner: &str) -> ManagerOptions {
    ManagerOptions {
        postgres: Some(access(role)),
        owner: owner.to_owned(),
        lease: LEASE,
        drain_grace: GRACE,
        ..ManagerOptions::default()
    }
}

/// One shard's server.
pub struct ShardServer {
    pub server: PostgresServer,
    pooler: Option<Pooler>,
    location: Mutex<Location>,
    down: AtomicBool,
    kills: AtomicU32,
    outages: Mutex<Vec<Spell>>,
}

/// What a look remembers of a server.
#[derive(Clone, Copy)]
pub struct Glimpse {
    down: bool,
    kills: u32,
}

impl ShardServer {
    fn start(pooled: bool) -> ShardServer {
        let server = PostgresServer::start();
        server.create_database(DATABASE);
        let pooler = pooled.then(|| Pooler::start_with(&server, POOLER));
        let port = pooler.as_ref().map_or(server.port(), Pooler::port);
        let location = Location::postgres("127.0.0.1", port, DATABASE).expect("a place");
        let (down, kills) = (AtomicBool::new(false), AtomicU32::new(0));
        ShardServer { server, pooler, location: Mutex::new(location), down, kills, outages: Mutex::default() }
    }

    /// Where the shard is.
    pub fn location(&self) -> Location {
        self.location.lock().expect("no panic while it is held").clone()
    }

    /// The shard is at another place now.
    pub fn is_at(&self, place: Location) {
        *self.location.lock().expect("no panic while it is held") = place;
    }

    /// The places of a database of this server: its own, and those by other names.
    pub fn places(&self, database: &str) -> Vec<Location> {
        let place = |host: &str, port: u16| Location::postgres(host, port, database).expect("a place");
        let pooled = self.pooler.iter().map(|pooler| place("127.0.0.1", pooler.port()));
        let direct = [place("127.0.0.1", self.server.port()), place("localhost", self.server.port())];
        direct.into_iter().chain(pooled).collect()
    }

    /// The database in which the shard is.
    pub fn database(&self) -> String {
        port_and_database(&self.location()).1.to_owned()
    }

    /// How it is now.
    pub fn glimpse(&self) -> Glimpse {
        Glimpse { down: self.down.load(Ordering::SeqCst), kills: self.kills.load(Ordering::SeqCst) }
    }

    /// Whether it was down at some time since.
    pub fn was_down_since(&self, then: Glimpse) -> bool {
        let now = self.glimpse();
        then.down || now.down || now.kills != then.kills
    }

    /// How often it was killed.
    pub fn kills(&self) -> u32 {
        self.kills.load(Ordering::SeqCst)
    }

    /// When it was down.
    pub fn outages(&self) -> Vec<Spell> {
        self.outages.lock().expect("no panic while it is held").clone()
    }

    /// Kills it and starts it again after a while.
    pub async fn suffer_outage(self: Arc<Self>, lasting: Duration) {
        let from = microseconds_since_1970();
        self.kills.fetch_add(1, Ordering::SeqCst);
        self.down.store(true, Ordering::SeqCst);
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.server.kill()).await.expect("killing");
        tokio::time::sleep(lasting).await;
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.server.restart()).await.expect("restarting");
        if let Some(pooler) = &self.pooler {
            for _ in 0..BACK_LOOKS_MAX {
                let connected = plain(pooler.port(), DATABASE, APPLICATION).await;
                if let Ok((client, _)) = connected
                    && client.batch_execute("SELECT 1").await.is_ok()
                {
                    break;
                }
                tokio::time::sleep(BACK_PAUSE).await;
            }
        }
        self.down.store(false, Ordering::SeqCst);
        let outage = Spell { from, to: microseconds_since_1970() };
        self.outages.lock().expect("no panic while it is held").push(outage);
    }

    /// A plain connection to the shard's database as a role.
    pub async fn connect(&self, role: &str) -> Result<Client, Error> {
        self.connect_to(&self.database(), role).await
    }

    /// The same to any database of the server.
    pub async fn connect_to(&self, database: &str, role: &str) -> Result<Client, Error> {
        plain(self.server.port(), database, role).await.map(|(client, _)| client)
    }
}

/// All servers, and the way to them.
pub struct World {
    global_server: PostgresServer,
    pub reach: Reach,
    pub shards: Vec<Arc<ShardServer>>,
    /// Tells the writers which tenant is hot.
    pub hot: watch::Sender<i64>,
}

impl World {
    /// Starts the servers, and makes a map with six mappings over three shards. If there are poolers, the first shard is
    /// behind one.
    pub async fn start(mutant: &str, poolers: bool) -> World {
        let starting = tokio::task::spawn_blocking(move || {
            let global = PostgresServer::start();
            global.create_global_database("global");
            (global, (0..SHARDS).map(|_| Arc::new(ShardServer::start(poolers))).collect::<Vec<_>>())
        });
        let (global_server, shards) = starting.await.expect("servers");
        for shard in shards.iter().skip(1) {
            shard.is_at(shard.places(DATABASE).swap_remove(0));
        }
        let global = Location::postgres("127.0.0.1", global_server.port(), "global").expect("a place");
        let options = options(MANAGER, "who begins");
        let manager = ShardMapManager::create(global.clone(), CreateMode::KeepExisting, options).await;
        global_server.sql_as(MANAGER, "global", roles::of_global_map());
        let world = World { global_server, reach: Reach::new(global), shards, hot: watch::Sender::new(0) };
        let map = manager.expect("a manager").create_range_map::<i64>("tenants").await.expect("a map");
        let step = TENANTS / 6;
        for (index, shard) in world.shards.iter().enumerate() {
            let made = map.create_shard(&shard.location()).await.expect("a shard");
            for low in [index as i64 * 2 * step, (index as i64 * 2 + 1) * step] {
                map.add(&low, Some(&(low + step)), &made).await.expect("a mapping");
            }
            let client = shard.connect(OWNER).await.expect("a connection");
            client.batch_execute(TABLES).await.expect("tables");
            let client = shard.connect(MANAGER).await.expect("a connection");
            let guard = "SELECT __shard_management.guard('guarded', 'tenant', 'tenants')";
            client.batch_execute(guard).await.expect("a guard");
            client.batch_execute(mutant).await.expect("a mutant");
        }
        world
    }

    /// The ports of all servers, and those of the poolers.
    pub fn ports(&self) -> (Vec<u16>, Vec<u16>) {
        let servers = self.shards.iter().map(|shard| shard.server.port());
        let poolers = self.shards.iter().filter_map(|shard| shard.pooler.as_ref());
        (
            [self.global_server.port()].into_iter().chain(servers).collect(),
            poolers.map(Pooler::port).collect(),
        )
    }

    /// How a role reaches the global map's database.
    pub fn global_address(&self, role: &str) -> String {
        self.global_server.address("global", role)
    }

    /// The map as another manager has it.
    pub async fn open(&self, owner: &str) -> RangeShardMap<i64> {
        self.reach.manage(owner, StepHook::default()).await
    }
}

//! The servers of a trial, the map over them, and who knows when which server was down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use rangehold_shardmap::postgres::{Credentials, PostgresAccess, Tls};
use rangehold_shardmap::routing::Routing;
use rangehold_shardmap::{CreateMode, Location, ManagerOptions, RangeShardMap, ShardMapManager};
use tokio_postgres::{Client, NoTls};

use crate::support::postgres::{PostgresServer, SUPERUSER};

/// Keys of the map: 0 and below this.
pub const TENANTS: i64 = 24;
/// How many shards.
pub const SHARDS: usize = 3;
/// The database of each shard.
pub const DATABASE: &str = "shard";
/// After how long without a sign of life an operation is taken over.
const LEASE: Duration = Duration::from_millis(600);
/// How long sessions have before they are ended.
pub const GRACE: Duration = Duration::from_millis(250);

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

/// One shard's server.
pub struct ShardServer {
    pub server: PostgresServer,
    pub location: Location,
    down: AtomicBool,
    kills: AtomicU32,
}

/// What an attempt remembers of a server, to judge its error by.
#[derive(Clone, Copy)]
pub struct Glimpse {
    down: bool,
    kills: u32,
}

impl ShardServer {
    fn start() -> ShardServer {
        let server = PostgresServer::start();
        server.create_database(DATABASE);
        let location = Location::postgres("127.0.0.1", server.port(), DATABASE).expect("a place");
        ShardServer { server, location, down: AtomicBool::new(false), kills: AtomicU32::new(0) }
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

    /// Kills it and starts it again after a while.
    pub async fn suffer_outage(self: Arc<Self>, lasting: Duration) {
        self.kills.fetch_add(1, Ordering::SeqCst);
        self.down.store(true, Ordering::SeqCst);
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.server.kill()).await.expect("killing");
        tokio::time::sleep(lasting).await;
        let server = self.clone();
        tokio::task::spawn_blocking(move || server.server.restart()).await.expect("restarting");
        self.down.store(false, Ordering::SeqCst);
    }

    /// A plain connection, and why it ended, once it has.
    pub async fn connect(
        &self,
    ) -> Result<(Client, tokio::task::JoinHandle<Option<String>>), tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.server.address(DATABASE), NoTls).await?;
        let end = tokio::spawn(async move {
            connection.await.err().and_then(|error| error.code().map(|code| code.code().to_owned()))
        });
        Ok((client, end))
    }
}

/// All servers, and the credentials for them.
pub struct World {
    global_server: PostgresServer,
    global: Location,
    pub shards: Vec<Arc<ShardServer>>,
    pub routing: Routing,
    /// A tenant of the change that is being made: where writers find trouble.
    pub hot: AtomicI64,
}

fn access() -> PostgresAccess {
    let credentials = Credentials { user: SUPERUSER.to_owned(), password: None };
    PostgresAccess::new(credentials, &Tls::Off).expect("no certificates are needed")
}

impl World {
    /// Starts the servers, and makes a map with six mappings over three shards.
    pub async fn start(mutant: &str) -> World {
        let starting = tokio::task::spawn_blocking(|| {
            let global = PostgresServer::start();
            global.create_database("global");
            (global, (0..SHARDS).map(|_| Arc::new(ShardServer::start())).collect::<Vec<_>>())
        });
        let (server, shards) = starting.await.expect("servers");
        let global = Location::postgres("127.0.0.1", server.port(), "global").expect("a place");
        let world = World {
            global_server: server,
            global,
            shards,
            routing: Routing::new(access()),
            hot: AtomicI64::new(0),
        };
        let options = world.options("who begins");
        let manager = ShardMapManager::create(world.global.clone(), CreateMode::KeepExisting, options).await;
        let map = manager.expect("a manager").create_range_map::<i64>("tenants").await.expect("a map");
        let step = TENANTS / 6;
        for (index, shard) in world.shards.iter().enumerate() {
            let made = map.create_shard(&shard.location).await.expect("a shard");
            for low in [index as i64 * 2 * step, (index as i64 * 2 + 1) * step] {
                map.add(&low, Some(&(low + step)), &made).await.expect("a mapping");
            }
            let (client, _) = shard.connect().await.expect("a connection");
            client.batch_execute(TABLES).await.expect("tables");
            let guard = "SELECT __shard_management.guard('guarded', 'tenant', 'tenants')";
            client.batch_execute(guard).await.expect("a guard");
            client.batch_execute(mutant).await.expect("a mutant");
        }
        world
    }

    fn options(&self, owner: &str) -> ManagerOptions {
        ManagerOptions {
            postgres: Some(access()),
            owner: owner.to_owned(),
            lease: LEASE,
            drain_grace: GRACE,
            ..ManagerOptions::default()
        }
    }

    /// How a role reaches the global map's database.
    pub fn global_address(&self, role: &str) -> String {
        self.global_server.address_as("global", role)
    }

    /// Runs SQL in the global map's database.
    pub fn global_sql(&self, sql: &str) -> String {
        self.global_server.sql("global", sql)
    }

    /// The map as another process has it.
    pub async fn open(&self, owner: &str) -> RangeShardMap<i64> {
        let manager =
            ShardMapManager::open(self.global.clone(), self.options(owner)).await.expect("the global map");
        manager.range_map("tenants").await.expect("the map")
    }

    /// The server at a place.
    pub fn at(&self, location: &Location) -> &Arc<ShardServer> {
        self.shards.iter().find(|shard| shard.location == *location).expect("a place of a shard")
    }
}

//! Two databases as shards, and routing over them by a list of places that a test writes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rangehold_map::shard::{MappingId, ShardKey, ShardKeyType};
use rangehold_shardmap::Location;
use rangehold_shardmap::routing::{Find, Lookup, Route, Routing, RoutingError, ShardConnection};
use uuid::Uuid;

use super::access;
use super::local::LocalMap;
use super::postgres::PostgresServer;
use super::roles::APPLICATION;

/// A place of a database behind a port: the server itself, a pooler or a proxy.
pub fn place(port: u16, database: &str) -> Location {
    Location::postgres("127.0.0.1", port, database).expect("a place")
}

/// Routing as the application.
pub fn routing() -> Routing {
    routing_of_size(rangehold_shardmap::limits::ROUTED_CONNECTIONS_PER_SHARD)
}

/// The same with a number of sessions for each shard.
pub fn routing_of_size(sessions: usize) -> Routing {
    Routing::with_size(access(APPLICATION), sessions)
}

/// What routing believes: one place for all keys, in the cache and in the global map.
pub struct Directory {
    map: Uuid,
    places: Mutex<[(Location, u128); 2]>,
    asked: [AtomicUsize; 2],
}

impl Directory {
    /// The same place in both, by mapping 1.
    pub fn new(map: Uuid, place: Location) -> Arc<Directory> {
        let places = Mutex::new([(place.clone(), 1), (place, 1)]);
        Arc::new(Directory { map, places, asked: Default::default() })
    }

    /// The global map learns of a move; the cache does not.
    pub fn moves(&self, place: Location, mapping: u128) {
        self.places.lock().unwrap()[1] = (place, mapping);
    }

    /// How often the global map was asked because the cache was wrong.
    pub fn asked_again(&self) -> usize {
        self.asked[1].load(Ordering::SeqCst)
    }

    /// As a connection wants it.
    pub fn find(self: &Arc<Self>) -> Find {
        let directory = self.clone();
        Arc::new(move |_, how| {
            let which = usize::from(how == Lookup::Fresh);
            directory.asked[which].fetch_add(1, Ordering::SeqCst);
            let (location, mapping) = directory.places.lock().unwrap()[which].clone();
            let route = Route { map: directory.map, mapping: MappingId(Uuid::from_u128(mapping)), location };
            Box::pin(async move { Ok(route) })
        })
    }

    /// Opens a connection for the key of these bytes.
    pub async fn open(
        self: &Arc<Self>,
        routing: &Routing,
        key: &[u8],
    ) -> Result<ShardConnection, RoutingError> {
        let key = ShardKey::from_raw(ShardKeyType::Binary, key).expect("a key");
        ShardConnection::open(routing, self.find(), key).await
    }
}

/// A database with a table of rows that say their key, which holds [10, 20) if it is to.
pub async fn shard(server: &PostgresServer, database: &str, holds: bool) -> LocalMap {
    let map = LocalMap::create(server, database).await;
    map.client.batch_execute("CREATE TABLE rows (key int, text text)").await.expect("a table");
    if holds {
        map.set("0a", Some("14"), true, 1).await;
    }
    map
}

//! Credentials that change while a program runs, such as tokens.

use std::sync::{Arc, Mutex};

use crate::support::postgres::PostgresServer;
use crate::support::roles::MANAGER;
use rangehold_shardmap::postgres::{Credentials, PostgresAccess, Tls};
use rangehold_shardmap::query::Readers;
use rangehold_shardmap::routing::Routing;
use rangehold_shardmap::{CreateMode, ListShardMap, Location, LookIn, ManagerOptions, ShardMapManager};

/// A program with a map, a pool of routed connections and one of readers.
struct Program {
    map: ListShardMap<i64>,
    routing: Routing,
    readers: Readers,
}

impl Program {
    /// Whether the global map, a routed connection and a query over all shards can be used.
    async fn works(&self) -> [bool; 3] {
        let looked_up = self.map.lookup(&7, LookIn::Store).await;
        let routed = async {
            let mut connection = self.map.open_connection_for_key(&7, &self.routing).await?;
            connection.query_typed("select 1", &[]).await
        };
        let read = async { self.map.query("select 1 as one").run(&self.readers).await?.all().await };
        [looked_up.is_ok(), routed.await.is_ok(), read.await.is_ok()]
    }
}

/// The function is asked with each new connection, so a token may end while the program goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_asked_for_with_each_connection() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    for name in ["global", "shard"] {
        server.create_database(name);
    }
    let rules = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    server.place_file("data/pg_hba.conf", rules);
    // Ends all sessions too.
    let gives = |token: &str| {
        server.sql("postgres", &format!("alter role {MANAGER} password '{token}'"));
        server.stop();
        server.restart();
    };
    gives("first");
    let token = Arc::new(Mutex::new("first".to_owned()));
    let of_program = token.clone();
    let credentials = move |_: &Location| {
        let password = Some(of_program.lock().unwrap().clone());
        Credentials { user: MANAGER.to_owned(), password }
    };
    let access = PostgresAccess::by_location(credentials, &Tls::Off).unwrap();
    let options = ManagerOptions { postgres: Some(access.clone()), ..ManagerOptions::default() };
    let place = |name: &str| Location::postgres("127.0.0.1", server.port(), name).unwrap();
    let manager = ShardMapManager::create(place("global"), CreateMode::KeepExisting, options).await.unwrap();
    let map = manager.create_list_map::<i64>("tenants").await.unwrap();
    map.add(&7, &map.create_shard(&place("shard")).await.unwrap()).await.unwrap();
    let program = Program { map, routing: Routing::new(access.clone()), readers: Readers::new(Some(access)) };
    assert_eq!(program.works().await, [true; 3]);
    gives("second");
    assert_eq!(program.works().await, [false; 3]);
    *token.lock().unwrap() = "second".to_owned();
    assert_eq!(program.works().await, [true; 3]);
}

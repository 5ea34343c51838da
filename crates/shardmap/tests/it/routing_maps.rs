//! Connections that shard maps open: on both databases, over TLS, and with credentials that may only route.

use std::time::Duration;

use crate::support::postgres::PostgresServer;
use crate::support::roles::{APPLICATION, MANAGER};
use crate::support::routed::routing;
use crate::support::stores::World;
use rangehold_shardmap::postgres::{Credentials, PostgresAccess, Roots, Tls};
use rangehold_shardmap::routing::{Isolation, Retry, Routing, RoutingError};
use rangehold_shardmap::{
    Code, ListShardMap, Location, ManagerOptions, MappingChange, RangeShardMap, Shard, ShardMapManager,
};

/// A map with [0, 100) on the first of two shards.
async fn map(manager: &ShardMapManager, places: &[Location; 2]) -> (RangeShardMap<i64>, [Shard; 2]) {
    let map = manager.create_range_map::<i64>("tenants").await.unwrap();
    let shards = [map.create_shard(&places[0]).await.unwrap(), map.create_shard(&places[1]).await.unwrap()];
    map.add(&0, Some(&100), &shards[0]).await.unwrap();
    (map, shards)
}

#[tokio::test]
async fn sqlite_connections_follow_their_key() {
    let world = World::sqlite();
    let manager = world.manager().await;
    let places = world.shards::<2>();
    let (map, shards) = map(&manager, &places).await;
    let mut connection = map.open_sqlite_connection_for_key(&7).await.unwrap();
    let insert = |tx: &rusqlite::Transaction<'_>| tx.execute("insert into orders values (7, 'routed')", []);
    assert_eq!(connection.transaction(false, insert).await.unwrap(), 1);
    let refused = connection.transaction(true, insert).await.unwrap_err();
    assert!(matches!(refused, RoutingError::Sqlite { .. }), "{refused:?}");
    let undone =
        connection.transaction(false, move |tx| insert(tx).and_then(|_| tx.execute("nonsense", []))).await;
    assert_eq!(undone.unwrap_err().retry(), Retry::Never);

    let offline = map.offline(&map.get(&7).await.unwrap()).await.unwrap();
    let refused = connection.transaction(false, insert).await.unwrap_err();
    assert!(matches!(refused, RoutingError::Offline { .. }), "{refused:?}");
    let change = MappingChange { online: Some(true), shard: Some(&shards[1]) };
    map.update(&offline, change).await.unwrap();
    assert_eq!(connection.transaction(false, insert).await.unwrap(), 1);
    assert_eq!(connection.location(), &places[1]);
    let count = "select count(*) from orders where note = 'routed'";
    assert_eq!(
        (world.sql(&places[0], count), world.sql(&places[1], count)),
        ("1".to_owned(), "1".to_owned())
    );

    let spent = connection.transaction(false, |tx| tx.execute_batch("commit")).await.unwrap_err();
    assert!(matches!(spent, RoutingError::Spent { .. }), "{spent:?}");
    let nobodys = map.open_sqlite_connection_for_key(&100).await.unwrap_err();
    assert!(matches!(nobodys, RoutingError::Map(error) if error.code() == Code::MappingNotFoundForKey));
}

/// Acceptance 62, 63, 83, 84: who goes offline ends those transactions that are on its keys, and only them.
#[tokio::test]
async fn going_offline_ends_the_transactions_on_its_keys_alone() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let manager = world.manager().await;
    let (map, _) = map(&manager, &world.shards::<2>()).await;
    let map = map.with_grace(Duration::from_millis(200));
    let [left, _] = map.split(&map.get(&7).await.unwrap(), &50).await.unwrap();
    let routing = routing();
    let open = async |key: i64| map.open_connection_for_key(&key, &routing).await.unwrap();
    let (mut idle, mut busy, mut waiting, mut other) =
        (open(7).await, open(7).await, open(7).await, open(70).await);
    idle.query_typed("select 1", &[]).await.unwrap();
    let mut waits = waiting.transaction(Isolation::ReadCommitted, false);
    waits.query_typed("select 1", &[]).await.unwrap();
    let mut others = other.transaction(Isolation::RepeatableRead, false);
    others.execute_typed("insert into orders values (70, 'other')", &[]).await.unwrap();
    let mut works = busy.transaction(Isolation::RepeatableRead, false);
    works.query_typed("select 1", &[]).await.unwrap();

    let (offline, cancelled) =
        tokio::join!(map.offline(&left), works.query_typed("select pg_sleep(60)", &[]));
    offline.unwrap();
    let cancelled = cancelled.unwrap_err();
    assert_eq!((cancelled.sqlstate(), cancelled.retry()), (Some("57014"), Retry::Again));
    // Idle inside of a transaction it could not be cancelled, so its session was ended.
    let ended = waits.query_typed("select 1", &[]).await.unwrap_err();
    assert_eq!(ended.retry(), Retry::Again, "{ended:?}");
    drop(waits);
    drop(works);
    // The other half of the interval is not concerned, nor is a session without a transaction.
    others.commit().await.unwrap();
    let refused = idle.query_typed("select 1", &[]).await.unwrap_err();
    assert!(matches!(refused, RoutingError::Offline { .. }), "{refused:?}");
    map.online(&map.get(&7).await.unwrap()).await.unwrap();
    idle.query_typed("select 1", &[]).await.unwrap();
    waiting.query_typed("select 1", &[]).await.unwrap();
    assert!(manager.metrics().routed_connections.get() >= 4);
}

/// Without a drain nobody is ended; but keys do not go to another shard while somebody is on them.
#[tokio::test]
async fn keys_do_not_leave_before_the_last_transaction_on_them() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let manager = world.manager().await;
    let (map, shards) = map(&manager, &world.shards::<2>()).await;
    let map = map.without_drain();
    let routing = routing();
    let mut connection = map.open_connection_for_key(&7, &routing).await.unwrap();
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed("insert into orders values (7, 'slow')", &[]).await.unwrap();
    let offline = map.offline(&map.get(&7).await.unwrap()).await.unwrap();
    let change = MappingChange { online: Some(true), shard: Some(&shards[1]) };
    let moving = map.update(&offline, change);
    tokio::pin!(moving);
    tokio::time::timeout(Duration::from_millis(500), &mut moving)
        .await
        .expect_err("it moved under a transaction");
    transaction.commit().await.unwrap();
    moving.await.unwrap();
}

/// Acceptance 98-101, as far as no minutes need to pass: how pauses grow is tested in `routing.rs`.
#[tokio::test]
async fn a_dead_shard_costs_one_lookup_and_a_living_one_none() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let manager = world.manager().await;
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    server.create_database("lonely");
    let map = manager.create_list_map::<i64>("tenants").await.unwrap();
    let place = Location::postgres("127.0.0.1", server.port(), "lonely").unwrap();
    let mapping = map.add(&7, &map.create_shard(&place).await.unwrap()).await.unwrap();
    let routing = routing();
    server.kill();
    let before = manager.metrics().global_lookups.get();
    for _ in 0..10 {
        let error = map.open_connection_for_key(&7, &routing).await.unwrap_err();
        assert!(matches!(error, RoutingError::Unreachable { .. }), "{error:?}");
    }
    assert_eq!(manager.metrics().global_lookups.get() - before, 1);
    assert_eq!(routing.pause(mapping.id()), Duration::from_secs(5));
    server.restart();
    let mut connection = map.open_connection_for_key(&7, &routing).await.unwrap();
    connection.query_typed("select 1", &[]).await.unwrap();
    assert_eq!(routing.pause(mapping.id()), Duration::ZERO);
    assert_eq!(manager.metrics().global_lookups.get() - before, 1);
}

/// A role for routing: it reads the global map, and in the shards it has its own table and nothing else.
#[tokio::test]
async fn routing_credentials_need_only_read_the_global_map() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let manager = world.manager().await;
    let places = world.shards::<2>();
    let (managed, _) = map(&manager, &places).await;
    world.sql(&places[0], &format!("revoke select on orders from {APPLICATION}"));
    let options = world.options_of(APPLICATION);
    let reader = ShardMapManager::open(manager.location().clone(), options).await.unwrap();
    let tenants = reader.range_map::<i64>("tenants").await.unwrap();
    let mut connection = tenants.open_connection_for_key(&7, &routing()).await.unwrap();
    connection.execute_typed("insert into orders values (7, 'routed')", &[]).await.unwrap();
    let refused = connection.query_typed("select * from orders", &[]).await.unwrap_err();
    assert_eq!((refused.sqlstate(), refused.retry()), (Some("42501"), Retry::Never));
    let stranger = Credentials { user: "nobody".to_owned(), password: None };
    let stranger = Routing::new(PostgresAccess::new(stranger, &Tls::Off).unwrap());
    let refused = tenants.open_connection_for_key(&7, &stranger).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Never, "{refused:?}");
    tenants.offline(&tenants.get(&7).await.unwrap()).await.unwrap_err();
    assert!(managed.get(&7).await.unwrap().is_online());
}

/// TLS with the server's certificate verified: the fence rides above it.
#[tokio::test]
async fn connections_go_over_tls() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start_with(&[]);
    for name in ["global", "a"] {
        server.create_database(name);
    }
    server.demand_tls(&made.cert.pem(), &made.signing_key.serialize_pem(), "trust");

    let roots = server.directory().join("data/server.crt");
    let credentials = Credentials { user: MANAGER.to_owned(), password: None };
    let access = |tls: &Tls| PostgresAccess::new(credentials.clone(), tls).unwrap();
    let place = |name: &str| Location::postgres("localhost", server.port(), name).unwrap();
    let tls = Tls::VerifyFull(Roots::File(roots));
    let options = ManagerOptions { postgres: Some(access(&tls)), ..ManagerOptions::default() };
    let manager =
        ShardMapManager::create(place("global"), rangehold_shardmap::CreateMode::KeepExisting, options).await;
    let map: ListShardMap<i64> = manager.unwrap().create_list_map("tenants").await.unwrap();
    map.add(&7, &map.create_shard(&place("a")).await.unwrap()).await.unwrap();
    let mut connection = map.open_connection_for_key(&7, &Routing::new(access(&tls))).await.unwrap();
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    assert!(connection.query_typed(sql, &[]).await.unwrap()[0].get::<_, bool>(0));
    // The server refuses us in the clear; we refuse it under a name that its certificate does not have.
    let tls = || ManagerOptions { postgres: Some(access(&tls)), ..ManagerOptions::default() };
    let elsewhere = Location::postgres("127.0.0.1", server.port(), "global").unwrap();
    ShardMapManager::open(place("global"), tls()).await.unwrap();
    ShardMapManager::open(elsewhere, tls()).await.unwrap_err();
    let clear = map.open_connection_for_key(&7, &Routing::new(access(&Tls::Off))).await.unwrap_err();
    assert!(matches!(clear, RoutingError::Unreachable { .. }), "{clear:?}");
    let system = PostgresAccess::new(credentials.clone(), &Tls::VerifyFull(Roots::System));
    if let Ok(system) = system {
        map.open_connection_for_key(&7, &Routing::new(system)).await.unwrap_err();
    }
}

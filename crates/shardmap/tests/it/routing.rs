//! Connections for a key: fenced in the same round trip, rerouted once without a word, and never able to run
//! a statement outside of the fence.

use std::time::Duration;

use crate::support::local::LocalMap;
use crate::support::postgres::PostgresServer;
use crate::support::proxy::Proxy;
use crate::support::routed::{Directory, place, routing, routing_of_size, shard};
use bytes::Bytes;
use rangehold_shardmap::routing::{Isolation, Retry, RoutingError, ShardConnection, ShardTransaction, Typed};
use rangehold_testkit::pooler::Pooler;
use tokio_postgres::types::Type;

const KEY: &[u8] = &[12];
const INSERT: &str = "INSERT INTO rows VALUES ($1, $2)";

fn row<'a>(key: &'a i32, text: &'a &'a str) -> [Typed<'a>; 2] {
    [(key, Type::INT4), (text, Type::TEXT)]
}

/// A shard that holds [`KEY`], and a connection for that key.
struct Routed {
    _server: PostgresServer,
    map: LocalMap,
    connection: ShardConnection,
}

impl Routed {
    async fn new() -> Self {
        let server = PostgresServer::start();
        let map = shard(&server, "a", true).await;
        let directory = Directory::new(map.id, place(server.port(), "a"));
        let connection = directory.open(&routing(), KEY).await.unwrap();
        Self { _server: server, map, connection }
    }
}

/// Takes the mapping of the key offline, or back online.
async fn set_online(map: &LocalMap, online: bool) {
    map.set("0a", Some("14"), online, 1).await;
}

fn is_offline(error: RoutingError, after: &str) {
    assert!(matches!(error, RoutingError::Offline { .. }), "{after}: {error:?}");
    assert_eq!(error.retry(), Retry::Again, "{after}");
}

/// The transaction is over, and a statement in it is refused.
async fn is_spent(transaction: &mut ShardTransaction<'_>, after: &str) {
    let error = transaction.execute_typed(INSERT, &row(&1, &after)).await.unwrap_err();
    assert!(matches!(error, RoutingError::Spent { .. }), "{after}: {error:?}");
}

#[tokio::test]
async fn all_doors_lead_to_the_shard_of_the_key() {
    rangehold_testkit::needs!(PostgreSql);
    let Routed { _server, map, mut connection } = Routed::new().await;
    assert_eq!(connection.execute_typed(INSERT, &row(&1, &"alone")).await.unwrap(), 1);
    assert_eq!(connection.execute(INSERT, &[&2, &"prepared"]).await.unwrap(), 1);
    let rows = connection.query_typed("SELECT key FROM rows ORDER BY key", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 2]);
    assert_eq!(connection.query("SELECT $1::int", &[&5]).await.unwrap()[0].get::<_, i32>(0), 5);

    let mut transaction = connection.transaction(Isolation::Serializable, false);
    let mut copy = transaction.copy_in("COPY rows FROM STDIN").await.unwrap();
    copy.send(Bytes::from_static(b"3\tcopied\n4\tcopied\n")).await.unwrap();
    assert_eq!(copy.finish().await.unwrap(), 2);
    let statement = transaction.prepare("SELECT count(*) FROM rows").await.unwrap();
    assert_eq!(transaction.query(&statement, &[]).await.unwrap()[0].get::<_, i64>(0), 4);
    let mut copy = transaction.copy_out("COPY (SELECT key FROM rows ORDER BY key) TO STDOUT").await.unwrap();
    let mut text = Vec::new();
    while let Some(piece) = copy.next().await.unwrap() {
        text.extend_from_slice(&piece);
    }
    assert_eq!(text, b"1\n2\n3\n4\n");
    transaction.commit().await.unwrap();

    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed(INSERT, &row(&5, &"dropped")).await.unwrap();
    drop(transaction);
    let mut transaction = connection.transaction(Isolation::RepeatableRead, true);
    let refused = transaction.execute_typed(INSERT, &row(&5, &"read only")).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("25006"));
    transaction.rollback().await.unwrap();
    assert_eq!(map.count().await, 4);
}

#[tokio::test]
async fn a_key_that_has_moved_is_followed_once_and_silently() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (old, new) = (shard(&server, "old", false).await, shard(&server, "new", true).await);
    for single in [true, false] {
        let directory = Directory::new(old.id, place(server.port(), "old"));
        directory.moves(place(server.port(), "new"), 2);
        let routing = routing();
        let mut connection = directory.open(&routing, KEY).await.unwrap();
        if single {
            connection.execute_typed(INSERT, &row(&1, &"moved")).await.unwrap();
        } else {
            let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
            transaction.execute(INSERT, &[&2, &"moved"]).await.unwrap();
            transaction.commit().await.unwrap();
        }
        assert_eq!(connection.location(), &place(server.port(), "new"));
        assert_eq!(directory.asked_again(), 1);
    }
    assert_eq!((old.count().await, new.count().await), (0, 2));

    // Where nobody has it, that is said, and it is said to be worth another try.
    let directory = Directory::new(old.id, place(server.port(), "old"));
    let mut connection = directory.open(&routing(), KEY).await.unwrap();
    let error = connection.execute_typed(INSERT, &row(&1, &"nowhere")).await.unwrap_err();
    assert!(matches!(error, RoutingError::NotHere { .. }), "{error:?}");
    assert_eq!((error.retry(), error.sqlstate()), (Retry::Again, Some("RH001")));
    assert_eq!(old.count().await, 0);
}

#[tokio::test]
async fn an_idle_connection_outlives_an_offline_mapping() {
    rangehold_testkit::needs!(PostgreSql);
    let Routed { _server, map, mut connection } = Routed::new().await;
    let pid = "SELECT pg_backend_pid()";
    let before: i32 = connection.query_typed(pid, &[]).await.unwrap()[0].get(0);
    set_online(&map, false).await;
    is_offline(connection.query_typed(pid, &[]).await.unwrap_err(), "when idle");
    set_online(&map, true).await;
    assert_eq!(connection.query_typed(pid, &[]).await.unwrap()[0].get::<_, i32>(0), before);
}

/// Whatever a transaction went through, no statement runs without the fence.
#[tokio::test]
async fn there_is_no_way_out_of_the_fence() {
    rangehold_testkit::needs!(PostgreSql);
    let Routed { _server, map, mut connection } = Routed::new().await;

    for ending in ["COMMIT", "ROLLBACK"] {
        let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
        transaction.execute_typed("SELECT 1", &[]).await.unwrap();
        let _ = transaction.execute_typed(ending, &[]).await;
        is_spent(&mut transaction, ending).await;
        transaction.commit().await.unwrap_err();
    }
    for chained in ["COMMIT AND CHAIN", "ROLLBACK AND CHAIN"] {
        let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
        transaction.execute_typed("SELECT 1", &[]).await.unwrap();
        set_online(&map, false).await;
        transaction.execute_typed(chained, &[]).await.unwrap();
        is_offline(transaction.execute_typed(INSERT, &row(&1, &"chained")).await.unwrap_err(), chained);
        set_online(&map, true).await;
    }
    // A commit that fails has ended the transaction too.
    map.client.batch_execute("CREATE TABLE u (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)").await.unwrap();
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed("INSERT INTO u VALUES (1), (1)", &[]).await.unwrap();
    assert_eq!(transaction.execute_typed("COMMIT", &[]).await.unwrap_err().sqlstate(), Some("23505"));
    is_spent(&mut transaction, "after a failed commit").await;
    drop(transaction);
    let failed = connection.execute_typed("INSERT INTO u VALUES (1), (1)", &[]).await.unwrap_err();
    assert_eq!(failed.sqlstate(), Some("23505"), "a commit that rides behind says why it failed");

    // The first statement is given up amid its flight.
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    let slow = transaction.execute_typed("SELECT pg_sleep(2)", &[]);
    tokio::time::timeout(Duration::from_millis(50), slow).await.unwrap_err();
    is_spent(&mut transaction, "after a given-up first").await;
    drop(transaction);
    assert_eq!(map.count().await, 0);

    // A later one: the transaction is known to be open, and goes on.
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed(INSERT, &row(&1, &"before")).await.unwrap();
    let slow = transaction.execute_typed("SELECT pg_sleep(2)", &[]);
    tokio::time::timeout(Duration::from_millis(50), slow).await.unwrap_err();
    transaction.execute_typed(INSERT, &row(&2, &"after")).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(map.count().await, 2);

    // Savepoints work as ever.
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed("SAVEPOINT s", &[]).await.unwrap();
    transaction.execute_typed("SELECT 1/0", &[]).await.unwrap_err();
    is_spent(&mut transaction, "failed").await;
    transaction.execute_typed("ROLLBACK TO SAVEPOINT s", &[]).await.unwrap();
    transaction.execute_typed(INSERT, &row(&3, &"saved")).await.unwrap();
    transaction.commit().await.unwrap();
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed("SELECT 1", &[]).await.unwrap();
    transaction.execute_typed("SELECT 1/0", &[]).await.unwrap_err();
    assert!(matches!(transaction.commit().await, Err(RoutingError::Spent { .. })));
    assert_eq!(map.count().await, 3);
}

#[tokio::test]
async fn a_dropped_transaction_frees_the_fence_at_once() {
    rangehold_testkit::needs!(PostgreSql);
    let Routed { _server, map, mut connection } = Routed::new().await;
    let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
    transaction.execute_typed("SELECT 1", &[]).await.unwrap();
    assert_eq!(map.holders(&[1]).await.len(), 1);
    drop(transaction);
    // The connection is neither used nor dropped meanwhile.
    while !map.holders(&[1]).await.is_empty() {
        tokio::task::yield_now().await;
    }
    connection.execute_typed(INSERT, &row(&1, &"next")).await.unwrap();
}

#[tokio::test]
async fn fenced_takes_as_many_round_trips_as_unfenced() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let proxy = Proxy::start(server.port()).await;
    let directory = Directory::new(map.id, place(proxy.port(), "a"));
    let routing = routing();
    let mut connection = directory.open(&routing, KEY).await.unwrap();

    let before = proxy.round_trips();
    connection.execute_typed(INSERT, &row(&1, &"fenced")).await.unwrap();
    let fenced = proxy.round_trips() - before;
    let before = proxy.round_trips();
    connection.unfenced().await.unwrap().execute_typed(INSERT, &row(&1, &"unfenced")).await.unwrap();
    assert_eq!((fenced, proxy.round_trips() - before), (1, 1), "single statements");
    connection.execute_typed("SELECT 1", &[]).await.unwrap(); // settles what was lent out

    let before = proxy.round_trips();
    let mut transaction = connection.transaction(Isolation::RepeatableRead, false);
    transaction.execute_typed(INSERT, &row(&1, &"fenced")).await.unwrap();
    transaction.execute_typed(INSERT, &row(&1, &"fenced")).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(
        proxy.round_trips() - before,
        3,
        "two statements and a commit; BEGIN and the fence ride along"
    );
    assert_eq!(map.count().await, 4);
}

#[tokio::test]
async fn all_of_it_passes_a_pooler_in_transaction_mode() {
    rangehold_testkit::needs!(PostgreSql, PgBouncer);
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let pooler = Pooler::start(&server);
    let directory = Directory::new(map.id, place(pooler.port(), "a"));
    let routing = routing();
    let mut connections = Vec::new();
    for _ in 0..6 {
        connections.push(directory.open(&routing, KEY).await.unwrap());
    }
    // Six clients over two sessions.
    let work = connections.into_iter().map(|mut connection| async move {
        for _ in 0..20 {
            connection.execute_typed(INSERT, &row(&1, &"pooled")).await.unwrap();
            connection.execute(INSERT, &[&2, &"pooled"]).await.unwrap();
            let mut transaction = connection.transaction(Isolation::RepeatableRead, false);
            transaction.execute_typed(INSERT, &row(&3, &"pooled")).await.unwrap();
            let mut copy = transaction.copy_in("COPY rows FROM STDIN").await.unwrap();
            copy.send(Bytes::from_static(b"4\tpooled\n")).await.unwrap();
            copy.finish().await.unwrap();
            transaction.commit().await.unwrap();
            connection.execute_typed("SELECT 1/0", &[]).await.unwrap_err();
        }
        connection
    });
    let mut connections = futures::future::join_all(work).await;
    assert_eq!(map.count().await, 6 * 20 * 4);
    set_online(&map, false).await;
    is_offline(connections[0].execute_typed(INSERT, &row(&1, &"offline")).await.unwrap_err(), "pooled");
}

/// Set for the two programs of [`two_programs_share_the_sessions_of_a_pooler`]: the port of the pooler.
const POOLER_PORT: &str = "RANGEHOLD_TEST_POOLER_PORT";

/// The names that the driver gives to statements begin with the same number in each process.
#[tokio::test]
async fn two_programs_share_the_sessions_of_a_pooler() {
    rangehold_testkit::needs!(PostgreSql, PgBouncer);
    if let Ok(port) = std::env::var(POOLER_PORT) {
        return pooled_program(port.parse().unwrap()).await;
    }
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let pooler = Pooler::start(&server);
    let start = || {
        let mut program = tokio::process::Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "routing::two_programs_share_the_sessions_of_a_pooler"]);
        program.env(POOLER_PORT, pooler.port().to_string()).kill_on_drop(true).output()
    };
    let (one, two) = tokio::join!(start(), start());
    for program in [one.unwrap(), two.unwrap()] {
        let said = String::from_utf8_lossy(&program.stdout);
        assert!(program.status.success(), "{said}\nThe pooler noted:\n{}", pooler.log());
    }
    assert_eq!(map.count().await, 2 * 3 * 20 * 3);
}

/// Three connections at once, with statements that the driver prepares.
async fn pooled_program(port: u16) {
    let directory = Directory::new(uuid::Uuid::from_u128(1), place(port, "a"));
    let routing = routing();
    let work = (0..3).map(|number| {
        let (directory, routing) = (directory.clone(), routing.clone());
        async move {
            let mut connection = directory.open(&routing, KEY).await.unwrap();
            let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
            let kept = transaction.prepare(INSERT).await.unwrap();
            transaction.commit().await.unwrap();
            for _ in 0..20 {
                assert_eq!(connection.execute(INSERT, &[&number, &"alone"]).await.unwrap(), 1);
                let rows = connection.query("SELECT $1::int", &[&number]).await.unwrap();
                assert_eq!(rows[0].get::<_, i32>(0), number);
                let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
                let query = transaction.prepare("SELECT $1::int + 1").await.unwrap();
                transaction.execute(&kept, &[&number, &"kept"]).await.unwrap();
                let rows = transaction.query(&query, &[&number]).await.unwrap();
                assert_eq!(rows[0].get::<_, i32>(0), number + 1);
                transaction.execute(&kept, &[&number, &"kept"]).await.unwrap();
                transaction.commit().await.unwrap();
            }
        }
    });
    futures::future::join_all(work).await;
}

/// What one key can leave in a session: a setting, a temporary table, a lock of the session, a cursor.
const LEAVE: [&str; 4] = [
    "SELECT set_config('shop.tenant', '12', false)",
    "CREATE TEMPORARY TABLE secrets AS SELECT 12 AS tenant",
    "SELECT pg_advisory_lock(12)",
    "DECLARE mine CURSOR WITH HOLD FOR SELECT 12",
];
/// All of it that a session still has, and the session.
const LEFT: &str = "SELECT concat(current_setting('shop.tenant', true),
        (SELECT string_agg(relname, '') FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'),
        (SELECT string_agg(objid::text, '') FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'
            AND classid = 0),
        (SELECT string_agg(name, '') FROM pg_cursors WHERE is_holdable)),
    pg_backend_pid()";

#[tokio::test]
async fn what_one_key_leaves_in_a_session_is_gone_for_the_next() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let directory = Directory::new(map.id, place(server.port(), "a"));
    let routing = routing_of_size(1);
    let left = async |key: &[u8]| {
        let mut connection = directory.open(&routing, key).await.unwrap();
        let row = connection.query_typed(LEFT, &[]).await.unwrap().remove(0);
        (row.get::<_, String>(0), row.get::<_, i32>(1))
    };
    let (_, session) = left(&[13]).await;
    for way in ["statements", "a transaction", "given up", "unfenced"] {
        let mut connection = directory.open(&routing, KEY).await.unwrap();
        if way == "unfenced" {
            connection.unfenced().await.unwrap().batch_execute(&LEAVE.join(";")).await.unwrap();
        } else if way == "statements" {
            for statement in LEAVE {
                connection.execute_typed(statement, &[]).await.unwrap();
            }
            let row = connection.query_typed(LEFT, &[]).await.unwrap().remove(0);
            assert_eq!(row.get::<_, String>(0), "12secrets12mine", "the same key keeps it");
        } else {
            let mut transaction = connection.transaction(Isolation::ReadCommitted, false);
            for statement in LEAVE {
                transaction.execute_typed(statement, &[]).await.unwrap();
            }
            if way == "a transaction" {
                transaction.commit().await.unwrap();
            }
        }
        drop(connection);
        assert_eq!(left(&[13]).await, (String::new(), session), "{way}");
    }
}

/// A pooler gives each transaction another session. Only the pooler can clean it after each one.
#[tokio::test]
async fn a_pooler_that_cleans_its_sessions_keeps_keys_apart() {
    rangehold_testkit::needs!(PostgreSql, PgBouncer);
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let pooler = Pooler::start_with(&server, "server_reset_query_always = 1");
    let directory = Directory::new(map.id, place(pooler.port(), "a"));
    let routing = routing();
    let (mut one, mut next) =
        (directory.open(&routing, KEY).await.unwrap(), directory.open(&routing, &[13]).await.unwrap());
    let mut sessions = std::collections::BTreeSet::new();
    for _ in 0..10 {
        for statement in LEAVE {
            one.execute(statement, &[]).await.unwrap();
        }
        let row = next.query(LEFT, &[]).await.unwrap().remove(0);
        assert_eq!(row.get::<_, String>(0), "");
        sessions.insert(row.get::<_, i32>(1));
        let shared: i32 = one.query("SELECT pg_backend_pid()", &[]).await.unwrap()[0].get(0);
        sessions.insert(shared);
    }
    assert!(sessions.len() <= 2, "the pooler has two sessions for both keys");
}

/// Acceptance 98-101 (by what a connection does; on the shard map's own cache in its tests).
#[tokio::test(start_paused = true)]
async fn a_dead_shard_does_not_hammer_the_global_map() {
    let nobody = rangehold_testkit::ports::free_port();
    let directory = Directory::new(uuid::Uuid::nil(), place(nobody, "a"));
    let routing = routing();
    let mapping = rangehold_map::shard::MappingId(uuid::Uuid::from_u128(1));
    for _ in 0..10 {
        let error = directory.open(&routing, KEY).await.unwrap_err();
        assert!(matches!(error, RoutingError::Unreachable { .. }), "{error:?}");
        assert_eq!(error.retry(), Retry::Again);
    }
    assert_eq!((directory.asked_again(), routing.pause(mapping)), (1, Duration::from_secs(5)));
    tokio::time::advance(Duration::from_secs(6)).await;
    directory.open(&routing, KEY).await.unwrap_err();
    assert_eq!((directory.asked_again(), routing.pause(mapping)), (2, Duration::from_secs(10)));
}

//! What other programs use: keys encoded by the database, and the guard of tables.

use crate::support::local::{LocalMap, connect};
use crate::support::postgres::PostgresServer;
use rangehold_map::shard::{
    DateTime, DateTimeOffset, OrderedUuid, ShardKey, ShardKeyType, ShardKeyValue, TimeSpan,
};
use tokio_postgres::Client;
use uuid::Uuid;

/// The SQLSTATE of a statement, or `ok`.
async fn outcome(client: &Client, sql: &str) -> String {
    match client.batch_execute(sql).await {
        Ok(()) => "ok".to_owned(),
        Err(error) => error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()),
    }
}

/// A value in SQL and the key that it is in Rust.
fn same() -> Vec<(String, ShardKey)> {
    let mut same = Vec::new();
    for number in [i32::MIN, i32::MIN + 1, -1, 0, 1, 77, i32::MAX] {
        same.push((format!("({number})::bigint"), number.to_key().unwrap()));
    }
    for number in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
        same.push((format!("('{number}')::bigint"), number.to_key().unwrap()));
    }
    for text in ["a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "00000000-0000-0000-0000-000000000000"] {
        same.push((format!("'{text}'::uuid"), Uuid::parse_str(text).unwrap().to_key().unwrap()));
        same.push((format!("'{text}'::uuid"), OrderedUuid(Uuid::parse_str(text).unwrap()).to_key().unwrap()));
    }
    for bytes in ["", "01", "0100", "00ff0000"] {
        let raw: Vec<u8> =
            (0..bytes.len() / 2).map(|i| u8::from_str_radix(&bytes[2 * i..2 * i + 2], 16).unwrap()).collect();
        let key = ShardKey::from_raw(ShardKeyType::Binary, &raw).unwrap();
        same.push((format!("'\\x{bytes}'::bytea"), key));
    }
    for text in ["", "a", "Ünï😀"] {
        same.push((format!("'{text}'::text"), text.to_owned().to_key().unwrap()));
    }
    for (year, month, day) in [(1, 1, 1), (1900, 1, 1), (2024, 2, 29), (9999, 12, 31)] {
        let date = DateTime::from_date(year, month, day).unwrap();
        let text = format!("{year:04}-{month:02}-{day:02}");
        same.push((format!("'{text}'::timestamp"), date.to_key().unwrap()));
        let instant = DateTimeOffset::new(date, TimeSpan(0));
        same.push((format!("'{text} 02:00:00+02'::timestamptz"), instant.to_key().unwrap()));
    }
    for ticks in [-10, 0, 10, 864_000_000_000] {
        same.push((format!("interval '{} microseconds'", ticks / 10), TimeSpan(ticks).to_key().unwrap()));
    }
    same
}

#[tokio::test]
async fn the_database_encodes_keys_as_we_do() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let map = LocalMap::create(&server, "keys").await;
    for (sql, key) in same() {
        let encode = "SELECT __shard_management.encode_key";
        // A constant type and a value that is read: what is never called may not be called in planning either.
        let read = format!(
            "{encode}('{}', read.value) FROM (SELECT {sql} OFFSET 0) AS read (value)",
            key.key_type()
        );
        for sql in [format!("{encode}('{}', {sql})", key.key_type()), read] {
            let encoded: Vec<u8> =
                map.client.query_one(&sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0);
            assert_eq!(encoded, key.raw(), "{sql}");
        }
    }
    for (sql, refused) in [
        ("encode_key('int64', 'x'::text)", "RH004"),
        ("encode_key('guid', 1)", "RH004"),
        ("encode_key('int32', 2147483648)", "RH004"),
        ("encode_key('binary', decode(repeat('ff', 129), 'hex'))", "RH004"),
        ("encode_key('text', repeat('x', 129))", "RH004"),
        ("encode_key('date-time', '10000-01-01'::timestamp)", "RH004"),
        ("encode_key('date-time', '0001-01-01 BC'::timestamp)", "RH004"),
        ("encode_key('date-time-offset', 'infinity'::timestamptz)", "RH004"),
        ("encode_key('time-span', interval '1 month')", "RH004"),
    ] {
        assert_eq!(outcome(&map.client, &format!("SELECT __shard_management.{sql}")).await, refused, "{sql}");
    }
}

/// A map of int64 keys with [10, 20) online, [20, 30) offline.
async fn guarded(server: &PostgresServer, database: &str) -> LocalMap {
    let map = LocalMap::create_of_type(server, database, "int64").await;
    map.set("800000000000000a", Some("8000000000000014"), true, 1).await;
    map.set("8000000000000014", Some("800000000000001e"), false, 2).await;
    let sql = "CREATE TABLE orders (tenant_id int, n int); INSERT INTO orders VALUES (40, 0), (20, 0);
        SELECT __shard_management.guard('orders', 'tenant_id', 'tenants')";
    map.client.batch_execute(sql).await.unwrap();
    map
}

#[tokio::test]
async fn a_guarded_table_refuses_writes_of_keys_that_are_not_here() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let map = guarded(&server, "a").await;
    for (sql, expected) in [
        ("INSERT INTO orders VALUES (10, 1), (19, 1)", "ok"),
        ("INSERT INTO orders VALUES (10, 1), (9, 1)", "RH001"),
        ("INSERT INTO orders VALUES (20, 1)", "RH002"),
        ("INSERT INTO orders VALUES (NULL, 1)", "RH004"),
        ("UPDATE orders SET n = 2 WHERE tenant_id < 20", "ok"),
        ("UPDATE orders SET tenant_id = 30 WHERE tenant_id = 10", "RH001"),
        ("UPDATE orders SET tenant_id = 11 WHERE tenant_id = 40", "RH001"),
        ("UPDATE orders SET tenant_id = 11 WHERE tenant_id = 10", "ok"),
        ("DELETE FROM orders WHERE tenant_id = 40", "RH001"),
        ("DELETE FROM orders WHERE tenant_id = 19", "ok"),
        ("TRUNCATE orders", "RH006"),
        (
            "SET session_replication_role = replica; DELETE FROM orders WHERE tenant_id = 40; RESET session_replication_role",
            "ok",
        ),
        ("SELECT __shard_management.enter('tenants', 10)", "ok"),
        ("SELECT __shard_management.enter('TENANTS', 10::smallint)", "ok"),
        ("SELECT __shard_management.enter('tenants', 20)", "RH002"),
        ("SELECT __shard_management.enter('nobodys', 10)", "RH003"),
        ("SELECT __shard_management.enter('tenants', 'ten')", "RH004"),
        ("SELECT __shard_management.enter('tenants', NULL::bigint)", "RH004"),
        (
            "UPDATE __shard_management.local_maps SET name = 'Ärzte'; SELECT __shard_management.enter('ÄRZTE', 10);
            UPDATE __shard_management.local_maps SET name = 'Tenants'",
            "ok",
        ),
        // In lower case this letter has two characters.
        (
            "UPDATE __shard_management.local_maps SET name = 'İl'; SELECT __shard_management.enter('İL', 10);
            UPDATE __shard_management.local_maps SET name = 'Tenants'",
            "ok",
        ),
        (
            "CREATE TABLE cut (tenant_id bigint) PARTITION BY LIST (tenant_id);
            CREATE TABLE cut_10 PARTITION OF cut FOR VALUES IN (10);
            SELECT __shard_management.guard('cut', 'tenant_id', 'tenants');
            INSERT INTO cut_10 VALUES (10); TRUNCATE cut_10",
            "RH006",
        ),
        (
            "CREATE TABLE parent (tenant_id bigint); CREATE TABLE child () INHERITS (parent);
            SELECT __shard_management.guard('parent', 'tenant_id', 'tenants');
            INSERT INTO child VALUES (10); INSERT INTO child VALUES (9)",
            "RH001",
        ),
        ("SELECT __shard_management.guard('orders', 'nobody', 'tenants')", "42703"),
        ("CREATE TABLE other (id uuid); SELECT __shard_management.guard('other', 'id', 'tenants')", "RH004"),
        ("SELECT __shard_management.guard('orders', 'tenant_id', 'tenants')", "ok"),
        ("INSERT INTO orders VALUES (9, 1)", "RH001"),
        (
            "SELECT __shard_management.unguard('orders'); INSERT INTO orders VALUES (9, 1); TRUNCATE orders",
            "ok",
        ),
    ] {
        assert_eq!(outcome(&map.client, sql).await, expected, "{sql}");
        map.client.batch_execute("ROLLBACK; RESET ALL").await.unwrap();
    }
    let owned = "SELECT __shard_management.owns('tenants', n) FROM generate_series(9, 30, 7) n";
    let owned: Vec<bool> = map.client.query(owned, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(owned, [false, true, true, false], "9, 16, 23 (offline) and 30");
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'guard\\_%' AND proname <> 'guard_truncate'";
    assert_eq!(
        map.client.query_one(left, &[]).await.unwrap().get::<_, i64>(0),
        0,
        "functions that nobody uses"
    );
}

/// What a transaction remembers of its key must go where the lock goes.
#[tokio::test]
async fn a_guard_forgets_with_the_savepoint() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let map = guarded(&server, "a").await;
    let writer = connect(&server, "a").await;
    writer.batch_execute("BEGIN; SAVEPOINT s; INSERT INTO orders VALUES (10, 1), (10, 2)").await.unwrap();
    assert_eq!(map.holders(&[1]).await.len(), 1);
    writer.batch_execute("ROLLBACK TO SAVEPOINT s").await.unwrap();
    assert_eq!(map.holders(&[1]).await.len(), 0);
    writer.batch_execute("INSERT INTO orders VALUES (10, 1)").await.unwrap();
    assert_eq!(map.holders(&[1]).await.len(), 1);
    writer.batch_execute("COMMIT AND CHAIN").await.unwrap();
    map.set("800000000000000a", Some("8000000000000014"), false, 1).await;
    assert_eq!(outcome(&writer, "INSERT INTO orders VALUES (10, 1)").await, "RH002");
}

/// A role that has its own tables and nothing else.
#[tokio::test]
async fn a_routing_role_needs_no_rights_on_the_local_map() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let _map = guarded(&server, "a").await;
    let routing = connect(&server, "a").await;
    for (sql, expected) in [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT __shard_management.enter('tenants', 10); COMMIT", "ok"),
        ("INSERT INTO orders VALUES (10, 1)", "ok"),
        ("INSERT INTO orders VALUES (9, 1)", "RH001"),
        ("SELECT * FROM __shard_management.local_mappings", "42501"),
        ("SELECT __shard_management.close_fences('{1}', 1)", "42501"),
        ("SELECT __shard_management.fence_holders('{1}')", "42501"),
        // Somebody's own operators before those of the system do not make the functions say something else.
        ("CREATE SCHEMA mine", "42501"),
    ] {
        assert_eq!(outcome(&routing, sql).await, expected, "{sql}");
    }
}

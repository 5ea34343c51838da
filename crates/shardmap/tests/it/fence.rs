//! The fence of PostgreSQL, in SQL alone: who may enter, who is refused with which SQLSTATE, and that no
//! interleaving with a change lets a transaction through. Two mutants show that these tests can fail.

use std::time::Duration;

use crate::support::local::{LocalMap, connect, manage};
use crate::support::mutants::{ONE_STATEMENT, no_share};
use crate::support::postgres::PostgresServer;
use tokio_postgres::Client;

/// A database whose only map has [10, 20) online with fence 1.
async fn shard(server: &PostgresServer, name: &str) -> (LocalMap, Client) {
    let map = LocalMap::create(server, name).await;
    map.set("0a", Some("14"), true, 1).await;
    let client = connect(server, name).await;
    (map, client)
}

async fn enter(client: &Client, map: &LocalMap, key: &str) -> Result<(), String> {
    crate::support::local::enter(client, map.id, key).await
}

async fn begin(client: &Client, mode: &str) {
    client.batch_execute(&format!("BEGIN ISOLATION LEVEL {mode}")).await.unwrap();
}

#[tokio::test]
async fn a_refused_transaction_learns_why() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (map, client) = shard(&server, "refusals").await;
    for inside in ["0a", "0aff", "13ffff"] {
        assert_eq!(enter(&client, &map, inside).await, Ok(()), "{inside}");
        assert!(owns(&client, &map, inside).await);
    }
    for outside in ["", "09ffff", "14", "ff"] {
        assert_eq!(enter(&client, &map, outside).await, Err("RH001".to_owned()), "{outside}");
        assert!(!owns(&client, &map, outside).await);
    }
    map.set("14", None, false, 2).await;
    assert_eq!(enter(&client, &map, "ff").await, Err("RH002".to_owned()));
    assert!(owns(&client, &map, "ff").await, "an offline mapping is still held");
    let unknown = crate::support::local::enter(&client, uuid::Uuid::from_u128(99), "0a").await;
    assert_eq!(unknown, Err("RH003".to_owned()));
}

async fn owns(client: &Client, map: &LocalMap, key: &str) -> bool {
    let sql = format!("SELECT __shard_management.owns('{}'::uuid, '\\x{key}'::bytea)", map.id);
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

/// A transaction that waits to enter while the mapping goes offline.
async fn waits_through_a_change(server: &PostgresServer, name: &str, mutant: &str, mode: &str) -> bool {
    let (map, writer) = shard(server, name).await;
    map.client.batch_execute(mutant).await.unwrap();
    let mover = manage(server, name).await;
    mover.batch_execute("BEGIN; SELECT __shard_management.close_fences('{1}', 60000)").await.unwrap();
    mover.batch_execute("UPDATE __shard_management.local_mappings SET online = false").await.unwrap();
    begin(&writer, mode).await;
    let entering = async { enter(&writer, &map, "0a").await };
    let committing = async {
        map.until_somebody_waits().await;
        mover.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(entering, committing).0.is_ok()
}

/// A transaction whose snapshot is older than the change, and which enters after it.
async fn enters_with_an_old_snapshot(server: &PostgresServer, name: &str, mutant: &str, mode: &str) -> bool {
    let (map, writer) = shard(server, name).await;
    map.client.batch_execute(mutant).await.unwrap();
    begin(&writer, mode).await;
    writer.batch_execute("SELECT count(*) FROM pg_class").await.unwrap();
    map.set("0a", Some("14"), false, 1).await;
    enter(&writer, &map, "0a").await.is_ok()
}

#[tokio::test]
async fn no_interleaving_lets_a_writer_through() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    for (number, mode) in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"].into_iter().enumerate() {
        assert!(!waits_through_a_change(&server, &format!("waits{number}"), "", mode).await, "{mode}");
        assert!(!enters_with_an_old_snapshot(&server, &format!("old{number}"), "", mode).await, "{mode}");
    }
    // A reader may, since it sees the database as it was when the key was here.
    let read_only = "REPEATABLE READ, READ ONLY";
    assert!(enters_with_an_old_snapshot(&server, "reads", "", read_only).await);
}

#[tokio::test]
async fn both_mutants_let_a_writer_through() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    for (number, mode) in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"].into_iter().enumerate() {
        let passes = waits_through_a_change(&server, &format!("one{number}"), ONE_STATEMENT, mode).await;
        assert!(passes, "one statement at {mode}");
    }
    for (number, mode) in ["REPEATABLE READ", "SERIALIZABLE"].into_iter().enumerate() {
        let passes = enters_with_an_old_snapshot(&server, &format!("share{number}"), &no_share(), mode).await;
        assert!(passes, "without FOR SHARE at {mode}");
    }
}

/// To lock a row is a write, so a transaction that only reads would get a number, and its commit would wait for the disk.
#[tokio::test]
async fn entering_locks_no_row_while_no_mapping_changes() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (map, writer) = shard(&server, "quiet").await;
    let has_number = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL";
    for mode in ["REPEATABLE READ", "SERIALIZABLE"] {
        begin(&writer, mode).await;
        enter(&writer, &map, "0a").await.unwrap();
        assert!(!writer.query_one(has_number, &[]).await.unwrap().get::<_, bool>(0), "{mode}");
        writer.batch_execute("COMMIT").await.unwrap();
    }
    // A change that was undone leaves the two counts different, so that the row is locked until the next change.
    let sql = "BEGIN; UPDATE __shard_management.local_mappings SET online = false; ROLLBACK";
    map.client.batch_execute(sql).await.unwrap();
    for locks in [true, false] {
        begin(&writer, "REPEATABLE READ").await;
        enter(&writer, &map, "0a").await.unwrap();
        assert_eq!(writer.query_one(has_number, &[]).await.unwrap().get::<_, bool>(0), locks);
        writer.batch_execute("COMMIT").await.unwrap();
        map.set("20", Some("30"), true, 2).await;
    }
}

/// Whether a transaction at REPEATABLE READ that enters a key locks the row of its mapping.
async fn locks_its_row(client: &Client, map: &LocalMap) -> bool {
    begin(client, "REPEATABLE READ").await;
    enter(client, map, "0a").await.unwrap();
    let has_number = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL";
    let locks = client.query_one(has_number, &[]).await.unwrap().get(0);
    client.batch_execute("COMMIT").await.unwrap();
    locks
}

/// A sequence of PostgreSQL jumps by up to 32 when its server crashes. Transactions would then lock rows until the map's
/// next change in this shard, which may never come.
#[tokio::test]
async fn a_crash_of_the_server_lets_no_transaction_lock_rows() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (map, _) = shard(&server, "crash").await;
    server.kill();
    server.restart();
    let writer = connect(&server, "crash").await;
    assert!(!locks_its_row(&writer, &map).await);
    // The next change is seen.
    let manager = manage(&server, "crash").await;
    begin(&writer, "REPEATABLE READ").await;
    writer.batch_execute("SELECT count(*) FROM pg_class").await.unwrap();
    manager.batch_execute("UPDATE __shard_management.local_mappings SET fence = 5").await.unwrap();
    assert_eq!(enter(&writer, &map, "0a").await, Err("40001".to_owned()));
    writer.batch_execute("ROLLBACK").await.unwrap();
    assert!(!locks_its_row(&writer, &map).await);
}

/// After a change that was undone, and after the jump of a sequence in a shard of an earlier version.
#[tokio::test]
async fn counts_that_differ_are_mended() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (map, writer) = shard(&server, "counts").await;
    let other = manage(&server, "counts").await;
    let mend = || async {
        other.query_one("SELECT __shard_management.mend_counts()", &[]).await.unwrap().get::<_, i64>(0)
    };
    for sql in [
        "BEGIN; UPDATE __shard_management.local_mappings SET online = false; ROLLBACK",
        "SELECT setval(sequence, count + 32) FROM __shard_management.local_writes",
    ] {
        map.client.batch_execute(sql).await.unwrap();
        assert!(locks_its_row(&writer, &map).await, "{sql}");
        // A change under way is left alone, and is not waited for.
        map.client
            .batch_execute("BEGIN; UPDATE __shard_management.local_mappings SET epoch = 2")
            .await
            .unwrap();
        assert_eq!(mend().await, 0, "{sql}");
        map.client.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!((mend().await, mend().await), (1, 0), "{sql}");
        assert!(!locks_its_row(&writer, &map).await, "{sql}");
        // The next change is seen.
        begin(&writer, "REPEATABLE READ").await;
        writer.batch_execute("SELECT count(*) FROM pg_class").await.unwrap();
        map.client.batch_execute("UPDATE __shard_management.local_mappings SET epoch = 3").await.unwrap();
        assert_eq!(enter(&writer, &map, "0a").await, Err("40001".to_owned()), "{sql}");
        writer.batch_execute("ROLLBACK").await.unwrap();
        assert!(!locks_its_row(&writer, &map).await, "{sql}");
    }
}

#[tokio::test]
async fn a_transaction_that_has_entered_is_waited_for() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    for (number, mode) in ["READ COMMITTED", "REPEATABLE READ"].into_iter().enumerate() {
        let name = format!("holds{number}");
        let (map, writer) = shard(&server, &name).await;
        begin(&writer, mode).await;
        enter(&writer, &map, "0a").await.unwrap();
        let mover = manage(&server, &name).await;
        mover.batch_execute("BEGIN").await.unwrap();
        let closing = mover.batch_execute("SELECT __shard_management.close_fences('{1}', 60000)");
        tokio::pin!(closing);
        let early = tokio::time::timeout(Duration::from_millis(200), &mut closing).await;
        assert!(early.is_err(), "closed over a holder at {mode}");
        assert_eq!(map.holders(&[1]).await.len(), 1);
        assert_eq!(map.holders(&[2]).await.len(), 0);
        writer.batch_execute("COMMIT").await.unwrap();
        closing.await.unwrap();
        assert_eq!(map.holders(&[1]).await.len(), 0);
        // Another mapping is not concerned.
        map.set("20", Some("30"), true, 2).await;
        assert_eq!(enter(&writer, &map, "20").await, Ok(()));
    }
}

#[tokio::test]
async fn a_split_while_entering_leads_to_the_new_fence() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (map, writer) = shard(&server, "split").await;
    let mover = manage(&server, "split").await;
    mover.batch_execute("BEGIN; SELECT __shard_management.close_fences('{1}', 60000)").await.unwrap();
    mover.batch_execute("UPDATE __shard_management.local_mappings SET fence = 2").await.unwrap();
    begin(&writer, "READ COMMITTED").await;
    let entering = async { enter(&writer, &map, "0a").await };
    let committing = async {
        map.until_somebody_waits().await;
        mover.batch_execute("COMMIT").await.unwrap();
    };
    assert_eq!(tokio::join!(entering, committing).0, Ok(()));
    assert_eq!(map.holders(&[2]).await.len(), 1);
}

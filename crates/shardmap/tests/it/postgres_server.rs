//! The servers that other tests rest on: that they keep what was committed, and leave nothing behind.

use crate::support::postgres::PostgresServer;
use crate::support::roles::OWNER;

#[test]
fn what_was_committed_survives_a_kill() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    server.create_database("shop");
    server.sql("shop", "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    assert_eq!(server.sql("shop", "SHOW fsync"), "on");
    server.kill();
    assert!(!server.psql(OWNER, "shop", "SELECT 1").status.success(), "a killed server answers");
    server.restart();
    assert_eq!(server.sql("shop", "SELECT n FROM t"), "7");
    server.stop();
    server.restart();
    assert_eq!(server.sql("shop", "SELECT n FROM t"), "7");
}

#[test]
fn a_dropped_server_is_gone_with_its_files() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let (directory, process) = (server.directory().to_owned(), server.postmaster().unwrap());
    drop(server);
    assert!(!directory.exists());
    assert!(rustix::process::test_kill_process(process).is_err());
}

#[test]
fn a_failure_names_its_sqlstate() {
    rangehold_testkit::needs!(PostgreSql);
    let server = PostgresServer::start();
    let failed = server.psql(OWNER, "postgres", "SELECT 1/0");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("22012"));
}

//! What routing and the fence cost: round trips, the server's CPU, and finding a key in a warm cache.

use std::time::Duration;

use rangehold_shardmap::routing::{Isolation, ShardConnection};
use rangehold_shardmap::{CreateMode, Location, LookIn, ManagerOptions, ShardMapManager};
use tokio::time::Instant;

use crate::support::postgres::PostgresServer;
use crate::support::proxy::Proxy;
use crate::support::routed::{Directory, place, routing, shard};

const TRANSACTIONS: u32 = 5_000;
const ROWS: i64 = 50_000;
const MAPPINGS: i64 = 1_000_000;

/// Measures and prints all.
pub async fn run() {
    round_trips_and_cpu().await;
    guard().await;
    warm_cache().await;
}

/// The CPU time of a process, from the scheduler: nanoseconds.
fn cpu_ns(process: i32) -> u64 {
    let text =
        std::fs::read_to_string(format!("/proc/{process}/schedstat")).expect("the scheduler's account");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

async fn backend(connection: &mut ShardConnection) -> i32 {
    connection.query_typed("SELECT pg_backend_pid()", &[]).await.expect("a shard")[0].get(0)
}

async fn round_trips_and_cpu() {
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let proxy = Proxy::start(server.port()).await;
    let directory = Directory::new(map.id, place(proxy.port(), "a"));
    let routing = routing();
    let mut connection = directory.open(&routing, &[12]).await.expect("a shard");
    let process = backend(&mut connection).await;
    println!("{TRANSACTIONS} transactions of one INSERT, round trips and the server's CPU for each:");
    let insert = "INSERT INTO rows VALUES (1, 'x')";
    for (name, kind) in
        [("unfenced", 0), ("fenced, a statement of its own", 1), ("fenced, REPEATABLE READ", 2)]
    {
        let (trips, cpu, began) = (proxy.round_trips(), cpu_ns(process), Instant::now());
        for _ in 0..TRANSACTIONS {
            match kind {
                0 => {
                    // As fast as the driver can: all in one message.
                    let sql = format!("BEGIN; {insert}; COMMIT");
                    connection.unfenced().await.expect("a shard").batch_execute(&sql).await.expect("a row");
                }
                1 => drop(connection.execute_typed(insert, &[]).await.expect("a row")),
                _ => {
                    let mut transaction = connection.transaction(Isolation::RepeatableRead, false);
                    transaction.execute_typed(insert, &[]).await.expect("a row");
                    transaction.commit().await.expect("a commit");
                }
            }
        }
        let trips = (proxy.round_trips() - trips) as f64 / f64::from(TRANSACTIONS);
        let cpu = (cpu_ns(process) - cpu) as f64 / 1000.0 / f64::from(TRANSACTIONS);
        println!(
            "  {name}: {trips:.2} round trips, {cpu:.1} us CPU, {:.1} us",
            per(began.elapsed(), TRANSACTIONS.into())
        );
    }
    let (cpu, count) = (cpu_ns(process), 20_000);
    let sql = format!(
        "DO $$ DECLARE m uuid := '{}'; BEGIN FOR i IN 1..{count} LOOP
        PERFORM __shard_management.enter(m, '\\x0c'::bytea); END LOOP; END $$",
        map.id
    );
    connection.unfenced().await.expect("a shard").batch_execute(&sql).await.expect("entering");
    println!(
        "  enter() alone, again and again in one transaction: {:.1} us CPU",
        (cpu_ns(process) - cpu) as f64 / 1000.0 / f64::from(count)
    );
}

fn per(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

async fn guard() {
    let server = PostgresServer::start();
    let map = crate::support::local::LocalMap::create_of_type(&server, "a", "int64").await;
    map.set("8000000000000000", Some("8000000000000100"), true, 1).await;
    let tables =
        "CREATE TABLE plain (tenant bigint, n bigint); CREATE TABLE guarded (tenant bigint, n bigint);
        SELECT __shard_management.guard('guarded', 'tenant', 'tenants')";
    map.client.batch_execute(tables).await.expect("tables");
    let process: i32 = map.client.query_one("SELECT pg_backend_pid()", &[]).await.expect("a process").get(0);
    println!("{ROWS} rows by one INSERT, the server's CPU for each:");
    let mut plain = 0.0;
    for (name, table, tenant) in [
        ("no guard", "plain", "1"),
        ("guard, all of one tenant", "guarded", "1"),
        ("guard, each of another tenant than the last", "guarded", "n % 2"),
    ] {
        let cpu = cpu_ns(process);
        let sql = format!("INSERT INTO {table} SELECT {tenant}, n FROM generate_series(1, {ROWS}) n");
        map.client.batch_execute(&sql).await.expect("rows");
        let each = (cpu_ns(process) - cpu) as f64 / 1000.0 / ROWS as f64;
        if table == "plain" {
            plain = each;
        }
        println!("  {name}: {each:.2} us CPU, {:+.2} us for the guard", each - plain);
    }
}

async fn warm_cache() {
    let directory = tempfile::tempdir().expect("a directory");
    let file =
        |name: &str| Location::sqlite(directory.path().join(name).to_str().expect("text")).expect("a place");
    let manager =
        ShardMapManager::create(file("maps"), CreateMode::KeepExisting, ManagerOptions::default()).await;
    let manager = manager.expect("a manager");
    let map = manager.create_list_map::<i64>("tenants").await.expect("a map");
    rusqlite::Connection::open(directory.path().join("shard"))
        .expect("a file")
        .execute_batch("VACUUM")
        .expect("a file");
    let shard = map.create_shard(&file("shard")).await.expect("a shard");
    let keys: Vec<i64> = (0..MAPPINGS).map(|n| n * 7).collect();
    for some in keys.chunks(rangehold_shardmap::limits::MAPPINGS_PER_OPERATION_MAX) {
        map.add_many(some.iter().map(|key| (key, &shard)).collect()).await.expect("mappings");
    }
    for key in keys.iter().step_by(100_000) {
        map.lookup(key, LookIn::CacheThenStore).await.expect("a mapping");
    }
    let asked = manager.transactions_begun(manager.location());
    let cached = map.cached();
    let began = Instant::now();
    let mut index = 0;
    for _ in 0..MAPPINGS {
        // All of them, in an order that no cache of the processor likes.
        index = (index + 611_953) % keys.len();
        assert!(
            map.cached_route(&keys[index]).expect("a key").is_some(),
            "a key that was added is not cached"
        );
    }
    let each = per(began.elapsed(), MAPPINGS as u64) * 1000.0;
    let io = manager.transactions_begun(manager.location()) - asked;
    println!(
        "routing from a warm cache of {cached} mappings: {each:.0} ns, {io} transactions in the global map"
    );
}

//! What routing and the fence cost: round trips, the server's CPU, and finding a key in a warm cache.

use rangehold_shardmap::routing::{Isolation, ShardConnection};
use rangehold_shardmap::{CreateMode, LoadPolicy, Location, ManagerOptions, ShardKeyValue, ShardMapManager};
use tokio::time::Instant;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::postgres::PostgresServer;
use crate::support::proxy::Proxy;
use crate::support::roles::APPLICATION;
use crate::support::routed::{Directory, place, routing, shard};

const TRANSACTIONS: u32 = 5_000;
const READING_TRANSACTIONS: u32 = 1_000;
const ROWS: i64 = 50_000;
const ISOLATIONS: [(Isolation, &str); 3] = [
    (Isolation::ReadCommitted, "READ COMMITTED"),
    (Isolation::RepeatableRead, "REPEATABLE READ"),
    (Isolation::Serializable, "SERIALIZABLE"),
];
const MAPPINGS: i64 = 1_000_000;

/// Measures and prints all.
pub async fn run() {
    round_trips_and_cpu().await;
    reading().await;
    guard().await;
    warm_cache().await;
    super::scale::run().await;
}

/// The CPU time of a process, from the scheduler: nanoseconds.
fn cpu_ns(process: i32) -> u64 {
    let text =
        std::fs::read_to_string(format!("/proc/{process}/schedstat")).expect("the scheduler's account");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

/// The same of this thread.
fn thread_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the scheduler's account");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

async fn backend(connection: &mut ShardConnection) -> i32 {
    connection.query_typed("SELECT pg_backend_pid()", &[]).await.expect("a shard")[0].get(0)
}

async fn round_trips_and_cpu() {
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    // What is compared is not the disk.
    server.sql("a", "ALTER DATABASE a SET synchronous_commit = off");
    let proxy = Proxy::start(server.port()).await;
    let directory = Directory::new(map.id, place(proxy.port(), "a"));
    let routing = routing();
    let mut connection = directory.open(&routing, &[12]).await.expect("a shard");
    let process = backend(&mut connection).await;
    println!("{TRANSACTIONS} transactions of one INSERT, round trips and the server's CPU for each:");
    let address = format!("host=127.0.0.1 port={} user={APPLICATION} dbname=a", proxy.port());
    let plain = crate::support::local::connect_to(&address).await;
    let plain_process = plain.query_one("SELECT pg_backend_pid()", &[]).await.expect("a process").get(0);
    let mut unfenced = 0.0;
    for (kind, name) in (0..).zip([
        "unfenced, a statement of its own",
        "unfenced, in a transaction",
        "fenced, a statement of its own",
        "fenced, READ COMMITTED",
        "fenced, REPEATABLE READ",
        "fenced, SERIALIZABLE",
    ]) {
        let process = if kind < 2 { plain_process } else { process };
        let (trips, cpu) = (proxy.round_trips(), cpu_ns(process));
        for _ in 0..TRANSACTIONS {
            write(&mut connection, &plain, kind).await;
        }
        let trips = (proxy.round_trips() - trips) as f64 / f64::from(TRANSACTIONS);
        let cpu = (cpu_ns(process) - cpu) as f64 / 1000.0 / f64::from(TRANSACTIONS);
        if kind == 1 {
            unfenced = cpu;
        }
        println!("  {name}: {trips:.1} round trips, {cpu:.1} us CPU ({:+.1})", cpu - unfenced);
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

/// One transaction with one row.
async fn write(connection: &mut ShardConnection, plain: &Client, kind: u32) {
    const INSERT: &str = "INSERT INTO rows VALUES (1, 'x')";
    if kind == 2 {
        connection.execute_typed(INSERT, &[]).await.expect("a row");
    } else if kind > 2 {
        let isolation = ISOLATIONS[kind as usize - 3].0;
        let mut transaction = connection.transaction(isolation, false);
        transaction.execute_typed(INSERT, &[]).await.expect("a row");
        transaction.commit().await.expect("a commit");
    } else {
        if kind == 1 {
            plain.batch_execute("BEGIN").await.expect("a transaction");
        }
        plain.execute_typed(INSERT, &[]).await.expect("a row");
        if kind == 1 {
            plain.batch_execute("COMMIT").await.expect("a commit");
        }
    }
}

/// Transactions that only read, on a server that waits for its disk. If the fence locked a row, each would wait.
async fn reading() {
    let server = PostgresServer::start();
    let map = shard(&server, "a", true).await;
    let directory = Directory::new(map.id, place(server.port(), "a"));
    let routing = routing();
    let mut connection = directory.open(&routing, &[12]).await.expect("a shard");
    println!("{READING_TRANSACTIONS} fenced transactions of one SELECT, the time of each:");
    for (isolation, name) in ISOLATIONS {
        let began = Instant::now();
        for _ in 0..READING_TRANSACTIONS {
            let mut transaction = connection.transaction(isolation, false);
            transaction.query_typed("SELECT count(*) FROM rows", &[]).await.expect("a count");
            transaction.commit().await.expect("a commit");
        }
        let each = began.elapsed().as_secs_f64() * 1e3 / f64::from(READING_TRANSACTIONS);
        println!("  {name}: {each:.2} ms");
    }
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

/// The memory of this process.
fn resident_bytes() -> usize {
    const PAGE_BYTES: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").expect("the process's account");
    let pages: Option<usize> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.expect("a number") * PAGE_BYTES
}

/// Finding a key in a warm cache.
pub async fn warm_cache() {
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
    let key = |number: i64| number * 7;
    let keys: Vec<i64> = (0..MAPPINGS).map(key).collect();
    let began = Instant::now();
    fill(&directory.path().join("maps"), map.info().id, shard.id().0, &keys);
    let options = ManagerOptions { load: LoadPolicy::Eager, ..ManagerOptions::default() };
    let before = resident_bytes();
    let manager = ShardMapManager::open(file("maps"), options).await.expect("a manager");
    let map = manager.list_map::<i64>("tenants").await.expect("a map");
    let each = resident_bytes().saturating_sub(before) / map.cached();
    println!("a mapping in the cache takes {each} bytes of memory");
    println!("{MAPPINGS} mappings written and loaded in {:.1} s", began.elapsed().as_secs_f64());
    let asked = manager.transactions_begun(manager.location());
    let cached = map.cached();
    let cpu = thread_cpu_ns();
    let mut number = 0;
    for _ in 0..MAPPINGS {
        // All of them, in an order that no cache of the processor likes.
        number = (number + 611_953) % MAPPINGS;
        let route = map.cached_route(&key(number)).expect("a key");
        assert!(route.is_some(), "a key that was added is not cached");
    }
    let each = (thread_cpu_ns() - cpu) / MAPPINGS as u64;
    let io = manager.transactions_begun(manager.location()) - asked;
    println!(
        "routing from a warm cache of {cached} mappings: {each} ns CPU, {io} transactions in the global map"
    );
}

/// Writes mappings into a global map as operations would, but all at once.
fn fill(file: &std::path::Path, map: Uuid, shard: Uuid, keys: &[i64]) {
    let mut file = rusqlite::Connection::open(file).expect("the global map");
    // The rows don't overlap, and the database need not look for that a million times.
    file.execute_batch(
        "drop trigger __shard_management_global_mappings_do_not_overlap; pragma synchronous = off",
    )
    .expect("the trigger");
    let tx = file.transaction().expect("a transaction");
    let (map, shard) = (map.hyphenated().to_string(), shard.hyphenated().to_string());
    let mut insert = tx
        .prepare(
            "insert into __shard_management_global_mappings
                (mapping_id, map_id, shard_id, low, high, online, fence, readable, epoch)
             values (?1, ?2, ?3, ?4, ?5, 1, ?6, 1, 1)",
        )
        .expect("the table");
    for (number, key) in (1_i64..).zip(keys) {
        let id = Uuid::from_u128(number as u128).hyphenated().to_string();
        let (low, high) = (key.to_key().expect("a key"), (key + 1).to_key().expect("a key"));
        insert.execute((id, &map, &shard, low.raw(), high.raw(), number)).expect("a row");
    }
    drop(insert);
    tx.commit().expect("all of them");
}

//! What many mappings cost: to make them, to place one more, to compare them, to ask for each row whether it is here, and to
//! move their shard.

use rangehold_shardmap::query::owned_view;
use rangehold_shardmap::recovery::Resolution;
use rangehold_shardmap::tenants::PlacementPolicy;
use rangehold_shardmap::{
    CreateMode, ListShardMap, Location, ManagerOptions, ShardMapManager, ShardUpdate, limits,
};
use tokio::time::Instant;

use crate::support::access;
use crate::support::local::manage;
use crate::support::postgres::PostgresServer;
use crate::support::roles::MANAGER;
use crate::support::routed::place;

const MAPPINGS: i64 = 100_000;
const PROVISIONED: i64 = 20;
const ROWS: i64 = 500_000;

/// Measures and prints all.
pub async fn run() {
    let server = PostgresServer::start();
    for database in ["global", "a", "b"] {
        server.create_database(database);
    }
    let global = place(server.port(), "global");
    let manager = ShardMapManager::create(global, CreateMode::KeepExisting, options()).await;
    let map = manager.expect("a manager").create_list_map::<i64>("tenants").await.expect("a map");
    let places = [place(server.port(), "a"), place(server.port(), "b")];
    create(&map, &places).await;
    provision(&map).await;
    check(&map, &places[0]).await;
    rows(&server, &map, &places[0]).await;
    move_shard(&server, &map, &places[1]).await;
}

fn options() -> ManagerOptions {
    ManagerOptions { postgres: Some(access(MANAGER)), ..ManagerOptions::default() }
}

async fn create(map: &ListShardMap<i64>, places: &[Location; 2]) {
    let shards = [
        map.create_shard(&places[0]).await.expect("a shard"),
        map.create_shard(&places[1]).await.expect("a shard"),
    ];
    let keys: Vec<i64> = (0..MAPPINGS).map(|number| number * 7).collect();
    let began = Instant::now();
    for part in keys.chunks(limits::MAPPINGS_PER_OPERATION_MAX) {
        // Every other key is on the other shard.
        let of = |key: &i64| &shards[usize::from(key % 2 != 0)];
        map.add_many(part.iter().map(|key| (key, of(key))).collect()).await.expect("mappings");
    }
    println!("{MAPPINGS} mappings made in {:.1} s", began.elapsed().as_secs_f64());
}

async fn provision(map: &ListShardMap<i64>) {
    let mut times = Vec::new();
    for number in 0..PROVISIONED {
        let began = Instant::now();
        map.provision(&(-1 - number), PlacementPolicy::FewestTenants).await.expect("a shard");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1000.0;
    println!("a tenant placed among them: {median:.1} ms, the median of {PROVISIONED}");
}

async fn check(map: &ListShardMap<i64>, place: &Location) {
    let began = Instant::now();
    let found = map.manager().recovery().detect(place, None).await.expect("a comparison");
    assert!(found.iter().all(rangehold_shardmap::recovery::MapDifferences::is_empty));
    println!("half of them compared with their shard in {:.2} s", began.elapsed().as_secs_f64());
}

/// Half of the mappings go with their shard to a copy of its database, and are then written there once more.
async fn move_shard(server: &PostgresServer, map: &ListShardMap<i64>, from: &Location) {
    server.copy_database("b", "c");
    let to = place(server.port(), "c");
    let shard = map.shard(from).await.expect("the shard");
    let began = Instant::now();
    let update = ShardUpdate { online: None, location: Some(to.clone()) };
    map.update_shard(&shard, &update).await.expect("a move");
    println!("a shard with half of them moved to a copy in {:.1} s", began.elapsed().as_secs_f64());
    let recovery = map.manager().recovery();
    let found = recovery.detect(&to, None).await.expect("a comparison").remove(0);
    assert!(found.is_empty());
    let began = Instant::now();
    recovery.resolve(found, Resolution::KeepGlobal).await.expect("a repair");
    println!("its local map made again in {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    recovery.detach(&to, None).await.expect("a detachment");
    println!("the shard detached in {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    recovery.rebuild_global(&[to], None).await.expect("an attachment");
    println!("the shard attached again with its mappings in {:.1} s", began.elapsed().as_secs_f64());
}

async fn rows(server: &PostgresServer, map: &ListShardMap<i64>, place: &Location) {
    let client = manage(server, "a").await;
    let view = owned_view(&map.info(), place, "orders", "tenant").expect("a view");
    let sql = format!(
        "SET max_parallel_workers_per_gather = 0; CREATE TABLE orders (tenant bigint);
        INSERT INTO orders SELECT n % {MAPPINGS} * 7 FROM generate_series(1, {ROWS}) n; ANALYZE orders; {view}"
    );
    client.batch_execute(&sql).await.expect("rows");
    let mut plain = 0.0;
    for (name, sql) in [
        ("without asking", "SELECT count(tenant) FROM orders"),
        ("by the view", "SELECT count(tenant) FROM orders_here"),
        ("by owns()", "SELECT count(tenant) FROM orders WHERE __shard_management.owns('tenants', tenant)"),
    ] {
        let began = Instant::now();
        client.query_one(sql, &[]).await.expect("a count");
        let each = began.elapsed().as_secs_f64() * 1e6 / ROWS as f64;
        if name == "without asking" {
            plain = each;
        }
        println!("{ROWS} rows counted {name}: {each:.2} us a row ({:+.2})", each - plain);
    }
}

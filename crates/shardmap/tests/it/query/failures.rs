//! Shards that fail, answer late, or answer otherwise than others.

use std::time::Duration;

use rangehold_shardmap::query::{Policy, QueryError, ShardEvent, Why};

use super::world::{Shop, count, watched};
use crate::support::roles::READER;

/// The failures of an error.
fn failures(error: &QueryError) -> usize {
    match error {
        QueryError::Shards { failures, .. } => failures.len(),
        other => panic!("{other}"),
    }
}

/// A statement that does not end while anybody waits for it.
fn endless(is_postgres: bool) -> &'static str {
    match is_postgres {
        true => "select 1 as tenant, pg_sleep(60)",
        false => {
            "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) as tenant from n"
        }
    }
}

on_both_stores! {
    /// 176, 182, 190, 192: where all shards fail both policies fail: by the first, or with all of them.
    async fn all_fail(world) {
        let shop = Shop::new(world).await;
        let query = shop.map.query("select tenant from no_such_table");
        let (watch, events) = watched();
        let partial = query.clone().policy(Policy::Partial).watch(watch);
        let error = partial.run(&shop.readers).await.unwrap().all().await.unwrap_err();
        assert_eq!(failures(&error), 3);
        assert!(error.to_string().contains("3 of 3 shards failed") && error.to_string().contains("no_such_table"));
        assert_eq!(count(&events, ShardEvent::Failed), 3);
        let error = query.run(&shop.readers).await.unwrap().all().await.unwrap_err();
        assert_eq!(failures(&error), 1);
    }

    /// 177, 178: one shard fails: partial results are those of the others, and say which; complete ones are an
    /// error.
    async fn one_fails(world) {
        let shop = Shop::new(world).await;
        world.sql(&shop.places[1], "drop view sales_here; drop table sales");
        let query = shop.map.query("select tenant from sales_here");
        let mut rows = query.clone().policy(Policy::Partial).run(&shop.readers).await.unwrap();
        let all = rows.all().await.unwrap();
        assert_eq!(shop.told(&all), ["A 0", "A 10", "A 20", "C 200", "C 210", "C 220"]);
        assert_eq!(rows.failures().len(), 1);
        assert_eq!(rows.failures()[0].location, shop.places[1]);
        let error = query.run(&shop.readers).await.unwrap().all().await.unwrap_err();
        assert_eq!(failures(&error), 1);
    }

    /// 181, 203-206: columns that differ from those of the first shard, by name or by number.
    async fn other_columns(world) {
        let shop = Shop::new(world).await;
        let mut changes = vec![("item as price", "tenant"), ("tenant as other, 1 as more", "more")];
        if world.is_postgres() {
            // Of another type; columns of SQLite have none.
            changes.push(("item, 1 as price", "price int4"));
        }
        for (change, found) in changes {
            world.sql(&shop.places[2], "drop view sales_here");
            world.sql(&shop.places[2], &format!("create view sales_here as select tenant, {change} from sales"));
            let query = shop.map.query("select * from sales_here").policy(Policy::Partial).at_once(1);
            let mut rows = query.run(&shop.readers).await.unwrap();
            rows.all().await.unwrap();
            let wrong: Vec<_> = rows.failures().iter().map(|failure| &failure.why).collect();
            assert!(!wrong.is_empty() && wrong.iter().all(|why| matches!(why, Why::OtherColumns { .. })), "{wrong:?}");
            assert!(format!("{wrong:?}").contains(found), "{wrong:?}");
        }
    }

    /// 191: a shard that gives no row in time; and a query that as a whole takes too long.
    async fn too_slow(world) {
        let shop = Shop::new(world).await;
        let query = shop.map.query(endless(world.is_postgres()));
        let short = query.clone().shard_within(Duration::from_millis(300)).policy(Policy::Partial);
        let error = short.run(&shop.readers).await.unwrap().all().await.unwrap_err();
        assert_eq!(failures(&error), 3);
        assert!(error.retry() && error.to_string().contains("no answer within 300ms"), "{error}");
        let error = match query.within(Duration::from_millis(500)).run(&shop.readers).await {
            Ok(mut rows) => rows.all().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.to_string(), "the query took longer than 500ms");
    }

    /// 184, 188, 193: given up, every shard hears of it, and the connections serve the next query.
    async fn given_up(world) {
        let shop = Shop::new(world).await;
        // Several times: now before the statements have begun, now while they run.
        for _ in 0..8 {
            let (watch, events) = watched();
            let endless = shop.map.query(endless(world.is_postgres())).watch(watch);
            let rows = endless.run(&shop.readers).await.unwrap();
            while count(&events, ShardEvent::Began) < 3 {
                tokio::task::yield_now().await;
            }
            rows.cancel().await;
            assert_eq!(count(&events, ShardEvent::Cancelled), 3);
            assert_eq!(shop.ask("select tenant from sales_here").await.unwrap().len(), 9);
        }
        if world.is_postgres() {
            let running = "select count(*) from pg_stat_activity where query like '%pg_sleep%' and state = 'active'
                and pid <> pg_backend_pid()";
            while world.sql_as(READER, &shop.places[0], running) != "0" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// 189, 200: a shard that breaks amid its rows: those that came stay, and the next shard is read.
    async fn breaks_amid_rows(world) {
        let shop = Shop::new(world).await;
        // SQLite divides by zero and gives NULL, so it is made to fail by its JSON.
        let fault = if world.is_postgres() { "1 / (220 - tenant)" } else { "json(case tenant when 220 then '{' end)" };
        let sql = format!("select tenant, {fault} as x from sales_here");
        let query = shop.map.query(&sql).policy(Policy::Partial);
        let mut rows = query.run(&shop.readers).await.unwrap();
        let all = rows.all().await.unwrap();
        assert_eq!(shop.told(&all), ["A 0", "A 10", "A 20", "B 100", "B 110", "B 120", "C 200", "C 210"]);
        assert_eq!(rows.failures()[0].rows, 2);
    }
}

/// 185, 197-199: connections that broke while they lay in the pool are made again, and a server that is away
/// is a failure after the retries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_killed() {
    use rangehold_shardmap::query::Readers;
    use rangehold_shardmap::{CreateMode, Location, ManagerOptions, ShardMapManager};

    let directory = tempfile::tempdir().unwrap();
    rangehold_testkit::needs!(PostgreSql);
    let server = crate::support::postgres::PostgresServer::start();
    server.create_database("shard");
    let place = Location::postgres("127.0.0.1", server.port(), "shard").unwrap();
    let access = crate::support::access(crate::support::roles::MANAGER);
    let options = ManagerOptions { postgres: Some(access.clone()), ..ManagerOptions::default() };
    let global = Location::sqlite(directory.path().join("global.db").to_str().unwrap()).unwrap();
    let manager = ShardMapManager::create(global, CreateMode::KeepExisting, options).await.unwrap();
    let map = manager.create_list_map::<i64>("tenants").await.unwrap();
    map.create_shard(&place).await.unwrap();
    let (query, readers) = (map.query("select 1 as one"), Readers::new(Some(access)));
    assert_eq!(query.run(&readers).await.unwrap().all().await.unwrap().len(), 1);
    server.kill();
    server.restart();
    assert_eq!(query.run(&readers).await.unwrap().all().await.unwrap().len(), 1);
    server.kill();
    let error = query.clone().retries(2).run(&readers).await.unwrap_err();
    assert!(error.retry(), "{error}");
}

//! What comes back when nothing is wrong.

use rangehold_shardmap::query::{Cell, Policy, ShardEvent, owned_policy};
use rangehold_shardmap::{Code, Location, MappingChange};

use super::world::{Shop, count, watched};
use crate::support::roles::{OWNER, READER};
use crate::support::stores::World;

const ALL: [&str; 9] = ["A 0", "A 10", "A 20", "B 100", "B 110", "B 120", "C 200", "C 210", "C 220"];

on_both_stores! {
    /// 173, 179, 180, 195: nine rows of three shards by both policies, each with the name of its shard and the
    /// version of the map there; each shard begins and ends once.
    async fn all_rows_of_all_shards(world) {
        let shop = Shop::new(world).await;
        for policy in [Policy::Complete, Policy::Partial] {
            let (watch, events) = watched();
            let query = shop.map.query("select tenant, item, price from sales_here").policy(policy).watch(watch);
            let mut rows = query.run(&shop.readers).await.unwrap();
            let all = rows.all().await.unwrap();
            assert_eq!(shop.told(&all), ALL);
            assert!(all.iter().all(|row| row.columns().eq(["tenant", "item", "price"]) && row.cells().len() == 3));
            assert!(all.iter().all(|row| row.map_version() > 0));
            assert_eq!(rows.failures(), []);
            assert_eq!((count(&events, ShardEvent::Began), count(&events, ShardEvent::Succeeded)), (3, 3));
            assert_eq!(events.lock().unwrap().len(), 6);
        }
    }

    /// 174, 175, 201, 202: shards without rows give none, in the middle too.
    async fn no_rows(world) {
        let shop = Shop::new(world).await;
        assert_eq!(shop.ask("select tenant from sales_here where tenant < 0").await.unwrap().len(), 0);
        let outer = shop.ask("select tenant from sales_here where tenant < 100 or tenant >= 200").await.unwrap();
        assert_eq!(outer, ["A 0", "A 10", "A 20", "C 200", "C 210", "C 220"]);
        assert_eq!(shop.ask("select tenant from sales_here where tenant = 110").await.unwrap(), ["B 110"]);
    }

    /// 183: parameters of each type, in any order, used twice.
    async fn parameters(world) {
        let shop = Shop::new(world).await;
        let sql = "select tenant, $2 as given from sales_here where tenant >= $1 and tenant < $1 + 5";
        let sql = if world.is_postgres() { sql.replace("$2 as", "$2::text as") } else { sql.to_owned() };
        let mut rows = shop.map.query(&sql).bind(100).bind("words").run(&shop.readers).await.unwrap();
        let all = rows.all().await.unwrap();
        assert_eq!(shop.told(&all), ["B 100"]);
        assert_eq!(all[0].get::<String>("given").unwrap(), "words");
    }

    /// 216-220: cells of every type; a wrong type and a missing column are said.
    async fn cells(world) {
        let shop = Shop::new(world).await;
        let bytes = if world.is_postgres() { "'\\x01ff'::bytea" } else { "x'01ff'" };
        let sql = format!("select tenant, item, price, {bytes} as raw, null as missing from sales_here where tenant = 10");
        let row = shop.map.query(&sql).run(&shop.readers).await.unwrap().next().await.unwrap().unwrap();
        let raw = Cell::Bytes(vec![1, 255]);
        assert_eq!(row.cells(), [Cell::Int(10), "item 1".into(), Cell::Float(1.5), raw, Cell::Null]);
        assert_eq!(row.get::<Option<i64>>("missing").unwrap(), None);
        assert_eq!(row.get::<Option<f64>>("price").unwrap(), Some(1.5));
        let other = row.get::<i64>("item").unwrap_err();
        assert_eq!(other.to_string(), "the row holds Text(\"item 1\"), but a whole number was asked for");
        let missing = row.get::<i64>("total").unwrap_err();
        assert_eq!(missing.to_string(), "there is no column \"total\": there are tenant, item, price, raw, missing");
    }

    /// 187, 221-224: a query over no shards is refused, over some asks those alone, and over a place that is no
    /// shard says so.
    async fn some_shards(world) {
        let shop = Shop::new(world).await;
        let query = shop.map.query("select tenant from sales_here");
        let none = query.clone().only(&[]).run(&shop.readers).await.unwrap_err();
        assert_eq!(none.to_string(), "a query over no shards: name one at least");
        let mut rows = query.clone().only(&shop.places[1..2]).run(&shop.readers).await.unwrap();
        assert_eq!(shop.told(&rows.all().await.unwrap()), ["B 100", "B 110", "B 120"]);
        let elsewhere = [shop.places[0].clone(), Location::sqlite("/nowhere.db").unwrap()];
        let refused = query.clone().only(&elsewhere).run(&shop.readers).await.unwrap_err();
        assert_eq!(refused.to_string(), "sqlite:/nowhere.db: the shard map has no shard there");
        let mut rows = query.policy(Policy::Partial).only(&elsewhere).run(&shop.readers).await.unwrap();
        assert_eq!(rows.all().await.unwrap().len(), 3);
        assert_eq!(rows.failures().len(), 1);
        let empty = shop.map.manager().create_list_map::<i64>("empty").await.unwrap();
        let refused = empty.query("select 1").run(&shop.readers).await.unwrap_err();
        let rangehold_shardmap::query::QueryError::Map(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.code(), Code::InvalidArgument);
    }

    /// 207-215: rows come while shards are still being read, by as few readers as are asked for; a query may be
    /// run again, and while it runs.
    async fn streamed(world) {
        let shop = Shop::new(world).await;
        let many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
            select tenant, i from sales_here, n";
        let query = shop.map.query(many).at_once(1);
        let (mut one, mut two) = (query.run(&shop.readers).await.unwrap(), query.run(&shop.readers).await.unwrap());
        let mut counts = (0, 0);
        loop {
            match (one.next().await.unwrap(), two.next().await.unwrap()) {
                (None, None) => break,
                (left, right) => {
                    counts.0 += usize::from(left.is_some());
                    counts.1 += usize::from(right.is_some());
                }
            }
        }
        assert_eq!(counts, (18_000, 18_000));
        assert!(one.next().await.unwrap().is_none(), "after the end there is nothing");
    }

    /// A query reads: in PostgreSQL the transaction refuses, in SQLite the statement is not begun.
    async fn no_writes(world) {
        let shop = Shop::new(world).await;
        let refused = shop.ask("delete from sales").await.unwrap_err();
        assert!(!refused.retry(), "{refused}");
        assert_eq!(shop.ask("select tenant from sales_here").await.unwrap(), ALL);
    }
}

/// The types that a cell has no form of its own for come as the texts that the server itself makes of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_types_come_as_texts() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let shop = Shop::new(&world).await;
    let values = [
        "0::numeric",
        "-0.00070::numeric",
        "12345678901234567890.5::numeric",
        "10000::numeric",
        "1e-20::numeric(40, 25)",
        "100000000.0001::numeric",
        "'NaN'::numeric",
        "'-Infinity'::numeric",
        "date '2026-11-24'",
        "date '2000-02-29'",
        "date '1900-03-01'",
        "date '0001-01-01'",
        "date '0044-03-15 BC'",
        "'infinity'::date",
        "time '23:59:59.5'",
        "timestamp '2026-11-24 17:00:00.000001'",
        "timestamp '1969-12-31 23:59:59'",
        "timestamp '0044-03-15 01:02:03 BC'",
        "'-infinity'::timestamp",
        "timestamptz '2026-11-24 17:00:00+02'",
        "interval '1 year 2 months -3 days 04:05:06.7'",
        "interval '-1 hour'",
        "interval '0'",
        "interval '1 day'",
        "interval '-13 months 1 day'",
        "'{\"a\": [1, null]}'::jsonb",
        "array[1, null, 3]",
        "array['a b', 'null', '', '\"', 'c']",
        "array[array[1.5, 2], array[3, 4]]",
        "array[]::int[]",
        "array[date '2026-11-24']",
        "array[uuid '00000000-0000-0000-0000-000000000001']",
    ];
    for value in values {
        let sql = format!(
            "set_config('timezone', 'UTC', true), {value}, ({value})::text from sales_here where tenant = 10"
        );
        let row = shop
            .map
            .query(&format!("select {sql}"))
            .run(&shop.readers)
            .await
            .unwrap()
            .next()
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.cells()[1], row.cells()[2], "{value}");
    }
    let query = shop.map.query("select point(1, 2) from sales_here where tenant = 10");
    let row = query.run(&shop.readers).await.unwrap().next().await.unwrap().unwrap();
    assert!(matches!(&row.cells()[0], Cell::Other { type_name, .. } if type_name == "point"), "{row:?}");
}

/// The policy hides rows that are not at home from every role but the owner of the table, in any statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_hides_what_is_not_at_home() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let shop = Shop::new(&world).await;
    let [here, ..] = &shop.places;
    world.sql(here, "insert into sales values (150, 'of B', 1)");
    let seen = |role: &str| {
        world.sql_as(role, here, "select string_agg(tenant::text, ' ' order by tenant) from sales")
    };
    assert_eq!(seen(READER), "0 10 20 150", "without a policy");
    for _ in 0..2 {
        world.sql(here, &owned_policy(&shop.map.info(), "sales", "tenant"));
        assert_eq!(seen(READER), "0 10 20");
    }
    assert_eq!(seen(OWNER), "0 10 20 150", "the owner of the table");
    // The planner asks for the keys once in a query.
    let plan = world.sql(here, "explain select * from sales_here");
    assert!(plan.contains("InitPlan") && !plan.contains("owns("), "{plan}");
    let filter = plan.lines().find(|line| line.contains("Filter")).unwrap();
    assert!(!filter.contains("owned_keys") && !filter.contains("encode_key"), "{plan}");
    // Keys that have left are not seen any more, though their rows are still there.
    let mapping = shop.map.get(&0).await.unwrap();
    let offline = shop.map.offline(&mapping).await.unwrap();
    let away = MappingChange { online: Some(true), shard: Some(&shop.shards[1]) };
    shop.map.update(&offline, away).await.unwrap();
    assert_eq!(seen(READER), "");
}

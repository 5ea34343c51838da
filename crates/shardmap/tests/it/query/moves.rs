//! Queries while keys move: each key is seen once, in one shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rangehold_shardmap::query::owned_view;
use rangehold_shardmap::{MapKind, MappingChange, ShardKey, ShardKeyType};

use super::world::{Shop, readers};

on_both_stores! {
    /// Rows of keys that a shard does not hold are not shown, though they lie there.
    async fn rows_that_were_left_behind(world) {
        let shop = Shop::new(world).await;
        world.sql(&shop.places[0], "insert into sales values (100, 'left', 1), (300, 'nobodys', 1), (-1, 'before', 1)");
        assert_eq!(shop.ask("select tenant from sales_here").await.unwrap().len(), 9);
        assert_eq!(shop.ask("select tenant from sales").await.unwrap().len(), 12);
    }

    /// While a mapping goes from shard to shard, and its rows lie in both, a query shows each row once.
    async fn each_key_once(world) {
        let shop = Arc::new(Shop::new(world).await);
        for place in &shop.places[1..] {
            world.sql(place, "insert into sales values (0, 'item 0', 0.5), (10, 'item 1', 1.5), (20, 'item 2', 2.5)");
        }
        let over = Arc::new(AtomicBool::new(false));
        let moving = tokio::spawn({
            let (shop, over) = (shop.clone(), over.clone());
            async move {
                let mut moved = 0;
                while !over.load(Ordering::SeqCst) {
                    let mapping = shop.map.get(&0).await.unwrap();
                    let mapping = shop.map.offline(&mapping).await.unwrap();
                    let to = MappingChange { online: Some(true), shard: Some(&shop.shards[(moved + 1) % 3]) };
                    shop.map.update(&mapping, to).await.unwrap();
                    moved += 1;
                    // A map that changes without a pause is refused to queries.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                moved
            }
        });
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 3 {
            let rows = match shop.ask("select tenant from sales_here").await {
                Err(error) if error.retry() => continue,
                rows => rows.unwrap(),
            };
            let tenants: Vec<_> = rows.iter().map(|row| &row[2..]).collect();
            assert_eq!(tenants.len(), 9, "{rows:?}");
            for tenant in ["0", "10", "20"] {
                assert_eq!(tenants.iter().filter(|found| **found == tenant).count(), 1, "{rows:?}");
            }
            seen.extend(rows.into_iter().filter(|row| row.ends_with(" 10")));
        }
        over.store(true, Ordering::SeqCst);
        assert!(moving.await.unwrap() > 1);
    }

    /// The view holds for keys of each type, the least ones among them.
    async fn views_of_each_type(world) {
        let manager = world.manager().await;
        let place = world.database("typed");
        let postgres = world.is_postgres();
        for (key_type, sql_type, keys) in [
            (ShardKeyType::Int32, "int", ["-2147483648", "-1", "7"]),
            (ShardKeyType::Int64, "bigint", ["-9223372036854775808", "-1", "7"]),
            (ShardKeyType::Text, "text", ["", "a", "é"]),
            (ShardKeyType::Guid, if postgres { "uuid" } else { "text" },
                ["00000000-0000-0000-0000-000000000000", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeb0"]),
            (ShardKeyType::Binary, if postgres { "bytea" } else { "blob" }, ["0x", "0x0100", "0xff10"]),
        ] {
            let name = key_type.name();
            let info = manager.create_shard_map(name, MapKind::List, key_type).await.unwrap();
            let map = manager.list_map::<ShardKey>(name).await.unwrap();
            let shard = map.create_shard(&place).await.unwrap();
            world.sql(&place, &format!("create table t_{name} (key {sql_type})"));
            world.sql(&place, &owned_view(&info, &place, &format!("t_{name}"), "key").unwrap());
            for (index, key) in keys.iter().enumerate() {
                let literal = match (key.strip_prefix("0x"), postgres, sql_type) {
                    (Some(digits), true, _) => format!("'\\x{digits}'"),
                    (Some(digits), false, _) => format!("x'{digits}'"),
                    (None, _, "int" | "bigint") => key.to_string(),
                    (None, ..) => format!("'{key}'"),
                };
                world.sql(&place, &format!("insert into t_{name} values ({literal})"));
                if index != 1 {
                    map.add(&ShardKey::parse(key_type, key).unwrap(), &shard).await.unwrap();
                }
            }
            let query = map.query(&format!("select count(*) as here from t_{name}_here"));
            let row = query.run(&readers(world)).await.unwrap().next().await.unwrap().unwrap();
            assert_eq!(row.get::<i64>("here").unwrap(), 2, "{name}");
        }
    }
}

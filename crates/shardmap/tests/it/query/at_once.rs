//! How many shards a query reads at the same time.

use std::time::Duration;

use rangehold_shardmap::query::ShardEvent;

use super::world::{Shop, count, watched};

on_both_stores! {
    /// A shard begins when it is its turn, and has its turn until its last row was taken.
    async fn at_most_a_number_of_shards_is_read_at_once(world) {
        let shop = Shop::new(world).await;
        // More rows than may be on their way, so that no shard ends before rows are taken.
        let many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
            select tenant, i from sales_here, n";
        for limit in [1, 2] {
            let (watch, events) = watched();
            let query = shop.map.query(many).at_once(limit).watch(watch);
            let mut rows = query.run(&shop.readers).await.unwrap();
            while count(&events, ShardEvent::Began) < limit {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(rows.all().await.unwrap().len(), 18_000);
            let mut reading = 0_usize;
            let each = events.lock().unwrap().clone().into_iter().map(|event| {
                if event == ShardEvent::Began { reading += 1 } else { reading -= 1 }
                reading
            });
            assert_eq!(each.max(), Some(limit));
        }
    }
}

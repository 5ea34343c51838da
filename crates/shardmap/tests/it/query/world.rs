//! A range map over three shards, with three rows of its user's in each.

use std::sync::{Arc, Mutex};

use rangehold_shardmap::query::{QueryError, QueryRow, Readers, ShardEvent, Watch, owned_view};
use rangehold_shardmap::{Location, RangeShardMap, Shard};

use crate::support::roles::READER;
use crate::support::stores::{World, letter};

/// Shards A, B, C hold the keys [0, 100), [100, 200), [200, 300), and three rows each.
pub(crate) struct Shop {
    pub(crate) places: [Location; 3],
    pub(crate) shards: Vec<Shard>,
    pub(crate) map: RangeShardMap<i64>,
    pub(crate) readers: Readers,
}

impl Shop {
    pub(crate) async fn new(world: &World) -> Self {
        let places = ["a", "b", "c"].map(|name| world.database(name));
        let manager = world.manager().await;
        let map = manager.create_range_map::<i64>("ranges").await.unwrap();
        let mut shards = Vec::new();
        for (index, place) in (0_i64..).zip(&places) {
            let shard = map.create_shard(place).await.unwrap();
            world.sql(place, "create table sales (tenant bigint, item text, price float8)");
            for row in 0..3 {
                let tenant = index * 100 + row * 10;
                world.sql(place, &format!("insert into sales values ({tenant}, 'item {row}', {row}.5)"));
            }
            world.sql(place, &owned_view(&map.info(), place, "sales", "tenant").unwrap());
            map.add(&(index * 100), Some(&(index * 100 + 100)), &shard).await.unwrap();
            shards.push(shard);
        }
        Self { places, shards, map, readers: readers(world) }
    }

    /// Rows as `A 10`, sorted.
    pub(crate) fn told(&self, rows: &[QueryRow]) -> Vec<String> {
        let one = |row: &QueryRow| {
            let shard = self.places.iter().position(|place| place == row.shard()).unwrap();
            format!("{} {}", letter(&self.shards[shard], &self.places), row.get::<i64>("tenant").unwrap())
        };
        let mut told: Vec<_> = rows.iter().map(one).collect();
        told.sort();
        told
    }

    /// All rows of a query, as [`Shop::told`] tells them.
    pub(crate) async fn ask(&self, sql: &str) -> Result<Vec<String>, QueryError> {
        let mut rows = self.map.query(sql).run(&self.readers).await?;
        Ok(self.told(&rows.all().await?))
    }
}

/// Credentials to read with.
pub(crate) fn readers(world: &World) -> Readers {
    Readers::new(world.options_of(READER).postgres)
}

/// Keeps what happens.
pub(crate) fn watched() -> (Watch, Arc<Mutex<Vec<ShardEvent>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let kept = events.clone();
    (Arc::new(move |_, event| kept.lock().unwrap().push(event)), events)
}

/// How often something happened.
pub(crate) fn count(events: &Mutex<Vec<ShardEvent>>, event: ShardEvent) -> usize {
    events.lock().unwrap().iter().filter(|found| **found == event).count()
}

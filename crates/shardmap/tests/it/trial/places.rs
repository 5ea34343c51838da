//! A shard that goes to another place while its clients remember the old one.

use rangehold_shardmap::{Error, LookIn, RangeShardMap, ShardUpdate};

use super::world::World;
use crate::support::roles::{MANAGER, OWNER};

/// The databases that shards have left.
#[derive(Debug, Default)]
pub struct Places {
    left: Vec<Left>,
}

/// A database that a shard has left.
#[derive(Debug)]
struct Left {
    shard: usize,
    database: String,
    traces: i64,
    kills: u32,
}

const TRACES: &str = "SELECT sum(coalesce(pg_sequence_last_value(('trace_' || t)::regclass), 0))::bigint
    FROM generate_series(0, 23) t";

impl Places {
    /// All keys go offline, the database is restored elsewhere, and the shard goes there. Its clients remember the old
    /// place.
    pub async fn change(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        shard: usize,
        new: &str,
        pooled: bool,
    ) -> Result<(), String> {
        let (server, old) = (&world.shards[shard], world.shards[shard].database());
        let found = map.shard(&server.location()).await.map_err(told)?;
        let mut closed = Vec::new();
        for mapping in map.mappings_on(&found).await.map_err(told)? {
            world.hot.send_replace(*mapping.low());
            let was_online = mapping.is_online();
            let mapping = if was_online { map.offline(&mapping).await.map_err(told)? } else { mapping };
            closed.extend(was_online.then_some(mapping));
        }
        restore(world, shard, new).await;
        let mut places = server.places(new);
        let place = if pooled { places.pop() } else { Some(places.swap_remove(0)) }.expect("a place");
        let to = ShardUpdate { online: None, location: Some(place.clone()) };
        map.update_shard(&found, &to).await.map_err(told)?;
        server.is_at(place);
        // The rows are counted at the new place, so a row at the old one would show.
        let client = server.connect_to(&old, MANAGER).await.map_err(|error| error.to_string())?;
        let sql = "SET session_replication_role = replica; DELETE FROM events; DELETE FROM guarded";
        client.batch_execute(sql).await.map_err(|error| error.to_string())?;
        let traces = traces(world, shard, &old).await?;
        self.left.push(Left { shard, database: old, traces, kills: server.kills() });
        for mapping in closed {
            let mapping = map.lookup(mapping.low(), LookIn::Store).await.map_err(told)?;
            map.online(&mapping).await.map_err(told)?;
        }
        Ok(())
    }

    /// Nothing was written in a database that a shard has left. Gives its rows by attempts, which should be none, and what
    /// is wrong.
    pub async fn look(&self, world: &World) -> Result<(Vec<i64>, Vec<String>), String> {
        let (mut rows, mut wrong) = (Vec::new(), Vec::new());
        for left in &self.left {
            let server = &world.shards[left.shard];
            let client = server.connect_to(&left.database, OWNER).await.map_err(|error| error.to_string())?;
            let sql = "SELECT n FROM events UNION ALL SELECT n FROM guarded";
            let found = client.query(sql, &[]).await.map_err(|error| error.to_string())?;
            rows.extend(found.iter().map(|row| row.get::<_, i64>(0)));
            let now = traces(world, left.shard, &left.database).await?;
            if server.kills() == left.kills && now != left.traces {
                wrong.push(format!("statements ran in {}, which its shard had left", left.database));
            }
        }
        Ok((rows, wrong))
    }
}

/// Makes a database from a backup of a shard's.
pub async fn restore(world: &World, shard: usize, to: &str) {
    let (server, of, to) = (world.shards[shard].clone(), world.shards[shard].database(), to.to_owned());
    let restoring = tokio::task::spawn_blocking(move || server.server.restore_backup(&of, &to));
    restoring.await.expect("a backup is restored");
}

async fn traces(world: &World, shard: usize, database: &str) -> Result<i64, String> {
    let client = world.shards[shard].connect_to(database, OWNER).await.map_err(|error| error.to_string())?;
    let row = client.query_one(TRACES, &[]).await.map_err(|error| error.to_string())?;
    Ok(row.get(0))
}

pub fn told(error: Error) -> String {
    format!("{error:?}")
}

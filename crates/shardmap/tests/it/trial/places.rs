//! A shard that goes to another place while its clients remember the old one.

use rangehold_shardmap::{Error, LookIn, Mapping, RangeShardMap, Shard, ShardUpdate};
use tokio_postgres::Client;

use super::world::{ShardServer, World};
use crate::support::roles::{APPLICATION, MANAGER, OWNER};

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

/// How a shard goes.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Whether its keys are served until it goes. If not, they are offline meanwhile, so that an old place that was left open
    /// would not be noticed.
    pub online: bool,
    /// Whether it is reached by the last name of its new place, which is the pooler if there is one.
    pub by_last_name: bool,
}

impl Places {
    /// The database of a shard is restored elsewhere from a backup, and the shard goes there. Its clients remember the old
    /// place. What was written after the backup is brought over afterwards.
    pub async fn change(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        shard: usize,
        new: &str,
        how: How,
    ) -> Result<(), String> {
        let (server, old) = (&world.shards[shard], world.shards[shard].database());
        let found = map.shard(&server.location()).await.map_err(told)?;
        let closed = if how.online { Vec::new() } else { all_offline(world, map, &found).await? };
        restore(world, shard, new).await;
        let inside = if how.online { Some(one_inside(world, map, &found).await?) } else { None };
        let mut places = server.places(new);
        let place = if how.by_last_name { places.pop() } else { Some(places.swap_remove(0)) };
        let place = place.expect("a place");
        let to = ShardUpdate { online: None, location: Some(place.clone()) };
        map.update_shard(&found, &to).await.map_err(told)?;
        server.is_at(place);
        if let Some(inside) = inside
            && inside.batch_execute("SELECT 1").await.is_ok()
        {
            return Err("a transaction goes on at a place that its shard has left".to_owned());
        }
        bring_over(server, &old, new).await.map_err(|error| error.to_string())?;
        let traces = traces(world, shard, &old).await?;
        self.left.push(Left { shard, database: old, traces, kills: server.kills() });
        for mapping in closed {
            let mapping = map.lookup(mapping.low(), LookIn::Store).await.map_err(told)?;
            map.online(&mapping).await.map_err(told)?;
        }
        Ok(())
    }

    /// Nothing was written in a database that a shard has left. Gives the attempts whose rows are there, which should be none,
    /// and what is wrong.
    pub async fn look(&self, world: &World) -> Result<(Vec<i64>, Vec<String>), String> {
        let (mut rows, mut wrong) = (Vec::new(), Vec::new());
        for left in &self.left {
            let server = &world.shards[left.shard];
            let client = server.connect_to(&left.database, OWNER).await.map_err(|error| error.to_string())?;
            let sql = "SELECT n FROM events UNION ALL SELECT n FROM guarded";
            let found = client.query(sql, &[]).await.map_err(|error| error.to_string())?;
            rows.extend(found.iter().map(|row| row.get::<_, i64>(0)));
            if !found.is_empty() {
                wrong.push(format!(
                    "{} rows are in {}, which its shard had left",
                    found.len(),
                    left.database
                ));
            }
            let now = traces(world, left.shard, &left.database).await?;
            if server.kills() == left.kills && now != left.traces {
                wrong.push(format!("statements ran in {}, which its shard had left", left.database));
            }
        }
        Ok((rows, wrong))
    }
}

/// Takes all keys of a shard offline. Returns the mappings that were online.
async fn all_offline(
    world: &World,
    map: &RangeShardMap<i64>,
    shard: &Shard,
) -> Result<Vec<Mapping<i64>>, String> {
    let mut closed = Vec::new();
    for mapping in map.mappings_on(shard).await.map_err(told)? {
        world.hot.send_replace(*mapping.low());
        if mapping.is_online() {
            closed.push(map.offline(&mapping).await.map_err(told)?);
        }
    }
    Ok(closed)
}

/// A transaction inside a key of the shard, which does nothing and does not end. Some key of the shard is online then.
async fn one_inside(world: &World, map: &RangeShardMap<i64>, shard: &Shard) -> Result<Client, String> {
    let mappings = map.mappings_on(shard).await.map_err(told)?;
    let one = mappings.iter().find(|mapping| mapping.is_online()).or(mappings.first());
    let one = one.ok_or("the shard has no keys")?;
    let one = if one.is_online() { one.clone() } else { map.online(one).await.map_err(told)? };
    world.hot.send_replace(*one.low());
    let inside = enter(world, &one).await;
    inside.ok_or_else(|| "no transaction enters a key that is served".to_owned())
}

/// A transaction inside the keys of a mapping, which does nothing and does not end. `None` if its shard does not let it in.
pub async fn enter(world: &World, mapping: &Mapping<i64>) -> Option<Client> {
    let shard = world.shards.iter().find(|shard| shard.location() == *mapping.shard().location())?;
    let client = shard.connect(APPLICATION).await.ok()?;
    let sql = format!("BEGIN; SELECT __shard_management.enter('tenants', {})", mapping.low());
    client.batch_execute(&sql).await.ok().map(|()| client)
}

/// Brings the rows over that the backup does not have, and leaves none behind. So a row that is written at the old place
/// later shows.
async fn bring_over(server: &ShardServer, from: &str, to: &str) -> Result<(), tokio_postgres::Error> {
    let (old, new) = (server.connect_to(from, MANAGER).await?, server.connect_to(to, MANAGER).await?);
    for client in [&old, &new] {
        // Past the guard, and without a trace.
        client.batch_execute("SET session_replication_role = replica").await?;
    }
    for table in ["events", "guarded"] {
        let sql = format!("SELECT tenant, writer, n FROM {table}");
        let rows = old.query(sql.as_str(), &[]).await?;
        let tenants: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let writers: Vec<i32> = rows.iter().map(|row| row.get(1)).collect();
        let attempts: Vec<i64> = rows.iter().map(|row| row.get(2)).collect();
        let sql = format!(
            "INSERT INTO {table} SELECT tenant, writer, n
            FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS old (tenant, writer, n)
            WHERE NOT EXISTS (SELECT FROM {table} there WHERE there.n = old.n)"
        );
        new.execute(sql.as_str(), &[&tenants, &writers, &attempts]).await?;
        old.batch_execute(&format!("DELETE FROM {table}")).await?;
    }
    Ok(())
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

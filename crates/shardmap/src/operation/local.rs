//! The local map of a shard: how its rows are read and written.
//!
//! Each function says which rows must be there, so a step that is done twice has the same result. A step first raises
//! the map's epoch, so that late writes of an earlier owner are refused.

use rangehold_map::KeyRange;
use rangehold_map::shard::ShardMapping;
use uuid::Uuid;

use super::plan::Plan;
use crate::location::Location;
use crate::rows::{MapRow, ShardRow, local_mapping_values, read_local_mapping};
use crate::store::{Drain, Failure, Row, Schema, StoreError, Tx, Value, expect_version};

/// A mapping in a shard, with the fences of the mappings from which it was made.
pub(super) struct Held {
    pub(super) mapping: ShardMapping,
    former_fences: Vec<i64>,
}

/// Makes the tables of a shard if they do not exist.
pub(crate) async fn install_local(tx: &mut Tx) -> Result<(), StoreError> {
    tx.install(Schema::Local).await
}

/// Which of the map's shards this database says that it is; `None` if it is not one. A shard of another major version is
/// refused.
pub(crate) async fn read_local_shard(tx: &mut Tx, map: Uuid) -> Result<Option<ShardRow>, StoreError> {
    let columns = ShardRow::COLUMNS;
    let sql = format!(
        "select {columns}, version_major, version_minor from __shard_management.local_shards
        left join __shard_management.local_meta on one = 1 where map_id = $1"
    );
    let read = |mut row: Row| {
        let shard = ShardRow::read(&mut row)?;
        expect_version(&mut row).map(|()| shard)
    };
    match tx.query_one(&sql, &[map.into()]).await {
        Ok(row) => row.map(read).transpose(),
        Err(error) if error.failure == Failure::NoSchema => Ok(None),
        Err(error) => Err(error),
    }
}

/// Raises the map's epoch in this database. Fails if the epoch there is greater.
pub(crate) async fn raise_epoch(
    tx: &mut Tx,
    at: &Location,
    map: &MapRow,
    epoch: i64,
) -> Result<(), StoreError> {
    let sql = "insert into __shard_management.local_epochs as e (map_id, epoch) values ($1, $2)
        on conflict (map_id) do update set epoch = excluded.epoch where e.epoch <= excluded.epoch";
    if tx.execute(sql, &[map.id.into(), epoch.into()]).await? == 0 {
        let what = format!("map {:?} was written here by a later operation than {epoch}", map.name);
        return Err(StoreError::new(at, Failure::Outrun, what));
    }
    Ok(())
}

/// Writes the rows of the map and the shard.
pub(crate) async fn set_shard(
    tx: &mut Tx,
    map: &MapRow,
    shard: &ShardRow,
    epoch: i64,
) -> Result<(), StoreError> {
    let sql = "insert into __shard_management.local_maps (map_id, name, kind, key_type, epoch)
        values ($1, $2, $3, $4, $5)
        on conflict (map_id) do update set name = excluded.name, epoch = excluded.epoch";
    let mut values = map.values().to_vec();
    values.push(epoch.into());
    tx.execute(sql, &values).await?;
    let sql = "insert into __shard_management.local_shards
        (map_id, epoch, shard_id, version, protocol, server, port, database, online)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        on conflict (map_id) do update set epoch = excluded.epoch, shard_id = excluded.shard_id,
            version = excluded.version, protocol = excluded.protocol, server = excluded.server,
            port = excluded.port, database = excluded.database, online = excluded.online";
    let mut values = vec![map.id.into(), epoch.into()];
    values.extend(shard.values());
    tx.execute(sql, &values).await?;
    Ok(())
}

/// Deletes the map and everything that belongs to it here, except its epoch.
pub(super) async fn remove_shard(tx: &mut Tx, map: &MapRow) -> Result<(), StoreError> {
    for sql in [
        "delete from __shard_management.local_mappings where map_id = $1",
        "delete from __shard_management.local_shards where map_id = $1",
        "delete from __shard_management.local_maps where map_id = $1",
    ] {
        tx.execute(sql, &[map.id.into()]).await?;
    }
    Ok(())
}

/// Deletes mappings and inserts others.
pub(super) async fn replace(
    tx: &mut Tx,
    plan: &Plan,
    epoch: i64,
    goes: &[ShardMapping],
    comes: &[ShardMapping],
) -> Result<(), StoreError> {
    let mut was = Vec::new();
    for gone in goes {
        was.extend(read_held(tx, gone.id.0).await?);
    }
    // This comes before any row is locked, because a transaction that enters a key takes the fence first and then the
    // row. The transactions on keys that go away are always waited for, even if none may be ended. Otherwise two
    // databases would serve these keys.
    let closes = |held: &&Held| {
        let gone = &held.mapping;
        leaves(gone, comes) || plan.drain != Drain::Leave && gone.online && !is_served(gone, comes)
    };
    let closed = fences_of(was.iter().filter(closes));
    if !closed.is_empty() {
        tx.close_fences(&closed, plan.drain).await?;
    }
    let ids = |mappings: &[ShardMapping]| mappings.iter().map(|mapping| vec![mapping.id.0.into()]).collect();
    tx.execute_each("delete from __shard_management.local_mappings where mapping_id = $1", ids(goes)).await?;
    let into = "insert into __shard_management.local_mappings
        (map_id, epoch, former_fences, mapping_id, shard_id, low, high, online, fence)";
    let after = "on conflict (mapping_id) do update set epoch = excluded.epoch, online = excluded.online";
    let row = |mapping: &ShardMapping| {
        let former = fences_of(was.iter().filter(|held| overlap(&held.mapping.keys, &mapping.keys)));
        let former: Vec<i64> =
            former.into_iter().filter(|fence| *fence != mapping.fence && !closed.contains(fence)).collect();
        let mut values: Vec<Value> = vec![plan.map.id.into(), epoch.into(), former.as_slice().into()];
        values.extend(local_mapping_values(mapping));
        values
    };
    tx.insert(into, after, comes.iter().map(row).collect()).await?;
    Ok(())
}

const HELD: &str = "select mapping_id, shard_id, low, high, online, fence, former_fences
    from __shard_management.local_mappings where";

async fn read_held(tx: &mut Tx, id: Uuid) -> Result<Option<Held>, StoreError> {
    let row = tx.query_one(&format!("{HELD} mapping_id = $1"), &[id.into()]).await?;
    row.map(held).transpose()
}

pub(super) async fn read_all_held(tx: &mut Tx, map: &MapRow) -> Result<Vec<Held>, StoreError> {
    let rows = tx.query(&format!("{HELD} map_id = $1"), &[map.id.into()]).await?;
    rows.into_iter().map(held).collect()
}

fn held(mut row: Row) -> Result<Held, StoreError> {
    let mapping = read_local_mapping(&mut row)?;
    Ok(Held { mapping, former_fences: row.optional(Row::ints)?.unwrap_or_default() })
}

/// Each fence that a transaction on these keys may hold, once.
pub(super) fn fences_of<'a>(held: impl Iterator<Item = &'a Held>) -> Vec<i64> {
    let mut fences: Vec<i64> =
        held.flat_map(|held| held.former_fences.iter().copied().chain([held.mapping.fence])).collect();
    fences.sort_unstable();
    fences.dedup();
    fences
}

/// Whether none of this database's mappings holds the keys of a mapping afterwards.
fn leaves(gone: &ShardMapping, comes: &[ShardMapping]) -> bool {
    !comes.iter().any(|mapping| overlap(&mapping.keys, &gone.keys))
}

/// Whether the keys of a mapping are served here afterwards.
fn is_served(gone: &ShardMapping, comes: &[ShardMapping]) -> bool {
    comes.iter().any(|mapping| mapping.online && overlap(&mapping.keys, &gone.keys))
}

fn overlap(one: &KeyRange, other: &KeyRange) -> bool {
    !one.intersect(other).is_empty()
}

//! The local map of a shard: how its rows are read and written.
//!
//! Each function says which rows must be there, so a step that is done twice has the same result. A step first raises
//! the map's epoch, so that late writes of an earlier owner are refused.

use std::collections::HashSet;

use rangehold_map::KeyRange;
use rangehold_map::ordered::Keyed;
use rangehold_map::shard::{MappingId, ShardMapping};
use uuid::Uuid;

use crate::limits::MAPPINGS_OF_A_SHORT_CHANGE_MAX;
use crate::location::Location;
use crate::rows::{MapRow, ShardRow, read_local_mapping};
use crate::store::{Failure, Row, Schema, StoreError, Tx, expect_version};

/// A mapping in a shard, with the fences of the mappings from which it was made.
pub(super) struct Held {
    pub(super) mapping: ShardMapping,
    former_fences: Vec<i64>,
}

impl Keyed for Held {
    fn keys(&self) -> &KeyRange {
        &self.mapping.keys
    }
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

const HELD: &str =
    "select mapping_id, shard_id, low, high, online, fence, former_fences from __shard_management";

/// These mappings, if they are there. If they are many, the whole map is read, which takes one round trip.
pub(super) async fn read_these(
    tx: &mut Tx,
    map: &MapRow,
    these: &[ShardMapping],
) -> Result<Vec<Held>, StoreError> {
    if these.len() > MAPPINGS_OF_A_SHORT_CHANGE_MAX {
        let ids: HashSet<MappingId> = these.iter().map(|mapping| mapping.id).collect();
        let mut found = read_all_held(tx, map).await?;
        found.retain(|held| ids.contains(&held.mapping.id));
        return Ok(found);
    }
    let (mut found, sql) = (Vec::new(), format!("{HELD}.local_mappings where mapping_id = $1"));
    for mapping in these {
        let row = tx.query_one(&sql, &[mapping.id.0.into()]).await?;
        found.extend(row.map(held).transpose()?);
    }
    Ok(found)
}

pub(super) async fn read_all_held(tx: &mut Tx, map: &MapRow) -> Result<Vec<Held>, StoreError> {
    let rows = tx.query(&format!("{HELD}.local_mappings where map_id = $1"), &[map.id.into()]).await?;
    rows.into_iter().map(held).collect()
}

/// The mappings that were put away when the shard was closed, or began to be.
pub(super) async fn read_put_away(tx: &mut Tx, map: &MapRow) -> Result<Vec<Held>, StoreError> {
    let sql = format!("{HELD}.local_closed_mappings where map_id = $1");
    let rows = tx.query(&sql, &[map.id.into()]).await?;
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

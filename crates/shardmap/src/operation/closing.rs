//! Closes the local map of a shard that leaves its place, is detached, or is retired.
//!
//! The transactions on its keys are ended, and its mappings are put away, where no function finds them. So a client that
//! still comes here is refused, and looks the key up again. The map and the shard stay written down, with a version that
//! no global map has. So the database says later which shard it was, and can be opened again.

use rangehold_map::shard::ShardMapping;
use uuid::Uuid;

use super::local::{fences_of, install_local, read_all_held, remove_shard};
use crate::limits::DRAIN_GRACE;
use crate::location::Location;
use crate::rows::{MapRow, local_mapping_values};
use crate::store::{Drain, Failure, Row, StoreError, Tx, Value};

/// Ends the transactions on the map's keys here, and deletes the map.
pub(crate) async fn forget(tx: &mut Tx, map: &MapRow) -> Result<(), StoreError> {
    install_local(tx).await?;
    close(tx, map, Drain::End(DRAIN_GRACE)).await?;
    delete_closed(tx, map).await?;
    remove_shard(tx, map).await
}

/// The version of a shard that was closed. No shard of a global map has it.
pub(crate) const CLOSED: Uuid = Uuid::nil();

/// Closes the local map of another global map, which has the map's name or is not wanted here.
pub(crate) async fn retire(tx: &mut Tx, map: &MapRow) -> Result<(), StoreError> {
    install_local(tx).await?;
    close(tx, map, Drain::End(DRAIN_GRACE)).await
}

/// One name in one shard means one map. A closed map of the same name is deleted; an open one is an error.
pub(super) async fn expect_one_name(tx: &mut Tx, at: &Location, map: &MapRow) -> Result<(), StoreError> {
    let sql = "select m.map_id, m.name, m.kind, m.key_type, s.version from __shard_management.local_maps m
        left join __shard_management.local_shards s on s.map_id = m.map_id where m.map_id <> $1";
    for mut row in tx.query(sql, &[map.id.into()]).await? {
        let (other, version) = (MapRow::read(&mut row)?, row.optional(Row::uuid)?);
        if other.name.to_lowercase() != map.name.to_lowercase() {
            continue;
        }
        if version.is_some_and(|version| version != CLOSED) {
            let what = format!(
                "the database is a shard of another map {:?}, which another global map made: close that map with \
                `rangehold shards recover --retire {at} --map {}`",
                map.name, map.name
            );
            return Err(StoreError::new(at, Failure::OtherShard, what));
        }
        delete_closed(tx, &other).await?;
        remove_shard(tx, &other).await?;
    }
    Ok(())
}

/// The columns of a mapping in a shard.
const COLUMNS: &str = "mapping_id, map_id, shard_id, low, high, online, fence, former_fences, epoch";

/// Ends the transactions on the map's keys here, and puts its mappings away. From then on the keys are not here.
pub(super) async fn close(tx: &mut Tx, map: &MapRow, drain: Drain) -> Result<(), StoreError> {
    let held = read_all_held(tx, map).await?;
    tx.close_fences(&fences_of(held.iter()), drain).await?;
    let sql = format!(
        "insert into __shard_management.local_closed_mappings ({COLUMNS})
        select {COLUMNS} from __shard_management.local_mappings where map_id = $1 on conflict do nothing"
    );
    tx.execute(&sql, &[map.id.into()]).await?;
    tx.execute("delete from __shard_management.local_mappings where map_id = $1", &[map.id.into()]).await?;
    let sql = "update __shard_management.local_shards set version = $1 where map_id = $2";
    tx.execute(sql, &[CLOSED.into(), map.id.into()]).await.map(|_| ())
}

/// Puts mappings away that are not in the map.
pub(super) async fn put_away(
    tx: &mut Tx,
    map: &MapRow,
    epoch: i64,
    mappings: &[ShardMapping],
) -> Result<(), StoreError> {
    let into = "insert into __shard_management.local_closed_mappings
        (map_id, epoch, former_fences, mapping_id, shard_id, low, high, online, fence)";
    let row = |mapping: &ShardMapping| {
        let mut values: Vec<Value> = vec![map.id.into(), epoch.into(), [0_i64; 0].as_slice().into()];
        values.extend(local_mapping_values(mapping));
        values
    };
    tx.insert(into, "on conflict do nothing", mappings.iter().map(row).collect()).await.map(|_| ())
}

/// Gives the map the mappings back that were put away.
pub(super) async fn reopen(tx: &mut Tx, map: &MapRow) -> Result<(), StoreError> {
    let sql = format!(
        "insert into __shard_management.local_mappings ({COLUMNS})
        select {COLUMNS} from __shard_management.local_closed_mappings where map_id = $1 on conflict do nothing"
    );
    tx.execute(&sql, &[map.id.into()]).await?;
    delete_closed(tx, map).await
}

pub(super) async fn delete_closed(tx: &mut Tx, map: &MapRow) -> Result<(), StoreError> {
    let sql = "delete from __shard_management.local_closed_mappings where map_id = $1";
    tx.execute(sql, &[map.id.into()]).await.map(|_| ())
}

//! Closes the local map of a shard that leaves its place, is detached, or is retired.
//!
//! The transactions on its keys are ended, and its mappings are put away, where no function finds them. So a client that
//! still comes here is refused, and looks the key up again. The map and the shard stay written down, with a version that
//! no global map has. So the database says later which shard it was, and can be opened again.
//!
//! A fence takes one of the locks of the server when it is closed. A shard with many mappings would take all of them. So
//! it is closed in two transactions. After the first, no transaction enters, by any version of the fence's functions, and
//! the second waits for those that are inside, a few fences at a time.

use std::collections::HashSet;

use rangehold_map::shard::{MappingId, ShardMapping};
use uuid::Uuid;

use super::local::{Held, fences_of, install_local, read_all_held, read_put_away, remove_shard};
use crate::limits::{CLOSING_TRANSACTIONS_MAX, DRAIN_GRACE};
use crate::location::Location;
use crate::rows::{MapRow, local_mapping_values};
use crate::store::{Database, Drain, Failure, For, Row, StoreError, Tx, Value};

/// How far a closing has come in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Closing {
    /// No transaction is inside, and none can enter when this one is committed.
    Done,
    /// None can enter when this one is committed. The next one waits for those inside.
    Begun,
}

/// The version of a shard that was closed. No shard of a global map has it.
pub(crate) const CLOSED: Uuid = Uuid::nil();

/// Closes the local map of another global map, which has the map's name or is not wanted here.
pub(crate) async fn retire(database: &Database, map: &MapRow) -> Result<(), StoreError> {
    close_at(database, map, false).await
}

/// Ends the transactions on the map's keys here, and deletes the map.
pub(crate) async fn forget(database: &Database, map: &MapRow) -> Result<(), StoreError> {
    close_at(database, map, true).await
}

async fn close_at(database: &Database, map: &MapRow, forgets: bool) -> Result<(), StoreError> {
    for _ in 0..CLOSING_TRANSACTIONS_MAX {
        let mut tx = database.begin(For::Writing).await?;
        install_local(&mut tx).await?;
        let closing = close(&mut tx, map, Drain::End(DRAIN_GRACE)).await?;
        if forgets && closing == Closing::Done {
            delete_closed(&mut tx, map).await?;
            remove_shard(&mut tx, map).await?;
        }
        tx.commit().await?;
        if closing == Closing::Done {
            return Ok(());
        }
    }
    Err(StoreError::new(database.location(), Failure::Busy, CHANGES_AGAIN))
}

/// The error for a shard that does not close.
pub(super) const CHANGES_AGAIN: &str = "mappings came while the shard was being closed";

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

/// The table of mappings that were put away. Shards that an earlier version made get it when they are first closed.
pub(super) const CLOSED_MAPPINGS: &str = "local_closed_mappings";

/// The columns of a mapping in a shard.
const COLUMNS: &str = "mapping_id, map_id, shard_id, low, high, online, fence, former_fences, epoch";

/// Ends the transactions on the map's keys here, and puts its mappings away. From then on the keys are not here.
///
/// If the mappings are many, they are put away first, and those inside are waited for in the next transaction.
pub(super) async fn close(tx: &mut Tx, map: &MapRow, drain: Drain) -> Result<Closing, StoreError> {
    let here = read_all_held(tx, map).await?;
    let away = read_put_away(tx, map).await?;
    let fences = fences_of(here.iter().chain(&away));
    let is_large = fences.len() > tx.fences_at_once_max();
    if !is_large {
        tx.close_fences(&fences, drain).await?;
    }
    let id = [map.id.into()];
    let sql = format!(
        "insert into __shard_management.local_closed_mappings ({COLUMNS})
        select {COLUMNS} from __shard_management.local_mappings where map_id = $1 on conflict do nothing"
    );
    tx.execute(&sql, &id).await?;
    let sql = "delete from __shard_management.local_mappings where map_id = $1";
    if is_large && !here.is_empty() {
        tx.write_past(sql, &id, &fences, drain).await?;
        return Ok(Closing::Begun);
    }
    tx.execute(sql, &id).await?;
    if is_large {
        tx.pass_fences(&fences, drain).await?;
    }
    let sql = "update __shard_management.local_shards set version = $1 where map_id = $2";
    tx.execute(sql, &[CLOSED.into(), map.id.into()]).await?;
    Ok(Closing::Done)
}

/// Ends the transactions on the keys of mappings that go offline or away, and keeps others from entering until this
/// transaction ends.
///
/// If their fences are many, the mappings are put away first, and those inside are waited for in the next transaction
/// ([`forget_put_away`]). To take them offline would do, too, but the server needs 0.7 ms to update one of 50,000 rows.
pub(super) async fn close_some(
    tx: &mut Tx,
    closing: &[&Held],
    fences: &[i64],
    drain: Drain,
) -> Result<Closing, StoreError> {
    if fences.len() <= tx.fences_at_once_max() {
        tx.close_fences(fences, drain).await?;
        return Ok(Closing::Done);
    }
    install_local(tx).await?;
    // All in one statement: only PostgreSQL has fences.
    let ids: Vec<String> = closing.iter().map(|held| held.mapping.id.0.to_string()).collect();
    let ids = [format!("{{{}}}", ids.join(",")).as_str().into()];
    let these = "from __shard_management.local_mappings where mapping_id = any($1::text::uuid[])";
    let sql = format!(
        "insert into __shard_management.{CLOSED_MAPPINGS} ({COLUMNS}) select {COLUMNS} {these} on conflict do nothing"
    );
    tx.execute(&sql, &ids).await?;
    tx.write_past(&format!("delete {these}"), &ids, fences, drain).await?;
    Ok(Closing::Begun)
}

/// Waits for the transactions on the keys of mappings that were put away, and deletes these.
pub(super) async fn forget_put_away(
    tx: &mut Tx,
    map: &MapRow,
    these: &[ShardMapping],
    drain: Drain,
) -> Result<(), StoreError> {
    if these.is_empty() || !tx.has_table(CLOSED_MAPPINGS).await? {
        return Ok(());
    }
    let these: HashSet<MappingId> = these.iter().map(|mapping| mapping.id).collect();
    let mut away = read_put_away(tx, map).await?;
    away.retain(|held| these.contains(&held.mapping.id));
    tx.pass_fences(&fences_of(away.iter()), drain).await?;
    let ids: Vec<Uuid> = away.iter().map(|held| held.mapping.id.0).collect();
    tx.execute_for("delete from __shard_management.local_closed_mappings where mapping_id in", &ids).await?;
    Ok(())
}

/// Gives the map these mappings back, if a change that is undone has put them away.
pub(super) async fn reopen_these(tx: &mut Tx, these: &[ShardMapping]) -> Result<(), StoreError> {
    if these.is_empty() || !tx.has_table(CLOSED_MAPPINGS).await? {
        return Ok(());
    }
    let ids: Vec<Uuid> = these.iter().map(|mapping| mapping.id.0).collect();
    let sql = format!(
        "insert into __shard_management.local_mappings ({COLUMNS})
        select {COLUMNS} from __shard_management.{CLOSED_MAPPINGS}
        where mapping_id not in (select mapping_id from __shard_management.local_mappings) and mapping_id in"
    );
    tx.execute_for(&sql, &ids).await?;
    tx.execute_for("delete from __shard_management.local_closed_mappings where mapping_id in", &ids).await?;
    Ok(())
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

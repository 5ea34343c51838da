//! Detaches a shard: the global map forgets it. The shard is closed, so that its clients notice. A shard that is gone
//! for good is not asked, and is remembered as lost.

use uuid::Uuid;

use super::RecoveryManager;
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::operation::begin::lock_map;
use crate::operation::{Met, Plan, ShardRequest, Trouble};
use crate::rows::{MapRow, ShardRow, place};
use crate::store::{Drain, Row, Schema, Tx, Value};

/// The table of lost shards. Stores that an earlier version made get it when the first shard is lost.
pub(super) const LOST: &str = "global_lost_shards";

/// A shard that is to be forgotten, and the operation that holds it.
struct Known {
    map: MapRow,
    shard: ShardRow,
    operation: Option<Uuid>,
}

impl RecoveryManager {
    /// Takes a shard and its mappings out of the global map: out of all maps, or out of one. The shard is closed in the
    /// same operation: its transactions are ended after the grace of the manager's options, and it serves none of the keys.
    /// It keeps its local map, so that it can be attached again.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`]; [`Code::PendingOperation`] while an operation works on the shard;
    /// [`Code::StorageOperationFailure`] if the shard cannot be closed ([`RecoveryManager::detach_lost`]).
    pub async fn detach(&self, location: &Location, map: Option<&str>) -> Result<(), Error> {
        for known in self.all_known(location, map).await? {
            let drain = Drain::End(self.0.0.drain_grace);
            let request = ShardRequest::Detach { map: &known.map, shard: &known.shard, drain };
            self.0.0.operations.change_shard(&request).await?;
        }
        Ok(())
    }

    /// Takes a shard that is gone for good, and its mappings, out of the global map: out of all maps, or out of one.
    /// The shard is not asked. An abandoned operation on it continues without it. If the database is seen again, it is
    /// refused ([`RecoveryManager::attach_lost`]).
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`]; [`Code::PendingOperation`] while an operation works on the shard.
    pub async fn detach_lost(&self, location: &Location, map: Option<&str>) -> Result<(), Error> {
        let category = Category::Recovery;
        let known = self.all_known(location, map).await?;
        let operations = &self.0.0.operations;
        for operation in known.iter().filter_map(|known| known.operation) {
            // If an operation cannot be ended together with the shard, it is ended without the shard, below.
            if let Err(error) = operations.settle(&Met { operation }, category, false).await {
                let pending = self.0.pending_operations().await?;
                if pending.iter().any(|pending| pending.id == operation && !pending.abandoned) {
                    return Err(error);
                }
            }
        }
        let forgotten = self.give_up(location, map).await.map_err(|trouble| trouble.seen_by(category))?;
        for operation in forgotten {
            operations.settle(&Met { operation }, category, false).await?;
        }
        Ok(())
    }

    async fn all_known(&self, location: &Location, map: Option<&str>) -> Result<Vec<Known>, Error> {
        let known = self.known(location, map).await.map_err(|trouble| trouble.seen_by(Category::Recovery))?;
        if known.is_empty() {
            let text = format!("the global map has no shard at {location}");
            return Err(Error::new(Category::Recovery, Code::ShardDoesNotExist, text));
        }
        Ok(known)
    }

    async fn known(&self, location: &Location, map: Option<&str>) -> Result<Vec<Known>, Trouble> {
        let mut tx = self.0.reading().await?;
        let known = read_known(&mut tx, location, map).await?;
        tx.commit().await?;
        Ok(known)
    }

    /// Notes that the shard is lost. Deletes its rows, and its side of each operation that still holds it; returns these operations.
    async fn give_up(&self, location: &Location, map: Option<&str>) -> Result<Vec<Uuid>, Trouble> {
        let mut tx = self.0.writing().await?;
        if !tx.has_table(LOST).await? {
            tx.install(Schema::Global).await?;
        }
        // Each operation locks the row of its map when it begins. So none begins on these shards from here on.
        let mut maps: Vec<MapRow> =
            read_known(&mut tx, location, map).await?.into_iter().map(|known| known.map).collect();
        maps.sort_by_key(|map| map.id);
        for map in &maps {
            lock_map(&mut tx, map, Category::Recovery).await?;
        }
        let now = tx.now().await?;
        let mut left = Vec::new();
        for known in read_known(&mut tx, location, map).await? {
            if maps.iter().all(|map| map.id != known.map.id) {
                continue;
            }
            if let Some(operation) = known.operation {
                without(&mut tx, operation, location).await?;
                left.push(operation);
            }
            let sql = "insert into __shard_management.global_lost_shards (shard_id, map_id, place, lost_at)
                values ($1, $2, $3, $4) on conflict do nothing";
            let place = known.shard.location.to_string();
            let lost = [known.shard.id.into(), known.map.id.into(), place.as_str().into(), now.into()];
            tx.execute(sql, &lost).await?;
            let id: [Value; 1] = [known.shard.id.into()];
            tx.execute("delete from __shard_management.global_mappings where shard_id = $1", &id).await?;
            tx.execute("delete from __shard_management.global_shards where shard_id = $1", &id).await?;
        }
        tx.commit().await?;
        Ok(left)
    }
}

async fn read_known(tx: &mut Tx, location: &Location, map: Option<&str>) -> Result<Vec<Known>, Trouble> {
    let sql = "select m.map_id, m.name, m.kind, m.key_type,
            s.shard_id, s.version, s.protocol, s.server, s.port, s.database, s.online, s.operation_id
        from __shard_management.global_shards s
        join __shard_management.global_maps m on m.map_id = s.map_id
        where s.protocol = $1 and s.server = $2 and s.port = $3 and s.database in ($4, $7)
            and (m.name_key = $5 or $6)";
    let mut values: Vec<Value> = place(location).into();
    values.push(map.unwrap_or_default().to_lowercase().as_str().into());
    values.push(map.is_none().into());
    values.push(location.database_before().into());
    let read = |mut row: Row| {
        let (map, shard) = (MapRow::read(&mut row)?, ShardRow::read(&mut row)?);
        Ok(Known { map, shard, operation: row.optional(Row::uuid)? })
    };
    tx.query(sql, &values).await?.into_iter().map(read).collect()
}

/// Removes from the plan of an operation its side at a place.
async fn without(tx: &mut Tx, operation: Uuid, location: &Location) -> Result<(), Trouble> {
    let sql = "select plan from __shard_management.global_operations where operation_id = $1 for update";
    let Some(mut row) = tx.query_one(sql, &[operation.into()]).await? else {
        return Ok(());
    };
    let mut plan = Plan::read(&mut row)?;
    plan.sides.retain(|side| {
        side.at != *location && side.before.as_ref().is_none_or(|old| old.location != *location)
    });
    let sql = "update __shard_management.global_operations set plan = $1 where operation_id = $2";
    tx.execute(sql, &[plan.to_json().as_str().into(), operation.into()]).await?;
    Ok(())
}

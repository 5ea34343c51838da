//! Detaches a shard: the global map forgets it. The shard itself is not asked, because it may be lost.

use uuid::Uuid;

use super::RecoveryManager;
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::operation::{Met, Plan, Trouble};
use crate::rows::place;
use crate::store::{Row, Tx, Value};

/// A shard that is to be forgotten, and the operation that holds it.
struct Known {
    shard: Uuid,
    operation: Option<Uuid>,
}

impl RecoveryManager {
    /// Takes a shard and its mappings out of the global map: out of all maps, or out of one. The shard's own local
    /// map stays as it is. An abandoned operation on the shard continues without it.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`]; [`Code::PendingOperation`] while an operation works on the shard.
    pub async fn detach(&self, location: &Location, map: Option<&str>) -> Result<(), Error> {
        let category = Category::Recovery;
        let known = self.known(location, map).await.map_err(|trouble| trouble.seen_by(category))?;
        if known.is_empty() {
            let text = format!("the global map has no shard at {location}");
            return Err(Error::new(category, Code::ShardDoesNotExist, text));
        }
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
        let forgotten = self.forget(location, map).await.map_err(|trouble| trouble.seen_by(category))?;
        for operation in forgotten {
            operations.settle(&Met { operation }, category, false).await?;
        }
        Ok(())
    }

    async fn known(&self, location: &Location, map: Option<&str>) -> Result<Vec<Known>, Trouble> {
        let mut tx = self.0.reading().await?;
        let known = read_known(&mut tx, location, map).await?;
        tx.commit().await?;
        Ok(known)
    }

    /// Deletes the shard's rows, and its side of each operation that still holds it; returns these operations.
    async fn forget(&self, location: &Location, map: Option<&str>) -> Result<Vec<Uuid>, Trouble> {
        let mut tx = self.0.writing().await?;
        let lock = "select serial from __shard_management.global_meta where one = 1 for update";
        tx.query(lock, &[]).await?;
        let mut left = Vec::new();
        for known in read_known(&mut tx, location, map).await? {
            if let Some(operation) = known.operation {
                without(&mut tx, operation, location).await?;
                left.push(operation);
            }
            let id: [Value; 1] = [known.shard.into()];
            tx.execute("delete from __shard_management.global_mappings where shard_id = $1", &id).await?;
            tx.execute("delete from __shard_management.global_shards where shard_id = $1", &id).await?;
        }
        tx.commit().await?;
        Ok(left)
    }
}

async fn read_known(tx: &mut Tx, location: &Location, map: Option<&str>) -> Result<Vec<Known>, Trouble> {
    let sql = "select s.shard_id, s.operation_id from __shard_management.global_shards s
        join __shard_management.global_maps m on m.map_id = s.map_id
        where s.protocol = $1 and s.server = $2 and s.port = $3 and s.database in ($4, $7)
            and (m.name_key = $5 or $6)";
    let mut values: Vec<Value> = place(location).into();
    values.push(map.unwrap_or_default().to_lowercase().as_str().into());
    values.push(map.is_none().into());
    values.push(location.database_before().into());
    let read = |mut row: Row| Ok(Known { shard: row.uuid()?, operation: row.optional(Row::uuid)? });
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

//! The last step, forward or back: writes the global map, if the operation is still ours.

use uuid::Uuid;

use super::begin::insert_mappings;
use super::numbers::take;
use super::plan::{Direction, OperationKind, Side};
use super::{Operations, Owned, Step, Trouble};
use crate::rows::{ShardRow, place};
use crate::store::{Failure, StoreError, Tx, Value};

/// Whether an operation is in the log, and ours.
enum Log {
    /// It is in the log with our epoch.
    Ours,
    /// It has ended: done or undone, by this process or by another.
    Ended,
}

impl Operations {
    /// The global end or the undo end, depending on the direction of the operation.
    ///
    /// If the operation has ended before, succeeds if it ended in this direction.
    pub(super) async fn end(&self, operation: &Owned) -> Result<(), Trouble> {
        let mut tx = self.global.begin(operation.step()).await?;
        if matches!(self.hold_log(&mut tx, operation).await?, Log::Ended) {
            // Either an answer was lost, and this is the second attempt; or another process took the operation over
            // and ended it. The rows of the global map show whether the operation was done.
            return self.ended_before(&mut tx, operation).await;
        }
        match operation.direction {
            Direction::Forward => finish(&mut tx, operation).await?,
            Direction::Back => restore(&mut tx, operation).await?,
        }
        let sql = "delete from __shard_management.global_operations where operation_id = $1";
        tx.execute(sql, &[operation.id.into()]).await?;
        let step = match operation.direction {
            Direction::Forward => Step::GlobalEnd,
            Direction::Back => Step::UndoEnd,
        };
        self.commit(tx, operation, step).await
    }

    /// Locks the log row of an operation. It must still have our epoch.
    async fn hold_log(&self, tx: &mut Tx, operation: &Owned) -> Result<Log, StoreError> {
        let sql = "select epoch from __shard_management.global_operations where operation_id = $1 for update";
        let Some(mut row) = tx.query_one(sql, &[operation.id.into()]).await? else {
            return Ok(Log::Ended);
        };
        if row.int()? == operation.epoch { Ok(Log::Ours) } else { Err(self.outrun(operation)) }
    }

    pub(super) fn outrun(&self, operation: &Owned) -> StoreError {
        let text = format!("operation {} was taken over by another process", operation.id);
        StoreError::new(&self.global_location, Failure::Outrun, text)
    }

    async fn ended_before(&self, tx: &mut Tx, operation: &Owned) -> Result<(), Trouble> {
        // The global map does not show a repair. A repair that is done twice has the same result as one.
        let done = operation.kind == OperationKind::RepairShard || is_done(tx, operation).await?;
        if done == (operation.direction == Direction::Forward) {
            Ok(())
        } else {
            Err(self.outrun(operation).into())
        }
    }

    /// Decides that the operation is undone, and takes a new epoch. From then on, late writes of the steps forward
    /// are refused.
    pub(super) async fn turn_back(&self, operation: &mut Owned) -> Result<(), Trouble> {
        let mut tx = self.global.begin(operation.step()).await?;
        if matches!(self.hold_log(&mut tx, operation).await?, Log::Ended) {
            return Err(self.outrun(operation).into());
        }
        let epoch = take(&mut tx, 0, 1).await?;
        let now = tx.now().await?;
        let sql = "update __shard_management.global_operations
            set direction = 'back', epoch = $1, lease_until = $2 where operation_id = $3";
        tx.execute(sql, &[epoch.into(), self.lease_end(now).into(), operation.id.into()]).await?;
        self.commit(tx, operation, Step::TurnBack).await?;
        operation.epoch = epoch;
        operation.direction = Direction::Back;
        Ok(())
    }

    /// Sets the end of the lease. If the owner gives up, that is now.
    pub(super) async fn set_lease(&self, operation: &Owned, give_up: bool) -> Result<(), StoreError> {
        let mut tx = self.global.begin(operation.step()).await?;
        let now = tx.now().await?;
        let until = if give_up { now } else { self.lease_end(now) };
        let sql = "update __shard_management.global_operations set lease_until = $1
            where operation_id = $2 and epoch = $3";
        tx.execute(sql, &[until.into(), operation.id.into(), operation.epoch.into()]).await?;
        tx.commit().await
    }
}

/// Whether the global map is as the operation leaves it when it is done.
async fn is_done(tx: &mut Tx, operation: &Owned) -> Result<bool, StoreError> {
    let sides = &operation.plan.sides;
    if let OperationKind::MoveShard | OperationKind::DetachShard | OperationKind::AttachShard = operation.kind
    {
        return is_shard_done(tx, sides).await;
    }
    if let Some(mapping) = sides.iter().flat_map(|side| &side.comes).next() {
        let sql = "select 1 from __shard_management.global_mappings where mapping_id = $1 and readable";
        return Ok(tx.query_one(sql, &[mapping.id.into()]).await?.is_some());
    }
    if let Some(mapping) = sides.iter().flat_map(|side| &side.goes).next() {
        let sql = "select 1 from __shard_management.global_mappings where mapping_id = $1";
        return Ok(tx.query_one(sql, &[mapping.id.into()]).await?.is_none());
    }
    is_shard_done(tx, sides).await
}

/// Whether the global map has the shard as the operation leaves it.
async fn is_shard_done(tx: &mut Tx, sides: &[Side]) -> Result<bool, StoreError> {
    let Some(side) = sides.iter().find(|side| side.before.is_some() || side.after.is_some()) else {
        return Ok(true);
    };
    let shard = side.after.as_ref().or(side.before.as_ref()).map(|shard| shard.id);
    let sql = "select version from __shard_management.global_shards where shard_id = $1 and readable";
    let found = tx.query_one(sql, &[shard.into()]).await?.map(|mut row| row.uuid()).transpose()?;
    Ok(found == side.after.as_ref().map(|shard| shard.version))
}

/// Writes the global map as the operation wants it.
async fn finish(tx: &mut Tx, operation: &Owned) -> Result<(), Trouble> {
    if operation.kind == OperationKind::RepairShard {
        return restore(tx, operation).await;
    }
    // The mappings that leave a shard which is attached are its own. The global map has their keys on other shards.
    if operation.kind != OperationKind::AttachShard {
        finish_mappings(tx, operation).await?;
    }
    for side in &operation.plan.sides {
        match &side.after {
            Some(after) => set_shard(tx, operation, after).await?,
            None if operation.kind == OperationKind::DetachShard => {
                let id = side.before.as_ref().map(|shard| shard.id);
                let sql = "delete from __shard_management.global_mappings where shard_id = $1";
                tx.execute(sql, &[id.into()]).await?;
                remove_shard(tx, side).await?;
            }
            None => remove_shard(tx, side).await?,
        }
    }
    Ok(())
}

async fn finish_mappings(tx: &mut Tx, operation: &Owned) -> Result<(), Trouble> {
    let effect = operation.plan.effect().unwrap_or_default();
    if effect.goes.is_empty() {
        let sql = "update __shard_management.global_mappings set readable = $2, operation_id = null
            where operation_id = $1";
        tx.execute(sql, &[operation.id.into(), true.into()]).await?;
        return Ok(());
    }
    let goes: Vec<_> = operation.plan.sides.iter().flat_map(|side| &side.goes).map(|row| row.id).collect();
    tx.execute_for("delete from __shard_management.global_mappings where mapping_id in", &goes).await?;
    Ok(insert_mappings(tx, operation, &effect.comes, true).await?)
}

/// Writes the global map as it was before.
async fn restore(tx: &mut Tx, operation: &Owned) -> Result<(), Trouble> {
    let id: [Value; 1] = [operation.id.into()];
    let sql = "delete from __shard_management.global_mappings where operation_id = $1 and not readable";
    tx.execute(sql, &id).await?;
    let sql = "update __shard_management.global_mappings set operation_id = null where operation_id = $1";
    tx.execute(sql, &id).await?;
    let sql = "delete from __shard_management.global_shards where operation_id = $1 and not readable";
    tx.execute(sql, &id).await?;
    let sql = "update __shard_management.global_shards set operation_id = null where operation_id = $1";
    tx.execute(sql, &id).await?;
    Ok(())
}

async fn set_shard(tx: &mut Tx, operation: &Owned, shard: &ShardRow) -> Result<(), StoreError> {
    let sql =
        "update __shard_management.global_shards set version = $2, online = $3, readable = $4, epoch = $5,
            protocol = $6, server = $7, port = $8, database = $9, operation_id = null
        where shard_id = $1";
    let mut values: Vec<Value> =
        vec![shard.id.into(), shard.version.into(), shard.online.into(), true.into(), operation.epoch.into()];
    values.extend(place(&shard.location));
    tx.execute(sql, &values).await.map(|_| ())
}

async fn remove_shard(tx: &mut Tx, side: &Side) -> Result<(), StoreError> {
    let gone: Option<Uuid> = side.before.as_ref().map(|shard| shard.id);
    let sql = "delete from __shard_management.global_shards where shard_id = $1";
    tx.execute(sql, &[gone.into()]).await.map(|_| ())
}

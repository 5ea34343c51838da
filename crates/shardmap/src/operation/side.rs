//! The step in a shard: does what the plan says about one side, or undoes it.

use rangehold_map::shard::ShardMapping;

use super::closing::{
    CLOSED, Closing, close, delete_closed, expect_one_name, forget_put_away, put_away, reopen, reopen_these,
};
use super::local::{install_local, raise_epoch, read_all_held, read_local_shard, remove_shard, set_shard};
use super::plan::{Direction, OperationKind, Role, Side};
use super::replacing::{replace, replace_held};
use super::{Owned, identity};
use crate::location::Location;
use crate::rows::MappingRow;
use crate::store::{Failure, StoreError, Tx};

/// Whether a step has something to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// The step wrote its rows.
    Written,
    /// The step has begun to close many keys. When this is committed, it must be applied again.
    Begun,
    /// The database is another shard, which the operation never wrote. There is nothing to undo.
    NotOurs,
}

/// Writes the local map of one side, for the direction of the operation.
///
/// The database must say that it is the shard of this side. A step forward is refused by another shard. A step back
/// leaves another shard as it is.
pub(super) async fn apply(
    tx: &mut Tx,
    operation: &Owned,
    side: &Side,
    direction: Direction,
) -> Result<Applied, StoreError> {
    // A new shard has no tables, and an old one may have those of an earlier version. They are made even if the
    // operation is being undone, because the epoch must be written.
    let kind = operation.kind;
    if matches!(kind, OperationKind::AddShard | OperationKind::AttachShard | OperationKind::RepairShard)
        || side.role != Role::Changes
    {
        install_local(tx).await?;
    }
    // The row of the epoch is locked from here on, so no other operation of the map changes what the database says.
    raise_epoch(tx, &side.at, &operation.plan.map, operation.epoch).await?;
    if let Err(refused) = identity::compare(tx, operation, side, direction).await? {
        let removes = direction == Direction::Back || side.after.is_none();
        return if removes { Ok(Applied::NotOurs) } else { Err(refused) };
    }
    let closing = match side.role {
        Role::Changes => apply_change(tx, operation, side, direction).await?,
        Role::Closes => apply_closing(tx, operation, side, direction).await?,
        Role::Opens => apply_opening(tx, operation, side, direction).await?,
    };
    Ok(match closing {
        Closing::Done => Applied::Written,
        Closing::Begun => Applied::Begun,
    })
}

/// Writes the shard, and the mappings that go and come.
async fn apply_change(
    tx: &mut Tx,
    operation: &Owned,
    side: &Side,
    direction: Direction,
) -> Result<Closing, StoreError> {
    let plan = &operation.plan;
    let (goes, comes, shard) = match direction {
        Direction::Forward => (&side.goes, &side.comes, side.after.as_ref()),
        Direction::Back => (&side.comes, &side.goes, side.before_local.as_ref()),
    };
    let Some(shard) = shard else {
        remove_shard(tx, &plan.map).await?;
        return Ok(Closing::Done);
    };
    let (goes, comes) = (mappings(&side.at, goes)?, mappings(&side.at, comes)?);
    match (operation.kind, direction) {
        (OperationKind::AttachShard, Direction::Forward) => {
            // Those that leave do not come back first.
            forget_put_away(tx, &plan.map, &goes, plan.drain).await?;
            reopen(tx, &plan.map).await?;
        }
        (OperationKind::AttachShard, Direction::Back) if shard.version == CLOSED => {
            // Those that left were put away before, as all others.
            put_away(tx, &plan.map, operation.epoch, &comes).await?;
            let closing = close(tx, &plan.map, plan.drain).await?;
            if closing == Closing::Done {
                set_shard(tx, &plan.map, shard, operation.epoch).await?;
            }
            return Ok(closing);
        }
        (_, Direction::Back) => reopen_these(tx, &comes).await?,
        _ => {}
    }
    let opens = [OperationKind::AddShard, OperationKind::AttachShard, OperationKind::RepairShard];
    if opens.contains(&operation.kind) && direction == Direction::Forward {
        expect_one_name(tx, &side.at, &plan.map).await?;
    }
    set_shard(tx, &plan.map, shard, operation.epoch).await?;
    let closing = replace(tx, plan, operation.epoch, &goes, &comes).await?;
    let is_new = matches!(operation.kind, OperationKind::AddShard | OperationKind::RepairShard);
    if is_new && closing == Closing::Done {
        delete_closed(tx, &plan.map).await?;
    }
    Ok(closing)
}

/// Closes the shard at a place that it leaves; back, opens it there again.
async fn apply_closing(
    tx: &mut Tx,
    operation: &Owned,
    side: &Side,
    direction: Direction,
) -> Result<Closing, StoreError> {
    let plan = &operation.plan;
    if direction == Direction::Back {
        reopen(tx, &plan.map).await?;
        if let Some(shard) = &side.before_local {
            set_shard(tx, &plan.map, shard, operation.epoch).await?;
        }
        return Ok(Closing::Done);
    }
    // One database may have both places. Then it may be open again already, with the next version.
    let opens = plan.sides.iter().find(|side| side.role == Role::Opens);
    let opened = opens.and_then(|side| side.after.as_ref()).map(|shard| shard.version);
    let here = read_local_shard(tx, plan.map.id).await?.map(|shard| shard.version);
    if opened.is_some() && opened == here {
        return Ok(Closing::Done);
    }
    close(tx, &plan.map, plan.drain).await
}

/// Opens the shard at its new place with the mappings of the global map. Back, only the shard's own row is as before,
/// because the mappings of the global map were right before, too.
async fn apply_opening(
    tx: &mut Tx,
    operation: &Owned,
    side: &Side,
    direction: Direction,
) -> Result<Closing, StoreError> {
    let plan = &operation.plan;
    let forward = direction == Direction::Forward;
    if forward {
        expect_one_name(tx, &side.at, &plan.map).await?;
    }
    let shard = if forward { &side.after } else { &side.before_local };
    if let Some(shard) = shard {
        set_shard(tx, &plan.map, shard, operation.epoch).await?;
    }
    if !forward {
        return Ok(Closing::Done);
    }
    delete_closed(tx, &plan.map).await?;
    let here = read_all_held(tx, &plan.map).await?;
    replace_held(tx, plan, operation.epoch, here, &mappings(&side.at, &side.comes)?).await
}

fn mappings(at: &Location, rows: &[MappingRow]) -> Result<Vec<ShardMapping>, StoreError> {
    let all = rows.iter().map(MappingRow::mapping).collect::<Option<_>>();
    all.ok_or_else(|| StoreError::new(at, Failure::Damaged, "a plan has keys that do not read"))
}

//! The step in a shard: does what the plan says about one side, or undoes it.

use rangehold_map::shard::ShardMapping;

use super::local::{install_local, raise_epoch, remove_shard, replace, set_shard};
use super::plan::{Direction, OperationKind, Side};
use super::{Owned, identity};
use crate::location::Location;
use crate::rows::MappingRow;
use crate::store::{Failure, StoreError, Tx};

/// Whether a step has something to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// The step wrote its rows.
    Written,
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
    let plan = &operation.plan;
    let (goes, comes, shard) = match direction {
        Direction::Forward => (&side.goes, &side.comes, side.after.as_ref()),
        Direction::Back => (&side.comes, &side.goes, side.before_local.as_ref()),
    };
    // A new shard has no tables. They are made even if the operation is being undone, because the epoch must be
    // written.
    if matches!(operation.kind, OperationKind::AddShard | OperationKind::AttachShard) {
        install_local(tx).await?;
    }
    // The row of the epoch is locked from here on, so no other operation of the map changes what the database says.
    raise_epoch(tx, &side.at, &plan.map, operation.epoch).await?;
    if let Err(refused) = identity::compare(tx, operation, side, direction).await? {
        let removes = direction == Direction::Back || side.after.is_none();
        return if removes { Ok(Applied::NotOurs) } else { Err(refused) };
    }
    match shard {
        Some(shard) => set_shard(tx, &plan.map, shard, operation.epoch).await?,
        None => {
            remove_shard(tx, &plan.map).await?;
            return Ok(Applied::Written);
        }
    }
    let (goes, comes) = (mappings(&side.at, goes)?, mappings(&side.at, comes)?);
    replace(tx, plan, operation.epoch, &goes, &comes).await?;
    Ok(Applied::Written)
}

fn mappings(at: &Location, rows: &[MappingRow]) -> Result<Vec<ShardMapping>, StoreError> {
    let all = rows.iter().map(MappingRow::mapping).collect::<Option<_>>();
    all.ok_or_else(|| StoreError::new(at, Failure::Damaged, "a plan has keys that do not read"))
}

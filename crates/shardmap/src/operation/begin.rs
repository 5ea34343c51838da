//! The first step of a change of mappings: the decision, and the log row.

use rangehold_map::KeyRange;
use rangehold_map::shard::{Effect, Fresh, ShardChange, ShardId, ShardMap, ShardMapping};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::numbers::{read_serial, set_serial};
use super::plan::{OperationKind, Plan, Side};
use super::{Met, Operations, Owned, Trouble};
use crate::error::{Category, Code, Error};
use crate::limits::{MAPPINGS_OF_A_SHORT_CHANGE_MAX, MAPPINGS_PER_OPERATION_MAX};
use crate::rows::{MAPPING_COLUMNS, MapRow, Marked, ShardRow, mapping_values, read_mapping};
use crate::store::{Drain, Failure, For, StoreError, Tx, Value};

/// How the first step ended.
pub(super) enum Begun {
    /// There is nothing to do.
    Nothing,
    /// The operation is in the log, and ours.
    Started(Box<Owned>),
    /// The operation of another process is in the way.
    Met(Met),
}

/// A request for a change of mappings.
pub(crate) struct ChangeRequest<'a> {
    pub(crate) map: &'a MapRow,
    pub(crate) change: &'a ShardChange,
    /// If keys go offline or away, what becomes of their transactions.
    pub(crate) drain: Drain,
}

impl ChangeRequest<'_> {
    fn kind(&self) -> OperationKind {
        match self.change {
            ShardChange::Add(_) => OperationKind::AddMappings,
            ShardChange::Delete { .. } => OperationKind::RemoveMapping,
            ShardChange::Update { .. } => OperationKind::UpdateMapping,
            ShardChange::Split { .. } => OperationKind::SplitMapping,
            ShardChange::Merge { .. } => OperationKind::MergeMappings,
        }
    }

    pub(super) fn category(&self) -> Category {
        category(self.map)
    }
}

/// The category of errors about the mappings of a map.
pub(crate) fn category(map: &MapRow) -> Category {
    match map.kind() {
        rangehold_map::shard::MapKind::List => Category::ListShardMap,
        rangehold_map::shard::MapKind::Range => Category::RangeShardMap,
    }
}

impl Operations {
    /// The global begin of a change of mappings.
    pub(super) async fn begin_change(&self, id: Uuid, request: &ChangeRequest<'_>) -> Result<Begun, Trouble> {
        let mut tx = self.global.begin(For::Writing).await?;
        let map = lock_map(&mut tx, request.map, request.category()).await?;
        let near = near(&mut tx, &map, request.change).await?;
        if let Some(operation) = near.iter().find_map(|near| near.operation) {
            return Ok(Begun::Met(Met { operation }));
        }
        let now = tx.now().await?;
        // A long change takes its epoch and its fences at once. Of a short one, the fences are counted when it is decided.
        let reserved = match request.change {
            ShardChange::Add(new) if new.len() > MAPPINGS_OF_A_SHORT_CHANGE_MAX => {
                Some(self.take_numbers(&mut tx, 0, 1 + new.len(), new.len()).await?)
            }
            _ => None,
        };
        let epoch = match reserved {
            Some(first) => first,
            None => read_serial(&mut tx).await? + 1,
        };
        let mut serial = epoch;
        let effect = self.decide(&map, near, request, now, &mut serial)?;
        if effect == Effect::default() {
            return Ok(Begun::Nothing);
        }
        let mut sides = Vec::new();
        for shard in shards_of(&effect) {
            match read_shard(&mut tx, &map, shard).await? {
                None => return Err(no_such_shard(request.category(), shard).into()),
                Some(Marked { operation: Some(operation), .. }) => return Ok(Begun::Met(Met { operation })),
                Some(shard) => sides.push(Side::staying(&shard.row, &effect)),
            }
        }
        let plan = Plan { map, sides, drain: request.drain };
        let owned = Owned::new(id, request.kind(), epoch, plan);
        if reserved.is_none() {
            set_serial(&mut tx, serial).await?;
        }
        self.log(&mut tx, &owned).await?;
        mark(&mut tx, &owned, &effect).await.map_err(|error| taken_meanwhile(error, request))?;
        self.commit(tx, &owned, super::Step::GlobalBegin).await?;
        Ok(Begun::Started(Box::new(owned)))
    }

    /// Applies the rules to a change. `serial` is the last number that was given; fences get the next ones.
    fn decide(
        &self,
        map: &MapRow,
        near: Vec<Marked<ShardMapping>>,
        request: &ChangeRequest<'_>,
        now: i64,
        serial: &mut i64,
    ) -> Result<Effect, Error> {
        let rows = ShardMap::new(map.kind(), near.into_iter().map(|near| near.row).collect());
        let mut next_fence = || {
            *serial += 1;
            *serial
        };
        let mut fresh = Fresh { id: &mut || self.chance.id(), fence: &mut next_fence };
        let applied = rows.apply(request.change, now, &mut fresh);
        applied.map_err(|refused| Error::refused(request.category(), map.key_type(), &refused))
    }

    /// Writes the log row.
    pub(super) async fn log(&self, tx: &mut Tx, operation: &Owned) -> Result<(), StoreError> {
        let now = tx.now().await?;
        let sql = "insert into __shard_management.global_operations
            (operation_id, map_id, epoch, kind, owner, lease_until, direction, began_at, plan)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let values: [Value; 9] = [
            operation.id.into(),
            operation.plan.map.id.into(),
            operation.epoch.into(),
            operation.kind.name().into(),
            self.owner.as_str().into(),
            self.lease_end(now).into(),
            operation.direction.name().into(),
            now.into(),
            operation.plan.to_json().as_str().into(),
        ];
        tx.execute(sql, &values).await.map(|_| ())
    }

    /// When a lease that begins now ends.
    pub(super) fn lease_end(&self, now: i64) -> i64 {
        now.saturating_add(i64::try_from(self.lease.as_micros()).unwrap_or(i64::MAX))
    }
}

/// The error for a mapping that another process inserted between our look and our insertion.
fn taken_meanwhile(error: StoreError, request: &ChangeRequest<'_>) -> Trouble {
    if !matches!(error.failure, Failure::Overlap | Failure::Duplicate) {
        return error.into();
    }
    let code = match request.category() {
        Category::ListShardMap => Code::MappingPointAlreadyMapped,
        _ => Code::MappingRangeAlreadyMapped,
    };
    let text = "some of these keys are mapped: choose other keys, or delete those mappings";
    Error::new(request.category(), code, text).because(error).into()
}

fn no_such_shard(category: Category, shard: ShardId) -> Error {
    Error::new(category, Code::ShardDoesNotExist, format!("shard {shard} is not in the map, or no longer"))
}

/// Locks the map's row, so that changes of one map are decided one after the other.
pub(crate) async fn lock_map(tx: &mut Tx, map: &MapRow, category: Category) -> Result<MapRow, Trouble> {
    let columns = MapRow::COLUMNS;
    let sql = format!("select {columns} from __shard_management.global_maps where map_id = $1 for update");
    match tx.query_one(&sql, &[map.id.into()]).await? {
        Some(mut row) => Ok(MapRow::read(&mut row)?),
        None => {
            let text = format!("shard map {:?} was deleted", map.name);
            Err(Error::new(category, Code::ShardMapDoesNotExist, text).into())
        }
    }
}

/// One shard of a map, with the operation that holds it.
pub(crate) async fn read_shard(
    tx: &mut Tx,
    map: &MapRow,
    shard: ShardId,
) -> Result<Option<Marked<ShardRow>>, StoreError> {
    let columns = ShardRow::COLUMNS;
    let sql = format!(
        "select {columns}, readable, operation_id from __shard_management.global_shards
        where shard_id = $1 and map_id = $2"
    );
    let row = tx.query_one(&sql, &[shard.0.into(), map.id.into()]).await?;
    row.map(|mut row| Marked::read(&mut row, ShardRow::read)).transpose()
}

/// The shards that a change touches. The shard that keys leave is the first.
fn shards_of(effect: &Effect) -> Vec<ShardId> {
    let mut seen = BTreeSet::new();
    let all = effect.goes.iter().chain(&effect.comes).map(|mapping| mapping.shard);
    all.filter(|shard| seen.insert(*shard)).collect()
}

/// The mappings that the rules need to judge a change.
async fn near(
    tx: &mut Tx,
    map: &MapRow,
    change: &ShardChange,
) -> Result<Vec<Marked<ShardMapping>>, StoreError> {
    let ids = match change {
        ShardChange::Add(new) => {
            let low = new.iter().map(|new| new.keys.low()).min().unwrap_or_default();
            let ends = || new.iter().map(|new| new.keys.high());
            let high = if ends().any(|high| high.is_none()) { None } else { ends().flatten().max() };
            let hull = KeyRange::new(low.to_vec(), high.map(<[u8]>::to_vec));
            return overlapping(tx, map, &hull, MAPPINGS_PER_OPERATION_MAX).await;
        }
        ShardChange::Delete { mapping, .. }
        | ShardChange::Update { mapping, .. }
        | ShardChange::Split { mapping, .. } => vec![*mapping],
        ShardChange::Merge { left, right, .. } if left == right => vec![*left],
        ShardChange::Merge { left, right, .. } => vec![*left, *right],
    };
    let sql = format!(
        "select {MAPPING_COLUMNS}, readable, operation_id from __shard_management.global_mappings
        where mapping_id = $1 and map_id = $2"
    );
    let mut found = Vec::new();
    for id in ids {
        if let Some(mut row) = tx.query_one(&sql, &[id.0.into(), map.id.into()]).await? {
            found.push(Marked::read(&mut row, read_mapping)?);
        }
    }
    Ok(found)
}

/// The mappings that hold some of `keys`, in the order of their keys, but not more than a limit.
pub(crate) async fn overlapping(
    tx: &mut Tx,
    map: &MapRow,
    keys: &KeyRange,
    count_max: usize,
) -> Result<Vec<Marked<ShardMapping>>, StoreError> {
    let select = format!(
        "select {MAPPING_COLUMNS}, readable, operation_id from __shard_management.global_mappings
        where map_id = $1"
    );
    // Mappings do not overlap. So of those that begin below `keys`, only the nearest one can reach into it.
    let below = format!("{select} and low < $2 order by low desc limit 1");
    let mut rows = tx.query(&below, &[map.id.into(), keys.low().into()]).await?;
    let limit = i64::try_from(count_max).unwrap_or(i64::MAX);
    let mut values: Vec<Value> = vec![map.id.into(), keys.low().into(), limit.into()];
    let inside = match keys.high() {
        None => format!("{select} and low >= $2 order by low limit $3"),
        Some(high) => {
            values.push(high.into());
            format!("{select} and low >= $2 and low < $4 order by low limit $3")
        }
    };
    rows.extend(tx.query(&inside, &values).await?);
    let mut found = Vec::new();
    for mut row in rows {
        let mapping = Marked::read(&mut row, read_mapping)?;
        if !mapping.row.keys.intersect(keys).is_empty() {
            found.push(mapping);
        }
    }
    Ok(found)
}

/// Marks the rows that the operation holds, and inserts new rows that are not readable yet.
async fn mark(tx: &mut Tx, operation: &Owned, effect: &Effect) -> Result<(), StoreError> {
    for side in &operation.plan.sides {
        let Some(shard) = &side.before else { continue };
        let sql =
            "update __shard_management.global_shards set operation_id = $1, epoch = $2 where shard_id = $3";
        tx.execute(sql, &[operation.id.into(), operation.epoch.into(), shard.id.into()]).await?;
    }
    let sql =
        "update __shard_management.global_mappings set operation_id = $1, epoch = $2 where mapping_id = $3";
    let held =
        |mapping: &ShardMapping| vec![operation.id.into(), operation.epoch.into(), mapping.id.0.into()];
    tx.execute_each(sql, effect.goes.iter().map(held).collect()).await?;
    if effect.goes.is_empty() {
        insert_mappings(tx, operation, &effect.comes, false).await?;
    }
    Ok(())
}

/// Marks a shard as held by an operation.
pub(super) async fn mark_shard(tx: &mut Tx, operation: &Owned, shard: Uuid) -> Result<(), StoreError> {
    let sql = "update __shard_management.global_shards set operation_id = $1, epoch = $2 where shard_id = $3";
    tx.execute(sql, &[operation.id.into(), operation.epoch.into(), shard.into()]).await.map(|_| ())
}

/// Inserts mappings. They are readable, or an operation holds them until its end.
pub(super) async fn insert_mappings(
    tx: &mut Tx,
    operation: &Owned,
    mappings: &[ShardMapping],
    readable: bool,
) -> Result<(), StoreError> {
    let holder = (!readable).then_some(operation.id);
    insert(tx, &operation.plan.map, operation.epoch, holder, mappings).await
}

/// Inserts mappings that a shard already has. They are readable at once.
pub(crate) async fn insert_recovered(
    tx: &mut Tx,
    map: &MapRow,
    epoch: i64,
    mappings: &[ShardMapping],
) -> Result<(), StoreError> {
    insert(tx, map, epoch, None, mappings).await
}

async fn insert(
    tx: &mut Tx,
    map: &MapRow,
    epoch: i64,
    holder: Option<Uuid>,
    mappings: &[ShardMapping],
) -> Result<(), StoreError> {
    let into = "insert into __shard_management.global_mappings
        (map_id, readable, operation_id, epoch, mapping_id, shard_id, low, high, online, fence,
            lock_token, lock_owner, lock_until)";
    let row = |mapping: &ShardMapping| {
        let mut values: Vec<Value> =
            vec![map.id.into(), holder.is_none().into(), holder.into(), epoch.into()];
        values.extend(mapping_values(mapping));
        values
    };
    tx.insert(into, "", mappings.iter().map(row).collect()).await?;
    Ok(())
}

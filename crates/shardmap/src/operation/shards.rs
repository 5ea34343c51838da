//! The first step of a change of shards.

use rangehold_map::shard::ShardId;
use uuid::Uuid;

use super::attach::elsewhere;
use super::begin::{Begun, lock_map, mark_shard, read_shard};
use super::closing::CLOSED;
use super::plan::{OperationKind, Plan, Role, Side};
use super::repair::of_shard;
use super::{Met, Operations, Owned, Step, Trouble, identity};
use crate::error::{Category, Code, Error};
use crate::limits::DRAIN_GRACE;
use crate::location::Location;
use crate::rows::{MapRow, MappingRow, Marked, ShardRow, place};
use crate::store::{Drain, For, StoreError, Tx, Value};

/// A request for a change of a map's shards.
pub(crate) enum ShardRequest<'a> {
    /// Add an empty shard.
    Add { map: &'a MapRow, location: &'a Location, online: bool },
    /// Remove a shard that has no mappings.
    Remove { map: &'a MapRow, shard: &'a ShardRow },
    /// Give a shard another status or location.
    Update { map: &'a MapRow, shard: &'a ShardRow, online: bool },
    /// Give a shard another place, and perhaps another status. The old place is closed, unless it is lost.
    Move { map: &'a MapRow, shard: &'a ShardRow, online: bool, to: &'a Location, lost: bool, drain: Drain },
    /// Close a shard, and take it out of the global map with its mappings.
    Detach { map: &'a MapRow, shard: &'a ShardRow, drain: Drain },
    /// Add a shard that another global map had, as its local map describes it. If keys of it are on other shards by now, it
    /// is refused, or with `keep` it comes without them.
    Attach { map: &'a MapRow, found: &'a ShardRow, location: &'a Location, epoch: i64, keep: bool },
}

impl ShardRequest<'_> {
    pub(super) fn category(&self) -> Category {
        if matches!(self, Self::Attach { .. } | Self::Detach { .. }) {
            Category::Recovery
        } else {
            Category::ShardMap
        }
    }

    fn kind(&self) -> OperationKind {
        match self {
            Self::Add { .. } => OperationKind::AddShard,
            Self::Remove { .. } => OperationKind::RemoveShard,
            Self::Update { .. } => OperationKind::UpdateShard,
            Self::Move { .. } => OperationKind::MoveShard,
            Self::Detach { .. } => OperationKind::DetachShard,
            Self::Attach { .. } => OperationKind::AttachShard,
        }
    }

    /// What becomes of transactions when a shard is closed, or keys leave it.
    fn drain(&self) -> Drain {
        match self {
            Self::Move { drain, .. } | Self::Detach { drain, .. } => *drain,
            Self::Attach { .. } => Drain::End(DRAIN_GRACE),
            _ => Drain::Leave,
        }
    }

    fn map(&self) -> &MapRow {
        match self {
            Self::Add { map, .. }
            | Self::Remove { map, .. }
            | Self::Update { map, .. }
            | Self::Move { map, .. }
            | Self::Detach { map, .. }
            | Self::Attach { map, .. } => map,
        }
    }
}

impl Operations {
    /// The global begin of a change of shards.
    pub(super) async fn begin_shard(&self, id: Uuid, request: &ShardRequest<'_>) -> Result<Begun, Trouble> {
        let category = request.category();
        // This is read before the global transaction begins, because both may be in one file.
        let claims = match request {
            ShardRequest::Add { location, .. } => self.claims(location).await?,
            _ => Vec::new(),
        };
        let brought = match request {
            ShardRequest::Attach { map, location, .. } => self.brought(map, location).await?,
            _ => Vec::new(),
        };
        let mut tx = self.global.begin(For::Writing).await?;
        let map = lock_map(&mut tx, request.map(), category).await?;
        let side = match request {
            ShardRequest::Add { location, online, .. } => {
                identity::expect_unclaimed(&mut tx, &map, location, &claims).await?;
                let shard = ShardRow {
                    id: self.chance.id(),
                    version: self.chance.id(),
                    location: (*location).clone(),
                    online: *online,
                };
                self.coming(&mut tx, &map, shard, None, category).await?
            }
            ShardRequest::Attach { found, location, keep, .. } => {
                let version = if found.version == CLOSED { self.chance.id() } else { found.version };
                let shard = ShardRow { version, location: (*location).clone(), ..(*found).clone() };
                let side = self.coming(&mut tx, &map, shard, Some((*found).clone()), category).await?;
                match elsewhere(&mut tx, &map, location, found.id, &brought, *keep).await? {
                    Ok(leaving) => side.map(|side| {
                        let goes = leaving.iter().map(MappingRow::from).collect();
                        Side { goes, ..side }
                    }),
                    Err(met) => Err(met),
                }
            }
            ShardRequest::Remove { shard, .. } => self.going(&mut tx, &map, shard).await?,
            ShardRequest::Update { shard, online, .. } => {
                let after = ShardRow { version: self.chance.id(), online: *online, ..(*shard).clone() };
                self.changing(&mut tx, &map, shard, after).await?
            }
            ShardRequest::Move { shard, online, to, .. } => {
                let after = ShardRow {
                    version: self.chance.id(),
                    online: *online,
                    location: (*to).clone(),
                    ..(*shard).clone()
                };
                self.changing(&mut tx, &map, shard, after).await?
            }
            ShardRequest::Detach { shard, .. } => {
                same_version(&mut tx, &map, shard).await?.map(|found| Side::closing(Some(&found), &found))
            }
        };
        let side = match side {
            Ok(side) => side,
            Err(met) => return Ok(Begun::Met(met)),
        };
        let sides: Vec<Side> = match request {
            ShardRequest::Move { shard, lost, .. } => {
                let comes = of_shard(&mut tx, &map, shard.id).await?;
                let comes = comes.iter().map(MappingRow::from).collect();
                let opens = Side { role: Role::Opens, comes, ..side };
                // First the old place is closed. If both places are one database, it is then opened again.
                let closes = (!lost).then(|| Side::closing(None, shard));
                closes.into_iter().chain([opens]).collect()
            }
            _ => vec![side],
        };
        // Another global map wrote the shard that is attached, perhaps with greater epochs.
        let least = if let ShardRequest::Attach { epoch, .. } = request { *epoch } else { 0 };
        let mappings = sides.iter().map(|side| side.goes.len() + side.comes.len()).sum();
        let epoch = self.take_numbers(&mut tx, least, 1, mappings).await?;
        let plan = Plan { map, sides, drain: request.drain() };
        let owned = Owned::new(id, request.kind(), epoch, plan);
        self.log(&mut tx, &owned).await?;
        mark(&mut tx, &owned).await?;
        self.commit(tx, &owned, Step::GlobalBegin).await?;
        Ok(Begun::Started(Box::new(owned)))
    }

    /// The side of a new shard. No other shard may be at its location.
    async fn coming(
        &self,
        tx: &mut Tx,
        map: &MapRow,
        shard: ShardRow,
        before_local: Option<ShardRow>,
        category: Category,
    ) -> Result<Result<Side, Met>, Trouble> {
        if let Some(there) = shard_at(tx, map, &shard.location).await? {
            return match there.operation {
                Some(operation) => Ok(Err(Met { operation })),
                None => {
                    let text = format!("shard map {:?} has a shard at {} already", map.name, shard.location);
                    Err(Error::new(category, Code::ShardLocationAlreadyExists, text).into())
                }
            };
        }
        let at = shard.location.clone();
        let (goes, comes) = (Vec::new(), Vec::new());
        Ok(Ok(Side { at, before: None, before_local, after: Some(shard), goes, comes, role: Role::Changes }))
    }

    async fn going(&self, tx: &mut Tx, map: &MapRow, shard: &ShardRow) -> Result<Result<Side, Met>, Trouble> {
        let found = match same_version(tx, map, shard).await? {
            Ok(found) => found,
            Err(met) => return Ok(Err(met)),
        };
        let sql = "select count(*) from __shard_management.global_mappings where shard_id = $1";
        let count = tx.query_one(sql, &[shard.id.into()]).await?.map(|mut row| row.int()).transpose()?;
        if count != Some(0) {
            let count = count.unwrap_or_default();
            let text = format!("{} has {count} mappings: delete or move them first", shard.location);
            return Err(Error::new(Category::ShardMap, Code::ShardHasMappings, text).into());
        }
        let at = found.location.clone();
        let before_local = Some(found.clone());
        Ok(Ok(Side {
            at,
            before: Some(found),
            before_local,
            after: None,
            goes: Vec::new(),
            comes: Vec::new(),
            role: Role::Changes,
        }))
    }

    async fn changing(
        &self,
        tx: &mut Tx,
        map: &MapRow,
        shard: &ShardRow,
        after: ShardRow,
    ) -> Result<Result<Side, Met>, Trouble> {
        let found = match same_version(tx, map, shard).await? {
            Ok(found) => found,
            Err(met) => return Ok(Err(met)),
        };
        if after.location != found.location
            && let Some(there) = shard_at(tx, map, &after.location).await?
        {
            if let Some(operation) = there.operation {
                return Ok(Err(Met { operation }));
            }
            let text = format!("shard map {:?} has a shard at {} already", map.name, after.location);
            return Err(Error::new(Category::ShardMap, Code::ShardLocationAlreadyExists, text).into());
        }
        let at = after.location.clone();
        let before_local = Some(found.clone());
        let (goes, comes) = (Vec::new(), Vec::new());
        Ok(Ok(Side {
            at,
            before: Some(found),
            before_local,
            after: Some(after),
            goes,
            comes,
            role: Role::Changes,
        }))
    }
}

/// The shard in the map, if it has the version that the caller knows.
async fn same_version(tx: &mut Tx, map: &MapRow, shard: &ShardRow) -> Result<Result<ShardRow, Met>, Trouble> {
    match read_shard(tx, map, ShardId(shard.id)).await? {
        Some(Marked { operation: Some(operation), .. }) => Ok(Err(Met { operation })),
        None => {
            let text = format!("the shard at {} is not in map {:?}, or no longer", shard.location, map.name);
            Err(Error::new(Category::ShardMap, Code::ShardDoesNotExist, text).into())
        }
        Some(found) if found.row.version != shard.version => {
            let text = format!("the shard at {} has changed: get it again", shard.location);
            Err(Error::new(Category::ShardMap, Code::ShardVersionMismatch, text).into())
        }
        Some(found) => Ok(Ok(found.row)),
    }
}

/// The map's shard at a place.
pub(crate) async fn shard_at(
    tx: &mut Tx,
    map: &MapRow,
    location: &Location,
) -> Result<Option<Marked<ShardRow>>, StoreError> {
    let columns = ShardRow::COLUMNS;
    let sql = format!(
        "select {columns}, readable, operation_id from __shard_management.global_shards
        where map_id = $1 and protocol = $2 and server = $3 and port = $4 and database in ($5, $6)"
    );
    let mut values: Vec<Value> = vec![map.id.into()];
    values.extend(place(location));
    values.push(location.database_before().into());
    let row = tx.query_one(&sql, &values).await?;
    row.map(|mut row| Marked::read(&mut row, ShardRow::read)).transpose()
}

/// Marks the shard, or inserts it as not readable yet.
async fn mark(tx: &mut Tx, owned: &Owned) -> Result<(), StoreError> {
    for side in &owned.plan.sides {
        match (&side.before, &side.after) {
            (Some(before), _) => {
                mark_shard(tx, owned, before.id).await?;
            }
            (None, Some(after)) => {
                let sql = "insert into __shard_management.global_shards
                    (map_id, readable, operation_id, epoch, shard_id, version, protocol, server, port, database, online)
                    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
                let mut values: Vec<Value> =
                    vec![owned.plan.map.id.into(), false.into(), owned.id.into(), owned.epoch.into()];
                values.extend(after.values());
                tx.execute(sql, &values).await?;
            }
            (None, None) => {}
        }
    }
    Ok(())
}

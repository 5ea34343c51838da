//! Which shard a database is.
//!
//! A shard has an id, and a version that is new after each change of the shard. Both are random, and both are in the
//! global map, beside the place of the shard, and in the shard's own local map. So a database that is reached by a
//! second name, a copy of a shard, and a shard that has left its place all say that they are not what is expected.
//! Each step of an operation compares them in its own transaction, before it writes.

use uuid::Uuid;

use super::closing::{self, CLOSED};
use super::local::read_local_shard;
use super::plan::{Direction, OperationKind, Role, Side};
use super::{Operations, Owned, Trouble};
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::rows::{MapRow, ShardRow};
use crate::store::{Failure, For, Row, StoreError, Tx};

/// What a database says about one map: which of its shards the database is.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    map: MapRow,
    shard: ShardRow,
}

/// Compares what the database says with the shard of a side. The inner error is the refusal.
pub(super) async fn compare(
    tx: &mut Tx,
    operation: &Owned,
    side: &Side,
    direction: Direction,
) -> Result<Result<(), StoreError>, StoreError> {
    let map = &operation.plan.map;
    let found = read_local_shard(tx, map.id).await?;
    let known: Vec<&ShardRow> =
        [&side.before, &side.before_local, &side.after].into_iter().flatten().collect();
    let refused = |what: String| Ok(Err(StoreError::new(&side.at, Failure::OtherShard, what)));
    match found {
        // A shard that stays must be there. A new one has nothing yet, a removed one nothing any more, and a repair or
        // a step back gives back what is not there.
        None if direction == Direction::Forward
            && operation.kind != OperationKind::RepairShard
            && side.before.is_some()
            && side.after.is_some() =>
        {
            refused(format!("the database is not a shard of map {:?}, or no longer", map.name))
        }
        // There is nothing to close.
        None if side.role == Role::Closes => refused("the database is not a shard, or no longer".to_owned()),
        None => Ok(Ok(())),
        Some(found) if !known.iter().any(|shard| shard.id == found.id) => refused(format!(
            "the database says that it is another shard of map {:?}, which was at {}: it is that database by another \
            name, or a copy of it",
            map.name, found.location
        )),
        // A place that the shard leaves is closed in whichever state it is.
        Some(_) if operation.kind == OperationKind::RepairShard || side.role == Role::Closes => Ok(Ok(())),
        Some(found) if side.role == Role::Opens && found.version == CLOSED => Ok(Ok(())),
        Some(found) if !known.iter().any(|shard| shard.version == found.version) => refused(format!(
            "the database is an older or a newer state of this shard of map {:?}: compare them with `rangehold shards \
            check`",
            map.name
        )),
        Some(_) => Ok(Ok(())),
    }
}

impl Operations {
    /// Forgets the local map that a copy of a shard took along, so that the copy can become a shard of its own. Does
    /// nothing if the database says nothing about the map.
    ///
    /// The copy must not be the shard itself by another name. To see that, it gets a mark, and the place of the shard
    /// is asked for the mark.
    pub(crate) async fn forget_copy(&self, map: &MapRow, at: &Location) -> Result<(), Trouble> {
        for Claim { map: of, shard } in self.claims(at).await? {
            let mut tx = self.global.begin(For::Reading).await?;
            let place = place_of(&mut tx, shard.id).await?;
            tx.commit().await?;
            if place.is_none() && of.id != map.id {
                continue;
            }
            if let Some(place) = place
                && (place == *at || self.is_same_database(at, &place).await?)
            {
                let text =
                    format!("{at} is the shard at {place} itself, and not a copy of it: use that name");
                return Err(Error::new(Category::ShardMap, Code::ShardNotValid, text).into());
            }
            closing::forget(&self.databases.at(at)?, &of).await?;
        }
        Ok(())
    }

    /// Whether two places are one database: a mark that is left at the first is seen at the second.
    async fn is_same_database(&self, one: &Location, other: &Location) -> Result<bool, StoreError> {
        let mark = [self.chance.id().into()];
        let mut tx = self.databases.at(one)?.begin(For::Writing).await?;
        // The mark is the epoch of a map that does not exist.
        tx.execute("insert into __shard_management.local_epochs (map_id, epoch) values ($1, 0)", &mark)
            .await?;
        tx.commit().await?;
        let seen = async {
            let mut tx = self.databases.at(other)?.begin(For::Reading).await?;
            let sql = "select 1 from __shard_management.local_epochs where map_id = $1";
            match tx.query_one(sql, &mark).await {
                Err(error) if error.failure == Failure::NoSchema => Ok(false),
                found => Ok(found?.is_some()),
            }
        };
        let seen = seen.await;
        let mut tx = self.databases.at(one)?.begin(For::Writing).await?;
        tx.execute("delete from __shard_management.local_epochs where map_id = $1", &mark).await?;
        tx.commit().await?;
        seen
    }

    /// What the database at a place says. It says nothing if it has no local maps, or is a file that does not exist.
    pub(crate) async fn claims(&self, at: &Location) -> Result<Vec<Claim>, StoreError> {
        let mut tx = match self.databases.at(at)?.begin(For::Reading).await {
            Err(error) if error.failure == Failure::Unreachable => return Ok(Vec::new()),
            tx => tx?,
        };
        let sql = format!(
            "select m.map_id, m.name, m.kind, m.key_type, {} from __shard_management.local_shards s
            join __shard_management.local_maps m on m.map_id = s.map_id",
            ShardRow::COLUMNS
        );
        let rows = match tx.query(&sql, &[]).await {
            Err(error) if error.failure == Failure::NoSchema => return Ok(Vec::new()),
            rows => rows?,
        };
        tx.commit().await?;
        let read =
            |mut row: Row| Ok(Claim { map: MapRow::read(&mut row)?, shard: ShardRow::read(&mut row)? });
        rows.into_iter().map(read).collect()
    }
}

/// Refuses a place for a new shard of a map if the database there says that it is a shard already: of the same
/// map, or of another map at another place.
pub(super) async fn expect_unclaimed(
    tx: &mut Tx,
    map: &MapRow,
    at: &Location,
    claims: &[Claim],
) -> Result<(), Trouble> {
    for Claim { map: of, shard } in claims {
        let place = place_of(tx, shard.id).await?;
        if place.as_ref() == Some(at) || place.is_none() && of.id != map.id {
            continue;
        }
        let what = match place {
            Some(place) => format!("the shard of map {:?} at {place}", of.name),
            None => format!("a shard of map {:?}, which was at {}", of.name, shard.location),
        };
        let text = format!(
            "the database at {at} says that it is {what}: it is that database by another name, or a copy of it. Use \
            the first name. For a copy, say what it is: `rangehold shards shard add {at} --clone new` (another shard) or \
            `--clone keep` (the shard itself, at its new place)"
        );
        return Err(Error::new(Category::ShardMap, Code::ShardNotValid, text).into());
    }
    Ok(())
}

/// The place of a shard in the global map.
pub(crate) async fn place_of(tx: &mut Tx, shard: Uuid) -> Result<Option<Location>, StoreError> {
    let columns = ShardRow::COLUMNS;
    let sql = format!("select {columns} from __shard_management.global_shards where shard_id = $1");
    let row = tx.query_one(&sql, &[shard.into()]).await?;
    row.map(|mut row| ShardRow::read(&mut row).map(|shard| shard.location)).transpose()
}

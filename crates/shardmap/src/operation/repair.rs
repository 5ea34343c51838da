//! The operation that gives a shard another local map, and leaves the global map as it is.

use rangehold_map::KeyRange;
use rangehold_map::shard::{Effect, MapKind, MappingId, ShardId, ShardMap, ShardMapping};
use uuid::Uuid;

use super::begin::{Begun, lock_map, mark_shard, read_shard};
use super::local::read_local_shard;
use super::plan::{OperationKind, Plan, Side};
use super::{Met, Operations, Owned, Step, Trouble};
use crate::error::{Category, Code, Error};
use crate::limits::DRAIN_GRACE;
use crate::location::Location;
use crate::rows::{MAPPING_COLUMNS, MapRow, MappingRow, Marked, ShardRow, read_local_mapping, read_mapping};
use crate::store::{Drain, For, Row, StoreError, Tx};

impl Operations {
    /// Gives the shard at a place the mappings that the global map has for it, or the intervals of `keep`.
    pub(crate) async fn repair(
        &self,
        map: &MapRow,
        at: &Location,
        shard: Uuid,
        epoch: i64,
        keep: Option<&[KeyRange]>,
    ) -> Result<(), Error> {
        let category = Category::Recovery;
        let id = self.chance.id();
        let begun = self.begin(id, category, || self.begin_repair(id, map, at, shard, epoch, keep)).await?;
        match begun {
            Some(owned) => self.carry(owned, category).await,
            None => Ok(()),
        }
    }

    async fn begin_repair(
        &self,
        id: Uuid,
        map: &MapRow,
        at: &Location,
        shard: Uuid,
        epoch: i64,
        keep: Option<&[KeyRange]>,
    ) -> Result<Begun, Trouble> {
        // This is read before the global transaction begins, because both may be in one file. No other process
        // writes it in between: after the global begin the shard is ours, and the local step
        // removes the mappings that it finds.
        let (was, goes) = self.local_state(map, at).await?;
        let mut tx = self.global.begin(For::Writing).await?;
        let map = lock_map(&mut tx, map, Category::Recovery).await?;
        let row = match read_shard(&mut tx, &map, ShardId(shard)).await? {
            Some(Marked { operation: Some(operation), .. }) => return Ok(Begun::Met(Met { operation })),
            Some(Marked { row, .. }) => row,
            None => {
                let text = format!("the shard at {at} is not in map {:?}: attach it first", map.name);
                return Err(Error::new(Category::Recovery, Code::ShardDoesNotExist, text).into());
            }
        };
        let new = keep.map_or(0, <[KeyRange]>::len);
        let mut comes = match keep {
            None => of_shard(&mut tx, &map, shard).await?,
            Some(_) => Vec::new(),
        };
        let mappings = goes.len() + comes.len() + new;
        let epoch = self.take_numbers(&mut tx, epoch, 1 + new, mappings).await?;
        if let Some(keep) = keep {
            comes = self.new_mappings(map.kind(), shard, keep, epoch)?;
        }
        let mut side = Side::staying(&row, &Effect::default());
        // All mappings of the map that are there, even if they are written down as those of another shard.
        side.goes = goes.iter().map(MappingRow::from).collect();
        side.comes = comes.iter().map(MappingRow::from).collect();
        side.at = at.clone();
        // If the repair is undone, the database says what it said before, or nothing.
        side.before_local = was.filter(|was| was.id == shard);
        let plan = Plan { map, sides: vec![side], drain: Drain::End(DRAIN_GRACE) };
        let owned = Owned::new(id, OperationKind::RepairShard, epoch, plan);
        self.log(&mut tx, &owned).await?;
        mark_shard(&mut tx, &owned, shard).await?;
        self.commit(tx, &owned, Step::GlobalBegin).await?;
        Ok(Begun::Started(Box::new(owned)))
    }

    /// New mappings of these intervals. Their fences follow the epoch.
    fn new_mappings(
        &self,
        kind: MapKind,
        shard: Uuid,
        keep: &[KeyRange],
        epoch: i64,
    ) -> Result<Vec<ShardMapping>, Error> {
        let mut fence = epoch;
        let new = |keys: &KeyRange| {
            fence += 1;
            ShardMapping {
                id: MappingId(self.chance.id()),
                keys: keys.clone(),
                shard: ShardId(shard),
                online: true,
                fence,
                lock: None,
            }
        };
        let made = ShardMap::new(kind, keep.iter().map(new).collect());
        if made.fault().is_some() {
            return Err(Error::argument("the intervals that are kept overlap, or one of them holds no key"));
        }
        Ok(made.mappings().to_vec())
    }

    /// What a database says about a map: which of its shards it is, and the mappings.
    async fn local_state(
        &self,
        map: &MapRow,
        at: &Location,
    ) -> Result<(Option<ShardRow>, Vec<ShardMapping>), StoreError> {
        let mut tx = self.databases.at(at)?.begin(For::Reading).await?;
        if !tx.has_table("local_shards").await? {
            return Ok((None, Vec::new()));
        }
        let was = read_local_shard(&mut tx, map.id).await?;
        let sql = "select mapping_id, shard_id, low, high, online, fence
            from __shard_management.local_mappings where map_id = $1 order by low";
        let rows = tx.query(sql, &[map.id.into()]).await?;
        tx.commit().await?;
        let mappings =
            rows.into_iter().map(|mut row| read_local_mapping(&mut row)).collect::<Result<_, _>>()?;
        Ok((was, mappings))
    }
}

/// The mappings that the global map has for a shard.
pub(super) async fn of_shard(
    tx: &mut Tx,
    map: &MapRow,
    shard: Uuid,
) -> Result<Vec<ShardMapping>, StoreError> {
    let sql = format!(
        "select {MAPPING_COLUMNS} from __shard_management.global_mappings
        where shard_id = $1 and map_id = $2 and readable = $3 order by low"
    );
    let rows = tx.query(&sql, &[shard.into(), map.id.into(), true.into()]).await?;
    rows.into_iter().map(|mut row: Row| read_mapping(&mut row)).collect()
}

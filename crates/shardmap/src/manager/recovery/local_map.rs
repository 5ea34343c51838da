//! Reads the whole local map of a shard.

use std::collections::HashMap;

use rangehold_map::KeyRange;
use rangehold_map::shard::{MappingId, ShardMapping};

use crate::location::Location;
use crate::manager::ShardMapManager;
use crate::operation::begin::overlapping;
use crate::operation::intervals::to_ask;
use crate::rows::{MAPPING_COLUMNS, MapRow, ShardRow, read_local_mapping, read_mapping};
use crate::store::{Failure, For, Row, StoreError, Tx};

/// What a database says about one shard map: which of the map's shards it is, and which mappings it holds.
#[derive(Debug, Clone)]
pub(super) struct LocalMap {
    pub(super) at: Location,
    pub(super) map: MapRow,
    pub(super) shard: ShardRow,
    /// The greatest epoch with which an operation wrote here.
    pub(super) epoch: i64,
    pub(super) mappings: Vec<ShardMapping>,
    /// Whether the database has no such local map, although the global map has its shard.
    pub(super) is_lost: bool,
}

impl LocalMap {
    /// All local maps of a database, or the one with this name. Empty if the database has no tables of ours. Those of another
    /// major version are refused.
    pub(super) async fn read_all(
        manager: &ShardMapManager,
        at: &Location,
        name: Option<&str>,
    ) -> Result<Vec<Self>, StoreError> {
        let mut tx = manager.0.operations.databases.at(at)?.begin(For::Reading).await?;
        tx.expect_local_version().await?;
        let columns = MapRow::COLUMNS;
        let sql = format!("select {columns} from __shard_management.local_maps order by name");
        let maps = match tx.query(&sql, &[]).await {
            Err(error) if error.failure == Failure::NoSchema => return Ok(Vec::new()),
            maps => maps?,
        };
        let mut found = Vec::new();
        for mut row in maps {
            let map = MapRow::read(&mut row)?;
            if name.is_none_or(|name| name.to_lowercase() == map.name.to_lowercase())
                && let Some(local) = Self::read(&mut tx, at, map).await?
            {
                found.push(local);
            }
        }
        tx.commit().await?;
        Ok(found)
    }

    async fn read(tx: &mut Tx, at: &Location, map: MapRow) -> Result<Option<Self>, StoreError> {
        let Some(shard) = crate::operation::local::read_local_shard(tx, map.id).await? else {
            return Ok(None);
        };
        let sql = "select epoch from __shard_management.local_epochs where map_id = $1";
        let epoch = tx.query_one(sql, &[map.id.into()]).await?.map(|mut row| row.int()).transpose()?;
        let sql = "select mapping_id, shard_id, low, high, online, fence
            from __shard_management.local_mappings where map_id = $1 order by low";
        let rows = tx.query(sql, &[map.id.into()]).await?;
        let mappings =
            rows.into_iter().map(|mut row| read_local_mapping(&mut row)).collect::<Result<_, _>>()?;
        Ok(Some(Self {
            at: at.clone(),
            map,
            shard,
            epoch: epoch.unwrap_or_default(),
            mappings,
            is_lost: false,
        }))
    }

    /// A shard whose local map is lost, as the global map has it.
    pub(super) fn lost(at: &Location, map: &MapRow, shard: ShardRow) -> Self {
        Self { at: at.clone(), map: map.clone(), shard, epoch: 0, mappings: Vec::new(), is_lost: true }
    }

    /// The mappings in the global map that concern this shard. These are the mappings to this shard, and the mappings
    /// of keys that this shard says it holds, even if the global map has them on another shard.
    pub(super) async fn global_mappings(
        &self,
        manager: &ShardMapManager,
    ) -> Result<Vec<ShardMapping>, StoreError> {
        let mut tx = manager.reading().await?;
        let mut all = of_shard(&mut tx, self).await?;
        for keys in self.hulls_besides(&all) {
            all.extend(
                overlapping(&mut tx, &self.map, &keys, usize::MAX).await?.into_iter().map(|found| found.row),
            );
        }
        tx.commit().await?;
        all.sort_by_key(|mapping| mapping.id);
        all.dedup_by_key(|mapping: &mut ShardMapping| -> MappingId { mapping.id });
        Ok(all)
    }

    /// The intervals of the mappings here that differ from these mappings. Mappings of the global map do not overlap, so
    /// where both maps have the same mapping, there is no other.
    fn hulls_besides(&self, global: &[ShardMapping]) -> Vec<KeyRange> {
        let known: HashMap<MappingId, &KeyRange> =
            global.iter().map(|mapping| (mapping.id, &mapping.keys)).collect();
        let differ = |mapping: &&ShardMapping| known.get(&mapping.id) != Some(&&mapping.keys);
        to_ask(self.mappings.iter().filter(differ).map(|mapping| &mapping.keys))
    }
}

/// The mappings to a shard in the global map.
pub(super) async fn of_shard(tx: &mut Tx, local: &LocalMap) -> Result<Vec<ShardMapping>, StoreError> {
    let sql = format!(
        "select {MAPPING_COLUMNS} from __shard_management.global_mappings
        where shard_id = $1 and map_id = $2 and readable = $3 order by low"
    );
    let rows = tx.query(&sql, &[local.shard.id.into(), local.map.id.into(), true.into()]).await?;
    rows.into_iter().map(|mut row: Row| read_mapping(&mut row)).collect()
}

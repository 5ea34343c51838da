//! Attaches a shard: the global map takes from the shard which map it belongs to and which shard it is. Their
//! mappings are compared and resolved afterwards.

use std::sync::Arc;

use rangehold_map::shard::ShardId;

use super::detach::LOST;
use super::local_map::LocalMap;
use super::{RecoveryManager, Resolution, failed};
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::manager::{MapInfo, Shard};
use crate::operation::closing::CLOSED;
use crate::operation::{ShardRequest, Trouble};
use crate::rows::MapRow;
use crate::store::{StoreError, Tx};

impl RecoveryManager {
    /// Adds a database that is already a shard, as it describes itself, to all maps that it names or to one of them.
    /// A map that the global map does not have is made. The shard learns its present location.
    ///
    /// # Errors
    ///
    /// [`Code::ShardNotValid`] for a database without local maps; [`Code::ShardMapAlreadyExists`] if the global map
    /// has another map of that name; [`Code::ShardLocationAlreadyExists`] if the shard is in the map, or another
    /// shard is in the map at its place. Then detach that shard first. [`Code::ShardNotValid`] too for a shard that was
    /// given up as lost, for one that was never closed at the place that it names, for it may be a copy, and for one whose
    /// keys are on another shard by now ([`RecoveryManager::attach_lost`]).
    pub async fn attach(&self, location: &Location, map: Option<&str>) -> Result<Vec<Shard>, Error> {
        self.attach_each(location, map, false).await
    }

    /// As [`RecoveryManager::attach`], for a database that the caller takes for the shard, although it was given up as
    /// lost, although the shard was at another place, or although some of its keys are on other shards by now. A mapping that
    /// holds such a key is left out.
    ///
    /// # Errors
    ///
    /// As [`RecoveryManager::attach`].
    pub async fn attach_lost(&self, location: &Location, map: Option<&str>) -> Result<Vec<Shard>, Error> {
        self.attach_each(location, map, true).await
    }

    async fn attach_each(
        &self,
        location: &Location,
        map: Option<&str>,
        keep: bool,
    ) -> Result<Vec<Shard>, Error> {
        let mut attached = Vec::new();
        for local in self.local_maps(location, map).await?.into_iter().filter(|local| !local.is_lost) {
            attached.push(self.attach_one(&local, keep).await?);
        }
        Ok(attached)
    }

    async fn attach_one(&self, local: &LocalMap, keep: bool) -> Result<Shard, Error> {
        let ready = self.make_map(local, keep).await;
        ready.map_err(|trouble| trouble.seen_by(Category::Recovery))?;
        let request = ShardRequest::Attach {
            map: &local.map,
            found: &local.shard,
            location: &local.at,
            epoch: local.epoch,
            keep,
        };
        let done = self.0.0.operations.change_shard(&request).await?;
        let after = done.plan.sides.into_iter().find_map(|side| side.after);
        let row = after.ok_or_else(|| Error::damaged("a shard that was attached is not there"))?;
        Ok(Shard { map: local.map.id, row: Arc::new(row) })
    }

    /// Makes the map in the global map, if it is not there. Refuses if the map has a shard with this id.
    async fn make_map(&self, local: &LocalMap, keep: bool) -> Result<(), Trouble> {
        let mut tx = self.0.writing().await?;
        expect_left(&mut tx, local, keep).await?;
        let lock = "select serial from __shard_management.global_meta where one = 1 for update";
        tx.query(lock, &[]).await?;
        if let Some(there) =
            crate::operation::begin::read_shard(&mut tx, &local.map, ShardId(local.shard.id)).await?
            && there.operation.is_none()
        {
            let text = format!("the shard is in the map, at {}: detach that first", there.row.location);
            return Err(Error::new(Category::Recovery, Code::ShardLocationAlreadyExists, text).into());
        }
        let sql =
            format!("select {} from __shard_management.global_maps where name_key = $1", MapRow::COLUMNS);
        let key = local.map.name.to_lowercase();
        let there = tx.query_one(&sql, &[key.as_str().into()]).await?;
        match there.map(|mut row| MapRow::read(&mut row)).transpose()? {
            None => crate::manager::write_map(&mut tx, &local.map).await?,
            Some(there) if there.id == local.map.id => {}
            Some(_) => {
                let text = format!(
                    "the global map has another map {:?} than the shard at {}: if the global map is right, close the \
                    shard's map with `rangehold shards recover --retire {}`",
                    local.map.name, local.at, local.at
                );
                return Err(Error::new(Category::Recovery, Code::ShardMapAlreadyExists, text).into());
            }
        }
        Ok(tx.commit().await?)
    }

    /// Makes the global map have the mappings that the shards have, for a global map that was lost or is old.
    /// Attaches each shard that is not in its map. For each difference, the shard is right. Shards that are in their maps come
    /// first: they may have given keys to those that are attached.
    ///
    /// # Errors
    ///
    /// As [`RecoveryManager::attach`] and [`RecoveryManager::resolve`].
    pub async fn rebuild_global(&self, locations: &[Location], map: Option<&str>) -> Result<(), Error> {
        for (are_attached, location) in
            [true, false].iter().flat_map(|first| locations.iter().map(move |location| (first, location)))
        {
            for local in self.local_maps(location, map).await?.into_iter().filter(|local| !local.is_lost) {
                let is_attached = self.is_attached(&local).await.map_err(failed)?;
                if is_attached != *are_attached {
                    continue;
                }
                if !is_attached {
                    self.attach_one(&local, false).await?;
                }
                for found in self.detect(location, Some(&local.map.name)).await? {
                    self.resolve(found, Resolution::KeepShard).await?;
                }
            }
        }
        Ok(())
    }

    /// Makes the local maps of shards have what the global map has, for shards that were restored.
    ///
    /// # Errors
    ///
    /// As [`RecoveryManager::resolve`].
    pub async fn rebuild_shards(&self, locations: &[Location], map: Option<&str>) -> Result<(), Error> {
        for location in locations {
            for found in self.detect(location, map).await? {
                self.resolve(found, Resolution::KeepGlobal).await?;
            }
        }
        Ok(())
    }

    async fn is_attached(&self, local: &LocalMap) -> Result<bool, StoreError> {
        let mut tx = self.0.reading().await?;
        let sql = "select 1 from __shard_management.global_shards where shard_id = $1 and map_id = $2";
        let found = tx.query_one(sql, &[local.shard.id.into(), local.map.id.into()]).await?;
        tx.commit().await?;
        Ok(found.is_some())
    }

    /// The maps of which a database says that it is a shard. There are none if it has no local map.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn maps_on(&self, location: &Location) -> Result<Vec<MapInfo>, Error> {
        let found = LocalMap::read_all(&self.0, location, None).await.map_err(failed)?;
        Ok(found.iter().map(|local| MapInfo::from(&local.map)).collect())
    }
}

/// The shard must have been closed at the place where it was, or be there still. If not, it may be a copy, or its keys
/// may have been given to other shards. With `keep`, the caller has decided that it is the shard.
async fn expect_left(tx: &mut Tx, local: &LocalMap, keep: bool) -> Result<(), Trouble> {
    let id = [local.shard.id.into()];
    let is_lost = if tx.has_table(LOST).await? {
        if keep {
            tx.execute("delete from __shard_management.global_lost_shards where shard_id = $1", &id).await?;
        }
        let sql = "select 1 from __shard_management.global_lost_shards where shard_id = $1";
        tx.query_one(sql, &id).await?.is_some()
    } else {
        false
    };
    let is_elsewhere = local.shard.location != local.at && local.shard.version != CLOSED;
    if keep || !is_lost && !is_elsewhere {
        return Ok(());
    }
    let why = match is_lost {
        true => "was given up as lost, and its keys may be on other shards".to_owned(),
        false => format!("was at {} and not closed there, so this may be a copy", local.shard.location),
    };
    let text = format!(
        "the shard at {} {why}. Say what it is: `rangehold shards recover --attach {} --clone keep` (the shard itself), \
        or `rangehold shards shard add {} --clone new` (another shard)",
        local.at, local.at, local.at
    );
    Err(Error::new(Category::Recovery, Code::ShardNotValid, text).into())
}

//! Recovery: for maps that do not agree because a database was restored from a backup, moved or lost.
//!
//! The tools compare the local map of a shard with the global map, and make one match the other. A person chooses
//! which one is right, because only people know which database was restored. A lost shard is detached. A shard that
//! came back, or that has another name, is attached, as its local map describes it. A lost global map is made again
//! from the shards.

mod attach;
mod detach;
mod local_map;
mod resolve;

use rangehold_map::shard::{Difference, Held, MapKind, ShardId, ShardKey, ShardMapping, differences};

pub use resolve::Resolution;

use self::local_map::LocalMap;
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::manager::{MapInfo, ShardMapManager};
use crate::operation::begin::read_shard;
use crate::operation::closing::{self, CLOSED};
use crate::operation::shards::shard_at;
use crate::store::StoreError;

/// The recovery tools of a manager.
#[derive(Debug, Clone)]
pub struct RecoveryManager(ShardMapManager);

/// What the global map and a shard say about one shard map, side by side. [`RecoveryManager::resolve`] takes it.
#[derive(Debug, Clone)]
pub struct MapDifferences {
    local: LocalMap,
    found: Vec<Difference<ShardMapping>>,
    identity: Identity,
}

/// Whether a database is the shard that the global map has at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// It is.
    Same,
    /// The database says that it is the shard that the global map has at this other place. So it is that database by
    /// another name, or a copy of it.
    AtOtherPlace(Location),
    /// It is that shard in another state than the global map has, as after a restore of one of the two.
    OtherVersion,
    /// The global map does not have the shard.
    NotInMap,
    /// The shard was closed, but the global map still has it.
    Closed,
    /// The database has no local map: its tables were lost.
    Lost,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same => f.write_str("it is the shard that the global map has"),
            Self::AtOtherPlace(place) => write!(
                f,
                "it says that it is the shard at {place}: another name of it, or a copy. recover --detach takes it out of \
                the map, and then recover --shard {place} --keep shard maps the keys of this name there"
            ),
            Self::OtherVersion => {
                f.write_str("it is another state of the shard than the global map has: recover --keep global, or --keep shard")
            }
            Self::NotInMap => {
                f.write_str("the global map does not have this shard: recover --attach, or --retire")
            }
            Self::Closed => f.write_str("the shard was closed here: recover --keep global opens it"),
            Self::Lost => f.write_str("the local map is lost: recover --keep global makes it again"),
        }
    }
}

/// Keys about which the global map and a shard do not say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingDifference {
    /// The least key.
    pub low: ShardKey,
    /// The least key above; `None` if there is no end.
    pub high: Option<ShardKey>,
    /// The side that maps these keys.
    pub mapped_by: MappedBy,
}

/// The side that maps some keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MappedBy {
    /// The global map alone.
    GlobalOnly,
    /// The shard alone.
    ShardOnly,
    /// Both, by mappings with different ids.
    Both,
}

impl RecoveryManager {
    pub(super) fn of(manager: ShardMapManager) -> Self {
        Self(manager)
    }

    /// Compares what a shard says about its maps, or about one of them, with what the global map says. The global map
    /// is asked about the shard, and about all keys that the shard maps, on whichever shard it has them.
    ///
    /// # Errors
    ///
    /// [`Code::ShardNotValid`] for a database without local maps; [`Code::StoreVersionMismatch`] for one of another major
    /// version; [`Code::StorageOperationFailure`].
    pub async fn detect(&self, location: &Location, map: Option<&str>) -> Result<Vec<MapDifferences>, Error> {
        let mut all = Vec::new();
        for local in self.local_maps(location, map).await? {
            // A map that was retired, or whose shard was detached, is closed. No global map has it.
            if local.shard.version == CLOSED
                && self.identity(&local).await.map_err(failed)? == Identity::NotInMap
            {
                continue;
            }
            let found = self.compare(&local).await.map_err(failed)?;
            let identity = self.identity(&local).await.map_err(failed)?;
            all.push(MapDifferences { local, found, identity });
        }
        Ok(all)
    }

    async fn local_maps(&self, location: &Location, map: Option<&str>) -> Result<Vec<LocalMap>, Error> {
        let mut found = LocalMap::read_all(&self.0, location, map).await.map_err(failed)?;
        for lost in self.lost_at(location, map).await.map_err(failed)? {
            if !found.iter().any(|local| local.map.id == lost.map.id) {
                found.push(lost);
            }
        }
        if found.is_empty() {
            let of = map.map(|map| format!(" of {map:?}")).unwrap_or_default();
            let text = format!("{location} has no local map{of}: it is not a shard, or not any more");
            return Err(Error::new(Category::Recovery, Code::ShardNotValid, text));
        }
        Ok(found)
    }

    /// The shards that the global map has at a place, as if their local maps were lost.
    async fn lost_at(&self, location: &Location, name: Option<&str>) -> Result<Vec<LocalMap>, StoreError> {
        let mut found = Vec::new();
        for map in self.0.read_maps().await? {
            if name.is_some_and(|name| name.to_lowercase() != map.name.to_lowercase()) {
                continue;
            }
            let mut tx = self.0.reading().await?;
            let there = shard_at(&mut tx, &map, location).await?;
            tx.commit().await?;
            if let Some(there) = there.filter(|there| there.readable) {
                found.push(LocalMap::lost(location, &map, there.row));
            }
        }
        Ok(found)
    }

    /// Closes a map that another global map made in a shard, such as one that was replaced: its transactions are ended,
    /// and its keys are not served there any more. Without a name, closes all such maps. Returns how many were closed.
    ///
    /// # Errors
    ///
    /// [`Code::ShardNotValid`] for a database without local maps; [`Code::StorageOperationFailure`].
    pub async fn retire(&self, location: &Location, map: Option<&str>) -> Result<usize, Error> {
        let mut count = 0;
        for local in self.local_maps(location, map).await? {
            if self.identity(&local).await.map_err(failed)? != Identity::NotInMap
                || local.shard.version == CLOSED
            {
                continue;
            }
            let database = self.0.0.operations.databases.at(location).map_err(failed)?;
            closing::retire(&database, &local.map).await.map_err(failed)?;
            count += 1;
        }
        Ok(count)
    }

    async fn identity(&self, local: &LocalMap) -> Result<Identity, StoreError> {
        let mut tx = self.0.reading().await?;
        let shard = read_shard(&mut tx, &local.map, ShardId(local.shard.id)).await?.map(|found| found.row);
        tx.commit().await?;
        Ok(match shard {
            None => Identity::NotInMap,
            Some(shard) if shard.location != local.at => Identity::AtOtherPlace(shard.location),
            Some(_) if local.is_lost => Identity::Lost,
            Some(_) if local.shard.version == CLOSED => Identity::Closed,
            Some(shard) if shard.version != local.shard.version => Identity::OtherVersion,
            Some(_) => Identity::Same,
        })
    }

    async fn compare(&self, local: &LocalMap) -> Result<Vec<Difference<ShardMapping>>, StoreError> {
        let held =
            |mapping: ShardMapping| Held { keys: mapping.keys.clone(), id: mapping.id, about: mapping };
        let global = local.global_mappings(&self.0).await?;
        let global = global.into_iter().map(held).collect();
        let mut found = differences(global, local.mappings.iter().cloned().map(held).collect());
        // The global map may have a mapping on another shard that reaches beyond this shard's keys. This shard says
        // nothing about the keys beyond.
        let ours = |held: &Held<ShardMapping>| held.about.shard.0 == local.shard.id;
        found.retain(|one| one.local.is_some() || one.global.as_ref().is_some_and(ours));
        Ok(found)
    }
}

impl MapDifferences {
    /// The shard map, as the shard knows it.
    pub fn map(&self) -> MapInfo {
        MapInfo::from(&self.local.map)
    }

    /// Where the shard is.
    pub fn location(&self) -> &Location {
        &self.local.at
    }

    /// The differences, in the order of their keys. There are none if both say the same.
    ///
    /// # Errors
    ///
    /// [`Code::Damaged`] for keys that are not of the map's type.
    pub fn differences(&self) -> Result<Vec<MappingDifference>, Error> {
        let key_type = self.local.map.key_type();
        let key = |raw: &[u8]| {
            let damaged = |error| Error::damaged("a mapping has a bound that is not a key").because(error);
            ShardKey::from_raw(key_type, raw).map_err(damaged)
        };
        let one = |found: &Difference<ShardMapping>| {
            let high = found.keys.high().filter(|_| self.local.map.kind() == MapKind::Range);
            let mapped_by = match (&found.global, &found.local) {
                (Some(_), None) => MappedBy::GlobalOnly,
                (None, _) => MappedBy::ShardOnly,
                (Some(_), Some(_)) => MappedBy::Both,
            };
            Ok(MappingDifference { low: key(found.keys.low())?, high: high.map(key).transpose()?, mapped_by })
        };
        self.found.iter().map(one).collect()
    }

    /// Whether the database is the shard that the global map has at its place.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether both say the same.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.identity == Identity::Same
    }
}

fn failed(error: StoreError) -> Error {
    error.seen_by(Category::Recovery)
}

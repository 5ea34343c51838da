//! The shard maps of a manager: making, finding, listing and deleting them. Each call is one transaction in the
//! global map.

use std::collections::BTreeSet;
use std::sync::Arc;

use rangehold_map::shard::{MapKind, ShardKeyType, ShardKeyValue};

use super::handles::MapInfo;
use super::shard_map::{KindOfMap, List, Range, ShardMap};
use super::{ListShardMap, RangeShardMap, ShardMapManager};
use crate::error::{Category, Code, Error};
use crate::limits::MAP_NAME_CHARACTERS_MAX;
use crate::location::Location;
use crate::operation::Trouble;
use crate::rows::{MapRow, ShardRow};
use crate::store::{Row, StoreError, Tx, Value};

impl ShardMapManager {
    /// Makes a list map: single keys, each with its shard.
    ///
    /// # Errors
    ///
    /// [`Code::ShardMapAlreadyExists`], also if the existing map is of the other kind; [`Code::InvalidArgument`] for
    /// a name that is empty, is longer than 50 characters, or has other characters than letters, digits and
    /// punctuation.
    pub async fn create_list_map<K: ShardKeyValue>(&self, name: &str) -> Result<ListShardMap<K>, Error> {
        Ok(self.typed(self.create_map(name, MapKind::List, typed_key::<K>()?).await?))
    }

    /// Makes a range map: intervals of keys, each with its shard.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::create_list_map`].
    pub async fn create_range_map<K: ShardKeyValue>(&self, name: &str) -> Result<RangeShardMap<K>, Error> {
        Ok(self.typed(self.create_map(name, MapKind::Range, typed_key::<K>()?).await?))
    }

    /// Makes a map whose key type is known only when the program runs.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::create_list_map`].
    pub async fn create_shard_map(
        &self,
        name: &str,
        kind: MapKind,
        key_type: ShardKeyType,
    ) -> Result<MapInfo, Error> {
        Ok(MapInfo::from(&*self.create_map(name, kind, key_type).await?))
    }

    async fn create_map(
        &self,
        name: &str,
        kind: MapKind,
        key_type: ShardKeyType,
    ) -> Result<Arc<MapRow>, Error> {
        check_name(name)?;
        let map = MapRow::new(self.0.operations.chance.id(), name, kind, key_type);
        let inserted = self.insert_map(&map).await;
        inserted.map_err(|trouble| trouble.seen_by(Category::Manager))?;
        let map = Arc::new(map);
        self.0.cache.put_map(name_key(name), &map);
        Ok(map)
    }

    async fn insert_map(&self, map: &MapRow) -> Result<(), Trouble> {
        let mut tx = self.writing().await?;
        // If two processes make maps of one name at the same time, the second waits here and then finds the map of
        // the first.
        let lock = "select serial from __shard_management.global_meta where one = 1 for update";
        tx.query(lock, &[]).await?;
        let key = name_key(&map.name);
        if read_map(&mut tx, &key).await?.is_some() {
            let text =
                format!("there is a shard map {:?}: choose another name, or delete that one", map.name);
            return Err(Error::new(Category::Manager, Code::ShardMapAlreadyExists, text).into());
        }
        write_map(&mut tx, map).await?;
        Ok(tx.commit().await?)
    }

    /// The list map of this name.
    ///
    /// # Errors
    ///
    /// [`Code::ShardMapLookupFailure`]; [`Code::ShardMapTypeConversion`] for a range map, or keys of another
    /// type.
    pub async fn list_map<K: ShardKeyValue>(&self, name: &str) -> Result<ListShardMap<K>, Error> {
        self.try_list_map(name).await?.ok_or_else(|| no_such_map(name))
    }

    /// The range map of this name.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::list_map`].
    pub async fn range_map<K: ShardKeyValue>(&self, name: &str) -> Result<RangeShardMap<K>, Error> {
        self.try_range_map(name).await?.ok_or_else(|| no_such_map(name))
    }

    /// The list map of this name; `None` if there is no map of this name.
    ///
    /// # Errors
    ///
    /// [`Code::ShardMapTypeConversion`].
    pub async fn try_list_map<K: ShardKeyValue>(&self, name: &str) -> Result<Option<ListShardMap<K>>, Error> {
        self.try_map::<K, List>(name).await
    }

    /// The range map of this name; `None` if there is no map of this name.
    ///
    /// # Errors
    ///
    /// [`Code::ShardMapTypeConversion`].
    pub async fn try_range_map<K: ShardKeyValue>(
        &self,
        name: &str,
    ) -> Result<Option<RangeShardMap<K>>, Error> {
        self.try_map::<K, Range>(name).await
    }

    async fn try_map<K: ShardKeyValue, M: KindOfMap>(
        &self,
        name: &str,
    ) -> Result<Option<ShardMap<K, M>>, Error> {
        let Some(map) = self.find_map(name).await? else {
            return Ok(None);
        };
        if map.kind() != M::KIND || K::KEY_TYPE.is_some_and(|key_type| key_type != map.key_type()) {
            let text =
                format!("shard map {:?} is a {} map of {} keys", map.name, map.kind().name(), map.key_type());
            return Err(Error::new(Category::Manager, Code::ShardMapTypeConversion, text));
        }
        Ok(Some(self.typed(map)))
    }

    /// What is known of the map of this name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn shard_map(&self, name: &str) -> Result<Option<MapInfo>, Error> {
        Ok(self.find_map(name).await?.map(|map| MapInfo::from(&*map)))
    }

    /// The map of this name. It comes from the cache, or from the store if the cache does not have it.
    pub(crate) async fn find_map(&self, name: &str) -> Result<Option<Arc<MapRow>>, Error> {
        let key = name_key(name);
        if let Some(map) = self.0.cache.map(&key, self.metrics()) {
            return Ok(Some(map));
        }
        let found =
            self.read_map(&key).await.map_err(|error: StoreError| error.seen_by(Category::Manager))?;
        let found = found.map(Arc::new);
        if let Some(map) = &found {
            self.0.cache.put_map(key, map);
        }
        Ok(found)
    }

    async fn read_map(&self, name_key: &str) -> Result<Option<MapRow>, StoreError> {
        let mut tx = self.reading().await?;
        let found = read_map(&mut tx, name_key).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// All maps, by name.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn shard_maps(&self) -> Result<Vec<MapInfo>, Error> {
        let maps = self.read_maps().await.map_err(|error: StoreError| error.seen_by(Category::Manager))?;
        Ok(maps.iter().map(|map| MapInfo::from(&**map)).collect())
    }

    pub(crate) async fn read_maps(&self) -> Result<Vec<Arc<MapRow>>, StoreError> {
        let mut tx = self.reading().await?;
        let columns = MapRow::COLUMNS;
        let sql = format!("select {columns} from __shard_management.global_maps order by name_key");
        let rows = tx.query(&sql, &[]).await?;
        tx.commit().await?;
        rows.into_iter().map(|mut row| MapRow::read(&mut row).map(Arc::new)).collect()
    }

    /// Deletes the map with this name. It is not an error if there is none.
    ///
    /// # Errors
    ///
    /// [`Code::ShardMapHasShards`].
    pub async fn delete_map(&self, name: &str) -> Result<(), Error> {
        let key = name_key(name);
        let deleted = self.delete_map_row(&key).await;
        deleted.map_err(|trouble| trouble.seen_by(Category::Manager))?;
        self.0.cache.drop_map(&key);
        Ok(())
    }

    async fn delete_map_row(&self, name_key: &str) -> Result<(), Trouble> {
        let mut tx = self.writing().await?;
        let lock = "select map_id from __shard_management.global_maps where name_key = $1 for update";
        let Some(mut row) = tx.query_one(lock, &[name_key.into()]).await? else {
            return Ok(());
        };
        let map = row.uuid()?;
        let sql = "select count(*) from __shard_management.global_shards where map_id = $1";
        let count = tx.query_one(sql, &[map.into()]).await?.map(|mut row| row.int()).transpose()?;
        if count != Some(0) {
            let text = format!("the map has {} shards: remove them first", count.unwrap_or_default());
            return Err(Error::new(Category::Manager, Code::ShardMapHasShards, text).into());
        }
        tx.execute("delete from __shard_management.global_maps where map_id = $1", &[map.into()]).await?;
        Ok(tx.commit().await?)
    }

    /// The places of all shards of all maps, each once.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn shard_locations(&self) -> Result<Vec<Location>, Error> {
        let read = async {
            let mut tx = self.reading().await?;
            let columns = ShardRow::COLUMNS;
            let sql = format!("select {columns} from __shard_management.global_shards where readable = $1");
            let rows = tx.query(&sql, &[true.into()]).await?;
            tx.commit().await?;
            let place = |mut row: Row| ShardRow::read(&mut row).map(|shard| shard.location);
            rows.into_iter().map(place).collect::<Result<BTreeSet<_>, StoreError>>()
        };
        let locations = read.await.map_err(|error: StoreError| error.seen_by(Category::Manager))?;
        Ok(locations.into_iter().collect())
    }

    pub(crate) fn typed<K, M>(&self, map: Arc<MapRow>) -> ShardMap<K, M> {
        ShardMap::new(self.clone(), map)
    }
}

/// Names are compared without regard to case.
pub(crate) fn name_key(name: &str) -> String {
    name.to_lowercase()
}

fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |c: char| c.is_alphanumeric() || c.is_ascii_punctuation();
    let length = name.chars().count();
    if length == 0 || length > MAP_NAME_CHARACTERS_MAX || !name.chars().all(allowed) {
        return Err(Error::argument(format!(
            "{name:?} names no shard map: give 1 to 50 letters, digits or punctuation marks"
        )));
    }
    Ok(())
}

fn typed_key<K: ShardKeyValue>() -> Result<ShardKeyType, Error> {
    K::KEY_TYPE
        .ok_or_else(|| Error::argument("a map is made with keys of one type: name it by create_shard_map"))
}

fn no_such_map(name: &str) -> Error {
    let text = format!("there is no shard map {name:?}: create it, or look at the list of maps");
    Error::new(Category::Manager, Code::ShardMapLookupFailure, text)
}

async fn read_map(tx: &mut Tx, name_key: &str) -> Result<Option<MapRow>, StoreError> {
    let columns = MapRow::COLUMNS;
    let sql = format!("select {columns} from __shard_management.global_maps where name_key = $1");
    let row = tx.query_one(&sql, &[name_key.into()]).await?;
    row.map(|mut row| MapRow::read(&mut row)).transpose()
}

pub(crate) async fn write_map(tx: &mut Tx, map: &MapRow) -> Result<(), StoreError> {
    let sql = "insert into __shard_management.global_maps (name_key, map_id, name, kind, key_type)
        values ($1, $2, $3, $4, $5)";
    let mut values: Vec<Value> = vec![name_key(&map.name).as_str().into()];
    values.extend(map.values());
    tx.execute(sql, &values).await.map(|_| ())
}

//! Finding mappings: in the cache, or in the global map.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use rangehold_map::KeyRange;
use rangehold_map::shard::{MappingId, ShardKey, ShardKeyValue, ShardMapping};
use uuid::Uuid;

use super::handles::{Mapping, Shard};
use super::shard_map::{KindOfMap, ShardMap};
use super::{ShardMapManager, locks};
use crate::cache::Cached;
use crate::error::{Category, Code, Error};
use crate::limits::PENDING_MET_MAX;
use crate::operation::Met;
use crate::rows::{MapRow, Marked, ShardRow, read_mapping};
use crate::store::{Failure, Row, StoreError, Tx, Value};

/// Where a key is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookIn {
    /// In the cache alone: no IO. The answer may be old, and a key that was never looked up is not found.
    Cache,
    /// In the cache. If the key is not there, in the global map.
    CacheThenStore,
    /// In the global map. What is found goes into the cache.
    #[default]
    Store,
}

/// The columns of a mapping with its marks and its shard.
const JOINED: &str = "select m.mapping_id, m.shard_id, m.low, m.high, m.online, m.fence, m.lock_token, m.lock_owner,
        m.lock_until, m.readable, m.operation_id,
        s.shard_id, s.version, s.protocol, s.server, s.port, s.database, s.online
    from __shard_management.global_mappings m join __shard_management.global_shards s on s.shard_id = m.shard_id
    where m.map_id = $1";

/// A mapping with its marks and its shard.
struct Found {
    mapping: Marked<ShardMapping>,
    shard: ShardRow,
}

impl Found {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self { mapping: Marked::read(&mut row, read_mapping)?, shard: ShardRow::read(&mut row)? })
    }
}

/// Whether the role of this process has no right to do what failed.
fn is_denied(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<StoreError>());
    source.is_some_and(|error| error.failure == Failure::Denied)
}

impl ShardMapManager {
    /// The mapping of a key in the global map. Waits until no operation holds it. It replaces what the cache had for
    /// the key.
    pub(crate) fn find_key<'a>(
        &'a self,
        map: &'a MapRow,
        key: &'a [u8],
    ) -> BoxFuture<'a, Result<Option<Arc<Cached>>, Error>> {
        Box::pin(self.settled_key(map, key))
    }

    async fn settled_key(&self, map: &MapRow, key: &[u8]) -> Result<Option<Arc<Cached>>, Error> {
        let category = crate::operation::begin::category(map);
        let metrics = self.metrics();
        for met_count in 1.. {
            metrics.global_lookups.one();
            let found = self.read_key(map, key).await.map_err(|error: StoreError| error.seen_by(category))?;
            match found {
                Some(Found { mapping: mapping @ Marked { operation: Some(operation), .. }, shard }) => {
                    let hurry = met_count >= PENDING_MET_MAX;
                    let settled = self.0.operations.settle(&Met { operation }, category, hurry).await;
                    match settled {
                        // This role only reads. The mapping as it was before is the best answer: if it is out of date,
                        // the shard refuses.
                        Err(error) if mapping.readable && is_denied(&error) => {
                            let cached = Cached { mapping: mapping.row, shard: Arc::new(shard) };
                            return Ok(Some(Arc::new(cached)));
                        }
                        settled => settled?,
                    }
                }
                Some(Found { mapping, shard }) => {
                    let cached = || Cached { mapping: mapping.row.clone(), shard: Arc::new(shard.clone()) };
                    self.0.cache.put(map.id, [cached()], metrics);
                    return Ok(Some(Arc::new(cached())));
                }
                None => break,
            }
        }
        self.0.cache.forget_key(map.id, key, metrics);
        Ok(None)
    }

    async fn read_key(&self, map: &MapRow, key: &[u8]) -> Result<Option<Found>, StoreError> {
        let mut tx = self.reading().await?;
        let sql = format!("{JOINED} and m.low <= $2 order by m.low desc limit 1");
        let row = tx.query_one(&sql, &[map.id.into(), key.into()]).await?;
        tx.commit().await?;
        let found = row.map(Found::read).transpose()?;
        Ok(found.filter(|found| found.mapping.row.keys.contains(key)))
    }

    /// Reads all maps and all mappings into the cache.
    pub(super) async fn load_all(&self) -> Result<(), Error> {
        let failed = |error: StoreError| error.seen_by(Category::Factory);
        for map in self.read_maps().await.map_err(failed)? {
            self.0.cache.put_map(super::maps::name_key(&map.name), &map);
            self.load_map(&map).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn load_map(&self, map: &MapRow) -> Result<(), StoreError> {
        let all = self.read_mappings(map, None, None).await?;
        let cached = all.into_iter().map(|(mapping, shard)| Cached { mapping, shard });
        self.0.cache.put(map.id, cached, self.metrics());
        Ok(())
    }

    /// The mappings of a map that hold some of `keys` and are on a shard, in the order of their keys. They are as
    /// they were before operations that are under way. Mappings of one shard share its row.
    pub(crate) async fn read_mappings(
        &self,
        map: &MapRow,
        keys: Option<&KeyRange>,
        shard: Option<Uuid>,
    ) -> Result<Vec<(ShardMapping, Arc<ShardRow>)>, StoreError> {
        let mut sql = format!("{JOINED} and m.readable = $2");
        let mut values: Vec<Value> = vec![map.id.into(), true.into()];
        if let Some(shard) = shard {
            values.push(shard.into());
            sql += &format!(" and m.shard_id = ${}", values.len());
        }
        if let Some(keys) = keys {
            values.push(keys.low().into());
            sql += &format!(" and (m.high is null or m.high > ${})", values.len());
            if let Some(high) = keys.high() {
                values.push(high.into());
                sql += &format!(" and m.low < ${}", values.len());
            }
        }
        sql += " order by m.low";
        let mut tx = self.reading().await?;
        let rows = tx.query(&sql, &values).await?;
        tx.commit().await?;
        let mut shards: HashMap<Uuid, Arc<ShardRow>> = HashMap::new();
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let found = Found::read(row)?;
            let shard = shards.entry(found.shard.id).or_insert_with(|| Arc::new(found.shard)).clone();
            all.push((found.mapping.row, shard));
        }
        Ok(all)
    }
}

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// The key of a value, of the map's type.
    pub(crate) fn key(&self, value: &K) -> Result<ShardKey, Error> {
        let key = value.to_key()?;
        let (wanted, given) = (self.map.key_type(), key.key_type());
        if given == wanted {
            Ok(key)
        } else {
            Err(rangehold_map::shard::NotAKey::OtherType { wanted, given }.into())
        }
    }

    /// The mapping of a key, from the global map. If an operation holds it, waits for at most the lease of its owner.
    /// If the owner is gone, ends the operation.
    ///
    /// # Errors
    ///
    /// [`Code::MappingNotFoundForKey`]; [`Code::PendingOperation`] if the owner of the operation still works on it;
    /// [`Code::ShardMapDoesNotExist`] if the map was deleted.
    pub async fn get(&self, key: &K) -> Result<Mapping<K>, Error> {
        self.lookup(key, LookIn::Store).await
    }

    /// The mapping of a key, looked up where `look` says.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::get`].
    pub async fn lookup(&self, key: &K, look: LookIn) -> Result<Mapping<K>, Error> {
        match self.try_lookup(key, look).await? {
            Some(mapping) => Ok(mapping),
            None => Err(self.not_found(&self.key(key)?, look).await),
        }
    }

    /// The mapping of a key; `None` if it has none.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::get`], but for [`Code::MappingNotFoundForKey`].
    pub async fn try_lookup(&self, key: &K, look: LookIn) -> Result<Option<Mapping<K>>, Error> {
        let key = self.key(key)?;
        let cached = match look {
            LookIn::Store => None,
            _ => self.manager.0.cache.lookup(self.map.id, key.raw(), self.manager.metrics()),
        };
        let found = match (cached, look) {
            (None, LookIn::Store | LookIn::CacheThenStore) => {
                self.manager.find_key(&self.map, key.raw()).await?
            }
            (cached, _) => cached,
        };
        found.map(|found| Mapping::new(&self.map, found.mapping.clone(), found.shard.clone())).transpose()
    }

    pub(crate) async fn not_found(&self, key: &ShardKey, look: LookIn) -> Error {
        let name = &self.map.name;
        if look != LookIn::Cache && self.is_deleted().await {
            let text = format!("shard map {name:?} was deleted");
            return Error::new(self.category(), Code::ShardMapDoesNotExist, text);
        }
        let text = format!(
            "no shard of map {name:?} has key {key}: place it with `rangehold shards provision`, or add a mapping"
        );
        Error::new(self.category(), Code::MappingNotFoundForKey, text)
    }

    async fn is_deleted(&self) -> bool {
        let maps = self.manager.read_maps().await;
        maps.is_ok_and(|maps| !maps.iter().any(|map| map.id == self.map.id))
    }

    /// All mappings, in the order of their keys. Those that an operation is changing are as they were before.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn mappings(&self) -> Result<Vec<Mapping<K>>, Error> {
        self.read(None, None).await
    }

    /// The mappings of one shard.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::mappings`].
    pub async fn mappings_on(&self, shard: &Shard) -> Result<Vec<Mapping<K>>, Error> {
        self.own_shard(shard)?;
        self.read(None, Some(shard)).await
    }

    /// The mappings that hold some key from `low` (inclusive) to `high` (exclusive), on one shard or on all.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::mappings`].
    pub async fn mappings_between(
        &self,
        low: &K,
        high: Option<&K>,
        shard: Option<&Shard>,
    ) -> Result<Vec<Mapping<K>>, Error> {
        let high = high.map(|high| self.key(high)).transpose()?;
        self.read(Some(self.key(low)?.up_to(high.as_ref())), shard).await
    }

    async fn read(&self, keys: Option<KeyRange>, shard: Option<&Shard>) -> Result<Vec<Mapping<K>>, Error> {
        let all = self.manager.read_mappings(&self.map, keys.as_ref(), shard.map(|shard| shard.row.id)).await;
        let all = all.map_err(|error: StoreError| error.seen_by(self.category()))?;
        all.into_iter().map(|(mapping, shard)| Mapping::new(&self.map, mapping, shard)).collect()
    }

    /// How many mappings of this map are in the cache.
    pub fn cached(&self) -> usize {
        self.manager.0.cache.count(self.map.id)
    }

    /// The mapping with this id, as it is in the global map now.
    pub(super) async fn reread(&self, id: MappingId) -> Result<Option<Mapping<K>>, Error> {
        let read = async {
            let mut tx: Tx = self.manager.reading().await?;
            let sql = format!("{JOINED} and m.mapping_id = $2");
            let row = tx.query_one(&sql, &[self.map.id.into(), id.0.into()]).await?;
            tx.commit().await?;
            row.map(Found::read).transpose()
        };
        let found = read.await.map_err(|error: StoreError| error.seen_by(self.category()))?;
        found.map(|found| Mapping::new(&self.map, found.mapping.row, Arc::new(found.shard))).transpose()
    }

    /// The error for an old handle whose mapping is gone.
    pub(super) fn gone(&self, id: MappingId) -> Error {
        locks::gone(self.category(), &self.map, id)
    }
}

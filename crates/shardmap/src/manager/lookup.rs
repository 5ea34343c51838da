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
use crate::limits::{MAPPINGS_PER_READ_MAX, PENDING_MET_MAX};
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

/// Selects mappings of a map with their marks and their shards. A lock that has ended is left out.
fn joined(tx: &Tx) -> String {
    format!(
        "select m.mapping_id, m.shard_id, m.low, m.high, m.online, m.fence,
            case when m.lock_until > {now} then m.lock_token end, m.lock_owner, m.lock_until,
            m.readable, m.operation_id,
            s.shard_id, s.version, s.protocol, s.server, s.port, s.database, s.online
        from __shard_management.global_mappings m
            join __shard_management.global_shards s on s.shard_id = m.shard_id
        where m.map_id = $1",
        now = tx.now_sql()
    )
}

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
    error.failure() == Some(Failure::Denied)
}

impl ShardMapManager {
    /// The mapping of a key in the global map. Waits until no operation holds it. It replaces what the cache had for
    /// the key.
    pub(crate) fn find_key<'a>(
        &'a self,
        map: &'a MapRow,
        key: &'a [u8],
    ) -> BoxFuture<'a, Result<Option<Cached>, Error>> {
        Box::pin(self.settled_key(map, key))
    }

    async fn settled_key(&self, map: &MapRow, key: &[u8]) -> Result<Option<Cached>, Error> {
        let category = crate::operation::begin::category(map);
        let metrics = self.metrics();
        for met_count in 1.. {
            metrics.global_lookups.one();
            let found = self.read_key(map, key).await.map_err(|error: StoreError| error.seen_by(category))?;
            match found {
                Some(Found { mapping: mapping @ Marked { operation: Some(operation), .. }, shard }) => {
                    let hurry = met_count >= PENDING_MET_MAX;
                    let (operations, met) = (&self.0.operations, Met { operation });
                    let settled = match mapping.readable {
                        true => operations.settle_if_writer(&met, category, hurry).await,
                        false => operations.settle(&met, category, hurry).await,
                    };
                    match settled {
                        // This role only reads. The mapping as it was before is the best answer: if it is out of date,
                        // the shard refuses.
                        Err(error) if mapping.readable && is_denied(&error) => {
                            return Ok(Some(Cached { mapping: mapping.row, shard: Arc::new(shard) }));
                        }
                        settled => settled?,
                    }
                }
                Some(Found { mapping, shard }) => {
                    let cached = Cached { mapping: mapping.row, shard: Arc::new(shard) };
                    self.0.cache.put(map.id, [cached.clone()], metrics);
                    return Ok(Some(cached));
                }
                None => break,
            }
        }
        self.0.cache.forget_key(map.id, key, metrics);
        Ok(None)
    }

    async fn read_key(&self, map: &MapRow, key: &[u8]) -> Result<Option<Found>, StoreError> {
        let mut tx = self.reading().await?;
        let sql = format!("{} and m.low <= $2 order by m.low desc limit 1", joined(&tx));
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
        let put = |(mapping, shard): (ShardMapping, Arc<ShardRow>)| Cached { mapping, shard };
        let cache = |part: Vec<_>| self.0.cache.put(map.id, part.into_iter().map(put), self.metrics());
        self.each_part(map, None, None, cache).await?;
        self.0.cache.pack(map.id);
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
        let mut all = Vec::new();
        self.each_part(map, keys, shard, |part| all.extend(part)).await?;
        Ok(all)
    }

    /// Reads these mappings part by part, in one snapshot.
    async fn each_part(
        &self,
        map: &MapRow,
        keys: Option<&KeyRange>,
        shard: Option<Uuid>,
        mut take: impl FnMut(Vec<(ShardMapping, Arc<ShardRow>)>),
    ) -> Result<(), StoreError> {
        let part_max = i64::try_from(MAPPINGS_PER_READ_MAX).unwrap_or(i64::MAX);
        let mut tx = self.reading().await?;
        let mut sql = format!("{} and m.readable = $2 and m.low >= $3", joined(&tx));
        // The least key above all that were read.
        let mut next = Vec::new();
        let mut values: Vec<Value> = vec![map.id.into(), true.into(), Value::from(next.as_slice())];
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
        values.push(part_max.into());
        sql += &format!(" order by m.low limit ${}", values.len());
        let mut shards: HashMap<Uuid, Arc<ShardRow>> = HashMap::new();
        loop {
            values[2] = Value::from(next.as_slice());
            let rows = tx.query(&sql, &values).await?;
            let is_last = rows.len() < MAPPINGS_PER_READ_MAX;
            let mut part = Vec::with_capacity(rows.len());
            for row in rows {
                let found = Found::read(row)?;
                let shard = shards.entry(found.shard.id).or_insert_with(|| Arc::new(found.shard)).clone();
                part.push((found.mapping.row, shard));
            }
            if let Some((last, _)) = part.last() {
                next = [last.keys.low(), &[0]].concat();
            }
            take(part);
            if is_last {
                return tx.commit().await;
            }
        }
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
        found.map(|found| Mapping::new(&self.map, found.mapping, found.shard)).transpose()
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

    /// The mapping with the greatest keys; `None` if there is none.
    pub(super) async fn last(&self) -> Result<Option<Mapping<K>>, Error> {
        let read = async {
            let mut tx: Tx = self.manager.reading().await?;
            let sql = format!("{} and m.readable = $2 order by m.low desc limit 1", joined(&tx));
            let row = tx.query_one(&sql, &[self.map.id.into(), true.into()]).await?;
            tx.commit().await?;
            row.map(Found::read).transpose()
        };
        let found = read.await.map_err(|error: StoreError| error.seen_by(self.category()))?;
        found.map(|found| Mapping::new(&self.map, found.mapping.row, Arc::new(found.shard))).transpose()
    }

    /// How many mappings of this map are in the cache.
    pub fn cached(&self) -> usize {
        self.manager.0.cache.count(self.map.id)
    }

    /// The mapping with this id, as it is in the global map now.
    pub(super) async fn reread(&self, id: MappingId) -> Result<Option<Mapping<K>>, Error> {
        let read = async {
            let mut tx: Tx = self.manager.reading().await?;
            let sql = format!("{} and m.mapping_id = $2", joined(&tx));
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

//! Places new tenants and new ranges on shards.

use rangehold_map::shard::{DateTime, DateTimeOffset, ShardKey, ShardKeyType, ShardKeyValue, TimeSpan};

use super::calendar::{Every, due};
use super::placement::{PlacementPolicy, choose};
use super::sizes::ShardSize;
use super::{KindOfMap, ListShardMap, LookIn, Mapping, RangeShardMap, Shard, ShardMap};
use crate::error::{Category, Code, Error};

/// Ticks of 100 ns from the year 1 to 1970.
const TICKS_TO_1970: i64 = 621_355_968_000_000_000;

/// A tenant with its mapping.
#[derive(Debug)]
pub struct Provisioned<K> {
    /// The mapping.
    pub mapping: Mapping<K>,
    /// Whether the mapping is new. A second call for the same key gives the same shard.
    pub is_new: bool,
}

impl<K: ShardKeyValue> ListShardMap<K> {
    /// Maps a key to the shard that the policy chooses, if the key has no mapping. If two processes do this for one
    /// key at the same time, one maps it and the other finds that mapping.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`] if no shard of the map is online and can be reached;
    /// [`Code::StorageOperationFailure`].
    pub async fn provision(&self, key: &K, policy: PlacementPolicy) -> Result<Provisioned<K>, Error> {
        if let Some(mapping) = self.try_lookup(key, LookIn::Store).await? {
            return Ok(Provisioned { mapping, is_new: false });
        }
        let shard = self.place(policy).await?;
        match self.add(key, &shard).await {
            Ok(mapping) => Ok(Provisioned { mapping, is_new: true }),
            Err(error) if error.code() == Code::MappingPointAlreadyMapped => {
                Ok(Provisioned { mapping: self.get(key).await?, is_new: false })
            }
            Err(error) => Err(error),
        }
    }
}

impl RangeShardMap<ShardKey> {
    /// Adds the missing ranges: the range of `now`, and `ahead` ranges that begin later. Each goes to the shard that
    /// the policy chooses. All are added in one operation. A second call adds none.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidArgument`] if the last range has no end, or if the keys have no such ranges;
    /// [`Code::ShardDoesNotExist`] if no shard is online.
    pub async fn provision_ranges(
        &self,
        every: Every,
        ahead: usize,
        now: &ShardKey,
        policy: PlacementPolicy,
    ) -> Result<Vec<Mapping<ShardKey>>, Error> {
        let last = self.last().await?;
        let end = match &last {
            None => None,
            Some(last) => Some(last.high().ok_or_else(|| {
                Error::argument(format!(
                    "the range from {} on has no end: split it where the next begins",
                    last.low()
                ))
            })?),
        };
        let ranges = due(every, ahead, now, end)?;
        let mut sizes = self.sizes().await?;
        let mut placed: Vec<(&ShardKey, Option<&ShardKey>, Shard)> = Vec::new();
        for (low, high) in &ranges {
            let shard = choose(policy, &sizes).ok_or_else(|| self.no_shard())?.shard.clone();
            for size in sizes.iter_mut().filter(|size| size.shard == shard) {
                size.mappings += 1;
            }
            placed.push((low, Some(high), shard));
        }
        self.add_many(placed.iter().map(|(low, high, shard)| (*low, *high, shard)).collect()).await
    }
}

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// The shard that the policy chooses. Only shards that it may choose are asked for their bytes: with the fewest tenants
    /// these are the shards that have the fewest; if none of them can be reached, those with the next number.
    async fn place(&self, policy: PlacementPolicy) -> Result<Shard, Error> {
        let mut online = self.counts().await?;
        online.retain(|size| size.shard.is_online());
        if policy == PlacementPolicy::FewestTenants {
            online.sort_by_key(|size| size.mappings);
        }
        let are_alike = |one: &ShardSize, next: &ShardSize| {
            policy == PlacementPolicy::FewestBytes || one.mappings == next.mappings
        };
        for sizes in online.chunk_by_mut(are_alike) {
            self.ask_bytes(sizes.iter_mut()).await;
            if let Some(chosen) = choose(policy, sizes) {
                return Ok(chosen.shard.clone());
            }
        }
        Err(self.no_shard())
    }

    fn no_shard(&self) -> Error {
        let name = &self.map.name;
        let text = format!(
            "shard map {name:?} has no shard that is online and can be reached: add one, or set one online"
        );
        Error::new(Category::ShardMap, Code::ShardDoesNotExist, text)
    }

    /// The present time by the global map's clock, as a key; `None` if keys are not points in time.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn now(&self) -> Result<Option<ShardKey>, Error> {
        let read = async {
            let mut tx = self.manager.reading().await?;
            let now = tx.now().await?;
            tx.commit().await.map(|()| now)
        };
        let now = read.await.map_err(|error: crate::store::StoreError| error.seen_by(Category::ShardMap))?;
        let Some(time) = DateTime::from_ticks(now.saturating_mul(10).saturating_add(TICKS_TO_1970)) else {
            return Err(Error::damaged(format!(
                "the global map's clock shows {now} microseconds since 1970"
            )));
        };
        Ok(match self.map.key_type() {
            ShardKeyType::DateTime => Some(time.to_key()?),
            ShardKeyType::DateTimeOffset => Some(DateTimeOffset::new(time, TimeSpan(0)).to_key()?),
            _ => None,
        })
    }
}

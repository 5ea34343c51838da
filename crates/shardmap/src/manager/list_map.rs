//! List maps: single keys.

use rangehold_map::shard::{NewMapping, ShardKeyValue};

use super::handles::{PointMapping, Shard};
use super::shard_map::{List, ShardMap};
use crate::error::Error;

/// A map from single keys to shards.
pub type ListShardMap<K> = ShardMap<K, List>;

impl<K: ShardKeyValue> ListShardMap<K> {
    /// Maps a key to a shard. The mapping is online.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingPointAlreadyMapped`], [`crate::Code::ShardDoesNotExist`].
    pub async fn add(&self, key: &K, shard: &Shard) -> Result<PointMapping<K>, Error> {
        let added = self.add_many(vec![(key, shard)]).await?.pop();
        added.ok_or_else(|| Error::damaged("a mapping that was added is not there"))
    }

    /// Maps a key to a shard. The mapping is offline, as for a tenant whose rows are not there yet.
    ///
    /// # Errors
    ///
    /// As [`ListShardMap::add`].
    pub async fn add_offline(&self, key: &K, shard: &Shard) -> Result<PointMapping<K>, Error> {
        let new = NewMapping { keys: self.key(key)?.point(), shard: shard.id(), online: false };
        let added = self.add_all(vec![new], &[shard]).await?.pop();
        added.ok_or_else(|| Error::damaged("a mapping that was added is not there"))
    }

    /// Maps many keys in one operation, all or none. Returns the mappings in the order of their keys.
    ///
    /// # Errors
    ///
    /// As [`ListShardMap::add`]; [`crate::Code::InvalidArgument`] for more than
    /// [`crate::limits::MAPPINGS_PER_OPERATION_MAX`].
    pub async fn add_many(&self, keys: Vec<(&K, &Shard)>) -> Result<Vec<PointMapping<K>>, Error> {
        let mut new = Vec::new();
        for (key, shard) in &keys {
            new.push(NewMapping { keys: self.key(key)?.point(), shard: shard.id(), online: true });
        }
        let shards: Vec<&Shard> = keys.iter().map(|(_, shard)| *shard).collect();
        self.add_all(new, &shards).await
    }
}

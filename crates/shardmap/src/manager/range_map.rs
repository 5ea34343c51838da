//! Range maps: intervals of keys.

use rangehold_map::KeyRange;
use rangehold_map::shard::{LockToken, NewMapping, ShardChange, ShardKeyValue};

use super::handles::{RangeMapping, Shard};
use super::shard_map::{Range, ShardMap};
use crate::error::Error;

/// A map from intervals of keys to shards.
pub type RangeShardMap<K> = ShardMap<K, Range>;

impl<K: ShardKeyValue> RangeShardMap<K> {
    /// Maps the keys from `low` (inclusive) to `high` (exclusive) to a shard. The mapping is online. Without a
    /// `high`, all keys from `low` on are mapped.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingRangeAlreadyMapped`], [`crate::Code::ShardDoesNotExist`];
    /// [`crate::Code::InvalidArgument`] for an interval without keys.
    pub async fn add(&self, low: &K, high: Option<&K>, shard: &Shard) -> Result<RangeMapping<K>, Error> {
        let added = self.add_many(vec![(low, high, shard)]).await?.pop();
        added.ok_or_else(|| Error::damaged("a mapping that was added is not there"))
    }

    /// Maps an interval. The mapping is offline, as for a range whose rows are not there yet.
    ///
    /// # Errors
    ///
    /// As [`RangeShardMap::add`].
    pub async fn add_offline(
        &self,
        low: &K,
        high: Option<&K>,
        shard: &Shard,
    ) -> Result<RangeMapping<K>, Error> {
        let new = NewMapping { keys: self.interval(low, high)?, shard: shard.id(), online: false };
        let added = self.add_all(vec![new], &[shard]).await?.pop();
        added.ok_or_else(|| Error::damaged("a mapping that was added is not there"))
    }

    /// Maps many intervals in one operation, all or none. Returns the mappings in the order of their keys.
    ///
    /// # Errors
    ///
    /// As [`RangeShardMap::add`]; [`crate::Code::InvalidArgument`] for more than
    /// [`crate::limits::MAPPINGS_PER_OPERATION_MAX`].
    pub async fn add_many(
        &self,
        ranges: Vec<(&K, Option<&K>, &Shard)>,
    ) -> Result<Vec<RangeMapping<K>>, Error> {
        let mut new = Vec::new();
        for (low, high, shard) in &ranges {
            new.push(NewMapping { keys: self.interval(low, *high)?, shard: shard.id(), online: true });
        }
        let shards: Vec<&Shard> = ranges.iter().map(|(_, _, shard)| *shard).collect();
        self.add_all(new, &shards).await
    }

    /// Splits a mapping before `at`. No row is touched, and transactions go on.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] if `at` is not strictly inside; [`crate::Code::MappingDoesNotExist`],
    /// [`crate::Code::MappingLockOwnerMismatch`].
    pub async fn split(&self, mapping: &RangeMapping<K>, at: &K) -> Result<[RangeMapping<K>; 2], Error> {
        self.own(mapping)?;
        let at = self.key(at)?.raw().to_vec();
        let change = ShardChange::Split { mapping: mapping.id(), at, token: self.token() };
        let pieces = self.change(&change, &[mapping.shard()]).await?;
        pieces.try_into().map_err(|_| Error::damaged("a split did not give two mappings"))
    }

    /// Merges two neighbours that are on one shard and have the same status. The lock of the left one stays.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] if they are not such neighbours; otherwise as [`RangeShardMap::split`].
    pub async fn merge(
        &self,
        left: &RangeMapping<K>,
        right: &RangeMapping<K>,
    ) -> Result<RangeMapping<K>, Error> {
        self.merge_showing((left, self.token()), (right, self.token())).await
    }

    /// As [`RangeShardMap::merge`], if the two are locked with two different tokens.
    ///
    /// # Errors
    ///
    /// As [`RangeShardMap::merge`].
    pub async fn merge_showing(
        &self,
        (left, left_token): (&RangeMapping<K>, LockToken),
        (right, right_token): (&RangeMapping<K>, LockToken),
    ) -> Result<RangeMapping<K>, Error> {
        self.own(left)?;
        self.own(right)?;
        let change = ShardChange::Merge { left: left.id(), left_token, right: right.id(), right_token };
        let merged = self.change(&change, &[left.shard()]).await?.pop();
        merged.ok_or_else(|| Error::damaged("a merge did not give a mapping"))
    }

    /// The interval between two values.
    pub(super) fn interval(&self, low: &K, high: Option<&K>) -> Result<KeyRange, Error> {
        let high = high.map(|high| self.key(high)).transpose()?;
        Ok(self.key(low)?.up_to(high.as_ref()))
    }
}

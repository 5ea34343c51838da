//! Queries over all shards of a map.

use std::sync::Arc;

use rangehold_map::shard::ShardKeyValue;

use super::query::{MultiShardQuery, Policy};
use super::shard_map::{KindOfMap, ShardMap};
use crate::limits::{QUERY_SHARD_WITHIN, QUERY_SHARDS_AT_ONCE};

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// A query over all shards of this map: one statement that reads. Its parameters are `$1`, `$2` and so on.
    pub fn query(&self, sql: &str) -> MultiShardQuery {
        MultiShardQuery {
            manager: self.manager.clone(),
            map: self.map.clone(),
            sql: sql.into(),
            parameters: Arc::default(),
            policy: Policy::default(),
            at_once: QUERY_SHARDS_AT_ONCE,
            shard_within: QUERY_SHARD_WITHIN,
            within: None,
            retries: 1,
            only: None,
            watch: None,
        }
    }
}

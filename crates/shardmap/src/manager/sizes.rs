//! The sizes of shards.

use futures::StreamExt;
use rangehold_map::shard::ShardKeyValue;

use super::{KindOfMap, Shard, ShardMap};
use crate::error::{Category, Error};
use crate::limits::CONNECTIONS_PER_DATABASE_MAX;
use crate::location::Location;
use crate::store::{For, StoreError, Tx};

/// A shard with what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardSize {
    /// The shard.
    pub shard: Shard,
    /// Its mappings of this map.
    pub mappings: usize,
    /// The bytes of its database, with everything in it.
    pub bytes: u64,
}

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// All shards of the map with their sizes, by place.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`], also if only one shard cannot be reached. If that shard were left
    /// out silently, a choice by size would fill the others.
    pub async fn sizes(&self) -> Result<Vec<ShardSize>, Error> {
        let mut counts = std::collections::HashMap::new();
        for mapping in self.mappings().await? {
            *counts.entry(mapping.shard().id()).or_insert(0) += 1;
        }
        let sizes = self.shards().await?.into_iter().map(|shard| {
            let mappings = counts.get(&shard.id()).copied().unwrap_or_default();
            async move {
                let bytes = self.bytes(shard.location()).await;
                let bytes = bytes.map_err(|error: StoreError| error.seen_by(Category::ShardMap))?;
                Ok(ShardSize { shard, mappings, bytes })
            }
        });
        let sizes: Vec<Result<ShardSize, Error>> =
            futures::stream::iter(sizes).buffered(CONNECTIONS_PER_DATABASE_MAX).collect().await;
        sizes.into_iter().collect()
    }

    async fn bytes(&self, location: &Location) -> Result<u64, StoreError> {
        let mut tx = self.manager.0.operations.databases.at(location)?.begin(For::Reading).await?;
        let sql = match &tx {
            Tx::Postgres(_) => "select pg_database_size(current_database())",
            Tx::Sqlite(_) => "select page_count * page_size from pragma_page_count(), pragma_page_size()",
        };
        let bytes = tx.query_one(sql, &[]).await?.map(|mut row| row.int()).transpose()?;
        tx.commit().await?;
        Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default())
    }
}

//! The sizes of shards.

use std::collections::HashMap;

use futures::StreamExt;
use rangehold_map::shard::ShardKeyValue;
use uuid::Uuid;

use super::{KindOfMap, Shard, ShardMap};
use crate::error::{Category, Error};
use crate::limits::CONNECTIONS_PER_DATABASE_MAX;
use crate::location::Location;
use crate::store::{For, Row, StoreError, Tx};

/// How many mappings each shard has. One look at the index of the shard for each shard, and none at the other maps.
const COUNTS: &str = "select s.shard_id, (select count(*) from __shard_management.global_mappings m
        where m.shard_id = s.shard_id)
    from __shard_management.global_shards s where s.map_id = $1";
/// The same from the counts that a PostgreSQL store of this version keeps.
const KEPT_COUNTS: &str = "select s.shard_id, coalesce((select sum(k.mappings)
        from __shard_management.global_shard_sizes k where k.shard_id = s.shard_id), 0)::bigint
    from __shard_management.global_shards s where s.map_id = $1";

/// A shard with what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardSize {
    /// The shard.
    pub shard: Shard,
    /// Its mappings of this map. Those that an operation is adding or removing count too.
    pub mappings: usize,
    /// The bytes of its database, with everything in it; `None` if it was not asked, or cannot be reached.
    pub bytes: Option<u64>,
}

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// All shards of the map with their sizes, by place. A shard that cannot be reached has no bytes.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`] if the global map cannot be read.
    pub async fn sizes(&self) -> Result<Vec<ShardSize>, Error> {
        let mut sizes = self.counts().await?;
        self.ask_bytes(sizes.iter_mut()).await;
        Ok(sizes)
    }

    /// All shards with the number of their mappings, by place. The shards themselves are not asked.
    pub(super) async fn counts(&self) -> Result<Vec<ShardSize>, Error> {
        let shards = self.shards().await?;
        let counts = self.read_counts().await.map_err(|error| error.seen_by(Category::ShardMap))?;
        let size = |shard: Shard| {
            let mappings = counts.get(&shard.id().0).copied().unwrap_or_default();
            ShardSize { shard, mappings, bytes: None }
        };
        Ok(shards.into_iter().map(size).collect())
    }

    async fn read_counts(&self) -> Result<HashMap<Uuid, usize>, StoreError> {
        let mut tx = self.manager.reading().await?;
        let sql = if tx.has_table("global_shard_sizes").await? { KEPT_COUNTS } else { COUNTS };
        let rows = tx.query(sql, &[self.map.id.into()]).await?;
        tx.commit().await?;
        let one = |mut row: Row| Ok((row.uuid()?, usize::try_from(row.int()?).unwrap_or_default()));
        rows.into_iter().map(one).collect()
    }

    /// Asks these shards for the bytes of their databases.
    pub(super) async fn ask_bytes(&self, sizes: impl Iterator<Item = &mut ShardSize>) {
        let asked = sizes.map(|size| async move {
            match self.bytes(size.shard.location()).await {
                Ok(bytes) => size.bytes = Some(bytes),
                Err(error) => {
                    tracing::warn!(shard = %size.shard.location(), %error, "a shard has no known size")
                }
            }
        });
        futures::stream::iter(asked)
            .buffer_unordered(CONNECTIONS_PER_DATABASE_MAX)
            .collect::<Vec<()>>()
            .await;
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

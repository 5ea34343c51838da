//! Brings stores that an earlier version made to the tables and functions of this version.
//!
//! A program of this version works with a store of an earlier one, and the reverse, as long as the major version is the
//! same. What the store does not have is then not done: a fence of an earlier version does not tell queries which shard
//! it is. A shard also gets the new tables and functions when it is added, attached, moved or repaired. A shard of another
//! major version is refused.

use futures::StreamExt;

use super::{STORE_VERSION, ShardMapManager};
use crate::error::{Category, Error};
use crate::limits::QUERY_SHARDS_AT_ONCE;
use crate::location::Location;
use crate::store::{For, Schema, StoreError};

impl ShardMapManager {
    /// Upgrades the global map, and then each shard, in one transaction, and in one more for a shard that has a constraint of
    /// version 1.0. May be done again, and while the shards serve. Returns the shards with what failed there. A caller that tells how far it is calls
    /// [`ShardMapManager::upgrade_global_store`], and then [`ShardMapManager::upgrade_local_store`] for each shard.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::upgrade_global_store`]; [`crate::Code::StorageOperationFailure`] if the shards cannot be read.
    pub async fn upgrade(&self) -> Result<Vec<(Location, Result<(), Error>)>, Error> {
        self.upgrade_global_store().await?;
        let mut done = Vec::new();
        for location in self.shard_locations().await? {
            let upgraded = self.upgrade_local_store(&location).await;
            done.push((location, upgraded));
        }
        Ok(done)
    }

    /// Upgrades the global map alone.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`] if it cannot be upgraded, for instance because the role does not own its
    /// tables.
    pub async fn upgrade_global_store(&self) -> Result<(), Error> {
        self.upgrade_global().await.map_err(|error| error.seen_by(Category::Manager))
    }

    /// Upgrades the tables and functions of one shard, for all maps that it is in.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::upgrade_global_store`], also if a shard of version 1.0 has transactions at each moment that have
    /// read its mappings, so that its old constraint cannot be dropped; [`crate::Code::StoreVersionMismatch`] for a shard of
    /// another major version.
    pub async fn upgrade_local_store(&self, location: &Location) -> Result<(), Error> {
        self.upgrade_local(location).await.map_err(|error| error.seen_by(Category::Manager))
    }

    async fn upgrade_global(&self) -> Result<(), StoreError> {
        let mut tx = self.writing().await?;
        tx.install(Schema::Global).await?;
        let sql = "update __shard_management.global_meta set version_minor = $1 where version_minor < $1";
        tx.execute(sql, &[STORE_VERSION.1.into()]).await?;
        tx.commit().await
    }

    async fn upgrade_local(&self, location: &Location) -> Result<(), StoreError> {
        let mut tx = self.0.operations.databases.at(location)?.begin(For::Writing).await?;
        tx.install(Schema::Local).await?;
        let sql = "update __shard_management.local_meta set version_minor = $1 where version_minor < $1";
        tx.execute(sql, &[STORE_VERSION.1.into()]).await?;
        tx.mend_counts().await?;
        tx.commit().await?;
        // In a transaction of its own, since it keeps all transactions out of the shard until it is committed.
        let mut tx = self.0.operations.databases.at(location)?.begin(For::Writing).await?;
        tx.drop_exclusion().await?;
        tx.commit().await
    }

    /// Mends the counts of changes in each shard, as after a crash of its server or a change that was undone. Until then
    /// transactions at REPEATABLE READ and SERIALIZABLE lock the rows of their mappings. Returns the shards with what failed
    /// there, and else for how many maps the counts differed.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`] if the global map cannot be read.
    pub async fn mend_counts(&self) -> Result<Vec<(Location, Result<u64, Error>)>, Error> {
        let locations = self.shard_locations().await?;
        let each = locations.into_iter().map(|location| async move {
            let mended = self.mend_counts_at(&location).await;
            (location, mended.map_err(|error| error.seen_by(Category::Manager)))
        });
        Ok(futures::stream::iter(each).buffer_unordered(QUERY_SHARDS_AT_ONCE).collect().await)
    }

    async fn mend_counts_at(&self, location: &Location) -> Result<u64, StoreError> {
        let mut tx = self.0.operations.databases.at(location)?.begin(For::Writing).await?;
        let mended = tx.mend_counts().await?;
        tx.commit().await?;
        Ok(mended.unsigned_abs())
    }
}

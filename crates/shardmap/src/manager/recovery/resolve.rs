//! Makes the global map and a local map the same.

use rangehold_map::KeyRange;
use rangehold_map::ordered::Ordered;
use rangehold_map::shard::{Effect, MappingId, ShardId, ShardKey, ShardMapping};
use uuid::Uuid;

use super::local_map::{LocalMap, of_shard};
use super::{Identity, MapDifferences, RecoveryManager};
use crate::error::{Category, Code, Error};
use crate::operation::begin::{insert_recovered, lock_map, overlapping, read_shard};
use crate::operation::intervals::to_ask;
use crate::operation::{Met, Trouble};
use crate::rows::Marked;
use crate::store::Tx;

/// Which map is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// Neither: nothing is changed.
    Ignore,
    /// The global map: the shard's local map is made to match it.
    KeepGlobal,
    /// The shard: the global map is made to match the local map, even for keys that the global map has on other
    /// shards.
    KeepShard,
}

impl RecoveryManager {
    /// Makes the global map and the local map of a shard the same.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`] if the shard is not in the map: attach it first; [`Code::ShardNotValid`] if the
    /// database says that it is the shard at another place; [`Code::PendingOperation`];
    /// [`Code::StorageOperationFailure`].
    pub async fn resolve(&self, differences: MapDifferences, how: Resolution) -> Result<(), Error> {
        let MapDifferences { local, identity, .. } = differences;
        if let (Identity::AtOtherPlace(_), Resolution::KeepGlobal | Resolution::KeepShard) = (&identity, how)
        {
            let text = format!("{} cannot be resolved: {identity}", local.at);
            return Err(Error::new(Category::Recovery, Code::ShardNotValid, text));
        }
        if let (Identity::Closed | Identity::Lost, Resolution::KeepShard) = (&identity, how) {
            let text = format!("the shard at {} cannot be kept: {identity}", local.at);
            return Err(Error::new(Category::Recovery, Code::ShardNotValid, text));
        }
        match how {
            Resolution::Ignore => Ok(()),
            Resolution::KeepGlobal => self.keep_global(&local).await,
            Resolution::KeepShard => self.keep_shard(&local).await,
        }
    }

    /// Gives a shard's local map these intervals and no others. They are online and have new ids. The global map is
    /// not looked at. This is for a shard whose local map is lost. Resolve afterwards what then differs from the
    /// global map. In a list map, give single keys, without an end, in place of intervals.
    ///
    /// # Errors
    ///
    /// As [`RecoveryManager::resolve`]; [`Code::InvalidArgument`] for intervals that overlap or hold no key.
    pub async fn rebuild_shard(
        &self,
        differences: MapDifferences,
        keep: &[(ShardKey, Option<ShardKey>)],
    ) -> Result<(), Error> {
        let local = differences.local;
        let list = local.map.kind() == rangehold_map::shard::MapKind::List;
        let keys = |(low, high): &(ShardKey, Option<ShardKey>)| {
            if list { low.point() } else { low.up_to(high.as_ref()) }
        };
        let intervals: Vec<KeyRange> = keep.iter().map(keys).collect();
        self.repair(&local, Some(&intervals)).await
    }

    async fn keep_global(&self, local: &LocalMap) -> Result<(), Error> {
        self.repair(local, None).await
    }

    /// Makes an operation that changes only the shard's local map.
    async fn repair(&self, local: &LocalMap, keep: Option<&[KeyRange]>) -> Result<(), Error> {
        self.0.0.operations.repair(&local.map, &local.at, local.shard.id, local.epoch, keep).await
    }

    async fn keep_shard(&self, local: &LocalMap) -> Result<(), Error> {
        loop {
            let kept = self.try_keep_shard(local).await;
            match kept.map_err(|trouble| trouble.seen_by(Category::Recovery))? {
                Ok(effect) => {
                    self.0.0.cache.forget(local.map.id, &effect.goes, self.0.metrics());
                    return Ok(());
                }
                Err(met) => self.0.0.operations.settle(&met, Category::Recovery, false).await?,
            }
        }
    }

    /// One transaction in the global map. Every mapping that holds one of the shard's keys is removed, and so is
    /// every mapping that was the shard's. The mappings that the shard has are added.
    async fn try_keep_shard(&self, local: &LocalMap) -> Result<Result<Effect, Met>, Trouble> {
        let mut tx = self.0.writing().await?;
        let map = lock_map(&mut tx, &local.map, Category::Recovery).await?;
        match read_shard(&mut tx, &map, ShardId(local.shard.id)).await? {
            Some(Marked { operation: Some(operation), .. }) => return Ok(Err(Met { operation })),
            Some(_) => {}
            None => return Err(not_attached(local).into()),
        }
        let mut goes = of_shard(&mut tx, local).await?;
        let here = Ordered::new(local.mappings.iter().collect::<Vec<_>>());
        for keys in to_ask(here.iter().map(|mapping| &mapping.keys)) {
            for found in overlapping(&mut tx, &map, &keys, usize::MAX).await? {
                // What was asked for may hold more than the keys of the shard.
                if here.overlapping(&found.row.keys).is_empty() {
                    continue;
                }
                if let Some(operation) = found.operation {
                    return Ok(Err(Met { operation }));
                }
                goes.push(found.row);
            }
        }
        goes.sort_by_key(|mapping| mapping.id);
        goes.dedup_by_key(|mapping: &mut ShardMapping| -> MappingId { mapping.id });
        let mappings = goes.len() + local.mappings.len();
        let operations = &self.0.0.operations;
        let epoch = operations.take_numbers(&mut tx, last_number(local), 1, mappings).await?;
        delete(&mut tx, &goes).await?;
        // A local map that was written under two names has mappings of both shards.
        let shard = ShardId(local.shard.id);
        let comes: Vec<ShardMapping> =
            local.mappings.iter().map(|mapping| ShardMapping { shard, ..mapping.clone() }).collect();
        insert_recovered(&mut tx, &map, epoch, &comes).await?;
        let sql = "update __shard_management.global_shards set version = $1 where shard_id = $2";
        tx.execute(sql, &[local.shard.version.into(), local.shard.id.into()]).await?;
        tx.commit().await?;
        Ok(Ok(Effect { goes, comes }))
    }
}

/// The greatest number that a local map has: its epoch, or a fence.
fn last_number(local: &LocalMap) -> i64 {
    local.mappings.iter().map(|mapping| mapping.fence).max().unwrap_or_default().max(local.epoch)
}

async fn delete(tx: &mut Tx, mappings: &[ShardMapping]) -> Result<(), Trouble> {
    let ids: Vec<Uuid> = mappings.iter().map(|mapping| mapping.id.0).collect();
    tx.execute_for("delete from __shard_management.global_mappings where mapping_id in", &ids).await?;
    Ok(())
}

fn not_attached(local: &LocalMap) -> Error {
    let text = format!("the shard at {} is not in map {:?}: attach it first", local.at, local.map.name);
    Error::new(Category::Recovery, Code::ShardDoesNotExist, text)
}

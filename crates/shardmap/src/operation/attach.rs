//! The mappings that an attached shard brings back, without those whose keys are on other shards by now.
//!
//! While a shard is not in the global map, its keys can be given to other shards. Then two databases would serve them.
//! So the mappings of the shard, open and put away, are compared with those of the global map in the operation's first
//! step, and those whose keys are elsewhere leave the shard in the step that opens it.

use std::collections::HashMap;

use rangehold_map::ordered::Ordered;
use rangehold_map::shard::{MappingId, ShardKey, ShardMapping};
use uuid::Uuid;

use super::begin::overlapping;
use super::closing::CLOSED_MAPPINGS;
use super::identity::place_of;
use super::intervals::to_ask;
use super::{Met, Operations, Trouble};
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::rows::{MapRow, read_local_mapping};
use crate::store::{For, StoreError, Tx};

impl Operations {
    /// The mappings of a map in a database, open and put away, in the order of their keys.
    pub(super) async fn brought(&self, map: &MapRow, at: &Location) -> Result<Vec<ShardMapping>, StoreError> {
        let mut tx = self.databases.at(at)?.begin(For::Reading).await?;
        let mut rows = Vec::new();
        for table in ["local_mappings", CLOSED_MAPPINGS] {
            if tx.has_table(table).await? {
                let sql = format!(
                    "select mapping_id, shard_id, low, high, online, fence
                    from __shard_management.{table} where map_id = $1"
                );
                rows.extend(tx.query(&sql, &[map.id.into()]).await?);
            }
        }
        tx.commit().await?;
        let all = rows.iter_mut().map(read_local_mapping).collect::<Result<_, _>>()?;
        Ok(Ordered::new(all).into_vec())
    }
}

/// Those of the mappings that hold keys which the global map has on another shard. With `keep` they are left out of the
/// shard. Without, they are an error.
pub(super) async fn elsewhere(
    tx: &mut Tx,
    map: &MapRow,
    at: &Location,
    shard: Uuid,
    brought: &[ShardMapping],
    keep: bool,
) -> Result<Result<Vec<ShardMapping>, Met>, Trouble> {
    let (mut there, mut held) = (Vec::new(), HashMap::new());
    for keys in to_ask(brought.iter().map(|mapping| &mapping.keys)) {
        for found in overlapping(tx, map, &keys, usize::MAX).await? {
            held.extend(found.operation.map(|operation| (found.row.id, operation)));
            there.push(found.row);
        }
    }
    // Two intervals may have found the same mapping.
    there.sort_by_key(|mapping| mapping.id);
    there.dedup_by_key(|mapping: &mut ShardMapping| -> MappingId { mapping.id });
    there.retain(|mapping| mapping.shard.0 != shard);
    let there = Ordered::new(there);
    let mut leaving = Vec::new();
    for mapping in brought {
        let others = there.overlapping(&mapping.keys);
        if let Some(operation) = others.iter().find_map(|other| held.get(&other.id)) {
            return Ok(Err(Met { operation: *operation }));
        }
        match others.first() {
            None => {}
            Some(_) if keep => leaving.push(mapping.clone()),
            Some(other) => return Err(refused(tx, map, at, mapping, other).await?.into()),
        }
    }
    Ok(Ok(leaving))
}

async fn refused(
    tx: &mut Tx,
    map: &MapRow,
    at: &Location,
    mapping: &ShardMapping,
    other: &ShardMapping,
) -> Result<Error, StoreError> {
    let low = mapping.keys.low().max(other.keys.low());
    let key =
        ShardKey::from_raw(map.key_type(), low).map_or_else(|_| format!("{low:02x?}"), |key| key.to_string());
    let place = place_of(tx, other.shard.0).await?;
    let place = place.map_or_else(|| "another shard".to_owned(), |place| place.to_string());
    let text = format!(
        "the shard at {at} would serve key {key} of map {:?}, which is on {place} by now. `rangehold shards recover \
        --attach {at} --clone keep` attaches it without its mappings of such keys. If the shard at {at} is right, delete the \
        mapping on {place} first",
        map.name
    );
    Ok(Error::new(Category::Recovery, Code::ShardNotValid, text))
}

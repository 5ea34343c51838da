//! Gives a shard other mappings: the transactions on keys that go away are ended, and rows are deleted and inserted.

use rangehold_map::ordered::Ordered;
use rangehold_map::shard::ShardMapping;
use uuid::Uuid;

use super::closing::{Closing, close_some, forget_put_away};
use super::local::{Held, fences_of, read_these};
use super::plan::Plan;
use crate::rows::local_mapping_values;
use crate::store::{Drain, StoreError, Tx, Value};

/// Deletes mappings and inserts others. If the transactions on many keys must end first, only begins to close them.
pub(super) async fn replace(
    tx: &mut Tx,
    plan: &Plan,
    epoch: i64,
    goes: &[ShardMapping],
    comes: &[ShardMapping],
) -> Result<Closing, StoreError> {
    let was = read_these(tx, &plan.map, goes).await?;
    if was.len() < goes.len() {
        // The rest was put away in an earlier transaction of this step, or is gone.
        forget_put_away(tx, &plan.map, goes, plan.drain).await?;
    }
    replace_held(tx, plan, epoch, was, comes).await
}

/// The same, with the mappings that go as they were read.
pub(super) async fn replace_held(
    tx: &mut Tx,
    plan: &Plan,
    epoch: i64,
    was: Vec<Held>,
    comes: &[ShardMapping],
) -> Result<Closing, StoreError> {
    // Mappings of one map do not overlap, neither those that go nor those that come.
    let (was, coming) = (Ordered::new(was), Ordered::new(comes.iter().collect::<Vec<_>>()));
    // This comes before any row is locked, because a transaction that enters a key takes the fence first and then the
    // row. The transactions on keys that go away are always waited for, even if none may be ended. Otherwise two
    // databases would serve these keys.
    let closes = |held: &&Held| {
        let gone = &held.mapping;
        let stay = coming.overlapping(&gone.keys);
        let is_served = stay.iter().any(|mapping| mapping.online);
        stay.is_empty() || plan.drain != Drain::Leave && gone.online && !is_served
    };
    let closing: Vec<&Held> = was.iter().filter(closes).collect();
    let closed = fences_of(closing.iter().copied());
    if close_some(tx, &closing, &closed, plan.drain).await? == Closing::Begun {
        return Ok(Closing::Begun);
    }
    let ids: Vec<Uuid> = was.iter().map(|held| held.mapping.id.0).collect();
    tx.execute_for("delete from __shard_management.local_mappings where mapping_id in", &ids).await?;
    let into = "insert into __shard_management.local_mappings
        (map_id, epoch, former_fences, mapping_id, shard_id, low, high, online, fence)";
    let after = "on conflict (mapping_id) do update set epoch = excluded.epoch, online = excluded.online";
    let row = |mapping: &ShardMapping| {
        let mut former = fences_of(was.overlapping(&mapping.keys).iter());
        former.retain(|fence| *fence != mapping.fence && closed.binary_search(fence).is_err());
        let mut values: Vec<Value> = vec![plan.map.id.into(), epoch.into(), former.as_slice().into()];
        values.extend(local_mapping_values(mapping));
        values
    };
    tx.insert(into, after, comes.iter().map(row).collect()).await?;
    Ok(Closing::Done)
}

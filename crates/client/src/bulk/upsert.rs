//! Writing many entities.

use futures::{StreamExt, TryStreamExt, stream};

use super::spread::Spread;
use super::table_gate::TableGate;
use crate::entity::Entity;
use crate::error::Error;
use crate::request::Change;
use crate::request::batch::groups;
use crate::table::Table;

/// Writes entities as upserts: each entity is made, or gets these properties and no others. They travel in batches of up
/// to 100 of one partition, in an order by chance, with `at_once` batches under way at a time, each when the gate lets it pass. `done`
/// is told the size of each batch that is written.
///
/// Of an entity that comes twice, either may win. Ends with the first error; then some of the entities are written and others are not,
/// and the same call may be repeated.
pub async fn upsert_entities(
    table: &Table,
    entities: Vec<Entity>,
    at_once: usize,
    gate: &TableGate,
    seed: u64,
    done: impl Fn(u64),
) -> Result<(), Error> {
    let mut batches = Spread::new(usize::MAX, seed);
    for batch in groups(entities.into_iter().map(Change::InsertOrReplace)) {
        // The window takes all of them.
        let _none = batches.push(batch);
    }
    let send = |batch: Vec<Change>| async move {
        let count = batch.len() as u64;
        write(table, gate, batch).await?;
        Ok::<_, Error>(count)
    };
    let batches = stream::iter(std::iter::from_fn(|| batches.pop()));
    let mut under_way = batches.map(send).buffer_unordered(at_once.max(1));
    while let Some(count) = under_way.try_next().await? {
        done(count);
    }
    Ok(())
}

async fn write(table: &Table, gate: &TableGate, mut batch: Vec<Change>) -> Result<(), Error> {
    gate.pass(&batch[0].keys().partition_key, batch.len() as u32).await;
    match batch.len() {
        // A request of its own is smaller than a batch of one.
        1 => table.apply(batch.swap_remove(0)).await.map(drop),
        _ => table.batch(batch).await.map(drop),
    }
}

//! Writing many entities.

use futures::{StreamExt, TryStreamExt, stream};

use crate::entity::Entity;
use crate::error::Error;
use crate::request::Change;
use crate::request::batch::groups;
use crate::table::Table;

/// Writes entities as upserts: each entity is made, or gets these properties and no others. They travel in batches of up
/// to 100 of one partition, with `at_once` batches under way at a time. `done` is told the size of each batch that is
/// written.
///
/// An entity that comes twice gets its last properties only if `at_once` is 1. Ends with the first error; then some of the
/// entities are written and others are not, and the same call may be repeated.
pub async fn upsert(
    table: &Table,
    entities: Vec<Entity>,
    at_once: usize,
    done: impl Fn(u64),
) -> Result<(), Error> {
    let batches = groups(entities.into_iter().map(Change::InsertOrReplace));
    let send = |batch: Vec<Change>| {
        let (table, count) = (table.clone(), batch.len() as u64);
        async move {
            write(&table, batch).await?;
            Ok::<_, Error>(count)
        }
    };
    let mut under_way = stream::iter(batches.into_iter().map(send)).buffer_unordered(at_once.max(1));
    while let Some(count) = under_way.try_next().await? {
        done(count);
    }
    Ok(())
}

async fn write(table: &Table, mut batch: Vec<Change>) -> Result<(), Error> {
    match batch.len() {
        // A request of its own is smaller than a batch of one.
        1 => table.apply(batch.swap_remove(0)).await.map(drop),
        _ => table.batch(batch).await.map(drop),
    }
}

//! Deleting many entities.
//!
//! The entities are listed first: [`delete_matching`] reads the table, and [`delete_keys`] is given keys. The rest is the same. The
//! keys are cut into batches of one partition, a window of batches gives them out by chance, and each waits at the gate.
//!
//! A batch is carried out as a whole or not at all, so one entity that is gone stops all of it. That entity is then asked for alone,
//! and the batch is sent again without it. After some rounds of that, what is left of the batch goes one by one.

use std::ops::{Add, AddAssign};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use rangehold_protocol::table::filter::Filter;
use rangehold_protocol::table::key_bounds::QueryKind;

use super::run::run_unpaced;
use super::spread::Spread;
use super::table_gate::TableGate;
use crate::entity::{Entity, Keys};
use crate::error::Error;
use crate::limits::{
    BULK_AT_ONCE, BULK_BATCH_TRIES, BULK_ENTITIES_WINDOW, BULK_READERS, BULK_SPANS, PAGE_ITEMS,
};
use crate::moving::{Source, Span};
use crate::request::batch::groups;
use crate::request::{Change, Condition};
use crate::table::Table;

/// How many entities became what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deletion {
    /// They were there, and are deleted.
    pub deleted: u64,
    /// They were gone when their turn came: another client was faster, or an attempt of this job was, whose answer was lost.
    pub gone: u64,
    /// They were written after they had been listed, and are left alone: perhaps they no longer meet the condition. The same job, run
    /// again, looks at them again.
    pub changed: u64,
}

impl Add for Deletion {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            deleted: self.deleted + other.deleted,
            gone: self.gone + other.gone,
            changed: self.changed + other.changed,
        }
    }
}

impl AddAssign for Deletion {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Deletion {
    const DELETED: Self = Self { deleted: 1, gone: 0, changed: 0 };
    const GONE: Self = Self { deleted: 0, gone: 1, changed: 0 };
    const CHANGED: Self = Self { deleted: 0, gone: 0, changed: 1 };
}

/// Deletes the entities that meet `filter`, in the words of a `$filter`; without one, all entities of the table. Each batch comes out of
/// the stream when it is done, which is the progress.
///
/// Entities that are written after they were listed are left alone. A filter that does not limit the PartitionKey reads the whole
/// table, by several readers. To resume after a crash, run it again: it takes those that are still there.
pub fn delete_matching(
    table: &Table,
    filter: Option<String>,
    gate: &TableGate,
    seed: u64,
) -> impl Stream<Item = Result<Deletion, Error>> + use<> {
    let found = listed(table, filter).map_ok(|page| page.into_iter().map(deletion_of).collect());
    delete(table, found, gate, seed)
}

/// Deletes the entities with these keys, whatever they have become. An error among the keys ends the stream. To resume, run it again.
pub fn delete_keys<K, E>(
    table: &Table,
    keys: K,
    gate: &TableGate,
    seed: u64,
) -> impl Stream<Item = Result<Deletion, E>> + use<K, E>
where
    K: Stream<Item = Result<Keys, E>>,
    E: From<Error> + Send + 'static,
{
    let changes = keys.map_ok(|keys| Change::Delete(keys, Condition::Any)).try_chunks(PAGE_ITEMS);
    // The keys before the error are few, and the same job, run again, meets them again.
    delete(table, changes.map_err(|ended| ended.1), gate, seed)
}

fn deletion_of(entity: Entity) -> Change {
    let condition = entity.etag.as_ref().map_or(Condition::Any, Condition::from);
    Change::Delete(entity.keys, condition)
}

/// The keys and versions of the entities that meet a filter, page by page.
fn listed(table: &Table, filter: Option<String>) -> BoxStream<'static, Result<Vec<Entity>, Error>> {
    let reads_all = filter.as_deref().is_none_or(reads_all);
    let source = Source::new(table.clone()).filtered(filter).selected(&["PartitionKey".to_owned()]);
    if !reads_all {
        return source.pages(&Span::default()).boxed();
    }
    // One after the other, readers would be slower than the deletions, and all of these would load one place of the table.
    let spans = stream::once(async move {
        let spans = source.spans(BULK_SPANS).await?;
        let readers: Vec<_> = spans.iter().map(|span| source.pages(span).boxed()).collect();
        Ok::<_, Error>(stream::iter(readers).flatten_unordered(BULK_READERS))
    });
    spans.try_flatten().boxed()
}

/// Whether a query with this filter reads the whole table. A text that is not a filter is left to the service to refuse.
fn reads_all(filter: &str) -> bool {
    match Filter::parse(filter) {
        Ok(Some(filter)) => filter.bounds().kind() == QueryKind::Table,
        Ok(None) => true,
        Err(_) => false,
    }
}

fn delete<F, E>(
    table: &Table,
    found: F,
    gate: &TableGate,
    seed: u64,
) -> impl Stream<Item = Result<Deletion, E>> + use<F, E>
where
    F: Stream<Item = Result<Vec<Change>, E>>,
    E: From<Error> + Send + 'static,
{
    let batches = found.map_ok(|changes| stream::iter(groups(changes).into_iter().map(Ok))).try_flatten();
    let jobs = Spread::of_sizes(BULK_ENTITIES_WINDOW, seed, Vec::len).over(batches);
    let (table, gate) = (table.clone(), gate.clone());
    run_unpaced(jobs, BULK_AT_ONCE, move |batch: Result<Vec<Change>, E>| {
        let (table, gate) = (table.clone(), gate.clone());
        async move { Ok(delete_batch(&table, &gate, batch?).await?) }
    })
}

async fn delete_batch(table: &Table, gate: &TableGate, mut batch: Vec<Change>) -> Result<Deletion, Error> {
    let mut done = Deletion::default();
    for _ in 0..BULK_BATCH_TRIES {
        let count = batch.len();
        if count < 2 {
            break;
        }
        gate.pass(&batch[0].keys().partition_key, count as u32).await;
        let Err(error) = table.batch(batch.clone()).await else {
            return Ok(done + Deletion { deleted: count as u64, ..Deletion::default() });
        };
        if met(&error).is_none() {
            return Err(error);
        }
        match error.refusal().and_then(|refusal| refusal.change).filter(|change| *change < count) {
            Some(change) => done += delete_one(table, gate, batch.swap_remove(change)).await?,
            // The answer of an earlier attempt was lost, so perhaps all of them are gone.
            None => break,
        }
    }
    for change in batch {
        done += delete_one(table, gate, change).await?;
    }
    Ok(done)
}

async fn delete_one(table: &Table, gate: &TableGate, change: Change) -> Result<Deletion, Error> {
    gate.pass(&change.keys().partition_key, 1).await;
    match table.apply(change).await {
        Ok(_) => Ok(Deletion::DELETED),
        Err(error) => met(&error).ok_or(error),
    }
}

/// What the error of a deletion says about its entity; `None` if it says nothing about it.
fn met(error: &Error) -> Option<Deletion> {
    let last = match error {
        Error::OutcomeUnknown(unknown) => &unknown.last,
        error => error,
    };
    let refusal = last.refusal()?;
    match refusal.status {
        404 if refusal.code != "TableNotFound" => Some(Deletion::GONE),
        412 => Some(Deletion::CHANGED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_filter_that_does_not_limit_the_partition_needs_several_readers() {
        for (filter, all) in [
            ("Age gt 18", true),
            ("", true),
            ("RowKey eq 'r'", true),
            ("PartitionKey eq 'p' and Age gt 18", false),
            ("PartitionKey ge 'a'", false),
            ("not a filter", false),
        ] {
            assert_eq!(reads_all(filter), all, "{filter}");
        }
    }
}

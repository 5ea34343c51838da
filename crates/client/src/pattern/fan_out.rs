//! Several queries, answered as one in order.

use std::collections::BTreeMap;
use std::pin::Pin;

use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::entity::Entity;
use crate::error::Error;
use crate::limits::FAN_OUT_AT_ONCE;
use crate::request::{Filter, Query};
use crate::table::Table;

type Source = Pin<Box<dyn Stream<Item = Result<Entity, Error>> + Send>>;

/// The entities of all `queries`, in the order of `key`. Each query must return its entities in that order, which it
/// does if `key` is the RowKey, or the PartitionKey without the prefix that the query is restricted to.
///
/// The first page of each query is fetched at once, sixteen at a time; later pages when they are needed. Each query
/// holds one page in memory.
pub fn fan_out<K, F>(
    table: &Table,
    queries: Vec<Query>,
    key: F,
) -> impl Stream<Item = Result<Entity, Error>> + Send + 'static
where
    K: Ord + Send + 'static,
    F: Fn(&Entity) -> K + Send + 'static,
{
    let sources: Vec<Source> =
        queries.into_iter().map(|query| -> Source { Box::pin(table.query(query)) }).collect();
    let heads: Vec<_> =
        sources.into_iter().enumerate().map(|(number, source)| head(number, source)).collect();
    let begun = async move {
        let heads: Vec<_> = stream::iter(heads).buffer_unordered(FAN_OUT_AT_ONCE).try_collect().await?;
        let mut merge = Merge { heads: BTreeMap::new(), key };
        heads.into_iter().flatten().for_each(|(number, head, source)| merge.add(number, head, source));
        Ok::<_, Error>(stream::try_unfold(merge, |mut merge| async move {
            let next = merge.next().await?;
            Ok::<_, Error>(next.map(|entity| (entity, merge)))
        }))
    };
    stream::once(begun).try_flatten()
}

/// The first entity of a query, if it has one.
async fn head(number: usize, mut source: Source) -> Result<Option<(usize, Entity, Source)>, Error> {
    Ok(source.try_next().await?.map(|head| (number, head, source)))
}

/// The next entity of each query, the smallest first. The number keeps entities with equal keys apart.
struct Merge<K, F> {
    heads: BTreeMap<(K, usize), (Entity, Source)>,
    key: F,
}

impl<K: Ord, F: Fn(&Entity) -> K> Merge<K, F> {
    fn add(&mut self, number: usize, head: Entity, source: Source) {
        self.heads.insert(((self.key)(&head), number), (head, source));
    }

    async fn next(&mut self) -> Result<Option<Entity>, Error> {
        let Some(((_, number), (entity, mut source))) = self.heads.pop_first() else {
            return Ok(None);
        };
        if let Some(head) = source.try_next().await? {
            self.add(number, head, source);
        }
        Ok(Some(entity))
    }
}

/// The first `count` entities of a partition. With RowKeys of [`NumberKeys::newest_first`](crate::keys::NumberKeys::newest_first)
/// or [`reversed_ticks`](crate::keys::reversed_ticks) these are the newest, and the service reads only them.
pub async fn newest(table: &Table, partition_key: &str, count: usize) -> Result<Vec<Entity>, Error> {
    let page = u32::try_from(count).unwrap_or(u32::MAX);
    let query = Query::of(Filter::partition(partition_key)).page_items(page);
    table.query(query).take(count).try_collect().await
}

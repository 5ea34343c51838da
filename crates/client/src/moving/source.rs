//! Reading a span of a table, and finding a place to cut one.

use std::collections::VecDeque;
use std::pin::pin;

use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::between::between;
use super::fingerprint::Fingerprint;
use super::span::Span;
use crate::entity::{Entity, Keys};
use crate::error::Error;
use crate::limits::PROBES_MAX;
use crate::request::{Filter, Operator, Query};
use crate::table::Table;

/// Entities that were read together.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The keys that were read to the end.
    pub span: Span,
    /// The entities of these keys that meet the filter, in the order of keys.
    pub entities: Vec<Entity>,
    /// Their fingerprint.
    pub fingerprint: Fingerprint,
    /// Their size, as the service counts it.
    pub bytes: usize,
}

/// A table to read from, with what is wanted of it.
#[derive(Clone)]
pub struct Source {
    table: Table,
    filter: Option<String>,
    select: Vec<String>,
}

impl Source {
    /// All entities of a table, with all their properties.
    pub fn new(table: Table) -> Self {
        Self { table, filter: None, select: Vec::new() }
    }

    /// Only entities that meet `filter`, in the words of a `$filter`.
    #[must_use]
    pub fn filtered(mut self, filter: Option<String>) -> Self {
        self.filter = filter;
        self
    }

    /// Only these properties, and the keys; all of them if `names` is empty.
    #[must_use]
    pub fn selected(mut self, names: &[String]) -> Self {
        let keys = ["PartitionKey".to_owned(), "RowKey".to_owned()];
        self.select = match names {
            [] => Vec::new(),
            names => keys.iter().chain(names.iter().filter(|name| !keys.contains(name))).cloned().collect(),
        };
        self
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    fn query(&self, span: Option<Filter>) -> Query {
        let query = match (span, &self.filter) {
            (None, None) => Query::default(),
            (Some(span), None) => Query::of(span),
            (None, Some(filter)) => Query::of_text(filter),
            (Some(span), Some(filter)) => Query::of_text(format!("{span} and ({filter})")),
        };
        query.select(self.select.iter().cloned())
    }

    /// Reads a span from its beginning until `bytes` bytes have come, to the end of a page. Returns what was read, and
    /// the rest of the span if the part ended before it. `seen` is told how many entities each page has.
    pub async fn part(
        &self,
        span: Span,
        bytes: usize,
        seen: &(dyn Fn(u64) + Sync),
    ) -> Result<(Part, Option<Span>), Error> {
        let mut pages = pin!(self.pages(&span));
        let mut part = Part { span, entities: Vec::new(), fingerprint: Fingerprint::default(), bytes: 0 };
        while let Some(page) = pages.try_next().await? {
            seen(page.len() as u64);
            part.add(page);
            let last = part.entities.last().map(|entity| entity.keys.clone());
            if let Some(last) =
                last.filter(|last| part.bytes >= bytes && part.span.up_to.as_ref() != Some(last))
            {
                let [read, rest] = std::mem::take(&mut part.span).cut(last);
                part.span = read;
                return Ok((part, Some(rest)));
            }
        }
        Ok((part, None))
    }

    /// The entities of a span that meet the filter, in the order of keys, page by page. A page may be empty.
    pub fn pages(&self, span: &Span) -> impl Stream<Item = Result<Vec<Entity>, Error>> + Send + use<> {
        let queries: Vec<Query> = span.filters().into_iter().map(|filter| self.query(filter)).collect();
        let table = self.table.clone();
        let pages = stream::iter(queries).flat_map(move |query| table.pages(query, None));
        pages.map_ok(|page| page.entities)
    }

    /// Cuts the whole table into about `count` spans, or fewer if it is small.
    pub async fn spans(&self, count: usize) -> Result<Vec<Span>, Error> {
        let (mut whole, mut spans) = (Vec::new(), VecDeque::from([Span::default()]));
        while whole.len() + spans.len() < count
            && let Some(span) = spans.pop_front()
        {
            match self.cut(&span).await? {
                Some(halves) => spans.extend(halves),
                None => whole.push(span),
            }
        }
        whole.extend(spans);
        Ok(whole)
    }

    /// Cuts a span where there are entities on both sides, about halfway between their keys. `None` if the span has no
    /// more than a page of entities, or if no such place was found.
    pub async fn cut(&self, span: &Span) -> Result<Option<[Span; 2]>, Error> {
        let Some(first) = self.end_of_first_page(span).await? else { return Ok(None) };
        let place = match self.partition_in_the_middle(&first, span).await? {
            Some(place) => Some(place),
            None => self.row_in_the_middle(&first, span).await?,
        };
        Ok(place.map(|place| span.clone().cut(place)))
    }

    /// The last keys of the span's first page, if another page follows. The filter does not count: what a query costs is
    /// what it reads.
    async fn end_of_first_page(&self, span: &Span) -> Result<Option<Keys>, Error> {
        let mut last = None;
        for filter in span.filters() {
            let query = filter.map_or_else(Query::default, Query::of).select(["PartitionKey", "RowKey"]);
            let mut pages = pin!(self.table.pages(query, None));
            while let Some(page) = pages.try_next().await? {
                let Some(entity) = page.entities.last() else { continue };
                match last {
                    Some(_) => return Ok(last),
                    None => last = Some(entity.keys.clone()),
                }
            }
        }
        Ok(None)
    }

    async fn partition_in_the_middle(&self, first: &Keys, span: &Span) -> Result<Option<Keys>, Error> {
        let end = span.up_to.as_ref().map(|keys| keys.partition_key.clone());
        let from = |low: &str, high: Option<&str>| within("PartitionKey", low, high);
        self.guess(&first.partition_key, end, from).await
    }

    /// In the partition where the first page ends, or in the last one.
    async fn row_in_the_middle(&self, first: &Keys, span: &Span) -> Result<Option<Keys>, Error> {
        let rows = |partition: &str| {
            let partition = Filter::partition(partition);
            move |low: &str, high: Option<&str>| partition.clone().and(within("RowKey", low, high))
        };
        let Some(up_to) = &span.up_to else {
            return self.guess(&first.row_key, None, rows(&first.partition_key)).await;
        };
        let is_last = up_to.partition_key == first.partition_key;
        let end = is_last.then(|| up_to.row_key.clone());
        match self.guess(&first.row_key, end, rows(&first.partition_key)).await? {
            None if !is_last => self.guess("", Some(up_to.row_key.clone()), rows(&up_to.partition_key)).await,
            found => Ok(found),
        }
    }

    /// Asks for the first key from a guess on, and guesses lower as long as there is none.
    async fn guess(
        &self,
        low: &str,
        mut high: Option<String>,
        from: impl Fn(&str, Option<&str>) -> Filter,
    ) -> Result<Option<Keys>, Error> {
        for _ in 0..PROBES_MAX {
            let Some(middle) = between(low, high.as_deref()) else { return Ok(None) };
            let query =
                Query::of(from(&middle, high.as_deref())).select(["PartitionKey", "RowKey"]).page_items(1);
            let found: Option<Entity> = pin!(self.table.query(query)).try_next().await?;
            match found {
                Some(entity) => return Ok(Some(entity.keys)),
                None => high = Some(middle),
            }
        }
        Ok(None)
    }
}

/// Entities whose key is at or above `low`, and below `high` if there is one.
fn within(key: &str, low: &str, high: Option<&str>) -> Filter {
    match high {
        Some(high) => Filter::key_range(key, low, high),
        None => Filter::compare(key, Operator::GreaterOrEqual, low),
    }
}

impl Part {
    fn add(&mut self, entities: Vec<Entity>) {
        self.fingerprint += Fingerprint::of(&entities);
        self.bytes += entities.iter().map(Entity::bytes).sum::<usize>();
        self.entities.extend(entities);
    }
}

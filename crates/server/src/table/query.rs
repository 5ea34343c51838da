//! Queries: pages of entities and of tables.
//!
//! A page is built in one pass over the rows between the filter's bounds: each row is filtered and
//! written as JSON straight from its stored bytes. It ends at `$top` or 1,000 entities, at 4 MiB,
//! or when its time is up. A token points at the next entity that matches, as the real service's
//! does, so that the last page has none; but a full page looks ahead for it only so far
//! ([`limits::LOOK_AHEAD_ROWS_MAX`]), and then points at the first entity not looked at. A client
//! that follows tokens sees every entity that existed all the while exactly once, because the
//! token is a key and keys do not move.

use std::ops::ControlFlow;

use bytes::Bytes;
use rangehold_map::KeyRange;
use rangehold_map::key::{PartitionPrefix, entity_keys};
use rangehold_protocol::auth::Action;
use rangehold_protocol::table::catalogue::TableRecord;
use rangehold_protocol::table::continuation::Continuation;
use rangehold_protocol::table::error::{ErrorCode, TableError};
use rangehold_protocol::table::filter::{Filter, Subject};
use rangehold_protocol::table::limits::{PAGE_BYTES_MAX, PAGE_ITEMS_MAX};
use rangehold_protocol::table::query::{EntityQuery, TableQuery};
use rangehold_protocol::table::render::{EntityWriter, TableWriter};
use rangehold_protocol::table::row::{DamagedRow, RowView};
use tokio::time::{Instant, timeout};

use super::TableService;
use super::exchange::Authorised;
use super::failure::{Failure, damaged};
use super::reply::Reply;
use crate::limits;

/// A page of entities under construction.
struct EntityPage<'a> {
    query: &'a EntityQuery,
    writer: EntityWriter<'a>,
    most: usize,
    until: Instant,
    body: Vec<u8>,
    items: usize,
    /// Rows looked at since the page was full.
    ahead: usize,
    /// The first entity that is not in the page.
    next: Option<Continuation>,
    failure: Option<Failure>,
}

impl EntityPage<'_> {
    fn visit(&mut self, key: &[u8], value: &Bytes) -> ControlFlow<()> {
        match self.take(key, value) {
            Ok(flow) => flow,
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn take(&mut self, key: &[u8], value: &Bytes) -> Result<ControlFlow<()>, Failure> {
        let (partition_key, row_key) = entity_keys(key).map_err(damaged)?;
        let full = self.items >= self.most || self.body.len() >= PAGE_BYTES_MAX;
        self.ahead += usize::from(full);
        if self.ahead > limits::LOOK_AHEAD_ROWS_MAX || Instant::now() >= self.until {
            self.next = Some(Continuation::Entity { partition_key, row_key: Some(row_key) });
            return Ok(ControlFlow::Break(()));
        }
        let row = RowView::new(value).map_err(damaged)?;
        if !self.wanted(&partition_key, &row_key, &row).map_err(damaged)? {
            return Ok(ControlFlow::Continue(()));
        }
        if full {
            self.next = Some(Continuation::Entity { partition_key, row_key: Some(row_key) });
            return Ok(ControlFlow::Break(()));
        }
        self.writer
            .page_item(&mut self.body, self.items == 0, &partition_key, &row_key, &row)
            .map_err(damaged)?;
        self.items += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn wanted(&self, partition_key: &str, row_key: &str, row: &RowView<'_>) -> Result<bool, DamagedRow> {
        match &self.query.filter {
            Some(filter) => filter.matches(&Subject { partition_key, row_key, row }),
            None => Ok(true),
        }
    }
}

impl TableService {
    /// `GET /x()`
    pub(super) async fn query_entities(
        &self,
        request: &Authorised<'_>,
        name: &str,
    ) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let level = exchange.level()?;
        request.principal.permit(Action::QueryEntities, Some(name), None)?;
        let account = exchange.address.account.as_str();
        // Before the table is looked up: an id must not grow old in a queue.
        let _place = timeout(limits::ROOM_WITHIN, self.pages.acquire()).await.map_err(|_| {
            TableError::new(ErrorCode::ServerBusy, "The server is busy: too many queries are under way.")
        })?;
        let table = self.catalogue(account).open(name).await?;
        let query = EntityQuery::from_query(&exchange.query)?;
        let keys = key_range(request, account, &table, &query);

        let begin = || EntityPage {
            query: &query,
            writer: EntityWriter {
                base: &exchange.address.base,
                account,
                table: name,
                level,
                select: query.select.as_ref(),
            },
            most: query.top.map_or(PAGE_ITEMS_MAX, |top| top as usize),
            until: exchange.deadline.min(Instant::now() + limits::PAGE_WITHIN),
            body: Vec::with_capacity(4096),
            items: 0,
            ahead: 0,
            next: None,
            failure: None,
        };
        let begin = || {
            let mut page = begin();
            page.writer.page_begin(&mut page.body);
            page
        };
        // `$top=0` asks for nothing, and a token to nothing would be followed for ever.
        let keys = if query.top == Some(0) { KeyRange::new(Vec::new(), Some(Vec::new())) } else { keys };
        let mut page = self.router.scan(&keys, begin, EntityPage::visit).await?;
        if let Some(failure) = page.failure {
            return Err(failure);
        }
        page.writer.page_end(&mut page.body);
        let mut reply = Reply::with_body(200, level.content_type(), page.body);
        reply.headers.extend(page.next.iter().flat_map(Continuation::headers));
        Ok(reply)
    }

    /// `GET /Tables`
    pub(super) async fn query_tables(&self, request: &Authorised<'_>) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let level = exchange.level()?;
        request.principal.permit(Action::ListTables, None, None)?;
        let query = TableQuery::from_query(&exchange.query)?;
        let account = exchange.address.account.as_str();
        let most = query.top.map_or(PAGE_ITEMS_MAX, |top| top as usize);
        let filter = query.filter.as_ref();
        let wanted = |name: &str| filter.is_none_or(|filter| filter.matches_table(name));
        let only = filter.and_then(Filter::only_table);
        let page = self.catalogue(account).page(query.from.as_deref(), only, most, wanted).await?;

        let writer = TableWriter { base: &exchange.address.base, account, level };
        let mut body = Vec::with_capacity(64 + page.names.len() * 96);
        writer.page_begin(&mut body);
        for (index, name) in page.names.iter().enumerate() {
            writer.page_item(&mut body, index == 0, name);
        }
        writer.page_end(&mut body);
        let mut reply = Reply::with_body(200, level.content_type(), body);
        let next = page.next.map(|name| Continuation::Table { name });
        reply.headers.extend(next.iter().flat_map(Continuation::headers));
        Ok(reply)
    }
}

/// The keys that a query has to look at: between the filter's bounds, from its token on, and
/// inside of what the sender's token lets him see.
fn key_range(request: &Authorised<'_>, account: &str, table: &TableRecord, query: &EntityQuery) -> KeyRange {
    let mut keys = match &query.filter {
        Some(filter) => filter.bounds().to_range(account, table.id),
        None => KeyRange::prefix(&rangehold_map::key::table_prefix(account, table.id)),
    };
    if let Some(bounds) = request.principal.key_bounds() {
        keys = keys.intersect(&bounds.to_range(account, table.id));
    }
    if let Some((partition_key, row_key)) = &query.from {
        let partition = PartitionPrefix::entity(account, table.id, partition_key);
        let from = match row_key {
            Some(row_key) => partition.key(row_key),
            None => partition.as_bytes().to_vec(),
        };
        keys = keys.intersect(&KeyRange::new(from, None));
    }
    keys
}

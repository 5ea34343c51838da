//! Queries: pages of entities and of tables.
//!
//! A query is answered in pages. A client that follows their tokens sees every entity that existed the whole time
//! exactly once, because a token is a key, and keys do not move. The module `page` decides what a page takes, and
//! `reach` how far it may look.

use std::collections::BTreeSet;

use rangehold_map::key::PartitionPrefix;
use rangehold_map::load::Access;
use rangehold_map::{KeyRange, ServerId};
use rangehold_protocol::auth::Action;
use rangehold_protocol::table::catalogue::TableRecord;
use rangehold_protocol::table::continuation::Continuation;
use rangehold_protocol::table::filter::Filter;
use rangehold_protocol::table::key_bounds::KeyBounds;
use rangehold_protocol::table::limits::PAGE_ITEMS_MAX;
use rangehold_protocol::table::query::{EntityQuery, TableQuery};
use rangehold_protocol::table::render::{EntityWriter, TableWriter};
use tokio::time::Instant;

use super::TableService;
use super::admit::{PageCharge, Touched};
use super::exchange::Authorised;
use super::failure::Failure;
use super::page::EntityPage;
use super::reply::Reply;
use crate::limits;
use crate::queries::Counts;

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
        // Waits for room before it looks up the table, so that the table's id is not out of date after the wait.
        let tenant = self.tenant(exchange, name);
        let until = Instant::now() + limits::ROOM_WITHIN;
        let place = self.replies.place(tenant, limits::PAGE_STEP_BYTES, until).await?;
        let table = self.catalogue(account).open(name).await?;
        let query = EntityQuery::from_query(&exchange.query)?;
        let bounds = query.filter.as_ref().map_or_else(KeyBounds::all, Filter::bounds);
        let kind = bounds.kind();
        let keys = key_range(request, account, &table, bounds, query.from.as_ref());

        let reach = self.reach(account, table.id, &keys);
        let touched =
            Touched { account, table: table.id, key: keys.low(), access: Access::Scan, entities: 1 };
        let writer = EntityWriter {
            base: &exchange.address.base,
            account,
            table: name,
            level,
            select: query.select.as_ref(),
        };
        let begin = |writer, body| EntityPage {
            query: &query,
            reads_keys: query.filter.as_ref().is_some_and(Filter::reads_keys),
            writer,
            most: query.top.map_or(PAGE_ITEMS_MAX, |top| top as usize),
            until: exchange.deadline.min(Instant::now() + self.profile.pages.within),
            charge: PageCharge::new(&self.admission, &touched),
            body,
            place: &place,
            room: limits::PAGE_STEP_BYTES,
            items: 0,
            looked_at: 0,
            ahead: 0,
            ended_before: None,
            next: None,
            failure: None,
        };
        let begin = || {
            // If the scan begins again, so does the room of its page.
            place.keep(limits::PAGE_STEP_BYTES);
            let mut body = Vec::with_capacity(4096);
            begin(writer.page(&mut body), body)
        };
        // `$top=0` asks for nothing. If the answer had a token, a client would ask again without end.
        let nothing = KeyRange::new(Vec::new(), Some(Vec::new()));
        let keys = if query.top == Some(0) { &nothing } else { &reach.keys };
        let scan = self.router.scan(keys, begin, EntityPage::visit);
        let fill = async { Ok(self.turns.run(tenant, scan).await?) };
        let mut page = self.admitted(touched, exchange.deadline, fill).await?;
        if let Some(failure) = page.failure {
            return Err(failure);
        }
        if page.most > 0 {
            page.next = page.next.or(reach.next);
        }
        page.writer.end(&mut page.body);
        self.queries.count(kind, &self.counts(&reach.keys, &page));
        // The body got its room by its length, and may be kept for long.
        if page.body.capacity() - page.body.len() > limits::PAGE_STEP_BYTES {
            page.body.shrink_to_fit();
        }
        let mut reply = Reply::with_body(200, level.content_type(), page.body);
        reply.headers.extend(page.next.iter().flat_map(Continuation::headers));
        reply.place = Some(place);
        Ok(reply)
    }

    /// The cost of a page that looked at `keys`.
    fn counts(&self, keys: &KeyRange, page: &EntityPage<'_>) -> Counts {
        let seen = keys.intersect(&KeyRange::new(Vec::new(), page.ended_before.clone()));
        let map = self.router.map();
        let asked: Vec<ServerId> = map.overlapping(&seen).map(|entry| entry.place.server).collect();
        let servers: BTreeSet<&ServerId> = asked.iter().collect();
        Counts {
            answers: 1,
            looked_at: page.looked_at as u64,
            returned: page.items as u64,
            ranges: asked.len() as u64,
            servers: servers.len() as u64,
            tokens: u64::from(page.next.is_some()),
        }
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

/// The keys that a query has to look at: between the bounds of the filter, from the token on, and only those that the
/// sender may see.
fn key_range(
    request: &Authorised<'_>,
    account: &str,
    table: &TableRecord,
    bounds: KeyBounds,
    from: Option<&(String, Option<String>)>,
) -> KeyRange {
    let mut keys = bounds.to_range(account, table.id);
    if let Some(bounds) = request.principal.key_bounds() {
        keys = keys.intersect(&bounds.to_range(account, table.id));
    }
    if let Some((partition_key, row_key)) = from {
        let partition = PartitionPrefix::entity(account, table.id, partition_key);
        let from = match row_key {
            Some(row_key) => partition.key(row_key),
            None => partition.as_bytes().to_vec(),
        };
        keys = keys.intersect(&KeyRange::new(from, None));
    }
    keys
}

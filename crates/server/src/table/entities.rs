//! Entities: get, insert, update, merge, upsert, delete.
//!
//! A write is *prepared* (read from its body and checked, see [`Prepared`]), then *applied*: judged
//! on the newest state of its rows by the protocol's pure `judge`, inside the engine's write path.
//! A batch is several prepared writes applied at once, so both go through the same two steps.

use bytes::Bytes;
use rangehold_engine::WriteRequest;
use rangehold_engine::store::Space;
use rangehold_map::load::Access;
use rangehold_map::{PartitionPrefix, TableId, Timestamp};
use rangehold_protocol::auth::Action;
use rangehold_protocol::error::ErrorCode;
use rangehold_protocol::table::etag;
use rangehold_protocol::table::key_bounds::QueryKind;
use rangehold_protocol::table::limits::BODY_BYTES_MAX;
use rangehold_protocol::table::render::EntityWriter;
use rangehold_protocol::table::request::{EntityName, wrong_key_count};
use rangehold_protocol::table::row::RowView;
use rangehold_protocol::table::select::Select;
use rangehold_protocol::table::write::{Change, Write, WriteKind, judge};

use super::TableService;
use super::admit::Touched;
use super::exchange::{Authorised, Exchange, Prefer};
use super::failure::{Failure, damaged};
use super::prepared::{Prepared, ReplyWish, action_of};
use super::reply::Reply;
use crate::queries::Counts;

impl TableService {
    /// `GET /x(PartitionKey='p',RowKey='r')`
    pub(super) async fn get_entity(
        &self,
        request: &Authorised<'_>,
        name: &EntityName,
    ) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let level = exchange.level()?;
        let select = exchange.query.get("$select").map(Select::parse).transpose()?.flatten();
        request.principal.permit(
            Action::QueryEntities,
            Some(&name.table),
            Some((&name.partition_key, &name.row_key)),
        )?;
        let account = exchange.address.account.as_str();
        let table = self.catalogue(account).open(&name.table).await?;
        let key = PartitionPrefix::entity(account, table.id, &name.partition_key).key(&name.row_key);
        let touched = Touched { account, table: table.id, key: &key, access: Access::PointRead, entities: 1 };
        let stored =
            self.admitted(touched, exchange.deadline, async { Ok(self.router.get(&key).await?) }).await?;
        self.queries.count(QueryKind::Point, &Counts::of_get(stored.is_some()));
        let stored = stored.ok_or(ErrorCode::ResourceNotFound)?;
        let view = RowView::new(&stored).map_err(damaged)?;
        let writer = EntityWriter {
            base: &exchange.address.base,
            account,
            table: &name.table,
            level,
            select: select.as_ref(),
        };
        let mut body = Vec::with_capacity(stored.len() * 2);
        writer.one(&mut body, &name.partition_key, &name.row_key, &view).map_err(damaged)?;
        Ok(Reply::with_body(200, level.content_type(), body).header("ETag", etag::format(view.timestamp())))
    }

    /// `POST /x`
    pub(super) async fn insert_entity(
        &self,
        request: &Authorised<'_>,
        table: String,
        body: &mut hyper::body::Incoming,
    ) -> Result<Reply, Failure> {
        let wish = ReplyWish { prefer: request.exchange.prefer(), level: request.exchange.level()? };
        super::expect_json(request.exchange)?;
        request.principal.permit(Action::InsertEntity, Some(&table), None)?;
        let tenant = self.tenant(request.exchange, &table);
        let body = self.body(request.exchange, tenant, body, BODY_BYTES_MAX).await?;
        let id = self.open_for(request, Action::InsertEntity, &table).await?;
        let prepared = Prepared::insert(table, &body.bytes, wish)?;
        self.write_one(request, id, prepared, body.bytes.len()).await
    }

    /// `PUT`, `MERGE` or `DELETE /x(PartitionKey='p',RowKey='r')`
    pub(super) async fn write_entity(
        &self,
        request: &Authorised<'_>,
        name: EntityName,
        kind: WriteKind,
        body: &mut hyper::body::Incoming,
    ) -> Result<Reply, Failure> {
        let wish = ReplyWish { prefer: Prefer::Unsaid, level: request.exchange.level()? };
        request.principal.permit(action_of(kind), Some(&name.table), None)?;
        if matches!(kind, WriteKind::Delete(_)) {
            let id = self.open_for(request, action_of(kind), &name.table).await?;
            return self.write_one(request, id, Prepared::write(name, kind, &[], wish)?, 0).await;
        }
        super::expect_json(request.exchange)?;
        let tenant = self.tenant(request.exchange, &name.table);
        let body = self.body(request.exchange, tenant, body, BODY_BYTES_MAX).await?;
        let id = self.open_for(request, action_of(kind), &name.table).await?;
        let prepared = Prepared::write(name, kind, &body.bytes, wish)?;
        self.write_one(request, id, prepared, body.bytes.len()).await
    }

    /// A request for something below a table that is named by one key; see
    /// [`Operation::MisnamedEntity`](rangehold_protocol::table::request::Operation::MisnamedEntity).
    pub(super) async fn refuse_misnamed(
        &self,
        request: &Authorised<'_>,
        table: &str,
    ) -> Result<Reply, Failure> {
        self.open_for(request, Action::QueryEntities, table).await?;
        Err(wrong_key_count(&request.exchange.address.account, table).into())
    }

    /// The id of a table, for a sender that may do `action` on it. The error for a missing table comes before errors
    /// in the body. A sender without permission does not learn whether the table exists.
    async fn open_for(
        &self,
        request: &Authorised<'_>,
        action: Action,
        table: &str,
    ) -> Result<TableId, Failure> {
        request.principal.permit(action, Some(table), None)?;
        Ok(self.catalogue(&request.exchange.address.account).open(table).await?.id)
    }

    async fn write_one(
        &self,
        request: &Authorised<'_>,
        table: TableId,
        prepared: Prepared,
        body_bytes: usize,
    ) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let write = &prepared.write;
        request.principal.permit(
            prepared.action(),
            Some(&prepared.table),
            Some((&write.partition_key, &write.row_key)),
        )?;
        let account = exchange.address.account.as_str();
        let written = self.apply(exchange, table, &[write], body_bytes).await;
        let written = written.map_err(|failure| Failure { operation: None, ..failure })?;
        prepared.reply(&exchange.address.base, account, written)
    }

    /// Applies writes to one partition (the PartitionKey of the first), all of them or none. Their bodies have `body_bytes`
    /// together. Returns their common timestamp. A failure names the operation that failed.
    pub(super) async fn apply(
        &self,
        exchange: &Exchange<'_>,
        table: TableId,
        writes: &[&Write],
        body_bytes: usize,
    ) -> Result<Timestamp, Failure> {
        let (account, deadline) = (exchange.address.account.as_str(), exchange.deadline);
        let partition = PartitionPrefix::entity(account, table, &writes[0].partition_key);
        let keys: Vec<Vec<u8>> = writes.iter().map(|write| partition.key(&write.row_key)).collect();
        let decide = |current: &[Option<Bytes>], now: Timestamp| {
            let mut rows = Vec::with_capacity(writes.len());
            for (index, (write, stored)) in writes.iter().zip(current).enumerate() {
                let of_operation = |failure: Failure| failure.of_operation(index);
                let view = stored.as_deref().map(RowView::new).transpose();
                let view = view.map_err(|error| of_operation(damaged(error)))?;
                let change = judge(write, view.as_ref(), now)
                    .map_err(|error| of_operation(damaged(error)))?
                    .map_err(|refused| of_operation(refused.into()))?;
                let row = match change {
                    Change::Put(row) => Some(row),
                    Change::Delete => None,
                };
                rows.push((keys[index].clone(), row));
            }
            Ok::<_, Failure>(rows)
        };
        // A client that names an ETag works by reading, changing and trying again.
        let tries_again = matches!(writes, [write] if write.kind.names_etag());
        let only_deletes = writes.iter().all(|write| matches!(write.kind, WriteKind::Delete(_)));
        let space = if only_deletes { Space::Returns } else { Space::Takes };
        let request = WriteRequest {
            bytes: body_bytes as u64,
            tried_again_by: tries_again.then_some(exchange.connection.peer),
            space,
            ..WriteRequest::new(&partition, &keys, deadline)
        };
        let touched =
            Touched { account, table, key: &keys[0], access: Access::Write, entities: writes.len() };
        self.admitted(touched, deadline, async { Ok(self.router.write(&request, decide).await?) }).await
    }
}

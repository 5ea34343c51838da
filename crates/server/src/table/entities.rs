//! Entities: get, insert, update, merge, upsert, delete.
//!
//! A write is *prepared* (read from its body and checked), then *applied*: judged on the newest
//! state of its rows by the protocol's pure `judge`, inside the engine's write path. A batch is
//! several prepared writes applied at once, so both go through the same two steps.

use bytes::Bytes;
use rangehold_map::{PartitionPrefix, TableId, Timestamp};
use rangehold_protocol::auth::Action;
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::error::ErrorCode;
use rangehold_protocol::table::etag;
use rangehold_protocol::table::format::MetadataLevel;
use rangehold_protocol::table::limits::BODY_BYTES_MAX;
use rangehold_protocol::table::names::check_key_in_uri;
use rangehold_protocol::table::render::{EntityWriter, entity_uri};
use rangehold_protocol::table::request::EntityName;
use rangehold_protocol::table::row::{self, RowView};
use rangehold_protocol::table::select::Select;
use rangehold_protocol::table::write::{Change, Write, WriteKind, judge};
use tokio::time::Instant;

use super::TableService;
use super::exchange::{Authorised, Prefer};
use super::failure::{Failure, damaged};
use super::reply::Reply;

/// A write that was read and checked, with what its reply needs.
pub(crate) struct Prepared {
    /// Table name as the client wrote it.
    pub(crate) table: String,
    /// The write.
    pub(crate) write: Write,
    /// How the client wants the reply to an insert.
    pub(crate) prefer: Prefer,
    /// At which level.
    pub(crate) level: MetadataLevel,
}

/// What of a request's headers shapes the reply to a write.
#[derive(Clone, Copy)]
pub(crate) struct ReplyWish {
    pub(crate) prefer: Prefer,
    pub(crate) level: MetadataLevel,
}

impl Prepared {
    /// An insert into `table` of the entity in `body`.
    pub(crate) fn insert(table: String, body: &[u8], wish: ReplyWish) -> Result<Self, Failure> {
        let entity = Entity::from_json(body, KeyRule::InBody)?;
        let (Some(partition_key), Some(row_key)) = (entity.partition_key, entity.row_key) else {
            return Err(ErrorCode::PropertiesNeedValue.into());
        };
        Self::new(table, WriteKind::Insert, partition_key, row_key, entity.properties, wish)
    }

    /// An update, merge, upsert or delete of the named entity.
    pub(crate) fn write(
        name: EntityName,
        kind: WriteKind,
        body: &[u8],
        wish: ReplyWish,
    ) -> Result<Self, Failure> {
        let properties = match kind {
            WriteKind::Delete(_) => Vec::new(),
            _ => Entity::from_json(body, KeyRule::InUri)?.properties,
        };
        check_key_in_uri(&name.partition_key)?;
        check_key_in_uri(&name.row_key)?;
        Self::new(name.table, kind, name.partition_key, name.row_key, properties, wish)
    }

    fn new(
        table: String,
        kind: WriteKind,
        partition_key: String,
        row_key: String,
        properties: Vec<(String, rangehold_protocol::table::value::Value)>,
        wish: ReplyWish,
    ) -> Result<Self, Failure> {
        let write = Write { kind, partition_key, row_key, properties };
        Ok(Self { table, write, prefer: wish.prefer, level: wish.level })
    }

    /// What the sender must be permitted to do.
    pub(crate) fn action(&self) -> Action {
        match self.write.kind {
            WriteKind::Insert => Action::InsertEntity,
            WriteKind::Replace(_) | WriteKind::Merge(_) => Action::UpdateEntity,
            WriteKind::InsertOrReplace | WriteKind::InsertOrMerge => Action::UpsertEntity,
            WriteKind::Delete(_) => Action::DeleteEntity,
        }
    }

    /// The reply once the write is durable with timestamp `written`.
    pub(crate) fn reply(&self, base: &str, account: &str, written: Timestamp) -> Result<Reply, Failure> {
        let write = &self.write;
        match write.kind {
            WriteKind::Insert => self.inserted(base, account, written),
            WriteKind::Delete(_) => Ok(Reply::empty(204)),
            _ => Ok(Reply::empty(204).header("ETag", etag::format(written))),
        }
    }

    fn inserted(&self, base: &str, account: &str, written: Timestamp) -> Result<Reply, Failure> {
        let write = &self.write;
        let uri = entity_uri(base, &self.table, &write.partition_key, &write.row_key);
        let mut reply = match self.prefer {
            Prefer::NoContent => Reply::empty(204).header("DataServiceId", &uri),
            Prefer::Content | Prefer::Unsaid => {
                let properties = write.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
                let stored = row::encode(written, properties);
                let writer =
                    EntityWriter { base, account, table: &self.table, level: self.level, select: None };
                let mut body = Vec::with_capacity(stored.len() * 2);
                let view = RowView::new(&stored).map_err(damaged)?;
                writer.one(&mut body, &write.partition_key, &write.row_key, &view).map_err(damaged)?;
                Reply::with_body(201, self.level.content_type(), body)
            }
        };
        if let Some(applied) = self.prefer.applied() {
            reply.set("Preference-Applied", applied);
        }
        Ok(reply.header("Location", uri).header("ETag", etag::format(written)))
    }
}

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
        let stored = self.partitions.get(&key).await?.ok_or(ErrorCode::ResourceNotFound)?;
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
        let body = self.bodies.read(body, BODY_BYTES_MAX).await?;
        // A table that is not there is the first thing the service tells.
        self.catalogue(&request.exchange.address.account).open(&table).await?;
        let prepared = Prepared::insert(table, &body.bytes, wish)?;
        self.write_one(request, prepared).await
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
        if !matches!(kind, WriteKind::Delete(_)) {
            super::expect_json(request.exchange)?;
        }
        let body = self.bodies.read(body, BODY_BYTES_MAX).await?;
        let prepared = Prepared::write(name, kind, &body.bytes, wish)?;
        self.write_one(request, prepared).await
    }

    async fn write_one(&self, request: &Authorised<'_>, prepared: Prepared) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let write = &prepared.write;
        request.principal.permit(
            prepared.action(),
            Some(&prepared.table),
            Some((&write.partition_key, &write.row_key)),
        )?;
        let account = exchange.address.account.as_str();
        let table = self.catalogue(account).open(&prepared.table).await?;
        let written = self
            .apply(account, table.id, &[write], exchange.deadline)
            .await
            .map_err(|failure| Failure { operation: None, ..failure })?;
        prepared.reply(&exchange.address.base, account, written)
    }

    /// Applies writes to one partition (the PartitionKey of the first), whole or not at all, and
    /// gives the timestamp of all of them. A failure names the operation that failed.
    pub(super) async fn apply(
        &self,
        account: &str,
        table: TableId,
        writes: &[&Write],
        deadline: Instant,
    ) -> Result<Timestamp, Failure> {
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
        Ok(self.partitions.write(&partition, &keys, deadline, decide).await?)
    }
}

//! Prepared writes: read from a body and checked, as a request of their own or as part of a batch.

use rangehold_map::Timestamp;
use rangehold_protocol::auth::Action;
use rangehold_protocol::error::ErrorCode;
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::etag;
use rangehold_protocol::table::format::MetadataLevel;
use rangehold_protocol::table::names::check_key_in_uri;
use rangehold_protocol::table::render::{EntityWriter, entity_uri};
use rangehold_protocol::table::request::EntityName;
use rangehold_protocol::table::row::{self, RowView};
use rangehold_protocol::table::value::Value;
use rangehold_protocol::table::write::{Write, WriteKind};

use super::exchange::Prefer;
use super::failure::{Failure, damaged};
use super::reply::Reply;

/// A write that was read and checked, with everything that its reply needs.
pub(crate) struct Prepared {
    /// Table name as the client wrote it.
    pub(crate) table: String,
    /// The write.
    pub(crate) write: Write,
    /// How the client wants the reply to an insert.
    pub(crate) prefer: Prefer,
    /// The JSON level of that reply.
    pub(crate) level: MetadataLevel,
}

/// The headers of a request that decide the form of the reply to a write.
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
        properties: Vec<(String, Value)>,
        wish: ReplyWish,
    ) -> Result<Self, Failure> {
        let write = Write { kind, partition_key, row_key, properties };
        Ok(Self { table, write, prefer: wish.prefer, level: wish.level })
    }

    /// The permission that the sender needs.
    pub(crate) fn action(&self) -> Action {
        action_of(self.write.kind)
    }

    /// The reply when the write is durable with the timestamp `written`.
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

/// The permission that the sender of a write needs.
pub(crate) const fn action_of(kind: WriteKind) -> Action {
    match kind {
        WriteKind::Insert => Action::InsertEntity,
        WriteKind::Replace(_) | WriteKind::Merge(_) => Action::UpdateEntity,
        WriteKind::InsertOrReplace | WriteKind::InsertOrMerge => Action::UpsertEntity,
        WriteKind::Delete(_) => Action::DeleteEntity,
    }
}

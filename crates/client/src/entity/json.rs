//! Entities on the wire. The crate of the protocol reads and writes the properties; what an answer has besides them is
//! read here.

use std::collections::BTreeMap;

use rangehold_protocol::table::entity::{Entity as Sent, KeyRule};
use rangehold_protocol::table::render::put_body;
use rangehold_protocol::time::parse_iso;
use serde::Deserialize;

use super::{ETag, Entity, Keys};

/// An answer, or an entity, that does not have the form that the program expects.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAnEntity(String);

impl NotAnEntity {
    pub(super) fn shape(keys: &Keys, error: impl std::fmt::Display) -> Self {
        Self(format!("the entity {keys} does not fit the type that it is read as: {error}"))
    }

    pub(crate) fn batch(why: &str) -> Self {
        Self(format!("the answer to a batch cannot be read: {why}"))
    }

    pub(crate) fn page(error: serde_json::Error) -> Self {
        Self(format!("the answer to a query is not a list as JSON: {error}"))
    }
}

/// The body of a write.
pub(crate) fn body(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let properties = entity.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
    put_body(&mut out, &entity.keys.partition_key, &entity.keys.row_key, properties);
    out
}

/// What an entity in an answer has besides its properties. With `$select` the keys may be absent.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "PartitionKey", default)]
    partition_key: Option<String>,
    #[serde(rename = "RowKey", default)]
    row_key: Option<String>,
    #[serde(rename = "Timestamp", default)]
    timestamp: Option<String>,
    #[serde(rename = "odata.etag", default)]
    etag: Option<String>,
}

/// Reads one entity of an answer. A key that the answer does not have is empty.
pub(crate) fn from_json(text: &[u8]) -> Result<Entity, NotAnEntity> {
    let head: Head = serde_json::from_slice(text)
        .map_err(|error| NotAnEntity(format!("the answer does not hold an entity as JSON: {error}")))?;
    let sent = Sent::from_json(text, KeyRule::InUri).map_err(|error| {
        NotAnEntity(format!("the answer holds an entity that a table cannot have: {}", error.text))
    })?;
    Ok(Entity {
        keys: Keys::new(head.partition_key.unwrap_or_default(), head.row_key.unwrap_or_default()),
        properties: BTreeMap::from_iter(sent.properties),
        etag: head.etag.map(ETag::from_text),
        timestamp: head.timestamp.as_deref().and_then(parse_iso),
    })
}

/// Reads an entity as [`body`] writes it.
pub(super) fn from_body(text: &[u8]) -> Result<Entity, NotAnEntity> {
    let sent = Sent::from_json(text, KeyRule::InBody).map_err(|error| {
        NotAnEntity(format!("this is not an entity that a table can have: {}", error.text))
    })?;
    let key = |key: Option<String>| key.expect("the rule of keys in the body requires both");
    Ok(Entity {
        keys: Keys::new(key(sent.partition_key), key(sent.row_key)),
        properties: BTreeMap::from_iter(sent.properties),
        etag: None,
        timestamp: None,
    })
}

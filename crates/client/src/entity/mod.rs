//! Entities as a program holds them.
//!
//! An [`Entity`] has two keys and properties, each with one of the eight types of the service ([`Value`]). A program
//! that does not know its properties works with the entity itself. A program with a struct converts with
//! [`Entity::of`] and [`Entity::read`], which keep the types: an `i32` is an Int32, an `i64` an Int64 (which JSON
//! carries as text), an `f64` a Double. [`Binary`], [`Guid`] and [`DateTime`] stand for the types that Rust or serde
//! does not have.
//!
//! A property without a value (`None`) is not stored. So an entity that lacks it is read as `None` too.

mod json;
mod read;
mod types;
mod write;

use std::collections::BTreeMap;
use std::fmt;

pub use rangehold_map::Timestamp;
pub use rangehold_protocol::table::value::{EdmType, Value};
use rangehold_protocol::table::write::entity_bytes;

pub use json::NotAnEntity;
pub(crate) use json::{body, from_json};
pub use types::{Binary, DateTime, Guid};
pub use write::NotAValue;

/// The address of an entity in its table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Keys {
    /// PartitionKey: entities that have it in common can be changed in one batch.
    pub partition_key: String,
    /// RowKey: the order of the entities in their partition.
    pub row_key: String,
}

impl Keys {
    /// The address with these keys.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self { partition_key: partition_key.into(), row_key: row_key.into() }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(PartitionKey={:?}, RowKey={:?})", self.partition_key, self.row_key)
    }
}

/// A version of an entity, as the service named it. Only the service makes versions, and it never uses one twice for
/// an entity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(String);

impl ETag {
    /// A version that was stored elsewhere as text. The service refuses a text that is not a version.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The version as text, such as `W/"datetime'2021-09-21T01%3A04%3A37.9678478Z'"`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An entity: two keys, properties, and its version if it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Where it is.
    pub keys: Keys,
    /// Its properties by name, without the keys and the Timestamp.
    pub properties: BTreeMap<String, Value>,
    /// The version that was read; `None` for an entity that a program made. A write ignores it: a condition is given
    /// beside the entity.
    pub etag: Option<ETag>,
    /// When the service wrote this version; `None` for an entity that a program made. A write ignores it.
    pub timestamp: Option<Timestamp>,
}

impl Entity {
    /// An entity without properties.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        let keys = Keys::new(partition_key, row_key);
        Self { keys, properties: BTreeMap::new(), etag: None, timestamp: None }
    }

    /// The same entity with one more property.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// An entity whose properties are the fields of `fields`. Fields with the names PartitionKey, RowKey and
    /// Timestamp are left out, so a struct may have them for [`Self::read`].
    ///
    /// Fails if a field has a type that no property can have, such as a list; the error names the field.
    pub fn of(
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
        fields: &impl serde::Serialize,
    ) -> Result<Self, NotAValue> {
        let mut entity = Self::new(partition_key, row_key);
        entity.properties = write::properties_of(fields)?;
        Ok(entity)
    }

    /// The properties as a struct or a map. A struct also gets PartitionKey, RowKey and Timestamp if it has fields with
    /// these names.
    ///
    /// Fails if a property lacks or has another type than its field; the error says which.
    pub fn read<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, NotAnEntity> {
        T::deserialize(read::Fields(self)).map_err(|error| NotAnEntity::shape(&self.keys, error))
    }

    /// Reads an entity in the form in which the service takes it: one JSON object with both keys, and types as
    /// `NAME@odata.type` where the value does not tell them. Fails if a key is absent or the service would refuse the entity.
    pub fn from_json(text: &[u8]) -> Result<Self, NotAnEntity> {
        json::from_body(text)
    }

    /// The entity in the form that [`Self::from_json`] reads, without version and time.
    pub fn to_json(&self) -> Vec<u8> {
        body(self)
    }

    /// Its size in bytes, as the service counts it. The service takes 1 MiB.
    pub fn bytes(&self) -> usize {
        let Keys { partition_key, row_key } = &self.keys;
        let properties = self.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        entity_bytes(partition_key, row_key, properties)
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }

    /// The value of a property that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a property that is an Int32 or an Int64.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Int32(number) => Some((*number).into()),
            Value::Int64(number) => Some(*number),
            _ => None,
        }
    }
}

//! An entity as a client sends it: one flat JSON object.
//!
//! A value's type follows from the value itself, or from another member that annotates it:
//!
//! ```text
//!   {"PartitionKey":"p", "RowKey":"r", "age":39, "born":"1973-10-04", "born@odata.type":"Edm.DateTime"}
//! ```
//!
//! Reading has two steps. `members` goes over the bytes once and pairs each property with its annotation.
//! SDKs write the annotation before the property, after it, or at the end of the object. `convert` then turns
//! each pair into a [`Value`], or refuses it.
//!
//! Members that are not properties are ignored, as recordings of the service show: `odata.*` members,
//! annotations other than `odata.type`, annotations of annotations, nulls with or without a type, and a
//! Timestamp (the service sets its own).

mod convert;
mod members;

use super::limits::{ENTITY_BYTES_MAX, PROPERTIES_MAX};
use super::names::{check_key, check_property_name};
use super::value::{EdmType, Value};
use super::write::entity_bytes;
use crate::error::{ErrorCode, TableError};
use convert::{convert, fits};
use members::{Declared, Json, Member};

/// Where a request gives the keys of its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// In the body, for an insert. Both must be there, as texts, and are checked.
    InBody,
    /// In the URI, for every other write. Keys in the body are ignored, with or without a type (recorded:
    /// an upsert with `"PartitionKey@odata.type":"Edm.DateTime"` uses the key of the URI).
    InUri,
}

/// The entity of a request's body.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// The PartitionKey; `Some` exactly if the rule was [`KeyRule::InBody`].
    pub partition_key: Option<String>,
    /// The RowKey; `Some` exactly if the rule was [`KeyRule::InBody`].
    pub row_key: Option<String>,
    /// The properties in the order of the body, without nulls and Timestamp.
    pub properties: Vec<(String, Value)>,
}

impl Entity {
    /// Reads a body and enforces the rules for its names, types, keys and values, and for the number of
    /// properties.
    ///
    /// The size of the whole entity is checked when it is written ([`judge`](super::write::judge)), because
    /// a merge adds to stored properties. It is checked here only if a value is too large, because then the
    /// service reports the entity's size first (recorded: `EntityTooLarge` for one binary of 1 MiB).
    pub fn from_json(body: &[u8], rule: KeyRule) -> Result<Self, TableError> {
        let members = members::read(body)?;
        let mut entity =
            Self { partition_key: None, row_key: None, properties: Vec::with_capacity(members.len()) };
        for member in members {
            match &*member.name {
                "PartitionKey" | "RowKey" if rule == KeyRule::InUri => {}
                "PartitionKey" => entity.partition_key = key_of(member)?,
                "RowKey" => entity.row_key = key_of(member)?,
                "Timestamp" => {}
                _ => entity.add(member)?,
            }
        }
        if rule == KeyRule::InBody && (entity.partition_key.is_none() || entity.row_key.is_none()) {
            return Err(ErrorCode::PropertiesNeedValue.into());
        }
        if !entity.properties.iter().all(|(_, value)| fits(value)) {
            return Err(match entity.bytes() > ENTITY_BYTES_MAX {
                true => ErrorCode::EntityTooLarge.into(),
                false => ErrorCode::PropertyValueTooLarge.into(),
            });
        }
        Ok(entity)
    }

    /// The entity's size, with only the keys that the body gives.
    fn bytes(&self) -> usize {
        let partition_key = self.partition_key.as_deref().unwrap_or_default();
        let row_key = self.row_key.as_deref().unwrap_or_default();
        let properties = self.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        entity_bytes(partition_key, row_key, properties)
    }

    /// Adds a property, unless it has no value.
    fn add(&mut self, member: Member<'_>) -> Result<(), TableError> {
        check_property_name(&member.name)?;
        if let Some(value) = convert(&member.name, member.declared, member.value)? {
            if self.properties.len() == PROPERTIES_MAX {
                return Err(ErrorCode::TooManyProperties.into());
            }
            self.properties.push((member.name.into_owned(), value));
        }
        Ok(())
    }
}

/// A key in the body of an insert; `None` where it has no value.
fn key_of(member: Member<'_>) -> Result<Option<String>, TableError> {
    match (member.declared, member.value) {
        (_, Json::Null) => Ok(None),
        (None | Some(Declared::Known(EdmType::String)), Json::Text(key)) => {
            check_key(&member.name, &key)?;
            Ok(Some(key.into_owned()))
        }
        // Recorded for numbers, for booleans, and for texts declared as DateTime, Guid, Binary or Double.
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

//! Decides what a write changes.
//!
//! [`judge`] makes the whole decision, as a pure function of the write, the row as it is now, and the time
//! of the new row. The engine calls it while the partition is locked, so the row cannot change between the
//! decision and the change.
//!
//! | write | no row | a row |
//! |---|---|---|
//! | insert | put | `EntityAlreadyExists` |
//! | replace, merge, delete | `ResourceNotFound` | put or delete, if the condition allows it, else `UpdateConditionNotSatisfied` |
//! | insert or replace, insert or merge | put | put |
//!
//! A merge keeps the old properties in their order, gives new values to those that it names, and appends
//! those that are new. A null in its body is dropped when the body is read, so it leaves the old value as it
//! is (documented for Merge Entity).
//!
//! The size of an entity is not counted in bytes of this store, but as Microsoft's storage team published
//! it ("How the size of an entity is calculated", 2011):
//!
//! ```text
//!   4 + 2 * (units of PartitionKey + units of RowKey)
//!     + for each property: 8 + 2 * (units of its name) + size of its value
//!   String 4 + 2 * units, Binary 4 + bytes, Boolean 1, Int32 4, Int64 Double DateTime 8, Guid 16
//! ```

use rangehold_map::Timestamp;

use super::etag::IfMatch;
use super::limits::{ENTITY_BYTES_MAX, PROPERTIES_MAX};
use super::names::utf16_units;
use super::row::{self, DamagedRow, RowView};
use super::value::{Value, ValueRef};
use crate::error::{ErrorCode, TableError};

/// The kinds of writes. Three of them have a condition on the stored entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// Stores a new entity.
    Insert,
    /// Replaces all properties of an entity that exists.
    Replace(IfMatch),
    /// Replaces and adds the given properties of an entity that exists.
    Merge(IfMatch),
    /// Replaces all properties, or stores a new entity.
    InsertOrReplace,
    /// Replaces and adds the given properties, or stores a new entity.
    InsertOrMerge,
    /// Deletes an entity.
    Delete(IfMatch),
}

impl WriteKind {
    /// Whether it is for one version of the entity only.
    pub fn names_etag(self) -> bool {
        matches!(
            self,
            Self::Replace(IfMatch::Exactly(_))
                | Self::Merge(IfMatch::Exactly(_))
                | Self::Delete(IfMatch::Exactly(_))
        )
    }
}

/// One write of one entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The kind of the write.
    pub kind: WriteKind,
    /// The entity's PartitionKey, already checked by [`check_key`](super::names::check_key).
    pub partition_key: String,
    /// The entity's RowKey, already checked.
    pub row_key: String,
    /// The properties, each name once, as [`Entity`](super::entity::Entity) has them. Empty for a
    /// delete.
    pub properties: Vec<(String, Value)>,
}

/// What a write does to the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The row becomes these bytes.
    Put(Vec<u8>),
    /// The row is removed.
    Delete,
}

/// Decides a write to an entity whose stored row is `current`. `now` becomes the entity's Timestamp, and
/// must be later than every earlier Timestamp of the entity.
///
/// The outer error says that the stored row cannot be read, the inner error why the client is refused.
/// [`TooManyProperties`](ErrorCode::TooManyProperties) and [`EntityTooLarge`](ErrorCode::EntityTooLarge)
/// depend on the entity as it would be stored, after a merge.
pub fn judge(
    write: &Write,
    current: Option<&RowView<'_>>,
    now: Timestamp,
) -> Result<Result<Change, TableError>, DamagedRow> {
    if let Err(code) = admit(write.kind, current) {
        return Ok(Err(code.into()));
    }
    let properties = match (write.kind, current) {
        (WriteKind::Delete(_), _) => return Ok(Ok(Change::Delete)),
        (WriteKind::Merge(_) | WriteKind::InsertOrMerge, Some(row)) => merged(row, &write.properties)?,
        _ => borrowed(&write.properties).collect(),
    };
    if let Err(code) = check_size(write, &properties) {
        return Ok(Err(code.into()));
    }
    Ok(Ok(Change::Put(row::encode(now, properties.into_iter()))))
}

/// Checks that this kind of write is allowed on the row, or without one.
fn admit(kind: WriteKind, current: Option<&RowView<'_>>) -> Result<(), ErrorCode> {
    match (kind, current) {
        (WriteKind::Insert, Some(_)) => Err(ErrorCode::EntityAlreadyExists),
        (WriteKind::Insert | WriteKind::InsertOrReplace | WriteKind::InsertOrMerge, _) => Ok(()),
        (WriteKind::Replace(_) | WriteKind::Merge(_) | WriteKind::Delete(_), None) => {
            Err(ErrorCode::ResourceNotFound)
        }
        (WriteKind::Replace(state) | WriteKind::Merge(state) | WriteKind::Delete(state), Some(row)) => {
            match state.allows(row.timestamp()) {
                true => Ok(()),
                false => Err(ErrorCode::UpdateConditionNotSatisfied),
            }
        }
    }
}

type Properties<'a> = Vec<(&'a str, ValueRef<'a>)>;

fn borrowed(properties: &[(String, Value)]) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
    properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()))
}

/// The old properties, with new values where the write gives them, and then the new properties.
fn merged<'a>(row: &RowView<'a>, new: &'a [(String, Value)]) -> Result<Properties<'a>, DamagedRow> {
    let mut properties = Vec::with_capacity(row.len() + new.len());
    for old in row.properties() {
        properties.push(old?);
    }
    let old_count = properties.len();
    for (name, value) in borrowed(new) {
        match properties[..old_count].iter_mut().find(|(old, _)| *old == name) {
            Some((_, old)) => *old = value,
            None => properties.push((name, value)),
        }
    }
    Ok(properties)
}

fn check_size(write: &Write, properties: &[(&str, ValueRef<'_>)]) -> Result<(), ErrorCode> {
    if properties.len() > PROPERTIES_MAX {
        return Err(ErrorCode::TooManyProperties);
    }
    let size = entity_bytes(&write.partition_key, &write.row_key, properties.iter().copied());
    match size > ENTITY_BYTES_MAX {
        true => Err(ErrorCode::EntityTooLarge),
        false => Ok(()),
    }
}

/// The size of an entity in bytes, as the service counts it; see the module's documentation.
pub fn entity_bytes<'a>(
    partition_key: &str,
    row_key: &str,
    properties: impl Iterator<Item = (&'a str, ValueRef<'a>)>,
) -> usize {
    let keys = utf16_units(partition_key) + utf16_units(row_key);
    let properties = properties.map(|(name, value)| {
        let value = match value {
            ValueRef::String(text) => 4 + 2 * utf16_units(text),
            ValueRef::Binary(bytes) => 4 + bytes.len(),
            ValueRef::Boolean(_) => 1,
            ValueRef::Int32(_) => 4,
            ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::DateTime(_) => 8,
            ValueRef::Guid(_) => 16,
        };
        8 + 2 * utf16_units(name) + value
    });
    4 + 2 * keys + properties.sum::<usize>()
}

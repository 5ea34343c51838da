//! What a write makes of the row that it meets.
//!
//! [`judge`] is the whole decision, as a pure function: the write, the row as it is now, the time
//! of the new row. The engine calls it with the partition locked, so that what it was judged on is
//! still there when the change is made.
//!
//! | write | no row | a row |
//! |---|---|---|
//! | insert | put | `EntityAlreadyExists` |
//! | replace, merge, delete | `ResourceNotFound` | put or delete, if the condition allows it, else `UpdateConditionNotSatisfied` |
//! | insert or replace, insert or merge | put | put |
//!
//! A merge keeps the old properties in their order, with new values where it brings them, and
//! appends what is new. A null in its body was dropped when the body was read, so it leaves an old
//! value as it is (documented of Merge Entity).
//!
//! The size of an entity is counted as Microsoft's storage team published it ("How the size of an
//! entity is calculated", 2011), not in bytes of this store:
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

/// The kinds of writes, with their conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// A new entity.
    Insert,
    /// All properties anew, of an entity that is there.
    Replace(IfMatch),
    /// Some properties anew, of an entity that is there.
    Merge(IfMatch),
    /// All properties anew, or a new entity.
    InsertOrReplace,
    /// Some properties anew, or a new entity.
    InsertOrMerge,
    /// No entity any more.
    Delete(IfMatch),
}

/// One write of one entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// What to do.
    pub kind: WriteKind,
    /// Which entity; checked ([`check_key`](super::names::check_key)).
    pub partition_key: String,
    /// Which entity; checked.
    pub row_key: String,
    /// The properties, each name once, as [`Entity`](super::entity::Entity) has them. Empty for a
    /// delete.
    pub properties: Vec<(String, Value)>,
}

/// What becomes of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// These bytes are the row now.
    Put(Vec<u8>),
    /// There is no row now.
    Delete,
}

/// Decides a write that meets the row `current` and would be made at `now`, which becomes the
/// entity's Timestamp; it must be later than that of any earlier state of the entity.
///
/// The outer error says that the stored row cannot be read, the inner one why the client is
/// refused; [`TooManyProperties`](ErrorCode::TooManyProperties) and
/// [`EntityTooLarge`](ErrorCode::EntityTooLarge) are judged on the entity as it would be stored.
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

/// Whether the row that is there, or is not, admits this kind of write.
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

/// The old properties with new values where there are some, then the new ones.
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

/// The size of an entity in bytes, as the service counts it; see the module.
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

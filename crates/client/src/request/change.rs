//! The ways to change an entity, each with the condition that it can have.

use http::Method;

use crate::entity::{ETag, Entity, Keys};

/// The version that an entity must have for a change to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Any version, as long as the entity exists. Changes that others made after you read it are lost.
    Any,
    /// This version. If another change came first, the service refuses with 412.
    Version(ETag),
}

impl Condition {
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::Version(etag) => etag.as_str(),
        }
    }
}

impl From<&ETag> for Condition {
    fn from(etag: &ETag) -> Self {
        Self::Version(etag.clone())
    }
}

/// A change of one entity. Only those that need an existing entity have a condition.
///
/// A change whose outcome is in doubt is sent again. With [`Condition::Version`], and as an insert, it cannot happen
/// twice. An upsert or a change with [`Condition::Any`] can: if another client writes the entity between two attempts, the
/// second attempt overwrites that. A program that cannot accept this gives a version.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Makes the entity. Refused with 409 if it exists.
    Insert(Entity),
    /// Gives an existing entity these properties and no others. Refused with 404 if it does not exist.
    Replace(Entity, Condition),
    /// Sets these properties of an existing entity and keeps its others. Refused with 404 if it does not exist.
    Merge(Entity, Condition),
    /// Makes the entity, or gives it these properties and no others.
    InsertOrReplace(Entity),
    /// Makes the entity, or sets these properties and keeps its others.
    InsertOrMerge(Entity),
    /// Removes an existing entity. Refused with 404 if it does not exist.
    Delete(Keys, Condition),
}

impl Change {
    /// Which entity is changed.
    pub fn keys(&self) -> &Keys {
        match self {
            Self::Delete(keys, _) => keys,
            Self::Insert(entity)
            | Self::Replace(entity, _)
            | Self::Merge(entity, _)
            | Self::InsertOrReplace(entity)
            | Self::InsertOrMerge(entity) => &entity.keys,
        }
    }

    /// What is written; `None` for a deletion.
    pub fn entity(&self) -> Option<&Entity> {
        match self {
            Self::Delete(..) => None,
            Self::Insert(entity)
            | Self::Replace(entity, _)
            | Self::Merge(entity, _)
            | Self::InsertOrReplace(entity)
            | Self::InsertOrMerge(entity) => Some(entity),
        }
    }

    /// As [`Self::entity`], to be changed before it is sent.
    pub(crate) fn entity_mut(&mut self) -> Option<&mut Entity> {
        match self {
            Self::Delete(..) => None,
            Self::Insert(entity)
            | Self::Replace(entity, _)
            | Self::Merge(entity, _)
            | Self::InsertOrReplace(entity)
            | Self::InsertOrMerge(entity) => Some(entity),
        }
    }

    /// The condition, if this kind of change has one.
    pub fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Replace(_, condition) | Self::Merge(_, condition) | Self::Delete(_, condition) => {
                Some(condition)
            }
            Self::Insert(_) | Self::InsertOrReplace(_) | Self::InsertOrMerge(_) => None,
        }
    }

    pub(super) fn method(&self) -> Method {
        match self {
            Self::Insert(_) => Method::POST,
            Self::Replace(..) | Self::InsertOrReplace(_) => Method::PUT,
            Self::Merge(..) | Self::InsertOrMerge(_) => Method::PATCH,
            Self::Delete(..) => Method::DELETE,
        }
    }
}

//! Tables and their entities.

use std::borrow::Cow;

use super::partition::PartitionPrefix;
use super::{CATALOGUE_DROPPED, CATALOGUE_TABLE, KIND_CATALOGUE, KIND_ENTITY};
use crate::codec::{MalformedKey, Reader, put_text, put_u64};

/// Names one incarnation of a table within its account. It is never used again; the module [`key`](super) says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

pub(super) fn catalogue_prefix(account: &str, rest: &[u8]) -> Vec<u8> {
    let mut out = PartitionPrefix::catalogue(account).as_bytes().to_vec();
    out.extend_from_slice(rest);
    out
}

/// The bytes with which the catalogue rows of all tables of an account begin.
pub fn tables_prefix(account: &str) -> Vec<u8> {
    catalogue_prefix(account, &[CATALOGUE_TABLE])
}

/// The bytes with which the catalogue rows of all dropped tables of an account begin.
pub fn dropped_prefix(account: &str) -> Vec<u8> {
    catalogue_prefix(account, &[CATALOGUE_DROPPED])
}

/// The bytes with which all entities of an account begin.
pub fn account_prefix(account: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(account.len() + 64);
    out.push(KIND_ENTITY);
    put_text(&mut out, account);
    out
}

/// The bytes with which all entities of a table begin.
pub fn table_prefix(account: &str, table: TableId) -> Vec<u8> {
    let mut out = account_prefix(account);
    put_u64(&mut out, table.0);
    out
}

/// The account (still encoded) and the table id in the stored key of an entity. The rest of the key is not
/// decoded. `None` for keys of another kind and for bytes that are not a key.
pub fn table_of(key: &[u8]) -> Option<(&[u8], TableId)> {
    let mut reader = Reader::new(key);
    if reader.u8().ok()? != KIND_ENTITY {
        return None;
    }
    let account = reader.raw_text().ok()?;
    Some((account, TableId(reader.u64().ok()?)))
}

/// PartitionKey and RowKey in the stored key of an entity. A text that is stored as it is read, such as one of ASCII
/// letters, is not copied. Fails on a key of another kind.
pub fn entity_keys(key: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), MalformedKey> {
    let mut reader = Reader::new(key);
    if reader.u8()? != KIND_ENTITY {
        return Err(MalformedKey { at: 0, what: "the key of an entity" });
    }
    reader.raw_text()?;
    reader.u64()?;
    Ok((reader.text_in_place()?, reader.text_in_place()?))
}

impl PartitionPrefix {
    /// The partition that holds an account's catalogue.
    pub fn catalogue(account: &str) -> Self {
        let mut out = Vec::with_capacity(account.len() + 66);
        out.push(KIND_CATALOGUE);
        put_text(&mut out, account);
        Self(out)
    }

    /// The partition of a table's entities with one PartitionKey.
    pub fn entity(account: &str, table: TableId, partition_key: &str) -> Self {
        let mut out = table_prefix(account, table);
        put_text(&mut out, partition_key);
        Self(out)
    }

    /// The stored key of the entity `row_key`. For partitions of entities only, not for a catalogue.
    pub fn key(&self, row_key: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + row_key.len() + 1);
        out.extend_from_slice(&self.0);
        put_text(&mut out, row_key);
        out
    }
}

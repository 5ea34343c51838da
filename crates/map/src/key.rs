//! The keys of stored rows, and how they sort.
//!
//! A key begins with a byte for its kind. Kinds are stored, so a number is never reused and never changes its
//! meaning. The rows of one *partition* (the unit of batches, which is never cut in two) have keys that begin
//! with the same [`PartitionPrefix`].
//!
//! | kind | key after the kind byte | partition | value |
//! |---|---|---|---|
//! | `01` range meta | one byte for the sort of row, then its name | none: these rows lie outside all ranges | the engine's own |
//! | `10` catalogue | account, `01` | the account | service properties of the account |
//! | | account, `02`, table name in lower case | the account | name as given, table id, access policies |
//! | | account, `03`, table id | the account | a table that was deleted, whose rows may still be there |
//! | `20` entity | account, table id, PartitionKey, RowKey | account, table id, PartitionKey | the entity |
//! | `30` | reserved for object names | | |
//!
//! A table id is never used twice. It is the time at which the table was created, in ticks, and the times
//! that a partition hands out strictly grow. So a table that is deleted and created again has other keys than
//! before.

use crate::codec::{MalformedKey, Reader, put_text, put_u64};

/// First byte of the rows that a range keeps about itself. They lie below every range.
pub const KIND_RANGE_META: u8 = 0x01;
/// First byte of the catalogue of tables.
pub const KIND_CATALOGUE: u8 = 0x10;
/// First byte of entities.
pub const KIND_ENTITY: u8 = 0x20;
/// First byte of object names; nothing is stored there yet.
pub const KIND_OBJECT: u8 = 0x30;

const CATALOGUE_SERVICE_PROPERTIES: u8 = 0x01;
const CATALOGUE_TABLE: u8 = 0x02;
const CATALOGUE_DROPPED: u8 = 0x03;

/// Names one incarnation of a table within its account. It is never used again; the module says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

/// A key in its readable form. [`Key::encode`] gives the form that is stored and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The service properties of an account.
    ServiceProperties {
        /// Account name.
        account: String,
    },
    /// A table, by name.
    Table {
        /// Account name.
        account: String,
        /// Table name in lower case: names are unique without regard to case.
        lower_name: String,
    },
    /// A deleted table, some of whose rows may still be stored.
    DroppedTable {
        /// Account name.
        account: String,
        /// The id the table had.
        table: TableId,
    },
    /// An entity.
    Entity {
        /// Account name.
        account: String,
        /// The incarnation of the table.
        table: TableId,
        /// PartitionKey, as the client gave it.
        partition_key: String,
        /// RowKey, as the client gave it.
        row_key: String,
    },
}

impl Key {
    /// The bytes under which the row is stored. They compare as keys sort.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::ServiceProperties { account } => catalogue_prefix(account, &[CATALOGUE_SERVICE_PROPERTIES]),
            Self::Table { account, lower_name } => {
                let mut out = catalogue_prefix(account, &[CATALOGUE_TABLE]);
                put_text(&mut out, lower_name);
                out
            }
            Self::DroppedTable { account, table } => {
                let mut out = catalogue_prefix(account, &[CATALOGUE_DROPPED]);
                put_u64(&mut out, table.0);
                out
            }
            Self::Entity { account, table, partition_key, row_key } => {
                PartitionPrefix::entity(account, *table, partition_key).key(row_key)
            }
        }
    }

    /// The readable form of a stored key. Fails on bytes that [`Key::encode`] does not make.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedKey> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8()?;
        let account = match kind {
            KIND_CATALOGUE | KIND_ENTITY => reader.text()?,
            _ => {
                return Err(MalformedKey { at: 0, what: "a known kind of key" });
            }
        };
        let key = if kind == KIND_ENTITY {
            let table = TableId(reader.u64()?);
            Self::Entity { account, table, partition_key: reader.text()?, row_key: reader.text()? }
        } else {
            match reader.u8()? {
                CATALOGUE_SERVICE_PROPERTIES => Self::ServiceProperties { account },
                CATALOGUE_TABLE => Self::Table { account, lower_name: reader.text()? },
                CATALOGUE_DROPPED => Self::DroppedTable { account, table: TableId(reader.u64()?) },
                _ => {
                    return Err(MalformedKey {
                        at: reader.position() - 1,
                        what: "a known kind of catalogue row",
                    });
                }
            }
        };
        if !reader.is_at_end() {
            return Err(MalformedKey { at: reader.position(), what: "the end of the key" });
        }
        Ok(key)
    }
}

fn catalogue_prefix(account: &str, rest: &[u8]) -> Vec<u8> {
    let mut out = PartitionPrefix::catalogue(account).0;
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

/// PartitionKey and RowKey in the stored key of an entity. Fails on a key of another kind.
pub fn entity_keys(key: &[u8]) -> Result<(String, String), MalformedKey> {
    let mut reader = Reader::new(key);
    if reader.u8()? != KIND_ENTITY {
        return Err(MalformedKey { at: 0, what: "the key of an entity" });
    }
    reader.raw_text()?;
    reader.u64()?;
    Ok((reader.text()?, reader.text()?))
}

/// The bytes with which all keys of one partition begin, and no other key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionPrefix(Vec<u8>);

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

    /// The bytes of the prefix.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whether the key space may be cut before `key`, so that no partition has keys on both sides.
///
/// All keys of a partition begin with its [`PartitionPrefix`], so `key` cuts a partition exactly if it has more
/// bytes after such a prefix. The prefixes of partitions, tables, accounts and kinds are boundaries. So are the
/// keys that [`after_prefix`] makes of them, and a PartitionKey without its closing byte. A kind without
/// partitions has one boundary: its first byte.
pub fn is_partition_boundary(key: &[u8]) -> bool {
    let mut reader = Reader::new(key);
    let prefix_ends = match reader.u8() {
        Err(_) => return true,
        Ok(KIND_CATALOGUE) => reader.raw_text().is_ok(),
        Ok(KIND_ENTITY) => reader.raw_text().is_ok() && reader.u64().is_ok() && reader.raw_text().is_ok(),
        Ok(_) => true,
    };
    !prefix_ends || reader.is_at_end()
}

/// The least key above every key that begins with `prefix`. `None` if all bytes of `prefix` are `FF`; no kind
/// begins so.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

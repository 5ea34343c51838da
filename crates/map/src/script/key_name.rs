//! Keys, as people write them.

use std::fmt;
use std::str::FromStr;

use super::object_name::{self, ObjectName};
use super::words::{Malformed, malformed, put_text, take_text};
use crate::key::TableId;

/// A key, as it is written. [`Names`](super::Names) makes a stored key of it.
///
/// | written | the key |
/// |---|---|
/// | `marathon/Half` | where the partition with PartitionKey `Half` of the table `marathon` begins |
/// | `marathon/"10 km"` | the same, for a PartitionKey with other characters than letters, digits and `-_.` |
/// | `marathon/Half/Ann` | the entity with RowKey `Ann` in it |
/// | `marathon/*` | where the table begins |
/// | `#17/Half` | the same, for a table that is named by its id, such as a deleted one |
/// | `*` | where the entities of the account begin |
/// | `catalogue` | where the account's list of tables begins |
/// | `start` | the least key of all |
/// | `entities` | where the entities of all accounts begin |
/// | `gs://photos/2024/a.jpg` | where the object name `2024/a.jpg` of the bucket `photos` begins |
/// | `gs://photos/"a b"` | the same, for a name with other characters than letters, digits and `-_./` |
/// | `gs://photos/*` | where the objects of the bucket begin |
/// | `gs://#17/a` | the same, for a bucket that is named by its id |
/// | `gs://*` | where the objects of all buckets begin |
/// | `0x2061` | any bytes |
///
/// A script has one account. Another account is written in front: `acct:marathon/Half`, `acct:*`. The end of
/// the key space is not a key; a range without an end is written with `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyName {
    /// The least key of all.
    Start,
    /// Where the entities of all accounts begin.
    Entities,
    /// Where an account's list of tables begins.
    Catalogue {
        /// The account; `None` is the script's own.
        account: Option<String>,
    },
    /// Where an account's entities begin.
    Account {
        /// The account; `None` is the script's own.
        account: Option<String>,
    },
    /// Where a table begins.
    Table(TableName),
    /// Where a partition begins.
    Partition {
        /// Its table.
        table: TableName,
        /// Its PartitionKey.
        partition_key: String,
    },
    /// An entity.
    Entity {
        /// Its table.
        table: TableName,
        /// Its PartitionKey.
        partition_key: String,
        /// Its RowKey.
        row_key: String,
    },
    /// A key of objects.
    Objects(ObjectName),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// A table of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The account; `None` is the script's own.
    pub account: Option<String>,
    /// Which of its tables.
    pub table: TableRef,
}

/// A table, by name or by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableRef {
    /// By name: the table that has the name now. Letter case does not matter.
    Name(String),
    /// By id.
    Id(TableId),
}

/// Whether the name of an account or table can be written without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account =
            |account: &Option<String>| account.as_ref().map(|name| format!("{name}:")).unwrap_or_default();
        match self {
            Self::Start => f.write_str("start"),
            Self::Entities => f.write_str("entities"),
            Self::Catalogue { account: of } => write!(f, "{}catalogue", account(of)),
            Self::Account { account: of } => write!(f, "{}*", account(of)),
            Self::Table(table) => write!(f, "{table}/*"),
            Self::Partition { table, partition_key } => {
                let mut text = format!("{table}/");
                put_text(&mut text, partition_key);
                f.write_str(&text)
            }
            Self::Entity { table, partition_key, row_key } => {
                let mut text = format!("{table}/");
                put_text(&mut text, partition_key);
                text.push('/');
                put_text(&mut text, row_key);
                f.write_str(&text)
            }
            Self::Objects(name) => name.fmt(f),
            Self::Bytes(bytes) => f.write_str(&const_hex::encode_prefixed(bytes)),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(account) = &self.account {
            write!(f, "{account}:")?;
        }
        match &self.table {
            TableRef::Name(name) => f.write_str(name),
            TableRef::Id(id) => write!(f, "#{}", id.0),
        }
    }
}

impl FromStr for TableName {
    type Err = Malformed;

    fn from_str(word: &str) -> Result<Self, Malformed> {
        let (account, table) = take_account(word)?;
        Ok(Self { account, table: table_ref(table)? })
    }
}

/// A table without its account.
fn table_ref(word: &str) -> Result<TableRef, Malformed> {
    let table = match word.strip_prefix('#') {
        Some(id) => id.parse().ok().map(|id| TableRef::Id(TableId(id))),
        None => is_plain(word).then(|| TableRef::Name(word.to_owned())),
    };
    table.map_or_else(|| malformed(word, "a table: write it as marathon, or as #17 by its id"), Ok)
}

/// The account before a colon, if there is one, and the rest.
fn take_account(word: &str) -> Result<(Option<String>, &str), Malformed> {
    match word.split_once(':') {
        // This colon is inside a quoted text.
        Some((before, _)) if before.contains(['/', '"']) => Ok((None, word)),
        Some((account, rest)) if is_plain(account) => Ok((Some(account.to_owned()), rest)),
        Some((account, _)) => malformed(account, "an account: only letters and digits are allowed"),
        None => Ok((None, word)),
    }
}

impl FromStr for KeyName {
    type Err = Malformed;

    fn from_str(word: &str) -> Result<Self, Malformed> {
        match word {
            "start" => return Ok(Self::Start),
            "entities" => return Ok(Self::Entities),
            _ => {}
        }
        if let Some(object) = object_name::parse(word) {
            return object.map(Self::Objects);
        }
        let (account, rest) = take_account(word)?;
        match (rest, rest.split_once('/')) {
            ("catalogue", _) => Ok(Self::Catalogue { account }),
            ("*", _) => Ok(Self::Account { account }),
            (_, None) => match rest.strip_prefix("0x").filter(|_| account.is_none()).map(const_hex::decode) {
                Some(Ok(bytes)) => Ok(Self::Bytes(bytes)),
                Some(Err(_)) => {
                    malformed(word, "a key in bytes: after 0x come two digits for each, 0-9 and a-f")
                }
                None => malformed(word, "a key: write one as table/PartitionKey, such as marathon/Half"),
            },
            (_, Some((table, keys))) => in_table(TableName { account, table: table_ref(table)? }, keys),
        }
    }
}

/// Reads what follows `table/`.
fn in_table(table: TableName, keys: &str) -> Result<KeyName, Malformed> {
    if keys == "*" {
        return Ok(KeyName::Table(table));
    }
    let (partition_key, rest) = take_text(keys)?;
    let Some(row) = rest.strip_prefix('/') else {
        return match rest {
            "" => Ok(KeyName::Partition { table, partition_key }),
            _ => malformed(rest, "the end of a key: put the text before it in quotes"),
        };
    };
    match take_text(row)? {
        (row_key, "") => Ok(KeyName::Entity { table, partition_key, row_key }),
        (_, rest) => malformed(rest, "the end of a key: put the text before it in quotes"),
    }
}

//! What a path names.

use crate::error::{ErrorCode, TableError};
use crate::uri;

/// Names one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityName {
    /// Table name as the client wrote it.
    pub table: String,
    /// Its PartitionKey.
    pub partition_key: String,
    /// Its RowKey.
    pub row_key: String,
}

/// The resource that a path names, below the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The account itself.
    Service,
    /// `/Tables`
    Tables,
    /// `/Tables('x')`
    Table(String),
    /// `/x` or `/x()`
    Entities(String),
    /// `/x(PartitionKey='p',RowKey='r')`
    Entity(EntityName),
    /// `/$batch`
    Batch,
    /// `/x/...`: something below a table. A client sends this if its endpoint ends with a table's name.
    Below {
        /// The first segment.
        table: String,
        /// Whether the second segment has a key, as `Tables('y')` does.
        keyed: bool,
    },
}

/// The error for a URI that names a resource by a wrong number of keys.
pub fn wrong_key_count(account: &str, resource: &str) -> TableError {
    TableError::invalid_input(format!(
        "The number of keys specified in the URI does not match number of key properties for the resource '{account}.{resource}'."
    ))
}

impl Target {
    /// Reads a path as it was sent, percent-encoded, without the account that path style puts first. The
    /// account's name is used in the texts of errors.
    ///
    /// Fails with `InvalidUri` if the path is malformed, and with `InvalidInput` if it names a resource by
    /// the wrong keys.
    pub fn parse(account: &str, raw_path: &str) -> Result<Self, TableError> {
        let mut segments = raw_path.split('/').filter(|s| !s.is_empty());
        let Some(first) = segments.next() else {
            return Ok(Self::Service);
        };
        let first = uri::decode(first)?;
        if let Some(second) = segments.next() {
            let (table, _) = split_predicate(&first)?;
            let keyed = uri::decode(second)?.contains('(');
            return Ok(Self::Below { table: table.to_owned(), keyed });
        }
        if first.eq_ignore_ascii_case("$batch") {
            return Ok(Self::Batch);
        }
        let (name, predicate) = split_predicate(&first)?;
        let keys = predicate.map(parse_predicate).transpose()?.unwrap_or_default();
        if name.eq_ignore_ascii_case("Tables") {
            return match keys.as_slice() {
                [] => Ok(Self::Tables),
                [KeyPart { name: None, value }] => Ok(Self::Table(value.clone())),
                [KeyPart { name: Some(n), value }] if n == "TableName" => Ok(Self::Table(value.clone())),
                _ => Err(wrong_key_count(account, "Tables")),
            };
        }
        match keys.as_slice() {
            [] => Ok(Self::Entities(name.to_owned())),
            [_, _] => {
                let of = |wanted: &str| {
                    keys.iter().find(|k| k.name.as_deref() == Some(wanted)).map(|k| k.value.clone())
                };
                let (Some(partition_key), Some(row_key)) = (of("PartitionKey"), of("RowKey")) else {
                    return Err(TableError::invalid_input(
                        "An entity is named by its PartitionKey and its RowKey, each once.",
                    ));
                };
                Ok(Self::Entity(EntityName { table: name.to_owned(), partition_key, row_key }))
            }
            _ => Err(wrong_key_count(account, name)),
        }
    }
}

/// `x(...)` as `x` and the text between the parentheses.
fn split_predicate(segment: &str) -> Result<(&str, Option<&str>), TableError> {
    match segment.split_once('(') {
        None => Ok((segment, None)),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(inner) => Ok((name, Some(inner))),
            None => Err(TableError::new(
                ErrorCode::InvalidUri,
                "The requested URI is invalid: a parenthesis is not closed.",
            )),
        },
    }
}

struct KeyPart {
    name: Option<String>,
    value: String,
}

/// Parses `'x'`, or `PartitionKey='a',RowKey='it''s'`: texts in single quotes, in which a quote is doubled.
fn parse_predicate(text: &str) -> Result<Vec<KeyPart>, TableError> {
    let malformed = || {
        TableError::new(
            ErrorCode::InvalidUri,
            "The requested URI is invalid: keys are written as PartitionKey='...',RowKey='...'.",
        )
    };
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let quote = rest.find('\'').ok_or_else(malformed)?;
        let name = match rest[..quote].trim() {
            "" => None,
            named => Some(named.strip_suffix('=').ok_or_else(malformed)?.trim().to_owned()),
        };
        let (value, after) = quoted(&rest[quote + 1..]).ok_or_else(malformed)?;
        parts.push(KeyPart { name, value });
        rest = after.trim();
        if let Some(next) = rest.strip_prefix(',') {
            rest = next.trim();
            if rest.is_empty() {
                return Err(malformed());
            }
        } else if !rest.is_empty() {
            return Err(malformed());
        }
    }
    Ok(parts)
}

/// The text up to the closing quote, with doubled quotes made single, and the rest behind the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let quote = rest.find('\'')?;
        value.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, rest)),
        }
    }
}

//! From a request line to a typed operation.
//!
//! A path names a [`Target`]; the target, the method and a few headers make an [`Operation`]. The
//! same two steps serve a request of its own and each part of a batch.
//!
//! ```text
//!   /Tables                               all tables
//!   /Tables('people')                     one table
//!   /people  /people()                    the entities of a table
//!   /people(PartitionKey='a',RowKey='b')  one entity
//!   /$batch                               an entity group transaction
//!   /                                     the service, with ?restype=service&comp=properties|stats
//! ```
//!
//! The path is split at its slashes *before* percent-decoding, so an encoded slash in a key stays
//! in the key (where it is refused as a forbidden character) and never moves the request to
//! another target. What was signed and what is routed is thereby the same text.

use super::etag::IfMatch;
use super::write::WriteKind;
use crate::error::{ErrorCode, TableError};
use crate::uri::{self, Query};

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

/// What a path names, below the account.
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
    /// `/x/...`: something below a table, which is what a client sends whose endpoint already
    /// ends with a table's name.
    Below {
        /// The first segment.
        table: String,
        /// Whether the rest names a resource by key, as `Tables('y')` does.
        keyed: bool,
    },
}

/// The refusal of a URI that names a resource of an account by another number of keys than it has.
pub fn wrong_key_count(account: &str, resource: &str) -> TableError {
    TableError::invalid_input(format!(
        "The number of keys specified in the URI does not match number of key properties for the resource '{account}.{resource}'."
    ))
}

impl Target {
    /// Reads a path as it was sent, percent-encoded, without the account of path style. The name of
    /// the account is for the text of errors.
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

/// Parses `'x'`, or `PartitionKey='a',RowKey='it''s'`: texts in single quotes, a quote doubled.
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

/// The text up to the closing quote, with doubled quotes made single, and what comes after it.
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

/// The method, after `X-HTTP-Method` had its say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// Insert, or a batch.
    Post,
    /// Replace.
    Put,
    /// Merge: `PATCH`, or `MERGE` as OData once called it.
    Merge,
    /// Delete.
    Delete,
}

impl Method {
    /// The method of a request whose line says `line` and whose `X-HTTP-Method` headers are given.
    ///
    /// `POST` with `X-HTTP-Method: MERGE` is how clients tunnel a method that a proxy would stop.
    pub fn of<'a>(line: &str, mut tunnelled: impl Iterator<Item = &'a str>) -> Result<Self, TableError> {
        let named = |name: &str| match name {
            "GET" => Some(Self::Get),
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "MERGE" | "PATCH" => Some(Self::Merge),
            "DELETE" => Some(Self::Delete),
            _ => None,
        };
        let method = named(line).ok_or(ErrorCode::MethodNotAllowed)?;
        let Some(tunnel) = tunnelled.next() else {
            return Ok(method);
        };
        if tunnelled.next().is_some() {
            return Err(ErrorCode::XMethodIncorrectCount.into());
        }
        if method != Self::Post {
            return Err(ErrorCode::XMethodNotUsingPost.into());
        }
        match named(&tunnel.to_ascii_uppercase()) {
            Some(tunnelled @ (Self::Put | Self::Merge | Self::Delete)) => Ok(tunnelled),
            Some(Self::Get | Self::Post) | None => Err(ErrorCode::XMethodIncorrectValue.into()),
        }
    }
}

/// The conditional headers of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    /// `If-Match`
    pub if_match: Option<&'a str>,
    /// `If-None-Match`
    pub if_none_match: Option<&'a str>,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// List the tables of the account.
    QueryTables,
    /// One table.
    GetTable(String),
    /// Create a table; its name is in the body.
    CreateTable,
    /// Delete a table.
    DeleteTable(String),
    /// The stored access policies of a table.
    GetTableAcl(String),
    /// Replace them.
    SetTableAcl(String),
    /// A page of entities.
    QueryEntities(String),
    /// One entity.
    GetEntity(EntityName),
    /// Insert an entity; its keys are in the body.
    InsertEntity(String),
    /// Update, merge, upsert or delete one entity.
    WriteEntity(EntityName, WriteKind),
    /// Something below a table, by one key: there is no such thing, but that the table is missing
    /// is told first (recorded).
    MisnamedEntity(String),
    /// An entity group transaction.
    Batch,
    /// The account's service properties.
    GetServiceProperties,
    /// Change them.
    SetServiceProperties,
    /// The state of replication, on the secondary endpoint.
    GetServiceStats,
}

impl Operation {
    /// The name under which the operation is counted, as Azure's metrics call it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::QueryTables => "QueryTables",
            Self::GetTable(_) => "QueryTable",
            Self::CreateTable => "CreateTable",
            Self::DeleteTable(_) => "DeleteTable",
            Self::GetTableAcl(_) => "GetTableAcl",
            Self::SetTableAcl(_) => "SetTableAcl",
            Self::QueryEntities(_) => "QueryEntities",
            Self::GetEntity(_) => "QueryEntity",
            Self::InsertEntity(_) => "InsertEntity",
            Self::WriteEntity(_, kind) => match kind {
                WriteKind::Insert => "InsertEntity",
                WriteKind::Replace(_) => "UpdateEntity",
                WriteKind::Merge(_) => "MergeEntity",
                WriteKind::InsertOrReplace => "InsertOrReplaceEntity",
                WriteKind::InsertOrMerge => "InsertOrMergeEntity",
                WriteKind::Delete(_) => "DeleteEntity",
            },
            Self::MisnamedEntity(_) => "Unknown",
            Self::Batch => "EntityGroupTransaction",
            Self::GetServiceProperties => "GetTableServiceProperties",
            Self::SetServiceProperties => "SetTableServiceProperties",
            Self::GetServiceStats => "GetTableServiceStats",
        }
    }

    /// Whether it is of the entities of a table, and not of tables or of the account.
    pub const fn is_of_entities(&self) -> bool {
        match self {
            Self::QueryEntities(_)
            | Self::GetEntity(_)
            | Self::InsertEntity(_)
            | Self::WriteEntity(..)
            | Self::MisnamedEntity(_)
            | Self::Batch => true,
            Self::QueryTables
            | Self::GetTable(_)
            | Self::CreateTable
            | Self::DeleteTable(_)
            | Self::GetTableAcl(_)
            | Self::SetTableAcl(_)
            | Self::GetServiceProperties
            | Self::SetServiceProperties
            | Self::GetServiceStats => false,
        }
    }

    /// Whether it changes anything; the secondary endpoint refuses those.
    pub const fn is_write(&self) -> bool {
        match self {
            Self::QueryTables
            | Self::GetTable(_)
            | Self::GetTableAcl(_)
            | Self::QueryEntities(_)
            | Self::GetEntity(_)
            | Self::MisnamedEntity(_)
            | Self::GetServiceProperties
            | Self::GetServiceStats => false,
            Self::CreateTable
            | Self::DeleteTable(_)
            | Self::SetTableAcl(_)
            | Self::InsertEntity(_)
            | Self::WriteEntity(..)
            | Self::Batch
            | Self::SetServiceProperties => true,
        }
    }

    /// Whether its errors, and its body if it has one, are XML.
    pub const fn speaks_xml(&self) -> bool {
        matches!(
            self,
            Self::GetTableAcl(_)
                | Self::SetTableAcl(_)
                | Self::GetServiceProperties
                | Self::SetServiceProperties
                | Self::GetServiceStats
        )
    }

    /// The operation of a request. Where the URI exists but the method does not fit:
    /// `MethodNotAllowed`; where it names nothing: `InvalidUri`.
    pub fn of(
        method: Method,
        target: Target,
        query: &Query,
        conditions: Conditions<'_>,
    ) -> Result<Self, TableError> {
        let service = query.get("restype").is_some_and(|v| v.eq_ignore_ascii_case("service"));
        if let Some(component) = query.get("comp").filter(|c| !c.is_empty()) {
            return Self::of_component(method, target, component, service);
        }
        if service {
            return Err(TableError::new(ErrorCode::InvalidUri, "The requested URI is invalid."));
        }
        match (method, target) {
            (Method::Get, Target::Tables) => Ok(Self::QueryTables),
            (Method::Post, Target::Tables) => Ok(Self::CreateTable),
            (Method::Get, Target::Table(name)) => Ok(Self::GetTable(name)),
            (Method::Delete, Target::Table(name)) => Ok(Self::DeleteTable(name)),
            (Method::Get, Target::Entities(table)) => Ok(Self::QueryEntities(table)),
            // A client whose endpoint ends with a table's name posts to /table/Tables or
            // /table/$batch; the service takes both for an insert into that table.
            (Method::Post, Target::Entities(table) | Target::Below { table, .. }) => {
                Ok(Self::InsertEntity(table))
            }
            (Method::Get, Target::Entity(name)) => Ok(Self::GetEntity(name)),
            (Method::Put | Method::Merge | Method::Delete, Target::Entity(name)) => {
                let kind = write_kind(method, conditions)?;
                Ok(Self::WriteEntity(name, kind))
            }
            (Method::Post, Target::Batch) => Ok(Self::Batch),
            (_, Target::Below { keyed: true, table }) => Ok(Self::MisnamedEntity(table)),
            (_, Target::Service | Target::Below { keyed: false, .. }) => Err(ErrorCode::InvalidUri.into()),
            (Method::Put | Method::Merge | Method::Delete, Target::Tables | Target::Entities(_))
            | (Method::Post | Method::Put | Method::Merge, Target::Table(_))
            | (Method::Post, Target::Entity(_))
            | (Method::Get | Method::Put | Method::Merge | Method::Delete, Target::Batch) => {
                Err(ErrorCode::MethodNotAllowed.into())
            }
        }
    }

    fn of_component(
        method: Method,
        target: Target,
        component: &str,
        service: bool,
    ) -> Result<Self, TableError> {
        match (target, component.to_ascii_lowercase().as_str(), method) {
            (Target::Service, "properties", Method::Get) if service => Ok(Self::GetServiceProperties),
            (Target::Service, "properties", Method::Put) if service => Ok(Self::SetServiceProperties),
            (Target::Service, "stats", Method::Get) if service => Ok(Self::GetServiceStats),
            (Target::Service, "properties" | "stats", _) if service => {
                Err(ErrorCode::MethodNotAllowed.into())
            }
            (Target::Entities(table), "acl", Method::Get) if !service => Ok(Self::GetTableAcl(table)),
            (Target::Entities(table), "acl", Method::Put) if !service => Ok(Self::SetTableAcl(table)),
            (Target::Entities(_), "acl", _) if !service => Err(ErrorCode::MethodNotAllowed.into()),
            _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
        }
    }
}

/// Which write `PUT`, `MERGE` or `DELETE` of an entity asks for: without `If-Match` an upsert.
fn write_kind(method: Method, conditions: Conditions<'_>) -> Result<WriteKind, TableError> {
    match (conditions.if_match, conditions.if_none_match, method) {
        (_, None, _) => {}
        (Some(_), Some(_), _) => {
            return Err(TableError::invalid_input(
                "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one of the headers or none of them.",
            ));
        }
        (None, Some(_), Method::Delete) => {
            return Err(TableError::invalid_input(
                "If-None-Match HTTP header cannot be specified for DELETE operations.",
            ));
        }
        (None, Some(_), _) => {
            return Err(TableError::invalid_input(
                "If-None-Match HTTP header cannot be specified for PUT operations.",
            ));
        }
    }
    let if_match = conditions.if_match.map(IfMatch::parse).transpose()?;
    match (method, if_match) {
        (Method::Put, Some(condition)) => Ok(WriteKind::Replace(condition)),
        (Method::Put, None) => Ok(WriteKind::InsertOrReplace),
        (Method::Merge, Some(condition)) => Ok(WriteKind::Merge(condition)),
        (Method::Merge, None) => Ok(WriteKind::InsertOrMerge),
        (Method::Delete, Some(condition)) => Ok(WriteKind::Delete(condition)),
        (Method::Delete, None) => Err(ErrorCode::MissingRequiredHeader.into()),
        (Method::Get | Method::Post, _) => Err(ErrorCode::MethodNotAllowed.into()),
    }
}

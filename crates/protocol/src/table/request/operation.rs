//! From method, target, query and conditional headers to an operation.

use super::method::Method;
use super::target::{EntityName, Target};
use crate::error::{ErrorCode, TableError};
use crate::table::etag::IfMatch;
use crate::table::write::WriteKind;
use crate::uri::Query;

/// The conditional headers of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    /// `If-Match`
    pub if_match: Option<&'a str>,
    /// `If-None-Match`
    pub if_none_match: Option<&'a str>,
}

/// The operation that a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// List the tables of the account.
    QueryTables,
    /// Read one table.
    GetTable(String),
    /// Create a table; its name is in the body.
    CreateTable,
    /// Delete a table.
    DeleteTable(String),
    /// Read the stored access policies of a table.
    GetTableAcl(String),
    /// Replace the stored access policies of a table.
    SetTableAcl(String),
    /// Read a page of entities.
    QueryEntities(String),
    /// Read one entity.
    GetEntity(EntityName),
    /// Insert an entity; its keys are in the body.
    InsertEntity(String),
    /// Update, merge, upsert or delete one entity.
    WriteEntity(EntityName, WriteKind),
    /// A path below a table with one key, which names nothing. The service reports a missing table first
    /// (recorded), so the caller must look the table up.
    MisnamedEntity(String),
    /// An entity group transaction.
    Batch,
    /// Read the account's service properties.
    GetServiceProperties,
    /// Change the account's service properties.
    SetServiceProperties,
    /// Read the state of replication, on the secondary endpoint.
    GetServiceStats,
}

impl Operation {
    /// The operation's name in metrics and logs, which is the one of Azure's metrics.
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

    /// Whether it reads or writes entities, and not tables or the account.
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

    /// Whether it changes anything. The secondary endpoint refuses such operations.
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

    /// Whether its body, if it has one, and its errors are XML.
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

    /// The operation of a request. Fails with `InvalidUri` if the URI names nothing, and with
    /// `MethodNotAllowed` if it does not allow the method.
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
            // A client whose endpoint ends with a table's name posts to /table/Tables or /table/$batch. The
            // service treats both as an insert into that table.
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

/// The kind of write that `PUT`, `MERGE` or `DELETE` of an entity asks for. Without `If-Match`, a `PUT` or
/// a `MERGE` is an upsert.
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

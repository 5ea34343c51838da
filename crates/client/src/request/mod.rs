//! What is sent for each operation, and how it is signed. Pure.
//!
//! A [`Call`] is a request without the account: method, path below the endpoint, query, headers, body. [`signed`] makes
//! an HTTP request of it, and does so again for each attempt, because a signature holds the time. [`batch`] packs several
//! changes into one call, and reads its answer.

pub(crate) mod batch;
mod change;
mod query;
mod sign;

use bytes::Bytes;
use http::Method;
use rangehold_protocol::table::names::{check_key, check_table_name};
use rangehold_protocol::table::render::{entity_uri, table_uri};

pub use change::{Change, Condition};
pub(crate) use query::next_page;
pub use query::{Filter, Operator, Query, Token};
pub(crate) use sign::{Proof, signed};

use crate::entity::Keys;

/// The version of the protocol that is spoken: the newest that every emulator knows.
const VERSION: &str = "2019-02-02";
const JSON: &str = "application/json";
const MINIMAL: &str = "application/json;odata=minimalmetadata";

/// A request that the service would refuse, so it is not sent. The text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub(crate) String);

/// One operation, as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Below the endpoint, percent-encoded, with a slash at the beginning.
    pub(crate) path: String,
    /// Names and values, not encoded.
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    /// Whether the answer is one of a batch, whose parts count.
    pub(crate) is_batch: bool,
}

impl Call {
    fn new(method: Method, path: String) -> Self {
        let headers = vec![("Accept", MINIMAL.to_owned()), ("DataServiceVersion", "3.0".to_owned())];
        Self { method, path, query: Vec::new(), headers, body: Bytes::new(), is_batch: false }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn with_body(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.headers.push(("Content-Type", content_type.into()));
        self.body = body.into();
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// Makes a table.
    pub(crate) fn create_table(name: &str) -> Self {
        let body = format!("{{\"TableName\":{}}}", serde_json::Value::from(name));
        Self::new(Method::POST, "/Tables".to_owned())
            .with("Prefer", "return-no-content")
            .with_body(JSON, body.into_bytes())
    }

    /// Deletes a table with all that is in it.
    pub(crate) fn delete_table(name: &str) -> Self {
        Self::new(Method::DELETE, table_uri("", name))
    }

    /// A page of the account's tables.
    pub(crate) fn tables(token: Option<&Token>) -> Self {
        let mut call = Self::new(Method::GET, "/Tables".to_owned());
        call.query.extend(token.into_iter().flat_map(Token::parameters));
        call
    }

    /// Reads one entity.
    pub(crate) fn get(table: &str, keys: &Keys) -> Result<Self, Invalid> {
        Ok(Self::new(Method::GET, entity_path(table, keys)?))
    }

    /// A page of a query.
    pub(crate) fn query(table: &str, query: &Query, token: Option<&Token>) -> Self {
        let mut call = Self::new(Method::GET, format!("/{table}()"));
        call.query = query.parameters();
        call.query.extend(token.into_iter().flat_map(Token::parameters));
        call
    }

    /// Carries out one change.
    pub(crate) fn change(table: &str, change: &Change) -> Result<Self, Invalid> {
        let call = match change {
            Change::Insert(entity) => {
                checked(&entity.keys)?;
                Self::new(Method::POST, format!("/{table}")).with("Prefer", "return-no-content")
            }
            _ => Self::new(change.method(), entity_path(table, change.keys())?),
        };
        let call = match change.condition() {
            Some(condition) => call.with("If-Match", condition.header()),
            None => call,
        };
        Ok(match change.entity() {
            Some(entity) => call.with_body(JSON, crate::entity::body(entity)),
            None => call,
        })
    }
}

/// Checks the name of a table: a letter, then 2 to 62 letters or digits.
pub(crate) fn checked_table(name: &str) -> Result<(), Invalid> {
    check_table_name(name).map_err(|_| {
        Invalid(format!("{name:?} is not a table's name: take 3 to 63 letters and digits, a letter first"))
    })
}

fn checked(keys: &Keys) -> Result<(), Invalid> {
    for (which, key) in [("PartitionKey", &keys.partition_key), ("RowKey", &keys.row_key)] {
        check_key(which, key).map_err(|_| {
            Invalid(format!(
                "the {which} {key:?} cannot be stored: a key has at most 1024 characters, and none of / \\ # ? and \
                 control characters; rangehold_client::keys::composite escapes them"
            ))
        })?;
    }
    Ok(())
}

fn entity_path(table: &str, keys: &Keys) -> Result<String, Invalid> {
    checked(keys)?;
    Ok(entity_uri("", table, &keys.partition_key, &keys.row_key))
}

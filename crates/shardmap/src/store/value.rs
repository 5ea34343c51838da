//! The values in statements and rows of the protocol.

use uuid::Uuid;

use super::error::StoreError;
use crate::error::Failure;
use crate::location::Location;

/// A value of a statement or a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    Ints(Vec<i64>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Uuid(value)
    }
}

impl From<&[i64]> for Value {
    fn from(value: &[i64]) -> Self {
        Self::Ints(value.to_vec())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row, read column by column from the left.
#[derive(Debug)]
pub(crate) struct Row {
    location: Location,
    values: std::vec::IntoIter<Value>,
}

impl Row {
    pub(crate) fn new(location: &Location, values: Vec<Value>) -> Self {
        Self { location: location.clone(), values: values.into_iter() }
    }

    /// The error for a row that this program never writes.
    pub(crate) fn damaged(&self, what: impl Into<String>) -> StoreError {
        self.error(Failure::Damaged, what)
    }

    /// An error about what the row says.
    pub(super) fn error(&self, failure: Failure, what: impl Into<String>) -> StoreError {
        StoreError::new(&self.location, failure, what)
    }

    fn next<T>(
        &mut self,
        wanted: &str,
        read: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Result<T, StoreError> {
        let value = self.values.next().unwrap_or(Value::Null);
        read(value).map_err(|value| self.damaged(format!("a row holds {value:?}, but {wanted} is expected")))
    }

    pub(crate) fn bool(&mut self) -> Result<bool, StoreError> {
        self.next("true or false", |value| match value {
            Value::Bool(value) => Ok(value),
            Value::Int(value) => Ok(value != 0),
            other => Err(other),
        })
    }

    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        self.next("a number", |value| match value {
            Value::Int(value) => Ok(value),
            other => Err(other),
        })
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.next("a text", |value| match value {
            Value::Text(value) => Ok(value),
            other => Err(other),
        })
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.next("bytes", |value| match value {
            Value::Bytes(value) => Ok(value),
            other => Err(other),
        })
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, StoreError> {
        self.next("an id", |value| match value {
            Value::Uuid(value) => Ok(value),
            Value::Text(text) => Uuid::parse_str(&text).map_err(|_| Value::Text(text)),
            other => Err(other),
        })
    }

    pub(crate) fn ints(&mut self) -> Result<Vec<i64>, StoreError> {
        self.next("numbers", |value| match value {
            Value::Ints(value) => Ok(value),
            Value::Text(text) => serde_json::from_str(&text).map_err(|_| Value::Text(text)),
            other => Err(other),
        })
    }

    /// The next column; `None` if it is NULL.
    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if matches!(self.values.as_slice().first(), Some(Value::Null) | None) {
            self.values.next();
            return Ok(None);
        }
        read(self).map(Some)
    }
}

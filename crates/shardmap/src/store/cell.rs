//! Values of rows and parameters, for both stores.

mod text;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use crate::error::Error;

/// A value of a row, or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A truth value. SQLite has none, and gives 0 or 1.
    Bool(bool),
    /// A whole number of 16, 32 or 64 bits.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// A text. Also numbers without a limit (`numeric`), dates and times, JSON, enumerations and arrays of PostgreSQL, as
    /// its `::text` gives them; times with a time zone in UTC.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A uuid. SQLite has none.
    Uuid(Uuid),
    /// Another type of PostgreSQL (a point, a range, an address) in its binary format. If the query has a cast `::text`,
    /// the value comes as a text.
    Other {
        /// The type's name.
        type_name: String,
        /// The value.
        bytes: Vec<u8>,
    },
}

/// A type that a [`Cell`] can be read as.
pub trait FromCell: Sized {
    /// What is expected, in words.
    const WANTED: &'static str;

    /// The value; `None` if the cell holds another type.
    fn from_cell(cell: &Cell) -> Option<Self>;
}

/// Both directions for one type.
macro_rules! cells {
    ($($type:ty, $wanted:literal, $into:expr, $from:pat => $value:expr;)*) => {$(
        impl From<$type> for Cell {
            fn from(value: $type) -> Self {
                let into: fn($type) -> Self = $into;
                into(value)
            }
        }

        impl FromCell for $type {
            const WANTED: &'static str = $wanted;

            fn from_cell(cell: &Cell) -> Option<Self> {
                match cell {
                    $from => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}

cells! {
    bool, "true or false", Cell::Bool, Cell::Bool(value) => *value;
    i64, "a whole number", Cell::Int, Cell::Int(value) => *value;
    f64, "a floating point number", Cell::Float, Cell::Float(value) => *value;
    String, "a text", Cell::Text, Cell::Text(value) => value.clone();
    Vec<u8>, "bytes", Cell::Bytes, Cell::Bytes(value) => value.clone();
    Uuid, "a uuid", Cell::Uuid, Cell::Uuid(value) => *value;
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: FromCell> FromCell for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn from_cell(cell: &Cell) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            other => T::from_cell(other).map(Some),
        }
    }
}

impl Cell {
    /// The value as a Rust type.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] for a cell of another type.
    pub fn to<T: FromCell>(&self) -> Result<T, Error> {
        let refused = || Error::argument(format!("the row holds {self:?}, but {} was asked for", T::WANTED));
        T::from_cell(self).ok_or_else(refused)
    }

    /// The type with which the value is sent to PostgreSQL.
    pub(crate) fn postgres_type(&self) -> Type {
        match self {
            Self::Null | Self::Other { .. } => Type::UNKNOWN,
            Self::Bool(_) => Type::BOOL,
            Self::Int(_) => Type::INT8,
            Self::Float(_) => Type::FLOAT8,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
            Self::Uuid(_) => Type::UUID,
        }
    }
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(value) => value.to_sql(ty, out),
            Self::Int(value) => value.to_sql(ty, out),
            Self::Float(value) => value.to_sql(ty, out),
            Self::Text(value) => value.to_sql(ty, out),
            Self::Bytes(value) => value.to_sql(ty, out),
            Self::Uuid(value) => value.to_sql(ty, out),
            Self::Other { bytes, .. } => {
                out.put_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }

    /// Cells are sent with the type that `Cell::postgres_type` names, and with no other.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => Self::Bool(bool::from_sql(ty, raw)?),
            Type::INT2 => Self::Int(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Self::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Self::Int(i64::from_sql(ty, raw)?),
            Type::FLOAT4 => Self::Float(f32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Self::Float(f64::from_sql(ty, raw)?),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON => {
                Self::Text(std::str::from_utf8(raw)?.to_owned())
            }
            Type::BYTEA => Self::Bytes(raw.to_vec()),
            Type::UUID => Self::Uuid(Uuid::from_sql(ty, raw)?),
            _ => match text::of(ty, raw) {
                Some(text) => Self::Text(text),
                None => Self::Other { type_name: ty.name().to_owned(), bytes: raw.to_vec() },
            },
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, Value};
        Ok(ToSqlOutput::Owned(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Integer((*value).into()),
            Self::Int(value) => Value::Integer(*value),
            Self::Float(value) => Value::Real(*value),
            Self::Text(value) => Value::Text(value.clone()),
            Self::Bytes(value) | Self::Other { bytes: value, .. } => Value::Blob(value.clone()),
            Self::Uuid(value) => Value::Text(value.hyphenated().to_string()),
        }))
    }
}

impl From<rusqlite::types::ValueRef<'_>> for Cell {
    fn from(value: rusqlite::types::ValueRef<'_>) -> Self {
        use rusqlite::types::ValueRef;
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(value) => Self::Int(value),
            ValueRef::Real(value) => Self::Float(value),
            ValueRef::Text(value) => Self::Text(String::from_utf8_lossy(value).into_owned()),
            ValueRef::Blob(value) => Self::Bytes(value.to_vec()),
        }
    }
}

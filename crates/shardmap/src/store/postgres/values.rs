//! The values of the store, as types of the driver.

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::location::Location;
use crate::store::{Failure, StoreError, Value};

/// The type with which a value is sent.
pub(super) fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Bool(_) => Type::BOOL,
        Value::Int(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
        Value::Bytes(_) => Type::BYTEA,
        Value::Uuid(_) => Type::UUID,
        Value::Ints(_) => Type::INT8_ARRAY,
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(value) => value.to_sql(ty, out),
            Self::Int(value) => value.to_sql(ty, out),
            Self::Text(value) => value.to_sql(ty, out),
            Self::Bytes(value) => value.to_sql(ty, out),
            Self::Uuid(value) => value.to_sql(ty, out),
            Self::Ints(value) => value.to_sql(ty, out),
        }
    }

    /// Values are sent with the type that [`type_of`] names, and with no other.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The columns of a row.
pub(super) fn of_row(location: &Location, row: &Row) -> Result<Vec<Value>, StoreError> {
    let damaged =
        |error: tokio_postgres::Error| StoreError::new(location, Failure::Damaged, error.to_string());
    let column = |index: usize| {
        let value = match *row.columns()[index].type_() {
            Type::BOOL => row.try_get::<_, Option<bool>>(index).map(Value::from),
            Type::INT4 => row.try_get::<_, Option<i32>>(index).map(|value| Value::from(value.map(i64::from))),
            Type::INT8 => row.try_get::<_, Option<i64>>(index).map(Value::from),
            Type::BYTEA => row.try_get::<_, Option<&[u8]>>(index).map(Value::from),
            Type::UUID => row.try_get::<_, Option<uuid::Uuid>>(index).map(Value::from),
            Type::INT8_ARRAY => {
                row.try_get::<_, Option<Vec<i64>>>(index).map(|value| value.map_or(Value::Null, Value::Ints))
            }
            _ => row.try_get::<_, Option<&str>>(index).map(Value::from),
        };
        value.map_err(damaged)
    };
    (0..row.len()).map(column).collect()
}

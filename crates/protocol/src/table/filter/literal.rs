//! Constants of a filter: from text to value and back.
//!
//! | type | written as |
//! |---|---|
//! | Edm.String | `'it''s'` |
//! | Edm.Int32, Edm.Int64 | `-5`, `5L` |
//! | Edm.Double | `1.5`, `1e3`, `1d`, `1f`, `NaN`, `INF`, `-INF` |
//! | Edm.Boolean | `true`, `false` |
//! | Edm.DateTime | `datetime'2008-07-10T00:00:00Z'`; without a zone it is UTC |
//! | Edm.Guid | `guid'c9da6455-213d-42c9-9a79-3e9149a57833'` |
//! | Edm.Binary | `X'0a1b'`, `binary'0a1b'` |
//!
//! An integer without `L` is an Int32. One that does not fit is an error, as in the real service; users see
//! this error with milliseconds since 1970.

use std::fmt;

use rangehold_map::Timestamp;

use super::lexer::{Kind, Lexer, Token};
use super::syntax::Literal;
use crate::error::{ErrorCode, TableError};
use crate::table::value::{EdmType, Value, ValueRef, parse_bare_guid, parse_hex, put_guid};
use crate::time;

/// The value of `token`; `None` if it is not a constant. Fails with `InvalidInput` on a malformed constant.
pub(super) fn read(lexer: &Lexer<'_>, token: &Token<'_>) -> Result<Option<Value>, TableError> {
    let text = token.text;
    let (edm_type, value) = match token.kind {
        Kind::True => return Ok(Some(Value::Boolean(true))),
        Kind::False => return Ok(Some(Value::Boolean(false))),
        Kind::Text => return Ok(Some(Value::String(unquoted(text)))),
        Kind::Foreign => return Err(ErrorCode::InvalidInput.into()),
        Kind::Integer => (EdmType::Int32, text.parse().ok().map(Value::Int32)),
        Kind::Long => (EdmType::Int64, text[..text.len() - 1].parse().ok().map(Value::Int64)),
        Kind::Double => (EdmType::Double, double(text).map(Value::Double)),
        Kind::DateTime => (EdmType::DateTime, date_time(quoted(text)).map(Value::DateTime)),
        Kind::Guid => (EdmType::Guid, guid(quoted(text)).map(Value::Guid)),
        Kind::Binary => (EdmType::Binary, parse_hex(quoted(text)).map(Value::Binary)),
        Kind::Open | Kind::Close | Kind::Word | Kind::Null | Kind::Stray | Kind::End => return Ok(None),
    };
    match value {
        Some(value) => Ok(Some(value)),
        None => Err(lexer.unrecognized(edm_type.name(), token)),
    }
}

/// The text between the quotes of `prefix'...'`.
fn quoted(text: &str) -> &str {
    let inner = text.split_once('\'').map_or("", |(_, rest)| rest);
    inner.strip_suffix('\'').unwrap_or(inner)
}

fn unquoted(text: &str) -> String {
    quoted(text).replace("''", "'")
}

/// A point in time. In UTC, not only in its own zone, it must lie within the years 1 to 9999.
fn date_time(text: &str) -> Option<Timestamp> {
    const FIRST: Timestamp = Timestamp::from_unix_seconds(-62_135_596_800);
    time::parse_iso(text).filter(|t| (FIRST..=Timestamp::MAX_DATE_TIME).contains(t))
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" | "NaNf" | "NaNF" => Some(f64::NAN),
        "INF" | "INFf" | "INFF" => Some(f64::INFINITY),
        "-INF" | "-INFf" | "-INFF" => Some(f64::NEG_INFINITY),
        number => number.trim_end_matches(['d', 'D', 'f', 'F']).parse().ok().filter(|n: &f64| n.is_finite()),
    }
}

/// A GUID, perhaps in braces.
fn guid(text: &str) -> Option<[u8; 16]> {
    match text.strip_prefix('{') {
        Some(inner) => parse_bare_guid(inner.strip_suffix('}')?),
        None => parse_bare_guid(text),
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref() {
            ValueRef::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
            ValueRef::Boolean(b) => write!(f, "{b}"),
            ValueRef::Int32(n) => write!(f, "{n}"),
            ValueRef::Int64(n) => write!(f, "{n}L"),
            ValueRef::Double(n) if n.is_nan() => f.write_str("NaN"),
            ValueRef::Double(n) if n.is_infinite() => f.write_str(if n > 0.0 { "INF" } else { "-INF" }),
            // The `?` form always has a point or an exponent, so it is read as a Double again.
            ValueRef::Double(n) => write!(f, "{n:?}"),
            ValueRef::DateTime(t) => write!(f, "datetime'{}'", time::iso(t)),
            ValueRef::Guid(guid) => {
                let mut digits = Vec::with_capacity(36);
                put_guid(&mut digits, guid);
                write!(f, "guid'{}'", String::from_utf8_lossy(&digits))
            }
            ValueRef::Binary(bytes) => write!(f, "X'{}'", const_hex::encode(bytes)),
        }
    }
}

//! From a JSON value and its declared type to a [`Value`].
//!
//! Without a declared type, the form of the value decides: a text is a String, a boolean is a Boolean, an
//! integer that fits is an Int32, and every other number is a Double, also an integer that does not fit
//! (recorded: `9223372036854775808000` comes back as `9.2233720368547758E+21`). With a declared type, numbers
//! and booleans may also be written as texts (recorded: `"12345"` as Edm.Int32, `"False"` as Edm.Boolean,
//! `"3.14"` as Edm.Double). An Int64 usually is a text, because JavaScript's numbers cannot hold it.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use rangehold_map::Timestamp;

use super::super::limits::{BINARY_BYTES_MAX, STRING_UNITS_MAX};
use super::super::names::utf16_units;
use super::super::value::{EdmType, Value, parse_guid};
use super::members::{Declared, Json, unreadable};
use crate::error::{ErrorCode, TableError};
use crate::time::{iso7, parse_iso};

/// The service reads base64 as .NET does: the padding is required, but unused bits need not be 0.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// The value of the property `name`; `None` for null, which is never stored. Its size is not checked here.
///
/// Fails with `OutOfRangeInput` for a DateTime before 1601, and with `InvalidInput` for a value that does not
/// have the declared type.
pub(super) fn convert(
    name: &str,
    declared: Option<Declared>,
    json: Json<'_>,
) -> Result<Option<Value>, TableError> {
    let value = match (declared, json) {
        (_, Json::Null) => return Ok(None),
        (None, Json::Text(text)) => Value::String(text.into_owned()),
        (None, Json::Bool(value)) => Value::Boolean(value),
        (None, Json::Integer(value)) => {
            i32::try_from(value).map_or(Value::Double(value as f64), Value::Int32)
        }
        (None, Json::Number(value)) => Value::Double(value),
        (Some(Declared::Known(edm_type)), json) => typed(edm_type, json).ok_or_else(unreadable)?,
        (Some(Declared::Unknown), _) => return Err(unreadable()),
    };
    match value {
        Value::DateTime(time) if time < Timestamp::MIN_DATE_TIME => Err(out_of_range(name, time)),
        value => Ok(Some(value)),
    }
}

/// Whether a value is within the limit of its type.
pub(super) fn fits(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= STRING_UNITS_MAX || utf16_units(text) <= STRING_UNITS_MAX,
        Value::Binary(bytes) => bytes.len() <= BINARY_BYTES_MAX,
        _ => true,
    }
}

/// The service's error for a DateTime that it can read but not store. It writes the value as .NET does
/// with the invariant culture.
fn out_of_range(name: &str, time: Timestamp) -> TableError {
    let text = iso7(time);
    let (year, month, day, clock) = (&text[..4], &text[5..7], &text[8..10], &text[11..19]);
    TableError::new(
        ErrorCode::OutOfRangeInput,
        format!("The '{name}' parameter of value '{month}/{day}/{year} {clock}' is out of range."),
    )
}

/// The value in the declared type; `None` if it does not have that type.
fn typed(edm_type: EdmType, json: Json<'_>) -> Option<Value> {
    Some(match (edm_type, json) {
        (EdmType::String, Json::Text(text)) => Value::String(text.into_owned()),
        (EdmType::Boolean, Json::Bool(value)) => Value::Boolean(value),
        (EdmType::Boolean, Json::Text(text)) => Value::Boolean(boolean(&text)?),
        (EdmType::Int32, Json::Integer(value)) => Value::Int32(value.try_into().ok()?),
        (EdmType::Int32, Json::Text(text)) => Value::Int32(text.parse().ok()?),
        (EdmType::Int64, Json::Integer(value)) => Value::Int64(value),
        (EdmType::Int64, Json::Text(text)) => Value::Int64(text.parse().ok()?),
        (EdmType::Double, Json::Integer(value)) => Value::Double(value as f64),
        (EdmType::Double, Json::Number(value)) => Value::Double(value),
        (EdmType::Double, Json::Text(text)) => Value::Double(double(&text)?),
        (EdmType::DateTime, Json::Text(text)) => Value::DateTime(parse_iso(&text)?),
        (EdmType::Guid, Json::Text(text)) => Value::Guid(parse_guid(&text)?),
        (EdmType::Binary, Json::Text(text)) => Value::Binary(binary(&text)?),
        _ => return None,
    })
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A number, or one of the three values for which JSON has no number. Rust's parser alone would accept
/// more names for these, and would turn numbers that are too large into infinity.
fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn binary(text: &str) -> Option<Vec<u8>> {
    if text.bytes().any(|b| b.is_ascii_whitespace()) {
        let text: String = text.split_ascii_whitespace().collect();
        return BASE64.decode(text).ok();
    }
    BASE64.decode(text).ok()
}

//! The form of stored rows: a byte with the version of the form, and then the fields as `postcard` writes them. In one
//! form, the bytes of an object stand behind the fields.
//!
//! A field is never removed or moved. A new field needs a new version, and code that still reads the old one.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ObjectError;

/// The version of the form.
const FORM: u8 = 1;
/// The same with bytes behind the fields.
const FORM_WITH_BYTES: u8 = 2;

/// Encodes a row.
pub fn encode_row<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.push(FORM);
    postcard::to_extend(value, out).expect("a row is made of values that can be written")
}

/// Encodes a row with bytes behind its fields, if there are any bytes to keep there.
pub fn encode_row_with_bytes<T: Serialize>(value: &T, bytes: Option<&Bytes>) -> Vec<u8> {
    let mut row = encode_row(value);
    if let Some(bytes) = bytes {
        row[0] = FORM_WITH_BYTES;
        row.extend_from_slice(bytes);
    }
    row
}

/// The fields of what [`encode_row_with_bytes`] wrote, and behind them the bytes, if there are any.
pub fn fields_of<'r>(what: &str, row: &'r [u8]) -> Result<&'r [u8], ObjectError> {
    match form_and_fields(what, row)? {
        (FORM | FORM_WITH_BYTES, fields) => Ok(fields),
        (form, _) => Err(unknown_form(what, form)),
    }
}

/// Decodes fields. Returns what comes behind them too.
pub fn decode_fields<'r, T: DeserializeOwned>(
    what: &str,
    fields: &'r [u8],
) -> Result<(T, &'r [u8]), ObjectError> {
    postcard::take_from_bytes(fields).map_err(|error| ObjectError::damaged(format_args!("{what}: {error}")))
}

/// Decodes what [`encode_row_with_bytes`] wrote. `keep` gets the bytes, if there are any; they are not copied.
pub fn decode_row_with_bytes<T: DeserializeOwned>(
    what: &str,
    row: &Bytes,
    keep: impl FnOnce(&mut T, Bytes),
) -> Result<T, ObjectError> {
    let (mut value, bytes) = decode_fields(what, fields_of(what, row)?)?;
    if row[0] == FORM_WITH_BYTES {
        keep(&mut value, row.slice(row.len() - bytes.len()..));
    }
    Ok(value)
}

/// A row with a value behind it. Code that does not know of the value reads the row as if it were not there.
pub fn append<T: Serialize>(row: Vec<u8>, value: &T) -> Vec<u8> {
    postcard::to_extend(value, row).expect("a row is made of values that can be written")
}

/// As [`decode_row`], of a row that may have more behind it; that is returned too.
pub fn decode_row_and_rest<'r, T: DeserializeOwned>(
    what: &str,
    row: &'r [u8],
) -> Result<(T, &'r [u8]), ObjectError> {
    match form_and_fields(what, row)? {
        (FORM, fields) => decode_fields(what, fields),
        (form, _) => Err(unknown_form(what, form)),
    }
}

/// Decodes what [`append`] put behind a row.
pub fn decode_rest<T: DeserializeOwned>(what: &str, rest: &[u8]) -> Result<T, ObjectError> {
    decode_fields(what, rest).map(|(value, _)| value)
}

/// Decodes what [`encode_row`] wrote. `what` names the row in the error.
pub fn decode_row<T: DeserializeOwned>(what: &str, row: &[u8]) -> Result<T, ObjectError> {
    decode_row_and_rest(what, row).map(|(value, _)| value)
}

fn form_and_fields<'r>(what: &str, row: &'r [u8]) -> Result<(u8, &'r [u8]), ObjectError> {
    let (form, fields) =
        row.split_first().ok_or_else(|| ObjectError::damaged(format_args!("{what}: it is empty")))?;
    Ok((*form, fields))
}

fn unknown_form(what: &str, form: u8) -> ObjectError {
    ObjectError::damaged(format_args!("{what}: unknown form {form}"))
}

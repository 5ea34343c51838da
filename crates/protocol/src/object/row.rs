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

/// Decodes what [`encode_row_with_bytes`] wrote. `keep` gets the bytes, if there are any; they are not copied.
pub fn decode_row_with_bytes<T: DeserializeOwned>(
    what: &str,
    row: &Bytes,
    keep: impl FnOnce(&mut T, Bytes),
) -> Result<T, ObjectError> {
    match row.split_first() {
        Some((&FORM_WITH_BYTES, fields)) => {
            let (mut value, bytes) = postcard::take_from_bytes(fields)
                .map_err(|error| ObjectError::damaged(format_args!("{what}: {error}")))?;
            keep(&mut value, row.slice(row.len() - bytes.len()..));
            Ok(value)
        }
        _ => decode_row(what, row),
    }
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
    match row.split_first() {
        Some((&FORM, rest)) => postcard::take_from_bytes(rest)
            .map_err(|error| ObjectError::damaged(format_args!("{what}: {error}"))),
        _ => decode_row(what, row).map(|value| (value, &[][..])),
    }
}

/// Decodes what [`append`] put behind a row.
pub fn decode_rest<T: DeserializeOwned>(what: &str, rest: &[u8]) -> Result<T, ObjectError> {
    postcard::from_bytes(rest).map_err(|error| ObjectError::damaged(format_args!("{what}: {error}")))
}

/// Decodes what [`encode_row`] wrote. `what` names the row in the error.
pub fn decode_row<T: DeserializeOwned>(what: &str, row: &[u8]) -> Result<T, ObjectError> {
    match row.split_first() {
        Some((&FORM, rest)) => {
            postcard::from_bytes(rest).map_err(|error| ObjectError::damaged(format_args!("{what}: {error}")))
        }
        Some((form, _)) => Err(ObjectError::damaged(format_args!("{what}: unknown form {form}"))),
        None => Err(ObjectError::damaged(format_args!("{what}: it is empty"))),
    }
}

//! The form of stored rows: a byte with the version of the form, and then the fields as `postcard` writes them.
//!
//! A field is never removed or moved. A new field needs a new version, and code that still reads the old one.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ObjectError;

/// The version of the form.
const FORM: u8 = 1;

/// Encodes a row.
pub fn encode_row<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.push(FORM);
    postcard::to_extend(value, out).expect("a row is made of values that can be written")
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

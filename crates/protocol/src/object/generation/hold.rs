//! How a hold is written: as `true` or `false` in JSON, and as one byte in a stored row.
//!
//! An object that never had a hold shows none, and one whose hold was lifted shows `false`. Rows were first written
//! with two values, 0 for no hold and 1 for a hold. The third value, 2 for a lifted hold, keeps these rows readable.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes a hold. `None` is an object that never had one.
pub(super) fn serialize<S: Serializer>(hold: &Option<bool>, to: S) -> Result<S::Ok, S::Error> {
    if to.is_human_readable() {
        return hold.serialize(to);
    }
    to.serialize_u8(match hold {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    })
}

/// Reads a hold. Fails if the byte is greater than 2.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    if from.is_human_readable() {
        return Option::deserialize(from);
    }
    match u8::deserialize(from)? {
        0 => Ok(None),
        1 => Ok(Some(true)),
        2 => Ok(Some(false)),
        byte => Err(D::Error::invalid_value(Unexpected::Unsigned(byte.into()), &"0, 1 or 2 for a hold")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Held(#[serde(with = "super")] Option<bool>);

    #[test]
    fn a_hold_is_one_byte_and_the_two_values_of_older_rows_keep_their_meaning() {
        for (hold, byte) in [(None, 0), (Some(true), 1), (Some(false), 2)] {
            assert_eq!(postcard::to_allocvec(&Held(hold)).expect("a byte"), [byte]);
            assert_eq!(postcard::from_bytes(&[byte]), Ok(Held(hold)));
        }
        assert!(postcard::from_bytes::<Held>(&[3]).is_err());
        assert_eq!(postcard::to_allocvec(&[false, true]).expect("two bytes"), [0, 1]);
    }
}

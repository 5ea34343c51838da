//! 64-bit numbers of the JSON API: texts on the way out, and numbers or texts on the way in.
//!
//! JavaScript keeps numbers as doubles, which are exact up to 2^53 only. So the API writes `"size":"5"`. Stored rows
//! have the number itself.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A number that JSON writes as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Int64(pub u64);

impl Serialize for Int64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(&self.0),
            false => serializer.serialize_u64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Int64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self);
        }
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Int64;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number from 0, as a number or as a text")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Int64, E> {
                Ok(Int64(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Int64, E> {
                u64::try_from(value)
                    .map(Int64)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Int64, E> {
                text.parse().map(Int64).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Reads an optional number of 32 bits. JSON writes it as a number, and a client may send a text, as for those of 64 bits.
pub(super) fn small<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    if !from.is_human_readable() {
        return Option::deserialize(from);
    }
    let fitting = |Int64(number)| {
        let wanted = "a whole number of 32 bits";
        let too_large = |_| de::Error::invalid_value(de::Unexpected::Unsigned(number), &wanted);
        u32::try_from(number).map_err(too_large)
    };
    Option::<Int64>::deserialize(from)?.map(fitting).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_texts_in_json_and_numbers_in_rows() {
        assert_eq!(serde_json::to_string(&Int64(u64::MAX)).expect("JSON"), "\"18446744073709551615\"");
        for text in ["5", "\"5\""] {
            assert_eq!(serde_json::from_str::<Int64>(text).expect("a number"), Int64(5));
        }
        for text in ["-5", "\"five\"", "1.5", "null"] {
            assert!(serde_json::from_str::<Int64>(text).is_err(), "{text}");
        }
        assert_eq!(postcard::to_allocvec(&Int64(5)).expect("a row"), [5]);
    }
}

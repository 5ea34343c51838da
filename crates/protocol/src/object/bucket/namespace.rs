//! How the names of a bucket are kept, chosen when it is made.
//!
//! In JSON a hierarchical namespace is a switch, `{"enabled": true}`. In a stored row it is a byte. Buckets were made with
//! this switch before folders were served: they have the byte 1, and their objects lie under their whole names, as those of
//! other buckets. So a bucket with folders has the byte 2.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A switch with no other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Switch {
    /// Whether it is on.
    pub enabled: bool,
}

/// How the names of a bucket are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// Under their whole names.
    Flat,
    /// The same, although the client that made the bucket asked for folders.
    FlatInSpite,
    /// In folders.
    Folders,
}

impl Serialize for Namespace {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            return Switch { enabled: *self != Self::Flat }.serialize(to);
        }
        to.serialize_u8(match self {
            Self::Flat => 0,
            Self::FlatInSpite => 1,
            Self::Folders => 2,
        })
    }
}

impl<'de> Deserialize<'de> for Namespace {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            let enabled = Switch::deserialize(from)?.enabled;
            return Ok(if enabled { Self::Folders } else { Self::Flat });
        }
        match u8::deserialize(from)? {
            0 => Ok(Self::Flat),
            1 => Ok(Self::FlatInSpite),
            2 => Ok(Self::Folders),
            byte => {
                Err(D::Error::invalid_value(Unexpected::Unsigned(byte.into()), &"0 to 2 for a namespace"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_one_byte_and_the_two_values_of_older_rows_stay_flat() {
        for (namespace, byte) in [(Namespace::Flat, 0), (Namespace::FlatInSpite, 1), (Namespace::Folders, 2)]
        {
            assert_eq!(postcard::to_allocvec(&namespace).expect("a byte"), [byte]);
            assert_eq!(postcard::from_bytes(&[byte]), Ok(namespace));
        }
        assert!(postcard::from_bytes::<Namespace>(&[3]).is_err());
        assert_eq!(postcard::to_allocvec(&Switch { enabled: true }).expect("a byte"), [1]);
        let enabled: Namespace = serde_json::from_value(json!({"enabled": true})).expect("a switch");
        assert_eq!(enabled, Namespace::Folders);
        assert_eq!(json!(Namespace::FlatInSpite), json!({"enabled": true}));
    }
}

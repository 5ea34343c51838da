//! The types of the service that Rust does not have. In other formats of serde they are texts.

use std::fmt;

use rangehold_map::Timestamp;
use rangehold_protocol::table::value::{Value, parse_guid, put_guid};
use rangehold_protocol::time::{iso, parse_iso};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name by which the writer of entities recognises a [`Guid`].
pub(super) const GUID: &str = "Edm.Guid";
/// The name by which the writer of entities recognises a [`DateTime`].
pub(super) const DATE_TIME: &str = "Edm.DateTime";

/// A field of the type Edm.Guid: sixteen bytes in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(36);
        put_guid(&mut text, self.0);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl From<Guid> for Value {
    fn from(guid: Guid) -> Self {
        Self::Guid(guid.0)
    }
}

impl Serialize for Guid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(GUID, &self.to_string())
    }
}

impl<'de> Deserialize<'de> for Guid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_guid(&text).map(Self).ok_or_else(|| D::Error::custom(format!("{text:?} is not a GUID")))
    }
}

/// A field of the type Edm.Binary. (For serde a `Vec<u8>` by itself is a list of numbers.)
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Binary(pub Vec<u8>);

impl From<Binary> for Value {
    fn from(bytes: Binary) -> Self {
        Self::Binary(bytes.0)
    }
}

impl Serialize for Binary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Binary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Binary, E> {
                Ok(Binary(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// A field of the type Edm.DateTime: ticks of 100 ns. The service stores the years 1601 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(pub Timestamp);

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&iso(self.0))
    }
}

impl From<DateTime> for Value {
    fn from(time: DateTime) -> Self {
        Self::DateTime(time.0)
    }
}

impl Serialize for DateTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(DATE_TIME, &self.to_string())
    }
}

impl<'de> Deserialize<'de> for DateTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_iso(&text).map(Self).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")))
    }
}

//! Buckets and objects as the service shows them, and the conditions under which they are changed.

use std::collections::BTreeMap;
use std::fmt;

use rangehold_protocol::object::checksum::Crc32c;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One version of an object's bytes. Grows with each new version of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Generation(pub i64);

/// One version of the metadata of a generation, or of a bucket; begins at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Metageneration(pub i64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Metageneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Generation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Metageneration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer).map(Self)
    }
}

/// What must be there for a change of an object to be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Anything or nothing. Changes of other clients may be lost, and a call in doubt is not repeated.
    Any,
    /// There is no live object of this name (`ifGenerationMatch=0`).
    Absent,
    /// The live object is this generation (`ifGenerationMatch`).
    Is(Generation),
}

impl Condition {
    /// The value of `ifGenerationMatch`; `None` without a condition.
    pub(super) fn value(self) -> Option<String> {
        match self {
            Self::Any => None,
            Self::Absent => Some("0".to_owned()),
            Self::Is(generation) => Some(generation.to_string()),
        }
    }
}

/// A generation of an object. A listing gives the fields that it was asked for; the others have their defaults.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its bucket.
    #[serde(default)]
    pub bucket: String,
    /// Its version.
    pub generation: Generation,
    /// The version of its metadata.
    pub metageneration: Metageneration,
    /// Bytes.
    #[serde(deserialize_with = "size")]
    pub size: u64,
    /// The checksum of the bytes; `None` if they are encrypted with a key that the request did not have.
    #[serde(default, deserialize_with = "checksum")]
    pub crc32c: Option<Crc32c>,
    /// The media type.
    #[serde(default)]
    pub content_type: Option<String>,
    /// `gzip`, if the stored bytes are compressed.
    #[serde(default)]
    pub content_encoding: Option<String>,
    /// When this generation was made, RFC 3339.
    #[serde(default)]
    pub time_created: Option<String>,
    /// When its metadata was last written, RFC 3339.
    #[serde(default)]
    pub updated: Option<String>,
    /// When it was deleted or replaced, if it is an older version.
    #[serde(default)]
    pub time_deleted: Option<String>,
    /// The storage class.
    #[serde(default)]
    pub storage_class: Option<String>,
    /// The metadata that clients gave it.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// A bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketInfo {
    /// Its name.
    pub name: String,
    /// The version of its settings.
    pub metageneration: Metageneration,
    /// All that the service says about it.
    pub json: Value,
}

impl<'de> Deserialize<'de> for BucketInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Known {
            name: String,
            metageneration: Metageneration,
        }
        let json = Value::deserialize(deserializer)?;
        let Known { name, metageneration } = Known::deserialize(&json).map_err(D::Error::custom)?;
        Ok(Self { name, metageneration, json })
    }
}

/// Numbers of 64 bits are strings in the service's JSON.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a number of 64 bits")))
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a number of bytes")))
}

fn checksum<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Crc32c>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = Crc32c::parse(&text);
    known.map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is not a CRC32C in base64")))
}

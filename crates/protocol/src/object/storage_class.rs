//! Storage classes. This server stores all of them in the same way; the class is a fact about the object.

use serde::{Deserialize, Serialize};

use super::error::ObjectError;

/// The class of an object, and the default of a bucket. The order of the variants is stored.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum StorageClass {
    /// `STANDARD`.
    #[default]
    Standard,
    /// `NEARLINE`.
    Nearline,
    /// `COLDLINE`.
    Coldline,
    /// `ARCHIVE`.
    Archive,
    /// `MULTI_REGIONAL`, of older buckets.
    MultiRegional,
    /// `REGIONAL`, of older buckets.
    Regional,
    /// `DURABLE_REDUCED_AVAILABILITY`, of older buckets.
    DurableReducedAvailability,
}

impl StorageClass {
    /// Reads a class as clients write it.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let hint = "Use STANDARD, NEARLINE, COLDLINE or ARCHIVE.";
        text.parse().map_err(|_| ObjectError::invalid("storageClass", text, hint))
    }

    /// The name of the class.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

//! Storage classes. This server stores all of them in the same way; the class is a fact about the object.

use serde::{Deserialize, Deserializer, Serialize, de};

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
    strum::EnumString,
    strum::FromRepr,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", ascii_case_insensitive)]
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
    /// Reads a class as clients write it, in capital or small letters.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let hint = "Use STANDARD, NEARLINE, COLDLINE or ARCHIVE.";
        text.parse().map_err(|_| ObjectError::invalid("storageClass", text, hint))
    }

    /// The name of the class.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl<'de> Deserialize<'de> for StorageClass {
    /// In JSON the name, in capital or small letters; in stored rows the number of the variant.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let unknown = |what: String| de::Error::custom(format!("{what} is not a storage class"));
        if deserializer.is_human_readable() {
            let name = String::deserialize(deserializer)?;
            name.parse().map_err(|_| unknown(format!("'{name}'")))
        } else {
            let number = u32::deserialize(deserializer)?;
            Self::from_repr(number as usize).ok_or_else(|| unknown(number.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_read_in_capital_and_small_letters_and_stored_as_its_number() {
        for name in ["COLDLINE", "coldline", "Coldline"] {
            assert_eq!(StorageClass::parse(name), Ok(StorageClass::Coldline));
            let json = serde_json::Value::from(name);
            assert_eq!(serde_json::from_value::<StorageClass>(json).ok(), Some(StorageClass::Coldline));
        }
        for class in [StorageClass::Standard, StorageClass::DurableReducedAvailability] {
            let stored = postcard::to_allocvec(&class).expect("a row");
            assert_eq!(postcard::from_bytes(&stored), Ok(class));
            assert_eq!(serde_json::to_value(class).expect("a name"), class.name());
        }
        assert!(serde_json::from_value::<StorageClass>("ICE".into()).is_err());
        assert!(postcard::from_bytes::<StorageClass>(&[7]).is_err());
    }
}

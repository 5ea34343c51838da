//! The forms that values of messages have in JSON.
//!
//! The resources of gRPC and of the JSON API are the same things with other names and other forms of numbers, times
//! and bytes. The generated messages name the functions of this module at the fields that differ, so a message is
//! read from JSON and written to it without a table of its own. Fields that have their default are left out, as the
//! JSON API leaves them out.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::messages::{Date, Duration, Timestamp};
use crate::object::micros::Micros;

/// Whether a field has the value that it has when nobody sets it.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The part of a fraction of a second that is one microsecond.
const NANOS_PER_MICRO: i64 = 1_000;

impl From<Micros> for Timestamp {
    fn from(time: Micros) -> Self {
        let micros = time.get();
        let nanos = micros.rem_euclid(1_000_000) * NANOS_PER_MICRO;
        Self {
            seconds: micros.div_euclid(1_000_000),
            nanos: i32::try_from(nanos).expect("less than a second"),
        }
    }
}

impl From<&Timestamp> for Micros {
    /// A time that does not fit becomes the earliest or latest that does.
    fn from(time: &Timestamp) -> Self {
        let seconds = time.seconds.saturating_mul(1_000_000);
        Self::new(seconds.saturating_add(i64::from(time.nanos) / NANOS_PER_MICRO))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Micros::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Micros::deserialize(deserializer).map(Self::from)
    }
}

/// Durations are texts with whole seconds, as all numbers of 64 bits are.
impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.seconds)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { seconds: int64::deserialize(deserializer)?, nanos: 0 })
    }
}

/// Days are texts: `2026-11-24`.
impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:04}-{:02}-{:02}", self.year, self.month, self.day))
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let day = text.split('T').next().unwrap_or_default();
        let mut parts = day.splitn(3, '-').map(str::parse);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(year)), Some(Ok(month)), Some(Ok(day))) => Ok(Self { year, month, day }),
            _ => Err(de::Error::custom(format!("{text:?} is not a day such as 2026-11-24"))),
        }
    }
}

/// Numbers of 64 bits are texts, since many programs read numbers of JSON as floating point.
pub(super) mod int64 {
    use super::*;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(i64),
        Text(String),
    }

    pub(in super::super) fn serialize<S: Serializer>(value: &i64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        match Form::deserialize(from)? {
            Form::Number(number) => Ok(number),
            Form::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

/// Bytes are base64.
pub(super) mod base64 {
    use ::base64::Engine as _;
    use ::base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;

    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(value: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&STANDARD.encode(value))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Bytes::from).map_err(de::Error::custom)
    }
}

/// A CRC32C is base64 of its four bytes.
pub(super) mod crc32c {
    use super::*;
    use crate::object::checksum::Crc32c;

    pub(in super::super) fn serialize<S: Serializer>(value: &Option<u32>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|sum| Crc32c(sum).text()).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let sum = Crc32c::parse(&text);
        sum.map(|sum| Some(sum.0)).ok_or_else(|| de::Error::custom(format!("{text:?} is not a CRC32C")))
    }
}

/// The mode of an object's own retention: `Unlocked` or `Locked`.
pub(super) mod retention_mode {
    use super::super::messages::object::retention::Mode;
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(value: &i32, to: S) -> Result<S::Ok, S::Error> {
        match Mode::try_from(*value) {
            Ok(Mode::Unlocked) => "Unlocked".serialize(to),
            Ok(Mode::Locked) => "Locked".serialize(to),
            // The JSON API refuses it, and shows it.
            Ok(Mode::Unspecified) | Err(_) => value.serialize(to),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
        match String::deserialize(from)?.as_str() {
            "Unlocked" => Ok(Mode::Unlocked.into()),
            "Locked" => Ok(Mode::Locked.into()),
            other => Err(de::Error::custom(format!("{other:?} is not a mode of a retention"))),
        }
    }
}

/// A switch that is the word `Enabled` in JSON.
pub(super) mod enabled {
    use super::*;

    const ENABLED: &str = "Enabled";

    pub(in super::super) fn serialize<S: Serializer>(value: &bool, to: S) -> Result<S::Ok, S::Error> {
        value.then_some(ENABLED).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        Ok(Option::<String>::deserialize(from)?.as_deref() == Some(ENABLED))
    }
}

//! Times of objects: whole microseconds since 1970.
//!
//! The service writes them with up to six digits of a fraction, `2026-11-21T09:30:00.123456Z`, and a
//! generation is the microsecond in which it was made.

use rangehold_map::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::{iso, parse_iso};

/// Ticks of 100 ns in a microsecond.
const TICKS: i64 = 10;

/// A time in microseconds since 1970. In JSON it is a text of RFC 3339, and in stored rows a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(i64);

impl Micros {
    /// The time `micros` after 1970.
    pub const fn new(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The time as the engine's, to which nothing is lost.
    pub const fn timestamp(self) -> Timestamp {
        Timestamp::from_ticks(self.0.saturating_mul(TICKS))
    }

    /// The time `seconds` later.
    pub const fn plus_seconds(self, seconds: u64) -> Self {
        let seconds = if seconds > i64::MAX as u64 { i64::MAX } else { seconds as i64 };
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// `2026-11-21T09:30:00.123456Z`; zeros at the end of the fraction are left out.
    pub fn text(self) -> String {
        iso(self.timestamp())
    }

    /// Reads a time of RFC 3339, or a date alone. A fraction beyond microseconds is dropped.
    pub fn parse(text: &str) -> Option<Self> {
        Some(parse_iso(text)?.into())
    }
}

impl From<Timestamp> for Micros {
    /// Whole microseconds, rounded down.
    fn from(time: Timestamp) -> Self {
        Self(time.ticks().div_euclid(TICKS))
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_str(&self.text()),
            false => serializer.serialize_i64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Ok(Self(i64::deserialize(deserializer)?));
        }
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!("{text:?} is not a time such as 2026-11-21T09:30:00.123456Z"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_texts_in_json_and_numbers_in_rows() {
        let time = Micros::parse("2026-11-21T09:30:00.123456789Z").expect("a time");
        assert_eq!(time.text(), "2026-11-21T09:30:00.123456Z");
        assert_eq!(serde_json::to_string(&time).expect("JSON"), "\"2026-11-21T09:30:00.123456Z\"");
        let row = postcard::to_allocvec(&time).expect("a row");
        assert_eq!(postcard::from_bytes::<Micros>(&row), Ok(time));
        assert!(serde_json::from_str::<Micros>("\"yesterday\"").is_err());
    }
}

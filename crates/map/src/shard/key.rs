//! Shard keys: bytes that compare as the values that they encode.
//!
//! | type | bytes of a key | the least value, which has no bytes |
//! |---|---|---|
//! | int32, int64 | big end first, sign bit flipped | the least number |
//! | guid | bytes 10-15, 8-9, then 7, 6, 5, 4, 3, 2, 1, 0 of the written form | all zero |
//! | uuid | the bytes of the written form | all zero |
//! | binary | the bytes themselves, without zero bytes at the end | no bytes |
//! | date-time | ticks of 100 ns since the year 1, as int64 | 0001-01-01 |
//! | time-span | ticks of 100 ns, as int64 | the least number |
//! | date-time-offset | UTC ticks as int64, then ticks of the offset as int64 | 0001-01-01, UTC |
//! | text | UTF-8 | the empty text |
//!
//! These are the encodings of the elastic database library, except for uuid and text, which that library does not
//! have. Three of its faults are not kept. In every type, the least value reads back as itself. Bytes with
//! zeros added at the end are the same key. The offset of an instant is dropped, so that two spellings of one
//! instant are the same key in a database too.
//!
//! The open end of an interval has no key. It is `None` instead of a [`ShardKey`].

use thiserror::Error;

use super::key_type::{BINARY_BYTES_MAX, ShardKeyType, TEXT_BYTES_MAX};
use super::time::{DATE_TIME_TICKS_MAX, DateTimeOffset, flipped, flipped_back};
use crate::range::KeyRange;

/// A key of a shard map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardKey {
    key_type: ShardKeyType,
    raw: Vec<u8>,
}

/// Bytes, a text or a value that is not a key of the wanted type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAKey {
    /// A key of the type has another number of bytes.
    #[error("{length} bytes are not a key of type {key_type}: such a key has {allowed}")]
    Length {
        /// The type.
        key_type: ShardKeyType,
        /// The number of bytes.
        length: usize,
        /// The numbers that are allowed.
        allowed: &'static str,
    },
    /// A number outside the type's limits.
    #[error("{value} is outside the limits of type {key_type}")]
    Beyond {
        /// The type.
        key_type: ShardKeyType,
        /// The value, as written.
        value: String,
    },
    /// A text that is not a value of the type.
    #[error("{text:?} is not a key of type {key_type}: write it as {example}")]
    Unreadable {
        /// The type.
        key_type: ShardKeyType,
        /// The text.
        text: String,
        /// An example of such a value.
        example: &'static str,
    },
    /// A key of another type than the map's.
    #[error("the map's keys are of type {wanted}, and this one is of type {given}")]
    OtherType {
        /// The type of the map's keys.
        wanted: ShardKeyType,
        /// The type of this key.
        given: ShardKeyType,
    },
}

impl ShardKey {
    /// The least key of the type.
    pub fn min(key_type: ShardKeyType) -> Self {
        Self { key_type, raw: Vec::new() }
    }

    /// The key that these bytes encode. Different encodings of the same value give the same key.
    ///
    /// # Errors
    ///
    /// [`NotAKey::Length`], and [`NotAKey::Beyond`] for a date after the year 9999.
    pub fn from_raw(key_type: ShardKeyType, raw: &[u8]) -> Result<Self, NotAKey> {
        let wrong = |allowed| Err(NotAKey::Length { key_type, length: raw.len(), allowed });
        match (key_type, key_type.width()) {
            (_, Some(width)) if !raw.is_empty() && raw.len() != width => {
                return wrong(match width {
                    4 => "none or 4",
                    8 => "none or 8",
                    _ => "none or 16",
                });
            }
            (ShardKeyType::Binary, _) if raw.len() > BINARY_BYTES_MAX => return wrong("at most 128"),
            (ShardKeyType::Text, _) if raw.len() > TEXT_BYTES_MAX + 1 => return wrong("at most 129"),
            _ => {}
        }
        let mut raw = raw.to_vec();
        match key_type {
            ShardKeyType::Binary => {
                raw.truncate(raw.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
            }
            ShardKeyType::DateTime | ShardKeyType::DateTimeOffset if !raw.is_empty() => {
                let ticks = flipped_back(&raw);
                if !(0..=DATE_TIME_TICKS_MAX).contains(&ticks) {
                    return Err(NotAKey::Beyond { key_type, value: format!("{ticks} ticks") });
                }
                if key_type == ShardKeyType::DateTimeOffset {
                    raw.splice(8.., flipped(0));
                }
            }
            _ => {}
        }
        if raw == key_type.least_written() {
            raw.clear();
        }
        Ok(Self { key_type, raw })
    }

    /// The type.
    pub fn key_type(&self) -> ShardKeyType {
        self.key_type
    }

    /// The bytes, which compare as the keys do. The least key has none.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The bytes of the value, also for the least key.
    pub(super) fn written(&self) -> &[u8] {
        if self.raw.is_empty() { self.key_type.least_written() } else { &self.raw }
    }

    /// Whether it is the least key.
    pub fn is_min(&self) -> bool {
        self.raw.is_empty()
    }

    /// The least key above this one; `None` above the greatest.
    pub fn next(&self) -> Option<Self> {
        let key_type = self.key_type;
        let raw = match key_type {
            ShardKeyType::Text => text_after(&self.raw),
            ShardKeyType::DateTimeOffset | ShardKeyType::DateTime => {
                let ticks = flipped_back(self.written()) + 1;
                (ticks <= DATE_TIME_TICKS_MAX).then(|| instant(key_type, ticks))?
            }
            _ => {
                let mut raw = self.written().to_vec();
                raw.resize(key_type.width().unwrap_or(BINARY_BYTES_MAX), 0);
                plus_one(&mut raw)?;
                raw
            }
        };
        Some(Self { key_type, raw })
    }

    /// The interval that holds only this key, as list maps store it.
    pub fn point(&self) -> KeyRange {
        KeyRange::new(self.raw.clone(), self.next().map(|next| next.raw))
    }

    /// The interval from this key up to `high` (exclusive), or to the end without a `high`.
    pub fn up_to(&self, high: Option<&Self>) -> KeyRange {
        KeyRange::new(self.raw.clone(), high.map(|high| high.raw.clone()))
    }
}

/// The bytes of a date with these ticks and the offset zero.
fn instant(key_type: ShardKeyType, ticks: i64) -> Vec<u8> {
    if key_type == ShardKeyType::DateTime {
        flipped(ticks).to_vec()
    } else {
        DateTimeOffset::bytes(ticks, 0).to_vec()
    }
}

/// The least bytes above a text: the text and a zero byte. If that is too long, the last byte is increased,
/// which makes bytes that are not a text.
fn text_after(raw: &[u8]) -> Vec<u8> {
    let mut after = raw.to_vec();
    if after.len() <= TEXT_BYTES_MAX {
        after.push(0);
    } else if let Some(last) = after.last_mut() {
        *last = last.saturating_add(1);
    }
    after
}

/// Adds one to a number whose big end is first; `None` if it was the greatest.
fn plus_one(number: &mut [u8]) -> Option<()> {
    for byte in number.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some(());
        }
    }
    None
}

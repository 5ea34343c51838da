//! Shard keys: values of a key type as bytes that compare as the values do.
//!
//! | type | bytes of a key | least value, no bytes |
//! |---|---|---|
//! | int32, int64 | big end first, sign bit flipped | the least number |
//! | guid | bytes 10-15, 8-9, then 7, 6, 5, 4, 3, 2, 1, 0 of the written form | all zero |
//! | binary | themselves, zero bytes at the end cut off | nothing |
//! | date-time | ticks of 100 ns since the year 1, as int64 | 0001-01-01 |
//! | time-span | ticks of 100 ns, as int64 | the least number |
//! | date-time-offset | UTC ticks as int64, then ticks of the offset as int64 | 0001-01-01, UTC |
//! | text | UTF-8 | the empty text |
//!
//! These are the encodings of the elastic database library (but for text, which it has not), so maps can
//! be compared with its own. Three of its faults are not kept: a least value reads back as itself, in every
//! type; bytes padded with zeros are the same key, not only the same value; and of two spellings of one
//! instant the offset is dropped, so that they are one key in a database too.
//!
//! Above all keys there is no key: the open end of an interval is `None` in place of a [`ShardKey`].

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

/// Bytes, a text or a value that is no key of the type that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAKey {
    /// The number of bytes fits no key of the type.
    #[error("{length} bytes are no key of type {key_type}: it has {allowed}")]
    Length {
        /// The type.
        key_type: ShardKeyType,
        /// How many there were.
        length: usize,
        /// How many there can be.
        allowed: &'static str,
    },
    /// A number that the type does not reach.
    #[error("{value} is beyond the type {key_type}")]
    Beyond {
        /// The type.
        key_type: ShardKeyType,
        /// The value, as written.
        value: String,
    },
    /// A text that does not read as a value.
    #[error("{text:?} is no {key_type}: write it as {example}")]
    Unreadable {
        /// The type.
        key_type: ShardKeyType,
        /// The text.
        text: String,
        /// One that would do.
        example: &'static str,
    },
    /// A key of one type where another is needed.
    #[error("the map's keys are of type {wanted}, and this one is of type {given}")]
    OtherType {
        /// The map's.
        wanted: ShardKeyType,
        /// The key's.
        given: ShardKeyType,
    },
}

impl ShardKey {
    /// The least key of the type.
    pub fn min(key_type: ShardKeyType) -> Self {
        Self { key_type, raw: Vec::new() }
    }

    /// The key that these bytes encode, in the one form that it has.
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

    /// The bytes, which compare as the keys do. None for the least key.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The bytes with the least key written out.
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

    /// The interval that holds this key alone: what a list map stores.
    pub fn point(&self) -> KeyRange {
        KeyRange::new(self.raw.clone(), self.next().map(|next| next.raw))
    }

    /// The interval from this key on and below `high`; without one, to the end.
    pub fn up_to(&self, high: Option<&Self>) -> KeyRange {
        KeyRange::new(self.raw.clone(), high.map(|high| high.raw.clone()))
    }
}

/// The bytes of a date with these ticks, at the offset zero.
fn instant(key_type: ShardKeyType, ticks: i64) -> Vec<u8> {
    if key_type == ShardKeyType::DateTime {
        flipped(ticks).to_vec()
    } else {
        DateTimeOffset::bytes(ticks, 0).to_vec()
    }
}

/// The least bytes above a text: it and a zero byte, or, where that is too long, its last byte raised,
/// which no text has.
fn text_after(raw: &[u8]) -> Vec<u8> {
    let mut after = raw.to_vec();
    if after.len() <= TEXT_BYTES_MAX {
        after.push(0);
    } else if let Some(last) = after.last_mut() {
        *last = last.saturating_add(1);
    }
    after
}

/// Adds one to a number with its big end first; `None` beyond the greatest.
fn plus_one(number: &mut [u8]) -> Option<()> {
    for byte in number.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some(());
        }
    }
    None
}

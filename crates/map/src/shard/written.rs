//! How keys are written and read as text.
//!
//! | type | written |
//! |---|---|
//! | int32, int64 | `-7` |
//! | guid, uuid | `a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf` |
//! | binary | `0x01ff` |
//! | date-time | `2026-02-28T13:45:00` with up to seven digits of a second, or the day alone |
//! | time-span | `1.02:03:04.5`: days, if any, then hours, minutes and seconds |
//! | date-time-offset | as date-time, closed by `Z` or `+01:00` |
//! | text | the text itself |

use std::fmt;

use uuid::Uuid;

use super::key::{NotAKey, ShardKey};
use super::key_type::ShardKeyType;
use super::time::{DateTime, DateTimeOffset, TICKS_PER_DAY, TimeSpan};
use super::value::{OrderedUuid, ShardKeyValue};

const TICKS_PER_SECOND: i64 = 10_000_000;

impl ShardKey {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// [`NotAKey::Unreadable`] with an example, and the errors of [`ShardKeyValue::to_key`].
    pub fn parse(key_type: ShardKeyType, text: &str) -> Result<Self, NotAKey> {
        let unreadable =
            || NotAKey::Unreadable { key_type, text: text.to_owned(), example: example(key_type) };
        match key_type {
            ShardKeyType::Int32 => text.parse::<i32>().map_err(|_| unreadable())?.to_key(),
            ShardKeyType::Int64 => text.parse::<i64>().map_err(|_| unreadable())?.to_key(),
            ShardKeyType::Guid => Uuid::parse_str(text).map_err(|_| unreadable())?.to_key(),
            ShardKeyType::Uuid => OrderedUuid(Uuid::parse_str(text).map_err(|_| unreadable())?).to_key(),
            ShardKeyType::Binary => bytes(text).ok_or_else(unreadable)?.to_key(),
            ShardKeyType::DateTime => date_time(text).ok_or_else(unreadable)?.to_key(),
            ShardKeyType::TimeSpan => time_span(text).ok_or_else(unreadable)?.to_key(),
            ShardKeyType::DateTimeOffset => date_time_offset(text).ok_or_else(unreadable)?.to_key(),
            ShardKeyType::Text => text.to_owned().to_key(),
        }
    }
}

fn example(key_type: ShardKeyType) -> &'static str {
    match key_type {
        ShardKeyType::Int32 | ShardKeyType::Int64 => "-7",
        ShardKeyType::Guid | ShardKeyType::Uuid => "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf",
        ShardKeyType::Binary => "0x01ff",
        ShardKeyType::DateTime => "2026-02-28T13:45:00",
        ShardKeyType::TimeSpan => "1.02:03:04.5",
        ShardKeyType::DateTimeOffset => "2026-02-28T13:45:00+01:00",
        ShardKeyType::Text => "itself",
    }
}

/// Writes the key as [`ShardKey::parse`] reads it. The bytes of a damaged key are escaped.
impl fmt::Display for ShardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match in_words(self) {
            Ok(text) => f.write_str(&text),
            Err(_) => write!(f, "{}", self.raw().escape_ascii()),
        }
    }
}

fn in_words(key: &ShardKey) -> Result<String, NotAKey> {
    match key.key_type() {
        ShardKeyType::Int32 => i32::from_key(key).map(|value| value.to_string()),
        ShardKeyType::Int64 => i64::from_key(key).map(|value| value.to_string()),
        ShardKeyType::Guid => Uuid::from_key(key).map(|value| value.hyphenated().to_string()),
        ShardKeyType::Uuid => OrderedUuid::from_key(key).map(|value| value.0.hyphenated().to_string()),
        ShardKeyType::Binary => Vec::<u8>::from_key(key).map(const_hex::encode_prefixed),
        ShardKeyType::DateTime => DateTime::from_key(key).map(show_date_time),
        ShardKeyType::TimeSpan => TimeSpan::from_key(key).map(show_time_span),
        ShardKeyType::DateTimeOffset => {
            DateTimeOffset::from_key(key).map(|value| format!("{}Z", show_date_time(value.utc())))
        }
        ShardKeyType::Text => String::from_key(key),
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| const_hex::check_raw(digits))?;
    const_hex::decode(digits).ok()
}

/// A fraction of a second without zeros at its end; empty for a whole second.
fn show_fraction(ticks: i64) -> String {
    match ticks % TICKS_PER_SECOND {
        0 => String::new(),
        ticks => format!(".{:07}", ticks.abs()).trim_end_matches('0').to_owned(),
    }
}

fn show_clock(ticks: i64) -> String {
    let seconds = ticks / TICKS_PER_SECOND;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}{}", show_fraction(ticks))
}

fn show_date_time(value: DateTime) -> String {
    let (year, month, day, ticks) = value.civil();
    format!("{year:04}-{month:02}-{day:02}T{}", show_clock(ticks))
}

fn show_time_span(TimeSpan(ticks): TimeSpan) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let (days, rest) = ((ticks / TICKS_PER_DAY).abs(), (ticks % TICKS_PER_DAY).abs());
    let days = if days > 0 { format!("{days}.") } else { String::new() };
    format!("{sign}{days}{}", show_clock(rest))
}

/// Reads a time such as `13:45:00.5` as ticks. Hours are below 24.
fn clock(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':').map(|part| number(part, 2));
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 || fraction.len() > 7 {
        return None;
    }
    let fraction = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<7}"), 7)? };
    Some(((hours * 60 + minutes) * 60 + seconds) * TICKS_PER_SECOND + fraction)
}

/// Reads a number with exactly this many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn date_time(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let mut parts = date.split('-');
    let (year, month, day) =
        (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let midnight =
        DateTime::from_date(year as i32, month as u8, day as u8).filter(|_| parts.next().is_none())?;
    DateTime::from_ticks(midnight.ticks() + clock(time)?)
}

fn time_span(text: &str) -> Option<TimeSpan> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (days, clock_text) = match text.split_once('.') {
        Some((days, rest)) if rest.contains(':') => (days.parse::<u32>().ok()?, rest),
        _ => (0, text),
    };
    // Added up as a negative number, because the least number has no positive counterpart.
    let ticks = (-i64::from(days)).checked_mul(TICKS_PER_DAY)?.checked_sub(clock(clock_text)?)?;
    Some(TimeSpan(if sign < 0 { ticks } else { ticks.checked_neg()? }))
}

fn date_time_offset(text: &str) -> Option<DateTimeOffset> {
    if let Some(utc) = text.strip_suffix('Z') {
        return Some(DateTimeOffset::new(date_time(utc)?, TimeSpan(0)));
    }
    // The offset begins with the last sign, which comes after the clock's colon.
    let at = text.rfind(['+', '-']).filter(|&at| text[..at].contains(':'))?;
    let ahead = clock(&text[at + 1..])? * if text[at..].starts_with('-') { -1 } else { 1 };
    let utc = DateTime::from_ticks(date_time(&text[..at])?.ticks() - ahead)?;
    Some(DateTimeOffset::new(utc, TimeSpan(ahead)))
}

//! Reading points in time.

use rangehold_map::Timestamp;
use time::{Date, Month, Time, UtcDateTime};

use super::{YEAR_ONE, http_date};

/// The months as HTTP's dates name them.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads ISO 8601 as the service takes it: a date, then perhaps a time of day, to the minute, the
/// second or a fraction of it, then perhaps a zone.
///
/// Without a zone it is UTC; `+02:00` and the like are converted. Digits of the fraction after the
/// seventh are dropped. `None` for any other text, for dates that do not exist, and for years
/// outside of 1..=9999, in the text's zone or in UTC.
pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let mut cursor = Cursor(text.as_bytes());
    let (year, month, day) = (cursor.digits(4)?, cursor.after(b'-', 2)?, cursor.after(b'-', 2)?);
    let (mut hour, mut minute, mut second, mut fraction) = (0, 0, 0, 0);
    if cursor.eat(b'T') || cursor.eat(b't') {
        hour = cursor.digits(2)?;
        minute = cursor.after(b':', 2)?;
        if cursor.eat(b':') {
            second = cursor.digits(2)?;
            if cursor.eat(b'.') {
                fraction = cursor.fraction()?;
            }
        }
    }
    let offset_minutes = cursor.zone()?;
    cursor.is_at_end().then_some(())?;
    let month = u8::try_from(month).ok()?.try_into().ok()?;
    let local = timestamp((year, month, day), (hour, minute, second))?;
    let utc = local.saturating_add(fraction - offset_minutes * 60 * Timestamp::TICKS_PER_SECOND);
    (YEAR_ONE..=Timestamp::MAX_DATE_TIME).contains(&utc).then_some(utc)
}

/// Reads an RFC 1123 date. `None` for any other text, and where the weekday is not that of the date.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let (_, rest) = text.split_once(", ")?;
    let mut cursor = Cursor(rest.as_bytes());
    let day = cursor.digits(2)?;
    let name = cursor.eat(b' ').then_some(cursor.0)?.get(..3)?;
    cursor.0 = &cursor.0[3..];
    let month = MONTHS.iter().position(|month| month.as_bytes() == name)?;
    let month = u8::try_from(month + 1).ok()?.try_into().ok()?;
    let year = cursor.after(b' ', 4)?;
    let clock = (cursor.after(b' ', 2)?, cursor.after(b':', 2)?, cursor.after(b':', 2)?);
    let time = timestamp((year, month, day), clock)?;
    // Writing the date again tells whether the weekday and what stands around the date are right.
    (http_date(time) == text).then_some(time)
}

/// The point in time that a date and a time of day name; `None` if there is no such date or time of day,
/// or if the year is 0.
fn timestamp(
    (year, month, day): (i64, Month, i64),
    (hour, minute, second): (i64, i64, i64),
) -> Option<Timestamp> {
    let small = |part: i64| u8::try_from(part).ok();
    let year = i32::try_from(year).ok().filter(|year| *year > 0)?;
    let date = Date::from_calendar_date(year, month, small(day)?).ok()?;
    let time = Time::from_hms(small(hour)?, small(minute)?, small(second)?).ok()?;
    Some(Timestamp::from_unix_seconds(UtcDateTime::new(date, time).unix_timestamp()))
}

/// The rest of a text that is read byte by byte.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes `byte`, if it is next.
    fn eat(&mut self, byte: u8) -> bool {
        let next = self.0.first() == Some(&byte);
        if next {
            self.0 = &self.0[1..];
        }
        next
    }

    /// Exactly `count` digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits
            .iter()
            .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
    }

    /// `separator`, then exactly `count` digits.
    fn after(&mut self, separator: u8, count: usize) -> Option<i64> {
        self.eat(separator).then(|| self.digits(count))?
    }

    /// One digit or more of a fraction of a second, as ticks.
    fn fraction(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(7);
        (count > 0).then(|| padded.fold(0, |ticks, digit| ticks * 10 + i64::from(digit - b'0')))
    }

    /// Minutes east of UTC: nothing, `Z`, `+hh:mm`, `-hh:mm` or either without its colon.
    fn zone(&mut self) -> Option<i64> {
        let sign = match () {
            () if self.is_at_end() || self.eat(b'Z') || self.eat(b'z') => return Some(0),
            () if self.eat(b'+') => 1,
            () if self.eat(b'-') => -1,
            () => return None,
        };
        let hours = self.digits(2)?;
        self.eat(b':');
        let minutes = self.digits(2)?;
        (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
    }
}

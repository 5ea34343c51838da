//! The three key types for time, in ticks of 100 ns, as in .NET.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use time::{Date, Duration, Month};

/// 9999-12-31T23:59:59.9999999, the greatest ticks of a date.
pub const DATE_TIME_TICKS_MAX: i64 = 3_155_378_975_999_999_999;
/// Ticks of 100 ns in a day.
pub const TICKS_PER_DAY: i64 = 24 * 3600 * 10_000_000;
/// The day from which ticks are counted, 0001-01-01.
const FIRST_DAY: Date = match Date::from_ordinal_date(1, 1) {
    Ok(day) => day,
    Err(_) => panic!("the year 1 has a first day"),
};

/// A date and time without a zone: ticks of 100 ns since 0001-01-01, at most [`DATE_TIME_TICKS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(i64);

/// A signed span of time, in ticks of 100 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(pub i64);

/// A point in time, and the offset of the clock that showed it. Only the point is compared.
#[derive(Debug, Clone, Copy)]
pub struct DateTimeOffset {
    utc: DateTime,
    offset: TimeSpan,
}

impl DateTime {
    /// 0001-01-01.
    pub const MIN: Self = Self(0);
    /// The last tick of the year 9999.
    pub const MAX: Self = Self(DATE_TIME_TICKS_MAX);

    /// The date `ticks` of 100 ns after 0001-01-01; `None` before, and after the year 9999.
    pub fn from_ticks(ticks: i64) -> Option<Self> {
        (0..=DATE_TIME_TICKS_MAX).contains(&ticks).then_some(Self(ticks))
    }

    /// Midnight of a day of the Gregorian calendar; `None` if there is no such day.
    pub fn from_date(year: i32, month: u8, day: u8) -> Option<Self> {
        let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
        Self::from_ticks((date - FIRST_DAY).whole_days() * TICKS_PER_DAY)
    }

    /// Ticks of 100 ns since 0001-01-01.
    pub fn ticks(self) -> i64 {
        self.0
    }

    /// The day of the Gregorian calendar (year, month, day), and the ticks since its midnight.
    pub fn civil(self) -> (i32, u8, u8, i64) {
        let (year, month, day) = (FIRST_DAY + Duration::days(self.0 / TICKS_PER_DAY)).to_calendar_date();
        (year, u8::from(month), day, self.0 % TICKS_PER_DAY)
    }
}

impl DateTimeOffset {
    /// The point `utc`, shown by a clock that is `offset` ahead of UTC.
    pub fn new(utc: DateTime, offset: TimeSpan) -> Self {
        Self { utc, offset }
    }

    /// The point in UTC.
    pub fn utc(self) -> DateTime {
        self.utc
    }

    /// How far the clock is ahead of UTC.
    pub fn offset(self) -> TimeSpan {
        self.offset
    }

    /// The 16 bytes of the elastic database library. Keys of a map have the offset zero.
    pub fn reference_bytes(self) -> [u8; 16] {
        Self::bytes(self.utc.0, self.offset.0)
    }

    pub(super) fn bytes(utc: i64, offset: i64) -> [u8; 16] {
        let both = (u128::from(u64::from_be_bytes(flipped(utc))) << 64)
            | u128::from(u64::from_be_bytes(flipped(offset)));
        both.to_be_bytes()
    }
}

impl PartialEq for DateTimeOffset {
    fn eq(&self, other: &Self) -> bool {
        self.utc == other.utc
    }
}

impl Eq for DateTimeOffset {}

impl PartialOrd for DateTimeOffset {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DateTimeOffset {
    fn cmp(&self, other: &Self) -> Ordering {
        self.utc.cmp(&other.utc)
    }
}

impl Hash for DateTimeOffset {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.utc.hash(state);
    }
}

/// A signed number as bytes that compare as the number: big end first, with the sign bit flipped.
pub(super) fn flipped(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

/// The number whose [`flipped`] bytes are the first of `raw`. Missing bytes count as zero.
pub(super) fn flipped_back(raw: &[u8]) -> i64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(raw) {
        *to = *from;
    }
    i64::from_be_bytes(bytes) ^ i64::MIN
}

//! The three types of time, in ticks of 100 ns as .NET has them.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// 9999-12-31T23:59:59.9999999, the last tick that a date can have.
pub const DATE_TIME_TICKS_MAX: i64 = 3_155_378_975_999_999_999;
/// Ticks of 100 ns in a day.
pub const TICKS_PER_DAY: i64 = 24 * 3600 * 10_000_000;
/// Ticks from the year 1 to 1970.
const TICKS_TO_1970: i64 = 621_355_968_000_000_000;

/// A date and time without a zone: ticks of 100 ns since 0001-01-01, at most [`DATE_TIME_TICKS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(i64);

/// A signed span of time, in ticks of 100 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(pub i64);

/// A point in time, and the offset of the clock that showed it. Compared by the point alone.
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

    /// Midnight of a day of the Gregorian calendar; `None` where there is no such day.
    pub fn from_date(year: i32, month: u32, day: u32) -> Option<Self> {
        let days = days_from_civil(i64::from(year), month, day);
        let real = civil_from_days(days) == (i64::from(year), month, day);
        real.then(|| Self::from_ticks(days * TICKS_PER_DAY + TICKS_TO_1970))?
    }

    /// Ticks of 100 ns since 0001-01-01.
    pub fn ticks(self) -> i64 {
        self.0
    }

    /// The day of the Gregorian calendar (year, month, day), and the ticks since its midnight.
    pub fn civil(self) -> (i64, u32, u32, i64) {
        let since_1970 = self.0 - TICKS_TO_1970;
        let (year, month, day) = civil_from_days(since_1970.div_euclid(TICKS_PER_DAY));
        (year, month, day, since_1970.rem_euclid(TICKS_PER_DAY))
    }
}

impl DateTimeOffset {
    /// The point `utc`, seen on a clock that is `offset` ahead.
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

    /// The 16 bytes of the elastic database library. In a map the offset is zero.
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

/// A signed number whose bytes, big end first and sign bit flipped, compare as the number does.
pub(super) fn flipped(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

/// The number whose [`flipped`] bytes come first in `raw`; bytes that are not there are zero.
pub(super) fn flipped_back(raw: &[u8]) -> i64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(raw) {
        *to = *from;
    }
    i64::from_be_bytes(bytes) ^ i64::MIN
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by eras of 400 years that begin in March.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The day of the Gregorian calendar that is so many days after 1970-01-01.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    // Days are 1..=31 and months 1..=12 by this arithmetic.
    (year, month as u32, day as u32)
}

//! The ranges that are needed next: by the calendar, or by numbers.

use std::fmt;
use std::str::FromStr;

use rangehold_map::shard::{
    DateTime, DateTimeOffset, ShardKey, ShardKeyType, ShardKeyValue, TICKS_PER_DAY, TimeSpan,
};

use crate::error::Error;
use crate::limits::RANGES_AHEAD_MAX;

/// The length of each range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first of a month to the first of the next.
    Month,
    /// From January 1 to January 1.
    Year,
    /// This many numbers.
    Keys(i64),
}

/// The ranges that are missing. With them, there is a range for `now`, and there are `ahead` ranges that begin later.
/// They continue from `end`, the end of the last existing range. Without an `end`, they begin with the range of
/// `now`.
///
/// Times are taken in UTC. A range that ends beyond the greatest key is not made.
///
/// # Errors
///
/// [`crate::Code::InvalidArgument`] for keys that have no such ranges, and for more than
/// [`RANGES_AHEAD_MAX`] ranges.
pub fn due(
    every: Every,
    ahead: usize,
    now: &ShardKey,
    end: Option<&ShardKey>,
) -> Result<Vec<(ShardKey, ShardKey)>, Error> {
    let mut low = match end {
        Some(end) => end.clone(),
        None => every.floor(now)?,
    };
    let (mut ranges, mut later) = (Vec::new(), 0);
    // A last range that ends later than now already counts as the present range. Each whole step from there to its
    // end counts as one range ahead.
    if let Some(end) = end {
        let mut step = every.next(now)?;
        while let Some(next) = step.filter(|step| step < end && later < ahead) {
            later += 1;
            step = every.next(&next)?;
        }
    }
    while low <= *now || later < ahead {
        let Some(high) = every.next(&low)? else { break };
        if ranges.len() == RANGES_AHEAD_MAX {
            let text = format!(
                "more than {RANGES_AHEAD_MAX} ranges are missing: take longer ones, or add the first yourself"
            );
            return Err(Error::argument(text));
        }
        later += usize::from(low > *now);
        ranges.push((low, high.clone()));
        low = high;
    }
    Ok(ranges)
}

impl Every {
    /// The beginning of the range that holds a key.
    fn floor(self, key: &ShardKey) -> Result<ShardKey, Error> {
        match self {
            Self::Keys(count) => with_number(key, |number| Some(number.div_euclid(count) * count))?
                .ok_or_else(|| Error::argument("the key has no range")),
            _ => with_day(key, |days, (year, month, _)| match self {
                Self::Day => Some(days),
                Self::Week => Some(days - days.rem_euclid(7)),
                Self::Month => first_of(year, month),
                _ => first_of(year, 1),
            })?
            .ok_or_else(|| Error::argument("the key has no range")),
        }
    }

    /// The beginning of the range that follows the range of a key; `None` beyond the greatest key.
    fn next(self, key: &ShardKey) -> Result<Option<ShardKey>, Error> {
        match self {
            Self::Keys(count) => with_number(key, |number| number.checked_add(count)),
            _ => with_day(key, |days, (year, month, _)| match self {
                Self::Day => Some(days + 1),
                // The first day of the year 1 was a Monday.
                Self::Week => Some(days - days.rem_euclid(7) + 7),
                Self::Month if month < 12 => first_of(year, month + 1),
                _ => first_of(year + 1, 1),
            }),
        }
    }
}

/// The days from 0001-01-01 to the first of a month.
fn first_of(year: i32, month: u8) -> Option<i64> {
    Some(DateTime::from_date(year, month, 1)?.ticks() / TICKS_PER_DAY)
}

fn with_number(key: &ShardKey, change: impl FnOnce(i64) -> Option<i64>) -> Result<Option<ShardKey>, Error> {
    Ok(match key.key_type() {
        ShardKeyType::Int64 => change(i64::from_key(key)?).map(|number| number.to_key()).transpose()?,
        ShardKeyType::Int32 => {
            let changed = change(i32::from_key(key)?.into()).and_then(|number| i32::try_from(number).ok());
            changed.map(|number| number.to_key()).transpose()?
        }
        other => return Err(Error::argument(format!("{other} keys have no ranges of so many numbers"))),
    })
}

/// Changes the day of a key. `change` gets the day as days since 0001-01-01, and as a date. The time of day becomes
/// midnight.
fn with_day(
    key: &ShardKey,
    change: impl FnOnce(i64, (i32, u8, u8)) -> Option<i64>,
) -> Result<Option<ShardKey>, Error> {
    let time = match key.key_type() {
        ShardKeyType::DateTime => DateTime::from_key(key)?,
        ShardKeyType::DateTimeOffset => DateTimeOffset::from_key(key)?.utc(),
        other => {
            return Err(Error::argument(format!("{other} keys have no days: say how many keys a range has")));
        }
    };
    let (year, month, day, _) = time.civil();
    let changed = change(time.ticks() / TICKS_PER_DAY, (year, month, day));
    let changed = changed.and_then(|days| DateTime::from_ticks(days.checked_mul(TICKS_PER_DAY)?));
    let key = changed.map(|time| match key.key_type() {
        ShardKeyType::DateTime => time.to_key(),
        _ => DateTimeOffset::new(time, TimeSpan(0)).to_key(),
    });
    Ok(key.transpose()?)
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day => f.write_str("day"),
            Self::Week => f.write_str("week"),
            Self::Month => f.write_str("month"),
            Self::Year => f.write_str("year"),
            Self::Keys(count) => count.fmt(f),
        }
    }
}

impl FromStr for Every {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unreadable = || {
            Error::argument(format!(
                "{text:?} is not a length of ranges: give day, week, month, year, or a number of keys"
            ))
        };
        match text {
            "day" => Ok(Self::Day),
            "week" => Ok(Self::Week),
            "month" => Ok(Self::Month),
            "year" => Ok(Self::Year),
            number => match number.parse() {
                Ok(count) if count > 0 => Ok(Self::Keys(count)),
                _ => Err(unreadable()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges that are due, as text.
    fn told(every: Every, ahead: usize, key_type: ShardKeyType, now: &str, end: Option<&str>) -> Vec<String> {
        let key = |text: &str| ShardKey::parse(key_type, text).unwrap();
        let end = end.map(key);
        let due = due(every, ahead, &key(now), end.as_ref()).unwrap();
        due.iter().map(|(low, high)| format!("{low} to {high}").replace("T00:00:00", "")).collect()
    }

    #[test]
    fn months_are_made_before_they_begin() {
        let told = |ahead, now, end| told(Every::Month, ahead, ShardKeyType::DateTime, now, end);
        let first = ["2026-11-01 to 2026-12-01", "2026-12-01 to 2027-01-01", "2027-01-01 to 2027-02-01"];
        assert_eq!(told(2, "2026-11-21T19:00:00", None), first);
        let none: [&str; 0] = [];
        assert_eq!(told(2, "2026-11-30T23:59:59", Some("2027-02-01T00:00:00")), none);
        assert_eq!(told(2, "2026-12-01T00:00:00", Some("2027-02-01T00:00:00")), ["2027-02-01 to 2027-03-01"]);
        // If there was no call for a while, the next call leaves no gap.
        let late = ["2026-10-01 to 2026-11-01", "2026-11-01 to 2026-12-01"];
        assert_eq!(told(0, "2026-11-21T19:00:00", Some("2026-10-01T00:00:00")), late);
    }

    #[test]
    fn days_weeks_years_and_numbers() {
        let time = ShardKeyType::DateTime;
        let now = "2026-11-21T19:00:00"; // a Saturday
        assert_eq!(
            told(Every::Day, 1, time, now, None),
            ["2026-11-21 to 2026-11-22", "2026-11-22 to 2026-11-23"]
        );
        assert_eq!(told(Every::Week, 0, time, now, None), ["2026-11-16 to 2026-11-23"]);
        assert_eq!(told(Every::Year, 0, time, now, None), ["2026-01-01 to 2027-01-01"]);
        assert_eq!(told(Every::Keys(100), 1, ShardKeyType::Int64, "250", None), ["200 to 300", "300 to 400"]);
        assert_eq!(told(Every::Keys(100), 1, ShardKeyType::Int64, "299", Some("300")), ["300 to 400"]);
        assert_eq!(told(Every::Keys(100), 2, ShardKeyType::Int32, "2147483600", Some("2147483601")).len(), 0);
        let key = 7_i64.to_key().unwrap();
        assert!(due(Every::Month, 1, &key, None).is_err());
        assert!(due(Every::Keys(1), 1_000_000, &key, None).is_err());
    }
}

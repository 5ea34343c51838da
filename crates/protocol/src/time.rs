//! Points in time as text: ISO 8601 for entities and XML, RFC 1123 for HTTP headers.
//!
//! A [`Timestamp`] counts ticks of 100 ns, so seven digits of a fraction say all of it. The service
//! was recorded writing two forms: `2024-05-04T00:30:07.69693Z` in entities and ETags, zeros at the
//! end of the fraction cut ([`iso`]), and `2021-06-08T02:10:09.0000000Z` in access policies and
//! error texts, always seven digits ([`iso7`]).
//!
//! Dates are those of the proleptic Gregorian calendar. A date becomes a count of days by moving
//! the year's start to March (Howard Hinnant's `days_from_civil`): the leap day is then the last
//! one of a year, and the days before a month follow one linear rule.

use rangehold_map::Timestamp;

/// 0001-01-01T00:00:00Z, where .NET's calendar begins.
const YEAR_ONE: Timestamp = Timestamp::from_unix_seconds(-62_135_596_800);
const SECONDS_PER_DAY: i64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A point in time, taken apart. Months and days count from 1.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// Ticks of 100 ns within the second.
    fraction: i64,
}

impl Civil {
    fn of(time: Timestamp) -> Self {
        let seconds = time.unix_seconds();
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let second_of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        Self {
            year,
            month,
            day,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            fraction: time.ticks().rem_euclid(Timestamp::TICKS_PER_SECOND),
        }
    }

    /// The point in time, if each part is within its limits and the year within 1..=9999.
    fn timestamp(&self) -> Option<Timestamp> {
        let in_range = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second);
        in_range.then(|| {
            let days = days_from_civil(self.year, self.month, self.day);
            let seconds = days * SECONDS_PER_DAY + self.hour * 3600 + self.minute * 60 + self.second;
            Timestamp::from_ticks(seconds * Timestamp::TICKS_PER_SECOND + self.fraction)
        })
    }
}

/// Days since 1970-01-01.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a count of days since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `2021-09-21T01:04:37.9678478Z`; zeros at the end of the fraction, and an empty fraction, are cut.
pub fn iso(time: Timestamp) -> String {
    let mut out = Vec::with_capacity(28);
    put_iso(&mut out, time);
    String::from_utf8(out).expect("only ASCII was written")
}

/// As [`iso`], appended to `out`.
pub fn put_iso(out: &mut Vec<u8>, time: Timestamp) {
    let civil = Civil::of(time);
    put_seconds(out, &civil);
    if civil.fraction != 0 {
        put_fraction(out, civil.fraction);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'Z');
}

/// `2021-06-08T02:10:09.0000000Z`: always seven digits of a fraction.
pub fn iso7(time: Timestamp) -> String {
    let civil = Civil::of(time);
    let mut out = Vec::with_capacity(28);
    put_seconds(&mut out, &civil);
    put_fraction(&mut out, civil.fraction);
    out.push(b'Z');
    String::from_utf8(out).expect("only ASCII was written")
}

fn put_seconds(out: &mut Vec<u8>, civil: &Civil) {
    let parts = [
        (civil.year, 4, b'-'),
        (civil.month, 2, b'-'),
        (civil.day, 2, b'T'),
        (civil.hour, 2, b':'),
        (civil.minute, 2, b':'),
        (civil.second, 2, b'.'),
    ];
    for (value, width, separator) in parts {
        put_digits(out, value, width);
        out.push(separator);
    }
    out.pop();
}

fn put_fraction(out: &mut Vec<u8>, ticks: i64) {
    out.push(b'.');
    put_digits(out, ticks, 7);
}

/// `value` in at least `width` digits.
fn put_digits(out: &mut Vec<u8>, value: i64, width: usize) {
    if value < 0 {
        out.push(b'-');
    }
    let mut rest = value.unsigned_abs();
    let start = out.len();
    while rest > 0 || out.len() - start < width {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
    }
    out[start..].reverse();
}

/// Reads ISO 8601 as the service takes it: a date, then perhaps a time of day, to the minute, the
/// second or a fraction of it, then perhaps a zone.
///
/// Without a zone it is UTC; `+02:00` and the like are converted. Digits of the fraction after the
/// seventh are dropped. `None` for any other text, for dates that do not exist, and for years
/// outside of 1..=9999, in the text's zone or in UTC.
pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let mut cursor = Cursor(text.as_bytes());
    let mut civil = Civil {
        year: cursor.digits(4)?,
        month: cursor.after(b'-', 2)?,
        day: cursor.after(b'-', 2)?,
        hour: 0,
        minute: 0,
        second: 0,
        fraction: 0,
    };
    if cursor.eat(b'T') || cursor.eat(b't') {
        civil.hour = cursor.digits(2)?;
        civil.minute = cursor.after(b':', 2)?;
        if cursor.eat(b':') {
            civil.second = cursor.digits(2)?;
            if cursor.eat(b'.') {
                civil.fraction = cursor.fraction()?;
            }
        }
    }
    let offset_minutes = cursor.zone()?;
    cursor.is_at_end().then_some(())?;
    let local = civil.timestamp()?;
    let utc = local.saturating_add(-offset_minutes * 60 * Timestamp::TICKS_PER_SECOND);
    (YEAR_ONE..=Timestamp::MAX_DATE_TIME).contains(&utc).then_some(utc)
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

/// `Mon, 20 Sep 2021 22:00:47 GMT` (RFC 1123), the form of HTTP's dates; a fraction is dropped.
pub fn http_date(time: Timestamp) -> String {
    let civil = Civil::of(time);
    format!(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
        weekday(time),
        civil.day,
        MONTHS[civil.month as usize - 1],
        civil.year,
        civil.hour,
        civil.minute,
        civil.second,
    )
}

fn weekday(time: Timestamp) -> &'static str {
    // 1970-01-01 was a Thursday, three days after a Monday.
    WEEKDAYS[(time.unix_seconds().div_euclid(SECONDS_PER_DAY) + 3).rem_euclid(7) as usize]
}

/// Reads an RFC 1123 date. `None` for any other text, and where the weekday is not that of the date.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let (day_name, rest) = text.split_once(", ")?;
    let mut cursor = Cursor(rest.as_bytes());
    let day = cursor.digits(2)?;
    let name = cursor.eat(b' ').then_some(cursor.0)?.get(..3)?;
    let month = MONTHS.iter().position(|month| month.as_bytes() == name)?;
    cursor.0 = &cursor.0[3..];
    let civil = Civil {
        day,
        month: month as i64 + 1,
        year: cursor.after(b' ', 4)?,
        hour: cursor.after(b' ', 2)?,
        minute: cursor.after(b':', 2)?,
        second: cursor.after(b':', 2)?,
        fraction: 0,
    };
    let time = civil.timestamp()?;
    (cursor.0 == b" GMT" && day_name == weekday(time)).then_some(time)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn recorded_texts_are_written_again() {
        for text in [
            "2021-09-21T01:04:37.9678478Z",
            "2024-05-04T00:30:07.69693Z",
            "1973-10-04T00:00:00Z",
            "1601-01-01T00:00:00Z",
            "9999-12-31T23:59:59.9999999Z",
        ] {
            assert_eq!(iso(parse_iso(text).unwrap()), text);
        }
        assert_eq!(parse_iso("1601-01-01"), Some(Timestamp::MIN_DATE_TIME));
        assert_eq!(parse_iso("9999-12-31T23:59:59.9999999Z"), Some(Timestamp::MAX_DATE_TIME));
        let policy = parse_iso("2021-06-08T02:10:09Z").unwrap();
        assert_eq!(iso7(policy), "2021-06-08T02:10:09.0000000Z");
        let synced = parse_http_date("Wed, 08 Sep 2021 16:46:37 GMT").unwrap();
        assert_eq!(iso(synced), "2021-09-08T16:46:37Z");
    }

    #[test]
    fn zones_and_short_forms_are_converted() {
        for (text, utc) in [
            ("2008-07-10", "2008-07-10T00:00:00Z"),
            ("2008-07-10Z", "2008-07-10T00:00:00Z"),
            ("2008-07-10T00:00Z", "2008-07-10T00:00:00Z"),
            ("2008-07-10T12:13:14", "2008-07-10T12:13:14Z"),
            ("2008-07-10T00:30:00+02:00", "2008-07-09T22:30:00Z"),
            ("2008-07-10T22:30:00.5-0530", "2008-07-11T04:00:00.5Z"),
            ("2008-07-10T00:00:00.123456789Z", "2008-07-10T00:00:00.1234567Z"),
            ("2000-02-29", "2000-02-29T00:00:00Z"),
        ] {
            assert_eq!(parse_iso(text).map(iso).as_deref(), Some(utc), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "hello",
            "2008",
            "2008-7-10",
            "2008-13-01",
            "1900-02-29",
            "2008-07-10T",
            "2008-07-10T12",
            "2008-07-10T24:00:00Z",
            "2008-07-10T00:00:60Z",
            "2008-07-10T00:00:00.Z",
            "2008-07-10T00:00:00ZZ",
            "2008-07-10T00:00:00+15:00",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01",
            "10000-01-01",
            "2008-07-10T00:00:00+é",
        ] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
        for text in [
            "Wed, 08 Sep 2021 16:46:37",
            "Tue, 08 Sep 2021 16:46:37 GMT",
            "Wed, 8 Sep 2021 16:46:37 GMT",
            "Wed, 08 é",
            "",
            "Wed, 08 Sep 2021 16:46:37 GMT ",
        ] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(ticks in -621_355_968_000_000_000..=Timestamp::MAX_DATE_TIME.ticks()) {
            let time = Timestamp::from_ticks(ticks);
            prop_assert_eq!(parse_iso(&iso(time)), Some(time));
            prop_assert_eq!(parse_iso(&iso7(time)), Some(time));
            let seconds = Timestamp::from_unix_seconds(time.unix_seconds());
            prop_assert_eq!(parse_http_date(&http_date(time)), Some(seconds));
        }

        #[test]
        fn texts_order_as_times(a in 0..Timestamp::MAX_DATE_TIME.ticks(), step in 0..i64::from(u32::MAX)) {
            let b = Timestamp::from_ticks(a + step).min(Timestamp::MAX_DATE_TIME);
            let a = Timestamp::from_ticks(a);
            prop_assert_eq!(iso7(a).cmp(&iso7(b)), a.cmp(&b));
        }

        #[test]
        fn any_tick_count_and_any_text_is_safe(ticks: i64, text in "\\PC{0,40}") {
            iso(Timestamp::from_ticks(ticks));
            iso7(Timestamp::from_ticks(ticks));
            http_date(Timestamp::from_ticks(ticks));
            parse_iso(&text);
            parse_http_date(&text);
        }
    }
}

//! Points in time as text: ISO 8601 for entities and XML, RFC 1123 for HTTP headers.
//!
//! A [`Timestamp`] counts ticks of 100 ns, so a fraction of a second has at most seven digits. The service
//! was recorded writing two forms: `2024-05-04T00:30:07.69693Z` in entities and ETags, without zeros at the
//! end of the fraction ([`iso`]), and `2021-06-08T02:10:09.0000000Z` in access policies and error texts,
//! always with seven digits ([`iso7`]).
//!
//! Dates are those of the Gregorian calendar, also before it was introduced. A year has four digits: a time
//! before year 1 or after year 9999 is written as the first or the last moment of those years.

mod read;

use rangehold_map::Timestamp;
use time::UtcDateTime;

pub use self::read::{parse_http_date, parse_iso};

/// 0001-01-01T00:00:00Z, where .NET's calendar begins.
const YEAR_ONE: Timestamp = Timestamp::from_unix_seconds(-62_135_596_800);

/// The calendar's view of a time, to the second.
fn calendar(time: Timestamp) -> UtcDateTime {
    let seconds = time.clamp(YEAR_ONE, Timestamp::MAX_DATE_TIME).unix_seconds();
    UtcDateTime::from_unix_timestamp(seconds).expect("the years 1 to 9999 are in the calendar")
}

/// Ticks of 100 ns within the second.
fn fraction(time: Timestamp) -> i64 {
    time.clamp(YEAR_ONE, Timestamp::MAX_DATE_TIME).ticks().rem_euclid(Timestamp::TICKS_PER_SECOND)
}

/// `2021-09-21T01:04:37.9678478Z`; zeros at the end of the fraction, and an empty fraction, are left out.
pub fn iso(time: Timestamp) -> String {
    let mut out = Vec::with_capacity(28);
    put_iso(&mut out, time);
    String::from_utf8(out).expect("only ASCII was written")
}

/// As [`iso`], appended to `out`.
pub fn put_iso(out: &mut Vec<u8>, time: Timestamp) {
    put_seconds(out, calendar(time));
    let fraction = fraction(time);
    if fraction != 0 {
        out.push(b'.');
        put_digits(out, fraction as u32, 7);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'Z');
}

/// `2021-06-08T02:10:09.0000000Z`: always seven digits of a fraction.
pub fn iso7(time: Timestamp) -> String {
    let mut out = Vec::with_capacity(28);
    put_seconds(&mut out, calendar(time));
    out.push(b'.');
    put_digits(&mut out, fraction(time) as u32, 7);
    out.push(b'Z');
    String::from_utf8(out).expect("only ASCII was written")
}

/// Written by hand, because a page of a query has a thousand of these texts.
fn put_seconds(out: &mut Vec<u8>, time: UtcDateTime) {
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.as_hms();
    let mut text = *b"0000-00-00T00:00:00";
    set_digits(&mut text[..4], year.unsigned_abs());
    for (at, value) in [(5, month.into()), (8, day), (11, hour), (14, minute), (17, second)] {
        set_digits(&mut text[at..at + 2], u32::from(value));
    }
    out.extend_from_slice(&text);
}

/// `value` in `width` digits.
fn put_digits(out: &mut Vec<u8>, value: u32, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    set_digits(&mut out[start..], value);
}

/// Writes `value` over digits, with zeros before it.
fn set_digits(digits: &mut [u8], mut value: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// `Mon, 20 Sep 2021 22:00:47 GMT` (RFC 1123), the form of HTTP's dates; a fraction is dropped.
pub fn http_date(time: Timestamp) -> String {
    let date = calendar(time);
    let (year, month, day) = date.to_calendar_date();
    let (hour, minute, second) = date.as_hms();
    let (weekday, month) = (short(date.weekday().to_string()), short(month.to_string()));
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// The three letters that HTTP's dates have of an English weekday or month.
fn short(mut name: String) -> String {
    name.truncate(3);
    name
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
        fn written_times_are_read_back(ticks in -621_355_968_000_000_000..=Timestamp::MAX_DATE_TIME.ticks()) {
            let time = Timestamp::from_ticks(ticks);
            prop_assert_eq!(parse_iso(&iso(time)), Some(time));
            prop_assert_eq!(parse_iso(&iso7(time)), Some(time));
            let seconds = Timestamp::from_unix_seconds(time.unix_seconds());
            prop_assert_eq!(parse_http_date(&http_date(time)), Some(seconds));
        }

        #[test]
        fn texts_have_the_order_of_their_times(a in 0..Timestamp::MAX_DATE_TIME.ticks(), step in 0..i64::from(u32::MAX)) {
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

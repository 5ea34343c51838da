//! Points in time as the wire writes them: ISO 8601 and RFC 1123.

use rangehold_map::Timestamp;

const SECONDS_PER_DAY: i64 = 86_400;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March here, so that the leap day is its last day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

fn seconds_text(time: Timestamp) -> String {
    let seconds = time.unix_seconds();
    let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// `2021-09-21T01:04:37.9678478Z`, always with seven digits of the fraction.
pub fn iso7(time: Timestamp) -> String {
    let fraction = time.ticks().rem_euclid(Timestamp::TICKS_PER_SECOND);
    format!("{}.{fraction:07}Z", seconds_text(time))
}

/// `Wed, 08 Sep 2021 16:46:37 GMT`.
pub fn http_date(time: Timestamp) -> String {
    let seconds = time.unix_seconds();
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let (year, month, day) = date_of(days);
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        WEEKDAYS[days.rem_euclid(7) as usize],
        MONTHS[month as usize - 1],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn point(date: (i64, i64, i64), time: (i64, i64, i64)) -> Option<i64> {
    let (year, month, day) = date;
    let (hour, minute, second) = time;
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_of(year, month, day);
    (date_of(days) == date).then_some(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

/// Reads `2021-09-21`, `2021-09-21T01:04Z`, `2021-09-21T01:04:37.9678478Z`, and these with an
/// offset, which is converted; without a zone it is UTC.
pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let date = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        number(parts.next()?)?,
    );
    if parts.next().is_some() {
        return None;
    }
    let Some(time) = time else {
        return Some(Timestamp::from_unix_seconds(point(date, (0, 0, 0))?));
    };
    let (clock, offset) = match time.find(['Z', '+', '-']) {
        None => (time, 0),
        Some(at) if &time[at..] == "Z" => (&time[..at], 0),
        Some(at) => {
            let (hours, minutes) = time[at + 1..].split_once(':')?;
            let seconds = number(hours)? * 3600 + number(minutes)? * 60;
            (
                &time[..at],
                if time.as_bytes()[at] == b'-' {
                    -seconds
                } else {
                    seconds
                },
            )
        }
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':');
    let clock = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        parts.next().map_or(Some(0), number)?,
    );
    if parts.next().is_some() || fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let ticks: i64 = format!("{fraction:0<7}")[..7].parse().ok()?;
    Some(Timestamp::from_unix_seconds(point(date, clock)? - offset).saturating_add(ticks))
}

/// Reads `Wed, 08 Sep 2021 16:46:37 GMT`.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day = number(parts.next()?)?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year = number(parts.next()?)?;
    let mut clock = parts.next()?.split(':');
    let time = (
        number(clock.next()?)?,
        number(clock.next()?)?,
        number(clock.next()?)?,
    );
    if clock.next().is_some() || parts.next() != Some("GMT") || parts.next().is_some() {
        return None;
    }
    Some(Timestamp::from_unix_seconds(point((year, month, day), time)?))
}

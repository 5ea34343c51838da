//! Values of PostgreSQL as the texts that its `::text` gives, for the types that [`Cell`](super::Cell) has no form of
//! its own for: numbers without a limit, dates and times, JSON, arrays. Times with a time zone are written in UTC.

use std::fmt::Write as _;

use tokio_postgres::types::{Kind, Type};

/// What cannot be read gives `None`, and stays bytes.
type Read<T> = Option<T>;

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
/// Days from 0000-03-01, where a count of days in the calendar begins best, to 2000-01-01.
const DAYS_TO_2000: i64 = 730_425;
/// Each digit of a `numeric` is one of 10,000.
const NUMERIC_DIGITS: usize = 4;

/// The text of a value in its binary form; `None` for other types.
pub(super) fn of(ty: &Type, raw: &[u8]) -> Read<String> {
    match ty.kind() {
        Kind::Enum(_) => return utf8(raw),
        Kind::Domain(inner) => return of(inner, raw),
        Kind::Array(element) => return array(element, raw),
        _ => {}
    }
    match *ty {
        Type::BOOL => Some(if *raw.first()? == 0 { "f" } else { "t" }.to_owned()),
        Type::INT2 => Some(i16::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::INT4 => Some(i32::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::INT8 => Some(i64::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::FLOAT4 => Some(f32::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::FLOAT8 => Some(f64::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::XML => utf8(raw),
        Type::UUID => Some(uuid::Uuid::from_slice(raw).ok()?.to_string()),
        // The first byte is the version of the format.
        Type::JSONB => utf8(raw.strip_prefix(&[1])?),
        Type::NUMERIC => numeric(raw),
        Type::DATE => date_or_infinity(i32::from_be_bytes(raw.try_into().ok()?)),
        Type::TIME => Some(time(i64::from_be_bytes(raw.try_into().ok()?))),
        Type::TIMESTAMP => timestamp(raw, ""),
        Type::TIMESTAMPTZ => timestamp(raw, "+00"),
        Type::INTERVAL => interval(raw),
        _ => None,
    }
}

fn utf8(raw: &[u8]) -> Read<String> {
    std::str::from_utf8(raw).ok().map(str::to_owned)
}

/// Takes bytes off the front.
fn take<'r, const COUNT: usize>(raw: &mut &'r [u8]) -> Read<[u8; COUNT]> {
    let (first, rest): (&'r [u8; COUNT], _) = raw.split_first_chunk()?;
    *raw = rest;
    Some(*first)
}

fn numeric(mut raw: &[u8]) -> Read<String> {
    let count = u16::from_be_bytes(take(&mut raw)?);
    let weight = i32::from(i16::from_be_bytes(take(&mut raw)?));
    let sign = u16::from_be_bytes(take(&mut raw)?);
    let scale = usize::from(u16::from_be_bytes(take(&mut raw)?));
    match sign {
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let digits: Vec<u16> =
        (0..count).map(|_| take(&mut raw).map(u16::from_be_bytes)).collect::<Option<_>>()?;
    // The digit for 10,000 to this power.
    let digit = |power: i32| {
        let index = usize::try_from(weight - power).ok();
        index.and_then(|index| digits.get(index)).copied().unwrap_or_default()
    };
    let mut whole: String = (0..=weight.max(0)).rev().map(|power| format!("{:04}", digit(power))).collect();
    let leading = whole.len() - whole.trim_start_matches('0').len();
    whole.drain(..leading.min(whole.len() - 1));
    let powers = i32::try_from(scale.div_ceil(NUMERIC_DIGITS)).ok()?;
    let mut fraction: String = (1..=powers).map(|power| format!("{:04}", digit(-power))).collect();
    fraction.truncate(scale);
    let sign = if sign == 0x4000 { "-" } else { "" };
    let point = if scale == 0 { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

fn date_or_infinity(days: i32) -> Read<String> {
    match days {
        i32::MAX => Some("infinity".to_owned()),
        i32::MIN => Some("-infinity".to_owned()),
        _ => {
            let (date, is_bc) = date(days.into());
            Some(date + if is_bc { " BC" } else { "" })
        }
    }
}

/// A date by its distance from 2000-01-01, and whether it is before Christ.
fn date(days: i64) -> (String, bool) {
    // The calendar repeats itself each 400 years. Years begin in March here, so that a leap day is the last of its year.
    let days = days + DAYS_TO_2000;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    let is_bc = year <= 0;
    let year = if is_bc { 1 - year } else { year };
    (format!("{year:04}-{month:02}-{day:02}"), is_bc)
}

fn time(microseconds: i64) -> String {
    let seconds = microseconds / 1_000_000;
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = microseconds % 1_000_000;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text
}

fn timestamp(raw: &[u8], zone: &str) -> Read<String> {
    let microseconds = i64::from_be_bytes(raw.try_into().ok()?);
    match microseconds {
        i64::MAX => return Some("infinity".to_owned()),
        i64::MIN => return Some("-infinity".to_owned()),
        _ => {}
    }
    let (date, is_bc) = date(microseconds.div_euclid(MICROSECONDS_PER_DAY));
    let time = time(microseconds.rem_euclid(MICROSECONDS_PER_DAY));
    Some(format!("{date} {time}{zone}{}", if is_bc { " BC" } else { "" }))
}

fn interval(mut raw: &[u8]) -> Read<String> {
    let microseconds = i64::from_be_bytes(take(&mut raw)?);
    let days = i64::from(i32::from_be_bytes(take(&mut raw)?));
    let months = i64::from(i32::from_be_bytes(take(&mut raw)?));
    let mut parts = Vec::new();
    let mut after_negative = false;
    for (count, name) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count != 0 {
            // After a negative part, a positive one has its sign.
            let plus = if after_negative && count > 0 { "+" } else { "" };
            parts.push(format!("{plus}{count} {name}{}", if count == 1 { "" } else { "s" }));
            after_negative = count < 0;
        }
    }
    if microseconds != 0 || parts.is_empty() {
        let sign = match (microseconds < 0, after_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        parts.push(format!("{sign}{}", time(i64::try_from(microseconds.unsigned_abs()).ok()?)));
    }
    Some(parts.join(" "))
}

/// `{1,2,NULL}`, with braces in braces for each dimension.
fn array(element: &Type, mut raw: &[u8]) -> Read<String> {
    let dimensions = u32::from_be_bytes(take(&mut raw)?);
    let (_has_null, _oid): ([u8; 4], [u8; 4]) = (take(&mut raw)?, take(&mut raw)?);
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(u32::from_be_bytes(take(&mut raw)?));
        // Arrays that do not begin at 1 are rare, and their texts say it. They stay bytes.
        if u32::from_be_bytes(take(&mut raw)?) != 1 {
            return None;
        }
    }
    if lengths.is_empty() {
        return Some("{}".to_owned());
    }
    part_of_array(element, &lengths, &mut raw)
}

fn part_of_array(element: &Type, lengths: &[u32], raw: &mut &[u8]) -> Read<String> {
    let Some((length, inner)) = lengths.split_first() else {
        let bytes = i32::from_be_bytes(take(raw)?);
        let Ok(bytes) = usize::try_from(bytes) else { return Some("NULL".to_owned()) };
        let (value, rest) = raw.split_at_checked(bytes)?;
        *raw = rest;
        return of(element, value).map(quoted);
    };
    let parts: Vec<String> =
        (0..*length).map(|_| part_of_array(element, inner, raw)).collect::<Option<_>>()?;
    Some(format!("{{{}}}", parts.join(",")))
}

/// An element of an array, in quotes if it needs them.
fn quoted(text: String) -> String {
    let is_special =
        |character: char| matches!(character, '{' | '}' | ',' | '"' | '\\') || character.is_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(is_special) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

//! Divides a line into words, and reads the values in them: texts, times, sizes, numbers.

use std::fmt::Write as _;
use std::time::Duration;

use thiserror::Error;

/// A text that is not of this language. The message says what was found and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) String);

/// The error that `found` is not what it should be.
pub(crate) fn malformed<T>(found: &str, should_be: &str) -> Result<T, Malformed> {
    Err(Malformed(format!("{found:?} is not {should_be}")))
}

/// The words of a line. Spaces inside quotes do not divide words.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let (mut words, mut begin) = (Vec::new(), None);
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        if quoted || !c.is_whitespace() {
            begin.get_or_insert(at);
            quoted ^= c == '"' && !escaped;
            escaped = quoted && c == '\\' && !escaped;
        } else if let Some(begin) = begin.take() {
            words.push(&line[begin..at]);
        }
    }
    words.extend(begin.map(|begin| &line[begin..]));
    words
}

/// Whether this character can be written without quotes.
fn is_bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Writes `text` as [`take_text`] reads it: in quotes if needed.
pub(crate) fn put_text(out: &mut String, text: &str) {
    if !text.is_empty() && text.chars().all(is_bare) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Reads a text, quoted or not, from the beginning of `word`. Returns it and the rest.
pub(crate) fn take_text(word: &str) -> Result<(String, &str), Malformed> {
    let Some(quoted) = word.strip_prefix('"') else {
        let end = word.find(|c| !is_bare(c)).unwrap_or(word.len());
        return match end {
            0 => malformed(
                word,
                "a text: put it in quotes if it has characters other than letters, digits and -_.",
            ),
            _ => Ok((word[..end].to_owned(), &word[end..])),
        };
    };
    let (mut text, mut rest) = (String::new(), quoted);
    loop {
        let Some(c) = rest.chars().next() else { return malformed(word, "a text: its quote does not end") };
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Ok((text, rest)),
            '\\' => {
                let (escaped, after) = take_escape(rest)?;
                text.push(escaped);
                rest = after;
            }
            c => text.push(c),
        }
    }
}

/// Reads what follows a backslash: a quote, a backslash, or the number of a character, as in `u{1f600}`.
fn take_escape(rest: &str) -> Result<(char, &str), Malformed> {
    if let Some(number) = rest.strip_prefix("u{") {
        let escaped = number.split_once('}').and_then(|(digits, after)| {
            let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
            Some((c, after))
        });
        return escaped.map_or_else(|| malformed(rest, "a character by its number, such as u{e9}"), Ok);
    }
    match rest.chars().next() {
        Some(c @ ('"' | '\\')) => Ok((c, &rest[1..])),
        _ => malformed(rest, "an escape: after a backslash comes a quote, a backslash, or u{...}"),
    }
}

/// Reads a length of time: `250ms`, `90s`, `10m`, `2h`.
pub(crate) fn duration(word: &str) -> Result<Duration, Malformed> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &word[digits.len()..] {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let ms = unit_ms.zip(digits.parse::<u64>().ok()).and_then(|(unit_ms, count)| count.checked_mul(unit_ms));
    ms.map_or_else(
        || malformed(word, "a time: write it as 250ms, 90s, 10m or 2h"),
        |ms| Ok(Duration::from_millis(ms)),
    )
}

/// Writes a length of time in whole milliseconds, as [`duration`] reads it.
pub(crate) fn show_duration(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// Reads a number of bytes: `4096`, `64KiB`, `200MiB`, `10GiB`.
pub(crate) fn bytes(word: &str) -> Result<u64, Malformed> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &word[digits.len()..] {
        "" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let bytes = unit.zip(digits.parse::<u64>().ok()).and_then(|(unit, count)| count.checked_mul(unit));
    bytes.map_or_else(|| malformed(word, "a number of bytes: write it as 4096, 64KiB, 200MiB or 10GiB"), Ok)
}

/// Reads a finite number that is not negative.
pub(crate) fn number(word: &str) -> Result<f64, Malformed> {
    let number = word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.map_or_else(|| malformed(word, "a number from 0 on, such as 1800 or 0.5"), Ok)
}

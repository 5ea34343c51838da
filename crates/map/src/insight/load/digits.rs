//! Reads keys as numbers, to compare distances between keys.
//!
//! The distance between two keys has a meaning only in comparison with another distance. So three keys are
//! read together, from the first byte in which they differ. Separators between groups of digits are left out.
//! Each group is read in the smallest of the usual alphabets that has all its characters. A group may look
//! decimal by accident (a few digits in the middle of a hexadecimal id), so there are several readings, each
//! with its own smallest alphabet:
//!
//! ```text
//!   keys                          decimal or larger     hexadecimal or larger
//!   10:00:19, 10:00:59, 10:02:07  40 s and 68 s         differs in its carries
//!   01k2, 01k7, 01n3              base 32, as ULIDs     the same
//! ```
//!
//! In the time of a clock, tens of minutes and tens of seconds carry at six. But days carry at 100 hours and
//! months at 100 days, so distances across midnight are read wrong; that affects a few minutes a day.

/// The most bytes that are read. Further bytes are below the precision of an `f64`.
const BYTES: usize = 24;

/// Digits in order. The case of letters does not matter, except in the last alphabet.
const ALPHABETS: [&[u8]; 5] = [
    b"0123456789",
    b"0123456789abcdef",
    // Crockford's: without i, l, o and u.
    b"0123456789abcdefghjkmnpqrstvwxyz",
    b"0123456789abcdefghijklmnopqrstuvwxyz",
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
];

/// The bytes of the three keys at one position, and whether they are tens of minutes or seconds.
#[derive(Debug, Clone, Copy)]
struct Column {
    bytes: [u8; 3],
    tens_of_sixty: bool,
}

/// Three keys in each reading. Only quotients of differences within one reading have a meaning.
pub(super) fn readings(keys: [&[u8]; 3]) -> impl Iterator<Item = [f64; 3]> {
    let groups = groups(keys);
    (0..ALPHABETS.len())
        .map(move |least| groups.iter().rev().fold([0.0; 3], |numbers, group| read(group, least, numbers)))
}

/// Adds a group in front of the numbers that the bytes behind it gave.
fn read(group: &[Column], least: usize, behind: [f64; 3]) -> [f64; 3] {
    let fits = |alphabet: &&&[u8]| {
        group.iter().flat_map(|column| column.bytes).all(|byte| rank(alphabet, byte).is_some())
    };
    let alphabet = ALPHABETS[least..].iter().find(fits);
    group.iter().rev().fold(behind, |numbers, column| {
        let base = match alphabet {
            Some(alphabet) if alphabet.len() == 10 && column.tens_of_sixty => 6,
            Some(alphabet) => alphabet.len(),
            None => 256,
        };
        std::array::from_fn(|key| {
            let byte = column.bytes[key];
            let digit = alphabet.and_then(|alphabet| rank(alphabet, byte)).unwrap_or(usize::from(byte));
            (numbers[key] + digit as f64) / base as f64
        })
    })
}

/// The value of a character in an alphabet. Zero bytes stand for the end of a key and count 0.
fn rank(alphabet: &[u8], byte: u8) -> Option<usize> {
    let same = |digit: &u8| {
        if alphabet.len() > 36 { *digit == byte } else { digit.eq_ignore_ascii_case(&byte) }
    };
    if byte == 0 { Some(0) } else { alphabet.iter().position(same) }
}

/// The bytes of three keys, from the first in which they differ to the last, in groups without their
/// separators.
fn groups(keys: [&[u8]; 3]) -> Vec<Vec<Column>> {
    let byte = |key: &[u8], at: usize| key.get(at).copied().unwrap_or(0);
    let bytes = |at: usize| keys.map(|key| byte(key, at));
    let differ = |at: &usize| bytes(*at).iter().any(|&byte| byte != bytes(*at)[0]);
    let all = |at: usize, is: fn(u8) -> bool| bytes(at).into_iter().all(is);
    let longest = keys.iter().map(|key| key.len()).max().unwrap_or(0);
    let Some(start) = (0..longest).find(differ) else {
        return Vec::new();
    };
    // A common end of all keys, such as the Z of a time, would be taken for a digit.
    let end = (start..longest.min(start + BYTES)).rfind(differ).unwrap_or(start) + 1;
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let separates = |at: usize| {
        let is_t = all(at, |byte| byte == b'T') && at > 0 && all(at - 1, is_digit) && all(at + 1, is_digit);
        !differ(&at) && (is_t || all(at, |byte| byte.is_ascii_punctuation()))
    };
    let mut groups = vec![Vec::new()];
    for at in start..end {
        if separates(at) {
            groups.push(Vec::new());
        } else if let Some(group) = groups.last_mut() {
            group.push(Column { bytes: bytes(at), tens_of_sixty: is_tens_of_sixty(keys, at) });
        }
    }
    groups
}

/// Whether all keys have tens of minutes or seconds at that byte: after a colon, or as the eleventh or
/// thirteenth digit in a row that begins with a year.
fn is_tens_of_sixty(keys: [&[u8]; 3], at: usize) -> bool {
    keys.into_iter().all(|key| {
        let before = &key[..at.min(key.len())];
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let row = &before[before.len() - digits..];
        before.ends_with(b":")
            || matches!(digits, 10 | 12) && (row.starts_with(b"20") || row.starts_with(b"19"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance from the second key to the third, divided by that from the first to the second: the least
    /// and the greatest value of all readings.
    fn ratio(keys: [&[u8]; 3]) -> (f64, f64) {
        let ratios = readings(keys).map(|[a, b, c]| (c - b) / (b - a));
        ratios.fold((f64::INFINITY, 0.0), |(least, most), ratio| (least.min(ratio), most.max(ratio)))
    }

    #[test]
    fn one_reading_is_right_for_all_usual_keys() {
        for (a, b, c, truth) in [
            ("10:00:19", "10:00:59", "10:02:07", 68.0 / 40.0),
            ("2026-11-21T09:59:19.25Z", "2026-11-21T09:59:59.25Z", "2026-11-21T10:01:07.25Z", 68.0 / 40.0),
            ("0fd9da600", "0fffffff0", "104c4b400", 2.0),
            ("019b76da-9999-7abc", "019b76da-fffe-7012", "019b76db-ffff-7ef0", 2.5),
            ("01KDVDNTZZ", "01KDVDNZZZ", "01KDVDPZZZ", 6.4),
            ("x20261121095919", "x20261121095959", "x20261121100107", 1.7),
            ("1763719159", "1763719199", "1763719267", 1.7),
            ("0aZz", "0aaz", "0acz", 2.0),
        ] {
            let (least, most) = ratio([a.as_bytes(), b.as_bytes(), c.as_bytes()]);
            assert!(
                least < truth * 1.1 && most > truth / 1.1,
                "{a}, {b}, {c}: {least} to {most}, not {truth}"
            );
        }
    }

    #[test]
    fn another_tenant_or_table_is_far_away_in_any_reading() {
        for [a, b, c] in [
            [&b"a/10:00:19"[..], b"a/10:00:59", b"b/10:00:07"],
            [b"7-1763719159", b"7-1763719199", b"8-1763719167"],
            [
                b"tenant-a-2026-11-21T10:00:19",
                b"tenant-a-2026-11-21T10:00:59",
                b"tenant-b-2026-11-21T10:00:07",
            ],
            // Table ids whose bytes are separators.
            [b"0acme\0\0\0!1763719159", b"0acme\0\0\0!1763719199", b"0acme\0\0\0\"1763719167"],
        ] {
            let (least, _) = ratio([a, b, c]);
            assert!(least > 1_000.0, "{}: {least}", c.escape_ascii());
        }
    }
}

//! Whether names grow, in the order of their bytes or in that of their numbers.
//!
//! Of `9.jpg`, `10.jpg` and `11.jpg` the first one is the highest key, and still all load is in one place, which goes on. So
//! names grow too if they do where numbers are compared by their values.

use std::cmp::Ordering;

/// A number goes between the characters where its digits go, and a longer one is greater.
const NUMBER: u8 = b'0';

/// One name in so many may be elsewhere than the others.
const ODD_SHARE: usize = 10;

/// How many of the names `now` are above nearly all of `before`; 0 if there was none before. A tenth of those before may be
/// anywhere: names such as `latest` among times, or those of a client whose clock is ahead.
pub(super) fn count_above(now: &[&str], before: &[&str]) -> usize {
    count_beyond(now, before, Ordering::Greater)
}

/// The same for names below them.
pub(super) fn count_below(now: &[&str], before: &[&str]) -> usize {
    count_beyond(now, before, Ordering::Less)
}

/// In the one order or the other, whichever has more.
fn count_beyond(now: &[&str], before: &[&str], side: Ordering) -> usize {
    let in_bytes = beyond(now.iter().copied(), before.iter().copied(), side);
    let of_numbers = |names: &[&str]| names.iter().map(|name| by_numbers(name)).collect::<Vec<_>>();
    in_bytes.max(beyond(of_numbers(now), of_numbers(before), side))
}

fn beyond<T: Ord>(
    now: impl IntoIterator<Item = T>,
    before: impl IntoIterator<Item = T>,
    side: Ordering,
) -> usize {
    let mut before: Vec<T> = before.into_iter().collect();
    before.sort_unstable();
    let odd = before.len() / ODD_SHARE;
    let edge = if side == Ordering::Greater { before.iter().nth_back(odd) } else { before.get(odd) };
    let Some(edge) = edge else { return 0 };
    now.into_iter().filter(|name| name.cmp(edge) == side).count()
}

/// Bytes that are ordered as the name, with each of its numbers by value.
fn by_numbers(name: &str) -> Vec<u8> {
    let is_digit = |a: &u8, b: &u8| a.is_ascii_digit() == b.is_ascii_digit();
    let parts = name.as_bytes().chunk_by(is_digit);
    let ordered = parts.flat_map(|part| match part[0].is_ascii_digit() {
        true => {
            let zeros = part.iter().take_while(|digit| **digit == b'0').count();
            let digits = &part[zeros..];
            let length = u16::try_from(digits.len()).unwrap_or(u16::MAX).to_be_bytes();
            [&[NUMBER], &length[..], digits].concat()
        }
        false => part.to_vec(),
    });
    ordered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_grow_in_the_order_of_bytes_or_of_numbers() {
        let count = |now: &[&str], before: &[&str]| [count_above(now, before), count_below(now, before)];
        assert_eq!(count(&["c", "d", "a"], &["b", "b2"]), [2, 1]);
        assert_eq!(count(&["i/10.jpg", "i/21.jpg"], &["i/1.jpg", "i/9.jpg"]), [2, 0]);
        assert_eq!(count(&["i/9.jpg", "i/1.jpg"], &["i/21.jpg", "i/10.jpg"]), [1, 2]);
        // Hex digits grow in the order of bytes only.
        assert_eq!(count(&["65a9"], &["659a"]), [1, 1]);
        assert_eq!(count(&["a"], &[]), [0, 0]);
    }

    #[test]
    fn a_few_odd_names_do_not_hide_that_the_others_grow() {
        let times: Vec<String> = (10..49).map(|time| format!("logs/{time}")).collect();
        let mut before: Vec<&str> = times[..19].iter().map(String::as_str).collect();
        before.push("logs/latest.json");
        let now: Vec<&str> = times[19..].iter().map(String::as_str).collect();
        assert_eq!(count_above(&now, &before), now.len());
        before[19] = "a";
        assert_eq!(count_above(&now, &before), now.len());
        assert_eq!(count_below(&now, &before), 0);
        let (back, forth) = (now, before);
        assert_eq!(count_below(&forth, &back), forth.len());
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let ordered =
            ["", "a", "a-", "a7", "a007b", "a10", "a10b2", "a10b10", "a1000000000000000000000", "aa"];
        assert!(ordered.windows(2).all(|pair| by_numbers(pair[0]) < by_numbers(pair[1])), "{ordered:?}");
        assert_eq!(by_numbers("a007"), by_numbers("a7"));
    }
}

//! The intervals of keys for which a map is asked.

use rangehold_map::KeyRange;

use crate::limits::INTERVALS_ASKED_ALONE_MAX;

/// Intervals in their order; those that touch are joined.
fn joined<'k>(intervals: impl Iterator<Item = &'k KeyRange>) -> Vec<KeyRange> {
    let mut joined: Vec<KeyRange> = Vec::new();
    for keys in intervals {
        match joined.last_mut() {
            Some(last) if last.high() == Some(keys.low()) => {
                *last = KeyRange::new(last.low().to_vec(), keys.high().map(<[u8]>::to_vec));
            }
            _ => joined.push(keys.clone()),
        }
    }
    joined
}

/// Takes intervals in the order of their keys, and returns intervals that hold them all. If they are many, that is one: to
/// read it takes less time than to ask for each.
pub(crate) fn to_ask<'k>(intervals: impl Iterator<Item = &'k KeyRange>) -> Vec<KeyRange> {
    let joined = joined(intervals);
    match joined.as_slice() {
        [first, .., last] if joined.len() > INTERVALS_ASKED_ALONE_MAX => {
            vec![KeyRange::new(first.low().to_vec(), last.high().map(<[u8]>::to_vec))]
        }
        _ => joined,
    }
}

//! A key between two keys.
//!
//! A table gives away its keys only in ascending order, so its middle has to be guessed: take a text between two
//! keys, ask for the first key at or above it, and guess again below if there is none.

use rangehold_protocol::table::names::check_key;

/// What lies before each character that keys usually have. It is not itself part of a guess.
const FLOOR: u32 = 0x1F;
/// What lies behind each character of ASCII that a key may have.
const ASCII_END: u32 = 0x7F;
/// What lies behind the characters whose order is the same in UTF-8 and UTF-16, and which come in one unit.
const UNIT_END: u32 = 0xD800;

/// A text that a key can be, above `low` and below `high`, about halfway; without `high`, above `low` with an end
/// behind the characters of ASCII. `None` if there is no such text, or none that is easy to find.
pub fn between(low: &str, high: Option<&str>) -> Option<String> {
    let mut mid = String::new();
    let (mut low_rest, mut high_rest) = (low.chars(), high.map(str::chars));
    loop {
        let below = low_rest.next();
        let above = high_rest.as_mut().map(Iterator::next);
        let floor = below.map_or(FLOOR, u32::from);
        let end = match above {
            // The low key has all of the high one, so there is nothing between.
            Some(None) => return None,
            Some(Some(above)) => u32::from(above),
            None if floor < ASCII_END => ASCII_END,
            None => UNIT_END,
        };
        if end > UNIT_END || floor > end {
            return None;
        }
        if let Some(middle) = middle(floor, end) {
            mid.push(middle);
            return check_key("PartitionKey", &mid).is_ok().then_some(mid);
        }
        // There is no room here. The guess begins like the low key, and is then bounded only by it.
        match below {
            Some(character) => mid.push(character),
            // The high key has a character that nothing precedes.
            None => return None,
        }
        if floor != end {
            high_rest = None;
        }
    }
}

/// A character between two others that a key may have, as near to the middle as there is one.
fn middle(floor: u32, end: u32) -> Option<char> {
    let half = floor + (end - floor) / 2;
    let nearest = (floor + 1..end).min_by_key(|place| (place.abs_diff(half), !is_fine(*place)));
    let nearest = nearest.filter(|place| is_fine(*place));
    nearest
        .or_else(|| (floor + 1..end).filter(|place| is_fine(*place)).min_by_key(|place| place.abs_diff(half)))
        .and_then(char::from_u32)
}

/// Whether a key may have this character.
fn is_fine(place: u32) -> bool {
    char::from_u32(place)
        .is_some_and(|character| !character.is_control() && !matches!(character, '/' | '\\' | '#' | '?'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_guess_lies_between_and_can_be_a_key(low in "[ -~é]{0,6}", high in proptest::option::of("[ -~é]{0,6}")) {
            let bounds_are_keys = check_key("RowKey", &low).is_ok();
            if bounds_are_keys && let Some(mid) = between(&low, high.as_deref()) {
                prop_assert!(mid > low, "{mid:?}");
                prop_assert!(high.is_none_or(|high| mid < high || low >= high), "{mid:?}");
                prop_assert!(check_key("RowKey", &mid).is_ok(), "{mid:?}");
            }
        }
    }

    #[test]
    fn guesses_that_find_nothing_come_down_to_the_end_of_the_keys() {
        // The keys of a table are p0000 to p9999: the first guess that hits one must come soon.
        let (mut high, mut guesses) = (None, 0);
        let hit = loop {
            let mid = between("p0000", high.as_deref()).expect("there is room");
            guesses += 1;
            if mid.as_str() <= "p9999" {
                break mid;
            }
            high = Some(mid);
        };
        assert!(guesses < 12 && hit.as_str() > "p2", "{hit} after {guesses} guesses");
        assert_eq!(between("a", Some("a")), None);
        assert_eq!(between("a", Some("a ")), None);
        assert_eq!(between("", Some(" ")), None);
    }
}

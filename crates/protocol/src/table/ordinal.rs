//! The order of texts: ordinal, by UTF-16 code unit, as .NET compares strings.
//!
//! Rust orders `str` by its UTF-8 bytes, which is the order of code points. The two orders differ
//! in one place only: UTF-16 writes a character from U+10000 on as a pair of surrogates, D800 to DFFF, so
//! that it sorts *before* U+E000 to U+FFFF. The map's key codec has the same order; this module compares
//! texts without encoding them.

use std::cmp::Ordering;

/// Compares two texts by their UTF-16 code units.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(x, y)| x != y) {
        None => a.len().cmp(&b.len()),
        // All bytes before are equal, so either both bytes begin a character, or both follow the same
        // lead byte. Only the order of lead bytes differs between UTF-8 and UTF-16.
        Some((&x, &y)) => place(x).cmp(&place(y)),
    }
}

/// Moves the lead bytes of U+E000 to U+FFFF (EE, EF) behind those of U+10000 and above (F0 to F4).
fn place(byte: u8) -> u8 {
    if matches!(byte, 0xEE | 0xEF) { byte + 0x10 } else { byte }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_compare_by_utf16_units(a in "[ab\u{0}\u{7f}\u{ff}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
                                       b in "[ab\u{0}\u{7f}\u{ff}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}") {
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            prop_assert_eq!(compare(&a, &b), units(&a).cmp(&units(&b)));
        }
    }

    #[test]
    fn a_supplementary_character_sorts_before_the_last_ones_of_the_basic_plane() {
        assert_eq!(compare("\u{10000}", "\u{ffff}"), Ordering::Less);
        assert_eq!("\u{10000}".cmp("\u{ffff}"), Ordering::Greater);
    }
}

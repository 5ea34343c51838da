//! The bytes that a download asks for: the header `Range`.

use std::ops::Range;

/// Which bytes of an object a reply has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of them, with 200.
    Whole,
    /// These, with 206.
    Part(Range<u64>),
    /// None: the object ends before the first of them, 416.
    Nothing,
}

/// Reads the header for an object of `size` bytes. A header in another form, or with several ranges, is ignored, as
/// RFC 9110 lets a server do.
pub(super) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(text) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = text.split_once('-') else { return Wanted::Whole };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (first.trim().is_empty(), number(first), last.trim().is_empty(), number(last)) {
        // The last bytes.
        (true, _, _, Some(bytes)) => size.saturating_sub(bytes)..size,
        (false, Some(first), true, _) => first..size,
        (false, Some(first), _, Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        _ => return Wanted::Whole,
    };
    if range.start < range.end { Wanted::Part(range) } else { Wanted::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_object() {
        for (header, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=2-", Wanted::Part(2..10)),
            ("bytes=2-100", Wanted::Part(2..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-30", Wanted::Part(0..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-18446744073709551615", Wanted::Part(5..10)),
            ("bytes=3-2", Wanted::Whole),
            ("bytes=1-2,4-5", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
    }
}

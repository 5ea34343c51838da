//! Texts as JSON, written straight into a reply.
//!
//! A page has thousands of texts, and a text may be long, so runs of characters that need no escapes, the usual case, are found
//! and copied many bytes at a time.

use serde::Serialize;

/// Bytes that are looked at together. The compiler makes a few vector instructions of the look.
const LOOKED_AT: usize = 32;
/// Bytes of short texts, and of the ends of long ones, that are looked at together.
const LOOKED_AT_LAST: usize = 8;

/// Appends a text with its quotes.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    put_text_open(out, text);
    out.push(b'"');
}

/// Appends a part of a text, without quotes. Characters beyond ASCII are not escaped, because a reply is UTF-8.
pub fn put_text_open(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_bytes(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some((&byte, after)) = rest[plain..].split_first() else { return };
        put_escaped(out, byte);
        rest = after;
    }
}

/// Appends a whole number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: impl Serialize) {
    serde_json::to_writer(out, &number).expect("a number can be written as JSON");
}

/// How many bytes at the beginning need no escape.
fn plain_bytes(bytes: &[u8]) -> usize {
    let plain = plain_chunks::<LOOKED_AT>(bytes);
    let plain = plain + plain_chunks::<LOOKED_AT_LAST>(&bytes[plain..]);
    let rest = &bytes[plain..];
    plain + rest.iter().position(|byte| needs_escape(*byte)).unwrap_or(rest.len())
}

/// How many bytes the first chunks have that need no escape.
fn plain_chunks<const N: usize>(bytes: &[u8]) -> usize {
    let is_plain = |chunk: &&[u8; N]| !chunk.iter().fold(false, |any, byte| any | needs_escape(*byte));
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().take_while(is_plain).count() * N
}

const fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn put_escaped(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[digit(byte >> 4), digit(byte & 0x0F)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        let mut out = Vec::new();
        put_text(&mut out, "a\"\\\n\r\t\u{1}\u{1f} é\u{1F600}/'\u{7f}");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"a\\\"\\\\\\n\\r\\t\\u0001\\u001f é\u{1F600}/'\u{7f}\""
        );
    }

    proptest! {
        #[test]
        fn a_written_text_is_read_back(text in "(\\PC|[\\x00-\\x1f\"\\\\]|[a-z]{20,80}){0,8}") {
            let mut out = Vec::new();
            put_text(&mut out, &text);
            let read: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}

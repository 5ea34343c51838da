//! The part of JSON that replies need: texts, and the members of an object.

use super::super::value::EdmType;

/// Appends a text with its quotes.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    put_text_open(out, text);
    out.push(b'"');
}

/// Appends a part of a text, without quotes. Runs of characters that need no escapes, the usual case, are
/// copied at once. Characters beyond ASCII are not escaped, because a reply is UTF-8.
pub(super) fn put_text_open(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
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
    out.extend_from_slice(&bytes[copied..]);
}

/// An object that is being written. It knows whether the next member needs a comma.
pub(super) struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    /// Begins an object at the end of `out`.
    pub(super) fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Begins a member. The caller appends its value to the result.
    pub(super) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.member_named(name, "")
    }

    /// Writes a member whose value is a text.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        put_text(self.member(name), value);
    }

    /// Writes the annotation with the type of the property `name`.
    pub(super) fn type_of(&mut self, name: &str, edm_type: EdmType) {
        put_text(self.member_named(name, "@odata.type"), edm_type.name());
    }

    fn member_named(&mut self, name: &str, suffix: &str) -> &mut Vec<u8> {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        put_text_open(self.out, name);
        self.out.extend_from_slice(suffix.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Ends the object.
    pub(super) fn end(self) {
        self.out.push(b'}');
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
        fn a_written_text_is_read_back(text: String) {
            let mut out = Vec::new();
            put_text(&mut out, &text);
            let read: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}

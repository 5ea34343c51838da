//! The members of a JSON object.

use super::super::value::EdmType;
use crate::json::{put_text, put_text_open};

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

    /// Goes on with an object that has members already.
    pub(super) fn go_on(out: &'o mut Vec<u8>) -> Self {
        Self { out, is_empty: false }
    }

    /// Begins a member with a text that [`member`](Self::member) wrote behind another member. The caller appends its value to the
    /// result.
    pub(super) fn member_begun(&mut self, text: &[u8]) -> &mut Vec<u8> {
        debug_assert!(!self.is_empty, "the text begins with a comma");
        self.out.extend_from_slice(text);
        self.out
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

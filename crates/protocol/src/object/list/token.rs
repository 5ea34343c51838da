//! Page tokens: where a listing goes on.
//!
//! To a client a token is an opaque text. It is base64 of a version, two numbers, the name where the last page ended,
//! and a checksum, so that a token that was cut or invented is refused and not taken for a name.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::object::checksum::Crc32c;
use crate::object::error::ObjectError;
use crate::object::limits::PAGE_TOKEN_BYTES_MAX;

/// The form of tokens.
const FORM: u8 = 1;
/// Bytes before the name: the form, whether the prefix was listed, the generation.
const HEADER_BYTES: usize = 10;

/// The last thing that a listing has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its name, or the prefix.
    pub name: String,
    /// Generations of this name up to this one are done.
    pub generation: u64,
    /// Whether the prefix to which the name is rolled up was listed.
    pub prefix_done: bool,
}

impl Position {
    /// The position of a page that is asked for by a name alone, as the first version of the XML API does. A name that has a
    /// delimiter at its end, after the prefix that is asked for, was listed as a prefix itself; then no name that begins with
    /// it is listed again.
    pub fn of_marker(marker: &str, prefix: &str, delimiter: &str) -> Self {
        let rest = marker.strip_prefix(prefix).unwrap_or_default();
        let prefix_done = !delimiter.is_empty() && rest.ends_with(delimiter);
        Self { name: marker.to_owned(), generation: u64::MAX, prefix_done }
    }

    /// The token.
    pub fn token(&self) -> String {
        let mut out = vec![FORM, u8::from(self.prefix_done)];
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(self.name.as_bytes());
        let checksum = Crc32c::of(&out);
        out.extend_from_slice(&checksum.0.to_be_bytes());
        URL_SAFE_NO_PAD.encode(out)
    }

    /// Reads a token.
    pub fn parse(token: &str) -> Result<Self, ObjectError> {
        Self::decode(token).ok_or_else(|| {
            ObjectError::invalid("pageToken", token, "Use the nextPageToken of the page before, unchanged.")
        })
    }

    fn decode(token: &str) -> Option<Self> {
        if token.len() > PAGE_TOKEN_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (body, checksum) = bytes.split_last_chunk::<4>()?;
        if Crc32c::of(body).0 != u32::from_be_bytes(*checksum) {
            return None;
        }
        let (header, name) = body.split_first_chunk::<HEADER_BYTES>()?;
        let generation = u64::from_be_bytes(header[2..].try_into().expect("eight bytes"));
        let prefix_done = match header[..2] {
            [FORM, done @ (0 | 1)] => done == 1,
            _ => return None,
        };
        Some(Self { name: std::str::from_utf8(name).ok()?.to_owned(), generation, prefix_done })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_is_read_as_it_was_written(name: String, generation: u64, prefix_done: bool) {
            let position = Position { name, generation, prefix_done };
            prop_assert_eq!(Position::parse(&position.token()), Ok(position));
        }

        #[test]
        fn other_texts_are_refused(text in "\\PC{0,40}") {
            prop_assert!(Position::parse(&text).is_err());
        }
    }
}

//! The content type of a body of several parts, and the boundary that it names.

use super::part::parameter;
use super::{BOUNDARY_BYTES_MAX, MultipartError};

/// The text that separates the parts of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// Reads the boundary from a content type, which must be `multipart/` and `subtype`. The boundary may be quoted,
    /// also in single quotes, which are then not part of it.
    ///
    /// # Errors
    /// [`MultipartError::NotMultipart`] and [`MultipartError::NoBoundary`].
    pub fn from_content_type(content_type: &str, subtype: &'static str) -> Result<Self, MultipartError> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let is_wanted = kind.split_once('/').is_some_and(|(main, sub)| {
            main.eq_ignore_ascii_case("multipart") && sub.eq_ignore_ascii_case(subtype)
        });
        if !is_wanted {
            return Err(MultipartError::NotMultipart { wanted: subtype, found: content_type.to_owned() });
        }
        let no_boundary = || MultipartError::NoBoundary(content_type.to_owned());
        let text = parameter(content_type, "boundary").ok_or_else(no_boundary)?;
        let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        Self::new(inner.unwrap_or(&text)).ok_or_else(no_boundary)
    }

    /// A boundary of 1 to [`BOUNDARY_BYTES_MAX`] printable ASCII characters that does not end in a space; `None`
    /// for another text.
    pub fn new(text: &str) -> Option<Self> {
        let is_printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let fits = (1..=BOUNDARY_BYTES_MAX).contains(&text.len());
        (fits && is_printable && !text.ends_with(' ')).then(|| Self(text.to_owned()))
    }

    /// The text, without the dashes of a delimiter.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str) -> Result<String, MultipartError> {
        Boundary::from_content_type(content_type, "related").map(|boundary| boundary.0)
    }

    #[test]
    fn boundaries_of_all_clients_are_read() {
        for (content_type, boundary) in [
            ("multipart/related; boundary=abc", "abc"),
            ("Multipart/Related;BOUNDARY=abc; type=x", "abc"),
            ("multipart/related; type=\"a;boundary=x\"; boundary=\"a b\"", "a b"),
            (
                "multipart/related; boundary='===============7330845974216740156=='",
                "===============7330845974216740156==",
            ),
            ("multipart/related; boundary===abc==", "==abc=="),
            ("multipart/related; boundary=\"a\\\"b\"", "a\"b"),
        ] {
            assert_eq!(read(content_type).as_deref(), Ok(boundary), "{content_type}");
        }
    }

    #[test]
    fn a_content_type_without_a_boundary_that_can_be_used_is_refused() {
        let long = format!("multipart/related; boundary={}", "a".repeat(BOUNDARY_BYTES_MAX + 1));
        for content_type in [
            "multipart/related",
            "multipart/related; boundary=",
            "multipart/related; boundary=\"a \"",
            "multipart/related; boundary=\"é\"",
            &long,
        ] {
            assert_eq!(read(content_type), Err(MultipartError::NoBoundary(content_type.to_owned())));
        }
        for content_type in ["", "multipart", "multipart/mixed; boundary=a", "text/plain; boundary=a"] {
            assert!(matches!(read(content_type), Err(MultipartError::NotMultipart { .. })), "{content_type}");
        }
    }
}

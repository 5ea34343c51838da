//! The head of a part: its headers, and the parameters that some of them have.

use super::MultipartError;

/// The headers of a part, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartHead {
    headers: Vec<(String, String)>,
}

impl PartHead {
    /// Reads the lines of a head, each without its newline. A line that begins with white space continues the
    /// header before it.
    pub(in crate::object) fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Self, MultipartError> {
        let mut head = Self::default();
        for line in lines {
            if line.starts_with([' ', '\t'])
                && let Some((_, value)) = head.headers.last_mut()
            {
                value.push(' ');
                value.push_str(line.trim());
                continue;
            }
            let named = line
                .split_once(':')
                .filter(|(name, _)| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()));
            let (name, value) = named.ok_or_else(|| MultipartError::NotAHeader(line.to_owned()))?;
            head.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(head)
    }

    /// All headers, as name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a header. Names match in either case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The content type of the part.
    pub fn content_type(&self) -> Option<&str> {
        self.get("content-type")
    }

    /// The name of the form's field that this part carries, from `Content-Disposition: form-data; name="..."`.
    pub fn field_name(&self) -> Option<String> {
        parameter(self.get("content-disposition")?, "name")
    }

    /// The name of the file that the browser's user chose, if this part carries a file.
    pub fn file_name(&self) -> Option<String> {
        parameter(self.get("content-disposition")?, "filename")
    }
}

/// A parameter of a header's value, `value; name=text; name="text"`, without its quotes.
pub(super) fn parameter(value: &str, wanted: &str) -> Option<String> {
    let mut rest = value;
    loop {
        rest = &rest[rest.find(';')? + 1..];
        let (name, after) = rest.split_once('=')?;
        // A parameter without a value is passed over.
        if let Some((_, behind)) = name.rsplit_once(';') {
            let at = rest.len() - after.len() - 1 - behind.len();
            rest = &rest[at - 1..];
            continue;
        }
        let after = after.trim_start();
        let (text, behind) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim_end().to_owned(), &after[end..])
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(text);
        }
        rest = behind;
    }
}

/// The text up to the closing quote, and what follows the quote. A backslash escapes a quote or a backslash; before
/// anything else it stands for itself, since browsers send the paths of Windows so.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, &quoted[at + 1..])),
            '\\' => match characters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => text.push(escaped),
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(disposition: &str) -> PartHead {
        PartHead::read([format!("content-Disposition:{disposition}").as_str()].into_iter()).expect("a header")
    }

    #[test]
    fn names_of_fields_and_files_are_read() {
        let file = head(r#" form-data; name="file"; filename="a;\"b\".txt""#);
        assert_eq!(file.field_name().as_deref(), Some("file"));
        assert_eq!(file.file_name().as_deref(), Some("a;\"b\".txt"));
        let field = head("form-data;flag; name=key ;x=\"\"");
        assert_eq!(field.field_name().as_deref(), Some("key"));
        assert_eq!(field.file_name(), None);
        let path = head(r#"form-data; filename="C:\dir\file"; name="file""#);
        assert_eq!(path.file_name().as_deref(), Some(r"C:\dir\file"));
        assert_eq!(path.field_name().as_deref(), Some("file"));
        assert_eq!(head("form-data").field_name(), None);
        assert_eq!(head("form-data; name=\"open").field_name(), None);
    }

    #[test]
    fn a_folded_header_is_one_header() {
        let head = PartHead::read(["A: one", "\ttwo", "B:three"].into_iter()).expect("two headers");
        assert_eq!(head.iter().collect::<Vec<_>>(), [("A", "one two"), ("B", "three")]);
        for line in [" folded", "no colon", ": x", "a b: c", "é: x"] {
            let refused = PartHead::read([line].into_iter());
            assert_eq!(refused, Err(MultipartError::NotAHeader(line.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn a_quoted_parameter_is_read_back(text in "[^\r\n]{0,12}", other in "[^\r\n]{0,12}") {
            let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let value = format!("form-data; other=\"{}\"; name=\"{}\"", quote(&other), quote(&text));
            prop_assert_eq!(parameter(&value, "name"), Some(text));
            prop_assert_eq!(parameter(&value, "other"), Some(other));
        }

        #[test]
        fn any_value_is_safe(value in "[;=\"\\\\ 'abé]{0,24}") {
            parameter(&value, "a");
        }
    }
}

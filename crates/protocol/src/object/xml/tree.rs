//! Documents that clients send, as a small tree: elements, their text, and the attribute `type`.
//!
//! A document is read within limits on bytes and depth. A document type is refused, so a document cannot define entities that
//! expand to large texts. Namespaces, other attributes and comments have no meaning here.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::object::error::{ErrorKind, ObjectError};
use crate::object::limits::{XML_BYTES_MAX, XML_DEPTH_MAX};

/// An element: its name without a prefix, the elements inside it, and its text.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    /// The attribute `type`; empty if it has none.
    pub(super) sort: String,
    pub(super) children: Vec<Element>,
    text: String,
}

impl Element {
    /// Reads a document whose root element has the name `root`.
    ///
    /// # Errors
    /// `ParseError` (`MalformedXML`) for everything else.
    pub(super) fn parse(body: &[u8], root: &str) -> Result<Self, ObjectError> {
        if body.len() > XML_BYTES_MAX {
            return Err(malformed(root, format!("more than {XML_BYTES_MAX} bytes")));
        }
        let text = std::str::from_utf8(body).map_err(|_| malformed(root, "bytes that are not UTF-8"))?;
        let mut reader = Reader::from_str(text.strip_prefix('\u{FEFF}').unwrap_or(text));
        // The elements that are open, outermost first; the first stands for the document.
        let mut open = vec![Self::default()];
        loop {
            let innermost = open.last_mut().expect("the document is open");
            match reader.read_event().map_err(|error| malformed(root, error))? {
                Event::Start(start) => {
                    open.push(Self::named(&start));
                    if open.len() > XML_DEPTH_MAX {
                        return Err(malformed(root, format!("elements nested deeper than {XML_DEPTH_MAX}")));
                    }
                }
                Event::Empty(start) => innermost.children.push(Self::named(&start)),
                Event::End(_) => {
                    let ended = open.pop().expect("an element is open");
                    open.last_mut()
                        .ok_or_else(|| malformed(root, "an end without a beginning"))?
                        .children
                        .push(ended);
                }
                Event::Text(text) => innermost.text.push_str(&text.xml10_content()),
                Event::CData(text) => innermost.text.push_str(&text.xml10_content()),
                Event::GeneralRef(reference) => innermost.text.push(character(root, &reference)?),
                Event::DocType(_) => return Err(malformed(root, "a document type")),
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        let [document] = open.as_mut_slice() else {
            return Err(malformed(root, "an element without its end"));
        };
        let is_whole = document.children.len() == 1 && document.text.trim().is_empty();
        match document.children.pop() {
            Some(found) if is_whole && found.name == root => Ok(found),
            Some(other) => Err(malformed(root, format!("the element {}", other.name))),
            None => Err(malformed(root, "no element")),
        }
    }

    fn named(start: &BytesStart<'_>) -> Self {
        let sort = start.attributes().flatten().find(|one| one.key.local_name().as_ref() == "type");
        Self {
            name: start.local_name().as_ref().to_owned(),
            sort: sort.map(|one| one.value.into_owned()).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The text without the white space around it.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// The text as it came: names of objects may have white space at their ends.
    pub(super) fn whole_text(&self) -> &str {
        &self.text
    }

    /// The first element of this name inside.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first element of this name inside; `None` if it is absent or empty.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(Self::text).filter(|text| !text.is_empty())
    }

    /// The elements of this name inside.
    pub(super) fn all<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Checks that all elements inside have one of these names.
    pub(super) fn only(&self, names: &[&str]) -> Result<(), ObjectError> {
        match self.children.iter().find(|child| !names.contains(&child.name.as_str())) {
            None => Ok(()),
            Some(other) => Err(self.unexpected(&other.name)),
        }
    }

    /// The error that this element has something inside that does not belong there.
    pub(super) fn unexpected(&self, found: &str) -> ObjectError {
        malformed(&self.name, format!("{found:?} in it"))
    }
}

fn character(root: &str, reference: &BytesRef<'_>) -> Result<char, ObjectError> {
    let resolved = reference.resolve_char_ref().map_err(|error| malformed(root, error))?;
    if let Some(character) = resolved {
        return Ok(character);
    }
    match reference.xml10_content().as_ref() {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => Err(malformed(root, format!("the unknown entity {other}"))),
    }
}

fn malformed(expected: &str, found: impl std::fmt::Display) -> ObjectError {
    let message = format!("The body is not a well-formed {expected} document. Found: {found}.");
    ObjectError::new(ErrorKind::ParseError, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_document_becomes_a_tree() {
        let body = "<?xml version=\"1.0\"?>\n<x:A xmlns:x=\"n\"><!-- c --><B type='T'> a&amp;&#98; <C/></B><B/></x:A>";
        let root = Element::parse(body.as_bytes(), "A").expect("a document");
        let first = root.child("B").expect("B");
        assert_eq!((first.text(), first.sort.as_str(), root.all("B").count()), ("a&b", "T", 2));
        assert_eq!(root.text_of("B"), Some("a&b"));
        assert!(first.only(&["C"]).is_ok() && root.only(&["C"]).is_err());
    }

    #[test]
    fn other_bodies_are_refused() {
        let deep = "<A>".repeat(XML_DEPTH_MAX + 1);
        for body in
            ["", "text", "<B/>", "<A>", "<A/><A/>", "</A>", "<A>&x;</A>", "<!DOCTYPE A><A/>", "x<A/>", &deep]
        {
            let refused = Element::parse(body.as_bytes(), "A").expect_err(body);
            assert_eq!(refused.kind, ErrorKind::ParseError, "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in "(<A>)?[<>/&;\"a-zA ]{0,40}") {
            let _ = Element::parse(body.as_bytes(), "A");
        }
    }
}

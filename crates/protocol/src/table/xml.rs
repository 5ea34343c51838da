//! The part of XML that the table service uses: elements and text.
//!
//! A body is read into a small tree, within limits on bytes and depth. A document type is refused, so a body
//! cannot define entities that expand to large texts. Attributes, namespaces and comments have no meaning
//! here and are ignored. A byte order mark is accepted, and replies begin with one.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesRef, Event};

use super::limits::{XML_BYTES_MAX, XML_DEPTH_MAX};
use crate::error::{ErrorCode, TableError};

/// The beginning of the service's XML replies.
const PREAMBLE: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// An element: its name without a namespace prefix, the elements inside it, and its text.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) children: Vec<Element>,
    text: String,
}

impl Element {
    /// The text without the white space around it.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// The error that this element does not belong here: `InvalidXmlDocument`.
    pub(super) fn unexpected(&self) -> TableError {
        invalid(format!("the element {} is not expected here", self.name))
    }
}

/// `InvalidXmlDocument` with the text that SDKs compare, and the reason behind it.
pub(super) fn invalid(why: impl std::fmt::Display) -> TableError {
    TableError::new(
        ErrorCode::InvalidXmlDocument,
        format!("{} Found: {why}.", ErrorCode::InvalidXmlDocument.text()),
    )
}

/// Reads a document whose root element has the name `root`. Fails with `InvalidXmlDocument` if the document
/// is not well-formed, has a document type, is nested too deep, or has another root; with
/// `RequestBodyTooLarge` above [`XML_BYTES_MAX`].
pub(super) fn parse(body: &[u8], root: &str) -> Result<Element, TableError> {
    if body.len() > XML_BYTES_MAX {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let text = std::str::from_utf8(body).map_err(|_| invalid("bytes that are not UTF-8"))?;
    let mut reader = Reader::from_str(text.strip_prefix('\u{FEFF}').unwrap_or(text));
    // The elements that are open, outermost first; the first stands for the document.
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event().map_err(invalid)?;
        let ended = match event {
            Event::Start(start) => {
                if open.len() > XML_DEPTH_MAX {
                    return Err(invalid(format!("elements nested deeper than {XML_DEPTH_MAX}")));
                }
                open.push(named(start.local_name().as_ref()));
                None
            }
            Event::Empty(start) => Some(named(start.local_name().as_ref())),
            Event::End(_) => open.pop(),
            Event::Text(text) => {
                innermost(&mut open).text.push_str(&text.xml10_content());
                None
            }
            Event::CData(text) => {
                innermost(&mut open).text.push_str(&text.xml10_content());
                None
            }
            Event::GeneralRef(reference) => {
                innermost(&mut open).text.push(character(&reference)?);
                None
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => None,
            Event::DocType(_) => return Err(invalid("a document type")),
            Event::Eof => break,
        };
        if let Some(element) = ended {
            innermost(&mut open).children.push(element);
        }
    }
    let [document] = open.as_mut_slice() else {
        return Err(invalid("an element that is not closed"));
    };
    match (document.children.pop(), document.children.is_empty()) {
        (Some(element), true) if element.name == root && document.text().is_empty() => Ok(element),
        _ => Err(invalid(format!("a document that is not one element {root}"))),
    }
}

fn named(name: &str) -> Element {
    Element { name: name.to_owned(), ..Element::default() }
}

fn innermost(open: &mut [Element]) -> &mut Element {
    open.last_mut().expect("the reader reports no end without a start, so the document stays")
}

/// One of the five entities that XML itself defines, or a character by number.
fn character(reference: &BytesRef<'_>) -> Result<char, TableError> {
    if let Some(character) = reference.resolve_char_ref().map_err(invalid)? {
        return Ok(character);
    }
    match reference.xml10_content().as_ref() {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => Err(invalid(format!("the unknown entity {other}"))),
    }
}

/// `text` as the content of an element. Characters that XML does not allow become U+FFFD.
pub(super) fn escape_text(text: &str) -> Cow<'_, str> {
    let holdable = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        _ => c >= ' ',
    };
    if text.chars().all(holdable) {
        return partial_escape(text);
    }
    let held: String = text.chars().map(|c| if holdable(c) { c } else { '\u{FFFD}' }).collect();
    Cow::Owned(partial_escape(held).into_owned())
}

/// Writes a document in the service's form: without white space between elements, and with `<Name />` for
/// an element without content.
pub(super) struct Writer {
    out: String,
}

impl Writer {
    /// Begins a document with its byte order mark and declaration.
    pub(super) fn new() -> Self {
        Self { out: PREAMBLE.to_owned() }
    }

    /// Writes an element with the elements that `content` writes.
    pub(super) fn element(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        let begin = self.out.len();
        self.open(name);
        let inside = self.out.len();
        content(self);
        if self.out.len() == inside {
            self.out.truncate(begin);
            self.empty(name);
        } else {
            self.close(name);
        }
    }

    /// Writes an element with text.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.element(name, |writer| writer.out.push_str(&escape_text(text)));
    }

    /// The document's bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        self.out.into_bytes()
    }

    fn open(&mut self, name: &str) {
        self.out.extend(["<", name, ">"]);
    }

    fn close(&mut self, name: &str) {
        self.out.extend(["</", name, ">"]);
    }

    fn empty(&mut self, name: &str) {
        self.out.extend(["<", name, " />"]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_and_text_are_read() {
        let root = parse(
            b"\xEF\xBB\xBF<?xml version='1.0' encoding='utf-8'?>\n<!-- c --><s:A xmlns:s='u'> <B>x&amp;&#x41;<![CDATA[<]]> </B><C/></s:A>\n",
            "A",
        )
        .unwrap();
        let children: Vec<_> = root.children.iter().map(|c| (c.name.as_str(), c.text())).collect();
        assert_eq!(children, [("B", "x&A<"), ("C", "")]);
    }

    #[test]
    fn malformed_documents_are_refused() {
        let deep = "<A>".repeat(XML_DEPTH_MAX + 1) + &"</A>".repeat(XML_DEPTH_MAX + 1);
        let billion = r#"<!DOCTYPE A [<!ENTITY a "b">]><A>&a;</A>"#;
        for body in ["", "<A>", "<A/><A/>", "x<A/>", "<B/>", "<A></B>", "<A>&b;</A>", billion, &deep, "</A>"]
        {
            let error = parse(body.as_bytes(), "A").unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidXmlDocument, "{body}");
            assert!(error.text.starts_with("XML specified is not syntactically valid."), "{body}");
        }
        assert!(parse(b"<A>\xFF</A>", "A").is_err());
        let large = vec![b' '; XML_BYTES_MAX + 1];
        assert_eq!(parse(&large, "A").unwrap_err().code, ErrorCode::RequestBodyTooLarge);
    }

    proptest! {
        #[test]
        fn never_panics(body in "[<>/A &;!?\\[\\]\"'=#x-]{0,40}") {
            let _ = parse(body.as_bytes(), "A");
        }

        #[test]
        fn a_written_document_is_read_back(text in "\\PC*") {
            let mut writer = Writer::new();
            writer.element("A", |writer| writer.text("B", &text));
            let root = parse(&writer.finish(), "A").unwrap();
            prop_assert_eq!(root.children[0].text(), text.trim());
        }
    }
}

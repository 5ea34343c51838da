//! The composition of an object: `PUT` of it with `?compose`.
//!
//! ```xml
//! <ComposeRequest><Component><Name>a</Name><Generation>7</Generation></Component></ComposeRequest>
//! ```
//!
//! The headers describe the new object; also `Content-Type` and `Content-Encoding` are its own, and not those of this document.

use super::tree::Element;
use crate::object::error::ObjectError;
use crate::object::limits::COMPOSE_SOURCES_MAX;

/// An object whose bytes become a part of the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// The name.
    pub name: String,
    /// A generation, if one is named.
    pub generation: Option<u64>,
    /// The generation that must be live.
    pub generation_match: Option<u64>,
}

/// Reads the document.
///
/// # Errors
/// `ParseError` (`MalformedXML`) for another document; `Invalid` for one with no component or more than
/// [`COMPOSE_SOURCES_MAX`], and for a number that is not a generation.
pub fn read(body: &[u8]) -> Result<Vec<Component>, ObjectError> {
    let root = Element::parse(body, "ComposeRequest")?;
    root.only(&["Component"])?;
    let components: Vec<Component> = root.all("Component").map(Component::read).collect::<Result<_, _>>()?;
    if components.is_empty() || components.len() > COMPOSE_SOURCES_MAX {
        let hint = format!("Give 1 to {COMPOSE_SOURCES_MAX} components.");
        return Err(ObjectError::invalid("ComposeRequest", components.len(), &hint));
    }
    Ok(components)
}

impl Component {
    fn read(component: &Element) -> Result<Self, ObjectError> {
        component.only(&["Name", "Generation", "IfGenerationMatch"])?;
        let name = component.child("Name").map(Element::whole_text).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| component.unexpected("no Name"))?.to_owned();
        let number = |field: &str| {
            let read = |text: &str| {
                text.parse::<u64>().map_err(|_| ObjectError::invalid(field, text, "Give a generation."))
            };
            component.text_of(field).map(read).transpose()
        };
        Ok(Self { name, generation: number("Generation")?, generation_match: number("IfGenerationMatch")? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::error::ErrorKind;

    #[test]
    fn components_are_read_in_their_order() {
        let body = "<?xml version='1.0' encoding='UTF-8'?>\n<ComposeRequest>\n <Component><Name>b &amp; c </Name>\
                    <Generation>7</Generation></Component>\n <Component><Name>a</Name>\
                    <IfGenerationMatch> 8 </IfGenerationMatch></Component></ComposeRequest>";
        let component = |name: &str, generation, generation_match| Component {
            name: name.to_owned(),
            generation,
            generation_match,
        };
        let expected = vec![component("b & c ", Some(7), None), component("a", None, Some(8))];
        assert_eq!(read(body.as_bytes()), Ok(expected));
    }

    #[test]
    fn other_documents_are_refused() {
        let of = |inner: &str| format!("<ComposeRequest>{inner}</ComposeRequest>");
        let one = "<Component><Name>a</Name></Component>";
        assert_eq!(read(of(&one.repeat(COMPOSE_SOURCES_MAX)).as_bytes()).map(|found| found.len()), Ok(32));
        for (body, kind) in [
            (of(""), ErrorKind::Invalid),
            (of(&one.repeat(COMPOSE_SOURCES_MAX + 1)), ErrorKind::Invalid),
            (of("<Component><Name>a</Name><Generation>x</Generation></Component>"), ErrorKind::Invalid),
            (of("<Component/>"), ErrorKind::ParseError),
            (of("<Component><Name>a</Name><Size>1</Size></Component>"), ErrorKind::ParseError),
            (of("<Name>a</Name>"), ErrorKind::ParseError),
            (one.to_owned(), ErrorKind::ParseError),
            (String::new(), ErrorKind::ParseError),
        ] {
            assert_eq!(read(body.as_bytes()).expect_err(&body).kind, kind, "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in "(<ComposeRequest>)?(<Component>)?[<>/&;\"a-zN ]{0,40}") {
            let _ = read(body.as_bytes());
        }
    }
}

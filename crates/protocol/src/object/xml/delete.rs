//! The deletion of many objects in one request: `POST` of a bucket with `?delete`.

use super::tree::Element;
use super::writer::Writer;
use crate::object::error::ObjectError;
use crate::object::limits::DELETES_MAX;

const NAMESPACE: &str = "http://doc.s3.amazonaws.com/2006-03-01";

/// What a client wants deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRequest {
    /// Whether the answer tells only of objects that were not deleted.
    pub is_quiet: bool,
    /// The objects.
    pub targets: Vec<Target>,
}

/// An object that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name.
    pub name: String,
    /// A generation, if one is named.
    pub generation: Option<u64>,
}

impl DeleteRequest {
    /// Reads the document.
    ///
    /// # Errors
    /// `ParseError` (`MalformedXML`) for another document, one without objects, or one with more than [`DELETES_MAX`];
    /// `Invalid` for a version that is not a generation.
    pub fn read(body: &[u8]) -> Result<Self, ObjectError> {
        let root = Element::parse(body, "Delete")?;
        root.only(&["Object", "Quiet"])?;
        let targets: Vec<Target> = root.all("Object").map(Target::read).collect::<Result<_, _>>()?;
        if targets.is_empty() || targets.len() > DELETES_MAX {
            return Err(root.unexpected(&format!("{} objects, and not 1 to {DELETES_MAX}", targets.len())));
        }
        Ok(Self { is_quiet: root.text_of("Quiet") == Some("true"), targets })
    }

    /// The answer. `results` has one result for each target.
    pub fn answer(&self, results: &[Result<(), ObjectError>]) -> String {
        let mut writer = Writer::new("DeleteResult", NAMESPACE);
        for (target, result) in self.targets.iter().zip(results) {
            let generation = target.generation.map(|generation| generation.to_string());
            match result {
                Ok(()) if self.is_quiet => {}
                Ok(()) => {
                    writer.open("Deleted");
                    writer.text("Key", &target.name);
                    writer.optional("VersionId", generation.as_deref());
                    writer.close();
                }
                Err(error) => {
                    writer.open("Error");
                    writer.text("Key", &target.name);
                    writer.optional("VersionId", generation.as_deref());
                    writer.text("Code", error.xml_code());
                    writer.text("Message", &error.message);
                    writer.close();
                }
            }
        }
        writer.finish()
    }
}

impl Target {
    fn read(object: &Element) -> Result<Self, ObjectError> {
        let name = object.child("Key").map(Element::whole_text).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| object.unexpected("no Key"))?.to_owned();
        let number = |text: &str| {
            text.parse().map_err(|_| ObjectError::invalid("VersionId", text, "Give a generation."))
        };
        let generation =
            object.text_of("VersionId").filter(|text| *text != "null").map(number).transpose()?;
        Ok(Self { name, generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_objects_is_read_and_answered() {
        let body = "<Delete xmlns=\"x\"><Quiet>true</Quiet><Object><Key>a &amp; b </Key></Object>\
                    <Object><Key>c</Key><VersionId>7</VersionId></Object></Delete>";
        let mut read = DeleteRequest::read(body.as_bytes()).expect("a list");
        let target = |name: &str, generation| Target { name: name.to_owned(), generation };
        assert_eq!(read.targets, [target("a & b ", None), target("c", Some(7))]);
        let results = [Ok(()), Err(ObjectError::no_such_bucket())];
        let answer = read.answer(&results);
        assert!(
            !answer.contains("Deleted")
                && answer.contains("<Key>c</Key><VersionId>7</VersionId><Code>NoSuchBucket")
        );
        read.is_quiet = false;
        assert!(read.answer(&results).contains("<Deleted><Key>a &amp; b </Key></Deleted><Error>"));
    }

    #[test]
    fn other_lists_are_refused() {
        let many = format!("<Delete>{}</Delete>", "<Object><Key>a</Key></Object>".repeat(DELETES_MAX + 1));
        for body in [
            "<Delete/>",
            "<Delete><Object/></Delete>",
            "<Delete><Key>a</Key></Delete>",
            "<Delete><Object><Key>a</Key><VersionId>x</VersionId></Object></Delete>",
            &many,
        ] {
            assert!(DeleteRequest::read(body.as_bytes()).is_err(), "{}", &body[..20.min(body.len())]);
        }
    }
}

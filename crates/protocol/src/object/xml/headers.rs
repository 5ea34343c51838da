//! What the headers of a request say about a new object, and the conditions on it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::object::acl::{Acl, Predefined};
use crate::object::checksum::Announced;
use crate::object::condition::{Conditions, Tags};
use crate::object::error::ObjectError;
use crate::object::generation::{Draft, Settings};
use crate::object::micros::Micros;
use crate::object::storage_class::StorageClass;

/// Headers that are fields of the object, and the fields' names in JSON.
const FIELDS: [(&str, &str); 6] = [
    ("cache-control", "cacheControl"),
    ("content-disposition", "contentDisposition"),
    ("content-encoding", "contentEncoding"),
    ("content-language", "contentLanguage"),
    ("content-type", "contentType"),
    ("x-goog-custom-time", "customTime"),
];
/// How the names of the client's own metadata begin.
const METADATA: &str = "x-goog-meta-";

/// Reads the description of a new object from headers, or from the fields of a form, which have the same names.
/// Names are compared without regard to case.
///
/// # Errors
/// `Invalid` for a storage class, a list, a time or a size of the metadata that is not allowed.
pub fn draft<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    now: Micros,
) -> Result<Draft, ObjectError> {
    let mut body = Map::new();
    let mut metadata: BTreeMap<String, String> = BTreeMap::new();
    let mut draft = Draft::default();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let field = FIELDS.iter().find(|(header, _)| *header == name).map(|(_, field)| *field);
        match (name.as_str(), name.strip_prefix(METADATA), field) {
            (_, Some(key), _) => {
                metadata
                    .entry(key.to_owned())
                    .and_modify(|all| {
                        all.push(',');
                        all.push_str(value);
                    })
                    .or_insert_with(|| value.to_owned());
            }
            // A coding of the request, not of the object.
            (.., Some("contentEncoding")) if value.contains("aws-chunked") => {
                let others: Vec<&str> = value
                    .split(',')
                    .map(str::trim)
                    .filter(|one| !matches!(*one, "" | "aws-chunked"))
                    .collect();
                if !others.is_empty() {
                    body.insert("contentEncoding".to_owned(), Value::from(others.join(",")));
                }
            }
            (.., Some(field)) => {
                body.insert(field.to_owned(), Value::from(value));
            }
            ("x-goog-storage-class", ..) => draft.storage_class = Some(StorageClass::parse(value)?),
            ("x-goog-acl" | "acl", ..) => {
                draft.acl = Some(Acl::Predefined(Predefined::parse_header(value, false)?))
            }
            ("x-goog-encryption-kms-key-name", ..) => draft.kms_key = Some(value.to_owned()),
            _ => {}
        }
    }
    if !metadata.is_empty() {
        body.insert(
            "metadata".to_owned(),
            serde_json::to_value(metadata).expect("texts can be written as JSON"),
        );
    }
    draft.settings = Settings::from_body(&body, now)?;
    Ok(draft)
}

/// The checksums that `x-goog-hash` and `Content-MD5` announce.
///
/// # Errors
/// `Invalid` for an MD5 that cannot be read, and `WrongChecksum` for such a CRC32C.
pub fn announced<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Announced, ObjectError> {
    let mut announced = Announced::default();
    for (name, value) in headers {
        match name.to_ascii_lowercase().as_str() {
            "x-goog-hash" => announced.add_goog_hash(value)?,
            "content-md5" => announced.add_md5(value, "Content-MD5")?,
            _ => {}
        }
    }
    Ok(announced)
}

/// The conditions on the object, from `x-goog-if-...`, `If-Match` and `If-None-Match`.
///
/// # Errors
/// `Invalid` for a number that cannot be read.
pub fn conditions<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Result<Conditions, ObjectError> {
    let tags = |name: &str| header(name).map(Tags::parse);
    Ok(Conditions {
        tag_match: tags("if-match"),
        tag_not_match: tags("if-none-match"),
        ..numbers("x-goog-if", &header)?
    })
}

/// The conditions on the source of a copy, from `x-goog-copy-source-if-...`.
///
/// # Errors
/// `Invalid` for a number that cannot be read.
pub fn source_conditions<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Result<Conditions, ObjectError> {
    let tags = |name: &str| header(name).map(Tags::parse);
    let (fits, differs) = (tags("x-goog-copy-source-if-match"), tags("x-goog-copy-source-if-none-match"));
    Ok(Conditions { tag_match: fits, tag_not_match: differs, ..numbers("x-goog-copy-source-if", &header)? })
}

fn numbers<'a>(prefix: &str, header: &impl Fn(&str) -> Option<&'a str>) -> Result<Conditions, ObjectError> {
    let number = |name: &str| {
        let name = format!("{prefix}-{name}");
        let read = |text: &str| {
            text.parse().map_err(|_| ObjectError::invalid(&name, text, "Give a whole number from 0."))
        };
        header(&name).map(read).transpose()
    };
    Ok(Conditions {
        generation_match: number("generation-match")?,
        generation_not_match: number("generation-not-match")?,
        metageneration_match: number("metageneration-match")?,
        metageneration_not_match: number("metageneration-not-match")?,
        ..Conditions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_describe_a_new_object() {
        let headers = [
            ("Content-Type", "text/plain"),
            ("Cache-Control", "no-cache"),
            ("x-goog-meta-Color", "red"),
            ("X-Goog-Meta-color", "blue"),
            ("x-goog-storage-class", "NEARLINE"),
            ("x-goog-acl", "public-read"),
            ("x-goog-custom-time", "2026-11-24T10:00:00Z"),
            ("Content-Length", "5"),
            ("Content-Encoding", "gzip, aws-chunked"),
        ];
        let draft = draft(headers.into_iter(), Micros::new(1)).expect("a draft");
        assert_eq!(draft.settings.content_type.as_deref(), Some("text/plain"));
        assert_eq!(draft.settings.cache_control.as_deref(), Some("no-cache"));
        assert_eq!(draft.settings.content_encoding.as_deref(), Some("gzip"));
        assert_eq!(draft.settings.metadata["color"], "red,blue");
        assert_eq!(draft.storage_class.map(StorageClass::name), Some("NEARLINE"));
        assert!(draft.acl.is_some_and(|acl| acl.is_public()));
        assert!(draft.settings.custom_time.is_some());
        for (name, value) in
            [("x-goog-storage-class", "NONE"), ("x-goog-acl", "x"), ("x-goog-custom-time", "soon")]
        {
            assert!(super::draft([(name, value)].into_iter(), Micros::new(1)).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn headers_have_conditions_and_checksums() {
        let header = |name: &str| match name {
            "x-goog-if-generation-match" => Some("0"),
            "x-goog-copy-source-if-metageneration-match" => Some("4"),
            "if-none-match" => Some("\"a\""),
            _ => None,
        };
        let read = conditions(header).expect("conditions");
        assert_eq!((read.generation_match, read.metageneration_match), (Some(0), None));
        assert!(read.tag_not_match.is_some() && read.tag_match.is_none());
        assert_eq!(source_conditions(header).expect("conditions").metageneration_match, Some(4));
        assert!(conditions(|_| Some("x")).is_err());
        let announced = announced(
            [("x-goog-hash", "crc32c=n03x6A=="), ("X-Goog-Hash", "md5=Ojk9c3dhfxgoKVVHYwFbHQ==")].into_iter(),
        );
        let announced = announced.expect("checksums");
        assert!(announced.crc32c.is_some() && announced.md5.is_some());
    }
}

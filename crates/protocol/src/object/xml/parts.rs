//! The bodies of multipart uploads: an object that is sent in up to 10,000 parts, in any order.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::writer::Writer;
use crate::object::error::{ErrorKind, ObjectError, Particular};

/// The namespace that Python's client insists on.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
/// Bytes of the list of parts at the end of an upload.
pub const COMPLETE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The root element of that list.
const ROOT: &str = "CompleteMultipartUpload";
/// The greatest number of a part; the least is 1.
pub const PART_NUMBER_MAX: u32 = 10_000;

/// The answer to the beginning of an upload.
pub fn begun(bucket: &str, name: &str, upload: &str) -> String {
    let mut writer = Writer::new("InitiateMultipartUploadResult", NAMESPACE);
    writer.text("Bucket", bucket);
    writer.text("Key", name);
    writer.text("UploadId", upload);
    writer.finish()
}

/// The answer to the end of an upload. The tag is without quotes.
pub fn completed(location: &str, bucket: &str, name: &str, etag: &str) -> String {
    let mut writer = Writer::new("CompleteMultipartUploadResult", NAMESPACE);
    writer.text("Location", location);
    writer.text("Bucket", bucket);
    writer.text("Key", name);
    writer.text("ETag", &format!("\"{etag}\""));
    writer.finish()
}

/// The answer to a copy. The tag is without quotes.
pub fn copied(modified: &str, etag: &str) -> String {
    let mut writer = Writer::new("CopyObjectResult", NAMESPACE);
    writer.text("LastModified", modified);
    writer.text("ETag", &format!("\"{etag}\""));
    writer.finish()
}

/// The answer to a form that asks for the status 201. The tag is without quotes.
pub fn posted(location: &str, bucket: &str, name: &str, etag: &str) -> String {
    let mut writer = Writer::new("PostResponse", "");
    writer.text("Location", location);
    writer.text("Bucket", bucket);
    writer.text("Key", name);
    writer.text("ETag", &format!("\"{etag}\""));
    writer.finish()
}

/// An upload in a list of uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedUpload {
    /// The object's name.
    pub name: String,
    /// The id.
    pub upload: String,
    /// The name of the storage class.
    pub storage_class: String,
    /// When it began, as ISO 8601.
    pub begun: String,
}

/// The uploads of a bucket. `next` is the name and the upload id after which the next page begins, if there is one.
pub fn uploads(bucket: &str, uploads: &[ListedUpload], next: Option<(&str, &str)>) -> String {
    let mut writer = Writer::new("ListMultipartUploadsResult", NAMESPACE);
    writer.text("Bucket", bucket);
    if let Some((name, upload)) = next {
        writer.text("NextKeyMarker", name);
        writer.text("NextUploadIdMarker", upload);
    }
    writer.text("IsTruncated", if next.is_some() { "true" } else { "false" });
    for upload in uploads {
        writer.open("Upload");
        writer.text("Key", &upload.name);
        writer.text("UploadId", &upload.upload);
        writer.text("StorageClass", &upload.storage_class);
        writer.text("Initiated", &upload.begun);
        writer.close();
    }
    writer.finish()
}

/// A part in a list of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPart {
    /// Its number.
    pub number: u32,
    /// When it was stored, as ISO 8601.
    pub modified: String,
    /// Its entity tag, without quotes.
    pub etag: String,
    /// Bytes.
    pub size: u64,
}

/// The parts of an upload. `more` says whether there are others after the last of them.
pub fn listed(bucket: &str, upload: &ListedUpload, parts: &[ListedPart], more: bool) -> String {
    let mut writer = Writer::new("ListPartsResult", NAMESPACE);
    writer.text("Bucket", bucket);
    writer.text("Key", &upload.name);
    writer.text("UploadId", &upload.upload);
    writer.text("StorageClass", &upload.storage_class);
    if let Some(last) = parts.last().filter(|_| more) {
        writer.text("NextPartNumberMarker", &last.number.to_string());
    }
    writer.text("IsTruncated", if more { "true" } else { "false" });
    for part in parts {
        writer.open("Part");
        writer.text("PartNumber", &part.number.to_string());
        writer.text("LastModified", &part.modified);
        writer.text("ETag", &format!("\"{}\"", part.etag));
        writer.text("Size", &part.size.to_string());
        writer.close();
    }
    writer.finish()
}

/// Reads a number of a part.
///
/// # Errors
/// `Invalid` for another text than a whole number from 1 to [`PART_NUMBER_MAX`].
pub fn part_number(text: &str) -> Result<u32, ObjectError> {
    let number = text.parse().ok().filter(|number| (1..=PART_NUMBER_MAX).contains(number));
    number.ok_or_else(|| {
        ObjectError::invalid("partNumber", text, &format!("Give a whole number from 1 to {PART_NUMBER_MAX}."))
    })
}

/// Reads the list of parts at the end of an upload: numbers and entity tags without quotes, in the client's order.
///
/// # Errors
/// `ParseError` for a body that is not such a list (`MalformedXML`), or one without parts
/// (`MalformedCompleteMultipartUploadRequest`).
pub fn read_complete(body: &[u8]) -> Result<Vec<(u32, String)>, ObjectError> {
    if body.len() > COMPLETE_BYTES_MAX {
        return Err(malformed(format!("more than {COMPLETE_BYTES_MAX} bytes")));
    }
    let text = std::str::from_utf8(body).map_err(|_| malformed("bytes that are not UTF-8"))?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{FEFF}'));
    let mut path: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    let mut has_root = false;
    let (mut number, mut etag) = (String::new(), String::new());
    loop {
        let event = reader.read_event().map_err(malformed)?;
        let text = match event {
            Event::Start(start) => {
                if path.is_empty() && start.local_name().as_ref() != ROOT || path.len() == 3 {
                    return Err(malformed(format!("the element {}", start.local_name().as_ref())));
                }
                has_root = true;
                path.push(start.local_name().as_ref().to_owned());
                continue;
            }
            Event::End(_) => {
                if path.len() == 2 && path.pop().as_deref() == Some("Part") {
                    let tag = std::mem::take(&mut etag).trim().trim_matches('"').to_owned();
                    parts.push((part_number(std::mem::take(&mut number).trim())?, tag));
                } else {
                    path.pop();
                }
                continue;
            }
            Event::Text(text) => text.xml10_content().into_owned(),
            Event::CData(text) => text.xml10_content().into_owned(),
            Event::GeneralRef(reference) => match reference.xml10_content().as_ref() {
                "quot" | "#34" | "#x22" => "\"".to_owned(),
                other => return Err(malformed(format!("the entity {other}"))),
            },
            Event::DocType(_) => return Err(malformed("a document type")),
            Event::Eof => break,
            Event::Empty(start) if path.is_empty() => {
                has_root |= start.local_name().as_ref() == ROOT;
                continue;
            }
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
        };
        match path.last().filter(|_| path.len() == 3).map(String::as_str) {
            Some("PartNumber") => number.push_str(&text),
            Some("ETag") => etag.push_str(&text),
            _ => {}
        }
    }
    match (has_root && path.is_empty(), parts.is_empty()) {
        (true, false) => Ok(parts),
        (true, true) => Err(malformed("no part in it").with(Particular::NoParts)),
        (false, _) => Err(malformed("no list of parts, or one that is not closed")),
    }
}

fn malformed(found: impl std::fmt::Display) -> ObjectError {
    let message = format!("The list of parts was not a CompleteMultipartUpload document. Found: {found}.");
    ObjectError::new(ErrorKind::ParseError, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_parts_are_read_as_clients_write_them() {
        let body = "<?xml version=\"1.0\"?>\n<CompleteMultipartUpload xmlns=\"x\">\n <Part>\n  <PartNumber>1</PartNumber>\
            <ETag>&quot;a&#34;</ETag></Part><Part><ETag>\"b\"</ETag><PartNumber> 2 </PartNumber><Size/></Part>\
            </CompleteMultipartUpload>";
        let parts = read_complete(body.as_bytes()).expect("a list");
        assert_eq!(parts, [(1, "a".to_owned()), (2, "b".to_owned())]);
        let python = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>";
        assert_eq!(read_complete(python.as_bytes()), Ok(vec![(1, "a".to_owned())]));
    }

    #[test]
    fn other_bodies_are_refused() {
        for body in [
            "",
            "text",
            "<Other/>",
            "<CompleteMultipartUpload/>",
            "<CompleteMultipartUpload></CompleteMultipartUpload>",
            "<CompleteMultipartUpload><Part><PartNumber>0</PartNumber></Part></CompleteMultipartUpload>",
            "<CompleteMultipartUpload><Part><ETag>a</ETag></Part></CompleteMultipartUpload>",
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part>",
            "<!DOCTYPE a><CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
            "<CompleteMultipartUpload><Part><PartNumber><x>1</x></PartNumber></Part></CompleteMultipartUpload>",
        ] {
            assert!(read_complete(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn a_list_without_parts_has_a_code_of_its_own() {
        let code = |body: &str| read_complete(body.as_bytes()).expect_err(body).xml_code();
        for body in [
            "<CompleteMultipartUpload/>",
            "<CompleteMultipartUpload xmlns=\"x\"><Part/></CompleteMultipartUpload>",
        ] {
            assert_eq!(code(body), "MalformedCompleteMultipartUploadRequest", "{body}");
        }
        for body in ["", "text", "<Other/>", "<CompleteMultipartUpload>"] {
            assert_eq!(code(body), "MalformedXML", "{body}");
        }
    }

    #[test]
    fn answers_have_the_documented_form() {
        assert_eq!(
            begun("b", "n<", "u"),
            "<?xml version='1.0' encoding='UTF-8'?><InitiateMultipartUploadResult \
             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>b</Bucket><Key>n&lt;</Key>\
             <UploadId>u</UploadId></InitiateMultipartUploadResult>"
        );
        assert!(completed("http://h/b/n", "b", "n", "t").contains("<Key>n</Key><ETag>&quot;t&quot;</ETag>"));
        let upload = ListedUpload {
            name: "n".to_owned(),
            upload: "u".to_owned(),
            storage_class: "STANDARD".to_owned(),
            begun: "2026-11-24T10:00:00Z".to_owned(),
        };
        let part = ListedPart { number: 3, modified: "m".to_owned(), etag: "e".to_owned(), size: 9 };
        let text = listed("b", &upload, &[part], true);
        assert!(
            text.contains(
                "<NextPartNumberMarker>3</NextPartNumberMarker><IsTruncated>true</IsTruncated><Part>"
            )
        );
        let text = uploads("b", std::slice::from_ref(&upload), None);
        assert!(text.contains("<IsTruncated>false</IsTruncated><Upload><Key>n</Key><UploadId>u</UploadId>"));
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in "(<CompleteMultipartUpload>)?[<>/&;\"a-zPE ]{0,40}") {
            let _ = read_complete(body.as_bytes());
        }

        #[test]
        fn a_list_that_was_written_is_read_back(parts in prop::collection::vec((1..=PART_NUMBER_MAX, "[0-9a-f]{1,8}"), 1..8)) {
            let mut writer = Writer::new("CompleteMultipartUpload", NAMESPACE);
            for (number, etag) in &parts {
                writer.open("Part");
                writer.text("PartNumber", &number.to_string());
                writer.text("ETag", &format!("\"{etag}\""));
                writer.close();
            }
            prop_assert_eq!(read_complete(writer.finish().as_bytes()), Ok(parts));
        }
    }
}

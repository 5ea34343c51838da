//! The list of buckets, and what a client says of a new one.

use serde_json::{Map, Value, json};

use super::tree::Element;
use super::writer::Writer;
use crate::object::bucket::Bucket;
use crate::object::error::ObjectError;

const NAMESPACE: &str = "http://doc.s3.amazonaws.com/2006-03-01";

/// The answer to `GET` of the service: the buckets of a project. `owner` is the project's entity, and `next` the token of the
/// next page, if there is one.
pub fn listed(owner: &str, buckets: &[Bucket], next: Option<&str>) -> String {
    let mut writer = Writer::new("ListAllMyBucketsResult", NAMESPACE);
    writer.open("Owner");
    writer.text("ID", owner);
    writer.close();
    writer.open("Buckets");
    for bucket in buckets {
        writer.open("Bucket");
        writer.text("Name", &bucket.name);
        writer.text("CreationDate", &bucket.created.text());
        writer.close();
    }
    writer.close();
    writer.optional("ContinuationToken", next);
    writer.finish()
}

/// Reads the body of `PUT` of a bucket, which may be empty, as the body of an insert in the JSON API.
///
/// # Errors
/// `ParseError` (`MalformedXML`) for another document, and for settings that a new bucket cannot have here.
pub fn read_create(name: &str, body: &[u8]) -> Result<Map<String, Value>, ObjectError> {
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(name));
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(out);
    }
    let root = Element::parse(body, "CreateBucketConfiguration")?;
    for setting in &root.children {
        let (field, value) = match setting.name.as_str() {
            "LocationConstraint" => ("location", json!(setting.text())),
            "StorageClass" => ("storageClass", json!(setting.text())),
            "CustomPlacementConfig" => {
                let places = setting.child("DataLocations").unwrap_or(setting);
                let places: Vec<&str> = places.all("DataLocation").map(Element::text).collect();
                ("customPlacementConfig", json!({ "dataLocations": places }))
            }
            // Clients of Amazon S3 choose kinds of buckets that this service does not have.
            other => return Err(root.unexpected(other)),
        };
        if value != json!("") {
            out.insert(field.to_owned(), value);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_bucket_is_described_by_its_document() {
        let body = "<CreateBucketConfiguration><LocationConstraint>eu</LocationConstraint>\
                    <StorageClass>NEARLINE</StorageClass></CreateBucketConfiguration>";
        let read = read_create("photos", body.as_bytes()).map(Value::Object);
        assert_eq!(read, Ok(json!({"name": "photos", "location": "eu", "storageClass": "NEARLINE"})));
        assert_eq!(read_create("photos", b" ").map(Value::Object), Ok(json!({"name": "photos"})));
        let places = "<CreateBucketConfiguration><CustomPlacementConfig><DataLocations><DataLocation>A</DataLocation>\
                      <DataLocation>B</DataLocation></DataLocations></CustomPlacementConfig></CreateBucketConfiguration>";
        let read = read_create("photos", places.as_bytes()).expect("a document");
        assert_eq!(read["customPlacementConfig"], json!({"dataLocations": ["A", "B"]}));
        for body in ["<Other/>", "<CreateBucketConfiguration><Bucket/></CreateBucketConfiguration>"] {
            assert!(read_create("photos", body.as_bytes()).is_err(), "{body}");
        }
    }
}

//! Listings of a bucket's objects, in their two versions.
//!
//! | | version 1 | version 2 (`list-type=2`) |
//! |---|---|---|
//! | begins after | `marker` | `start-after`, or goes on at `continuation-token` |
//! | the next page | `NextMarker`: the last name or prefix | `NextContinuationToken` |

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::writer::Writer;
use crate::object::error::ObjectError;
use crate::object::request::Query;

const NAMESPACE: &str = "http://doc.s3.amazonaws.com/2006-03-01";
/// The most that a page has, and what it has if the client asks for no number.
const KEYS_MAX: u32 = 1000;
/// What `encoding-type=url` leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// What a listing asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListRequest {
    /// Whether it is of version 2.
    pub second_version: bool,
    /// Names begin with this text.
    pub prefix: String,
    /// Names are grouped up to this text; empty groups nothing.
    pub delimiter: String,
    /// Names come after this one.
    pub after: String,
    /// Where the page before this one ended (version 2).
    pub token: Option<String>,
    /// Names and prefixes of a page, at most 1,000.
    pub keys_max: u32,
    /// Whether names are percent-encoded in the answer.
    pub url_encoded: bool,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The name.
    pub name: String,
    /// The generation.
    pub generation: u64,
    /// The metageneration.
    pub metageneration: u64,
    /// When it was changed last, as ISO 8601.
    pub modified: String,
    /// The entity tag, without quotes.
    pub etag: String,
    /// Bytes.
    pub size: u64,
    /// The name of the storage class.
    pub storage_class: String,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The objects.
    pub objects: Vec<ListedObject>,
    /// The prefixes that stand for groups of objects.
    pub prefixes: Vec<String>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

impl ListRequest {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `Invalid` for a `max-keys`, `list-type` or `encoding-type` that is not known.
    pub fn read(query: &Query) -> Result<Self, ObjectError> {
        let text = |name: &str| query.get(name).filter(|text| !text.is_empty());
        let keys_max = match text("max-keys") {
            None => KEYS_MAX,
            Some(number) => number
                .parse::<u32>()
                .map(|number| number.min(KEYS_MAX))
                .map_err(|_| ObjectError::invalid("max-keys", number, "Give a whole number from 0."))?,
        };
        let second_version = match text("list-type") {
            None => false,
            Some("2") => true,
            Some(other) => return Err(ObjectError::invalid("list-type", other, "Give 2, or leave it out.")),
        };
        let url_encoded = match text("encoding-type") {
            None => false,
            Some("url") => true,
            Some(other) => {
                return Err(ObjectError::invalid("encoding-type", other, "Give url, or leave it out."));
            }
        };
        let owned = |name: &str| text(name).unwrap_or_default().to_owned();
        Ok(Self {
            second_version,
            prefix: owned("prefix"),
            delimiter: owned("delimiter"),
            after: owned(if second_version { "start-after" } else { "marker" }),
            token: text("continuation-token").filter(|_| second_version).map(str::to_owned),
            keys_max,
            url_encoded,
        })
    }

    /// Writes the answer.
    pub fn render(&self, bucket: &str, page: &Page) -> String {
        let encode = |text: &str| match self.url_encoded {
            true => utf8_percent_encode(text, PLAIN).to_string(),
            false => text.to_owned(),
        };
        let mut writer = Writer::new("ListBucketResult", NAMESPACE);
        writer.text("Name", bucket);
        writer.text("Prefix", &encode(&self.prefix));
        if self.second_version {
            writer.text("KeyCount", &(page.objects.len() + page.prefixes.len()).to_string());
            writer.optional("ContinuationToken", self.token.as_deref());
            writer.optional("NextContinuationToken", page.next.as_deref());
            writer.optional(
                "StartAfter",
                Some(self.after.as_str()).filter(|after| !after.is_empty()).map(&encode).as_deref(),
            );
        } else {
            writer.text("Marker", &encode(&self.after));
            writer.optional("NextMarker", page.next.as_deref().map(&encode).as_deref());
        }
        writer.optional(
            "Delimiter",
            Some(self.delimiter.as_str()).filter(|text| !text.is_empty()).map(&encode).as_deref(),
        );
        writer.text("MaxKeys", &self.keys_max.to_string());
        writer.optional("EncodingType", self.url_encoded.then_some("url"));
        writer.text("IsTruncated", if page.next.is_some() { "true" } else { "false" });
        for object in &page.objects {
            writer.open("Contents");
            writer.text("Key", &encode(&object.name));
            writer.text("Generation", &object.generation.to_string());
            writer.text("MetaGeneration", &object.metageneration.to_string());
            writer.text("LastModified", &object.modified);
            writer.text("ETag", &format!("\"{}\"", object.etag));
            writer.text("Size", &object.size.to_string());
            writer.text("StorageClass", &object.storage_class);
            writer.close();
        }
        for prefix in &page.prefixes {
            writer.open("CommonPrefixes");
            writer.text("Prefix", &encode(prefix));
            writer.close();
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> ListRequest {
        ListRequest::read(&Query::parse(query).expect("a query")).expect("a listing")
    }

    fn page() -> Page {
        let object = ListedObject {
            name: "a&b/c d".to_owned(),
            generation: 7,
            metageneration: 2,
            modified: "2026-11-24T10:00:00.123Z".to_owned(),
            etag: "CAc=".to_owned(),
            size: 5,
            storage_class: "STANDARD".to_owned(),
        };
        Page { objects: vec![object], prefixes: vec!["x/".to_owned()], next: Some("x/".to_owned()) }
    }

    #[test]
    fn a_page_of_the_first_version_has_markers() {
        assert_eq!(
            read("marker=a&delimiter=/&max-keys=2").render("bucket", &page()),
            "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns=\"http://doc.s3.amazonaws.com/2006-03-01\">\
             <Name>bucket</Name><Prefix></Prefix><Marker>a</Marker><NextMarker>x/</NextMarker><Delimiter>/</Delimiter>\
             <MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated><Contents><Key>a&amp;b/c d</Key><Generation>7</Generation>\
             <MetaGeneration>2</MetaGeneration><LastModified>2026-11-24T10:00:00.123Z</LastModified>\
             <ETag>&quot;CAc=&quot;</ETag><Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>\
             <CommonPrefixes><Prefix>x/</Prefix></CommonPrefixes></ListBucketResult>"
        );
    }

    #[test]
    fn a_page_of_the_second_version_has_tokens() {
        let text = read("list-type=2&start-after=a&prefix=p&encoding-type=url&max-keys=5000")
            .render("bucket", &page());
        for part in [
            "<Prefix>p</Prefix><KeyCount>2</KeyCount><NextContinuationToken>x/</NextContinuationToken>",
            "<StartAfter>a</StartAfter><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>",
            "<Key>a%26b/c%20d</Key>",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let last = read("list-type=2&continuation-token=t").render("bucket", &Page::default());
        assert!(last.contains(
            "<KeyCount>0</KeyCount><ContinuationToken>t</ContinuationToken><MaxKeys>1000</MaxKeys>"
        ));
        assert!(last.contains("<IsTruncated>false</IsTruncated></ListBucketResult>"));
    }

    #[test]
    fn parameters_that_are_not_known_are_refused() {
        for query in ["max-keys=-1", "max-keys=x", "list-type=3", "encoding-type=base64"] {
            assert!(ListRequest::read(&Query::parse(query).expect("a query")).is_err(), "{query}");
        }
    }
}

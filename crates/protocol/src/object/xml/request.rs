//! From the method, the path, the query and two headers to the operation.
//!
//! | request | of a bucket | of an object |
//! |---|---|---|
//! | `GET` | a listing; `?uploads`: its uploads | a download; `?uploadId=U`: the parts of an upload |
//! | `HEAD` | | its headers |
//! | `PUT` | | a new object; with `x-goog-copy-source` a copy; `?partNumber=N&uploadId=U`: a part; `?upload_id=U`: the bytes of a resumable upload |
//! | `POST` | a form with a policy | `?uploads`: a multipart upload begins; `?uploadId=U`: it ends; with `x-goog-resumable: start`, a resumable upload begins |
//! | `DELETE` | | the object; `?uploadId=U`, `?upload_id=U`: an upload |
//!
//! What else the API has is answered with 501 and its name.

use percent_encoding::percent_decode_str;

use super::parts::part_number;
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::request::Query;

/// Parameters that choose another resource than the object or the listing itself, and are not served.
const NOT_SERVED: [&str; 20] = [
    "acl",
    "billing",
    "compose",
    "cors",
    "defaultObjectAcl",
    "encryption",
    "encryptionConfig",
    "lifecycle",
    "location",
    "logging",
    "object-lock",
    "policy",
    "publicAccessBlock",
    "retention",
    "storageClass",
    "tagging",
    "torrent",
    "versioning",
    "versions",
    "website",
];

/// A request of the XML API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XmlRequest {
    /// It is about a bucket.
    Bucket(BucketCall, String),
    /// It is about an object: the bucket and the name.
    Object(ObjectCall, String, String),
}

/// What is done with a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketCall {
    /// Its objects are listed.
    List,
    /// Its multipart uploads are listed.
    ListUploads,
    /// A form uploads an object. The bucket is empty if a field of the form names it.
    PostForm,
}

/// What is done with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectCall {
    /// Its bytes are downloaded.
    Get,
    /// Its headers are asked for.
    Head,
    /// It is written.
    Put,
    /// It is written with the bytes of another object, or of one of its generations.
    Copy(CopySource),
    /// It is deleted.
    Delete,
    /// A resumable upload begins.
    BeginSession,
    /// A resumable upload of this id goes on, or says how far it is.
    ContinueSession(String),
    /// A resumable upload of this id is cancelled.
    CancelSession(String),
    /// A multipart upload begins.
    BeginUpload,
    /// A part of a multipart upload is sent.
    PutPart {
        /// The id of the upload.
        upload: String,
        /// The number of the part.
        number: u32,
    },
    /// A multipart upload of this id becomes the object.
    CompleteUpload(String),
    /// A multipart upload of this id is given up.
    AbortUpload(String),
    /// The parts of a multipart upload of this id are listed.
    ListParts(String),
}

/// The source of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySource {
    /// The bucket.
    pub bucket: String,
    /// The name.
    pub name: String,
}

impl XmlRequest {
    /// Finds the operation. `host_bucket` is the bucket that the host names, if it names one; `header` looks up a
    /// header.
    ///
    /// # Errors
    /// `Invalid` for a path that is not UTF-8, `NotImplemented` for what is not served, `MethodNotAllowed`.
    pub fn read<'a>(
        method: &str,
        path: &str,
        host_bucket: Option<&str>,
        query: &Query,
        header: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, ObjectError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, name) = match host_bucket {
            Some(bucket) => (bucket.to_owned(), decode(path)?),
            None => {
                let (bucket, name) = path.split_once('/').unwrap_or((path, ""));
                (decode(bucket)?, decode(name)?)
            }
        };
        if bucket.is_empty() && method == "POST" {
            return Ok(Self::Bucket(BucketCall::PostForm, bucket));
        }
        if bucket.is_empty() {
            return Err(ObjectError::not_implemented(&format!("{method} of the service in the XML API")));
        }
        if let Some(name) = NOT_SERVED.iter().find(|name| query.get(name).is_some()) {
            return Err(ObjectError::not_implemented(&format!("{method} with '{name}' in the XML API")));
        }
        if name.is_empty() {
            return BucketCall::read(method, query).map(|call| Self::Bucket(call, bucket));
        }
        ObjectCall::read(method, query, header).map(|call| Self::Object(call, bucket, name))
    }

    /// The name of the operation, for metrics and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bucket(BucketCall::List, _) => "xml.objects.list",
            Self::Bucket(BucketCall::ListUploads, _) => "xml.uploads.list",
            Self::Bucket(BucketCall::PostForm, _) => "xml.objects.form",
            Self::Object(call, ..) => match call {
                ObjectCall::Get => "xml.objects.get",
                ObjectCall::Head => "xml.objects.head",
                ObjectCall::Put => "xml.objects.put",
                ObjectCall::Copy(_) => "xml.objects.copy",
                ObjectCall::Delete => "xml.objects.delete",
                ObjectCall::BeginSession => "xml.sessions.begin",
                ObjectCall::ContinueSession(_) => "xml.sessions.continue",
                ObjectCall::CancelSession(_) => "xml.sessions.cancel",
                ObjectCall::BeginUpload => "xml.uploads.begin",
                ObjectCall::PutPart { .. } => "xml.parts.put",
                ObjectCall::CompleteUpload(_) => "xml.uploads.complete",
                ObjectCall::AbortUpload(_) => "xml.uploads.abort",
                ObjectCall::ListParts(_) => "xml.parts.list",
            },
        }
    }
}

impl BucketCall {
    fn read(method: &str, query: &Query) -> Result<Self, ObjectError> {
        match method {
            "GET" if query.get("uploads").is_some() => Ok(Self::ListUploads),
            "GET" => Ok(Self::List),
            "POST" if query.get("delete").is_none() => Ok(Self::PostForm),
            "HEAD" | "PUT" | "DELETE" | "POST" => {
                Err(ObjectError::not_implemented(&format!("{method} of a bucket in the XML API")))
            }
            other => Err(not_allowed(other, "a bucket")),
        }
    }
}

impl ObjectCall {
    fn read<'a>(
        method: &str,
        query: &Query,
        header: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, ObjectError> {
        let upload = query.get("uploadId").map(str::to_owned);
        let session = query.get("upload_id").map(str::to_owned);
        let copy = header("x-goog-copy-source");
        Ok(match (method, upload, session) {
            ("GET", Some(upload), _) => Self::ListParts(upload),
            ("GET", None, _) => Self::Get,
            ("HEAD", ..) => Self::Head,
            ("PUT", Some(_), _) if copy.is_some() => {
                return Err(ObjectError::not_implemented("A part that is copied, in the XML API"));
            }
            ("PUT", Some(upload), _) => {
                let number = query.get("partNumber").ok_or_else(|| ObjectError::required("partNumber"))?;
                Self::PutPart { upload, number: part_number(number)? }
            }
            ("PUT", None, Some(session)) => Self::ContinueSession(session),
            ("PUT", None, None) => match copy {
                Some(source) => Self::Copy(CopySource::parse(source)?),
                None => Self::Put,
            },
            ("POST", Some(upload), _) => Self::CompleteUpload(upload),
            ("POST", None, _) if query.get("uploads").is_some() => Self::BeginUpload,
            ("POST", None, Some(session)) => Self::ContinueSession(session),
            ("POST", None, None) if header("x-goog-resumable") == Some("start") => Self::BeginSession,
            ("POST", None, None) => {
                return Err(ObjectError::required("x-goog-resumable"));
            }
            ("DELETE", Some(upload), _) => Self::AbortUpload(upload),
            ("DELETE", None, Some(session)) => Self::CancelSession(session),
            ("DELETE", None, None) => Self::Delete,
            (other, ..) => return Err(not_allowed(other, "an object")),
        })
    }
}

impl CopySource {
    /// Reads `x-goog-copy-source`: `bucket/name`, percent-encoded, with or without a slash in front.
    ///
    /// # Errors
    /// `Invalid` if there is no bucket or no name.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let path = text.strip_prefix('/').unwrap_or(text);
        let parts = path.split_once('/').filter(|(bucket, name)| !bucket.is_empty() && !name.is_empty());
        let (bucket, name) = parts.ok_or_else(|| {
            ObjectError::invalid("x-goog-copy-source", text, "Give the source as bucket/name.")
        })?;
        Ok(Self { bucket: decode(bucket)?, name: decode(name)? })
    }
}

fn not_allowed(method: &str, of: &str) -> ObjectError {
    ObjectError::new(ErrorKind::MethodNotAllowed, format!("{method} is not a method for {of}."))
}

fn decode(text: &str) -> Result<String, ObjectError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(|text| text.into_owned())
        .map_err(|_| ObjectError::invalid("path", text, "Encode it as UTF-8."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(method: &str, target: &str, headers: &[(&str, &'static str)]) -> Result<XmlRequest, ObjectError> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = Query::parse(query).expect("a query");
        let header = |name: &str| headers.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        XmlRequest::read(method, path, None, &query, header)
    }

    fn object(call: ObjectCall, name: &str) -> Result<XmlRequest, ObjectError> {
        Ok(XmlRequest::Object(call, "b".to_owned(), name.to_owned()))
    }

    #[test]
    fn requests_about_objects_are_read() {
        let u = || "u".to_owned();
        for (method, target, expected) in [
            ("GET", "/b/a%2Fb//c%20?generation=1", object(ObjectCall::Get, "a/b//c ")),
            ("HEAD", "/%62/o", object(ObjectCall::Head, "o")),
            ("PUT", "/b/o+o", object(ObjectCall::Put, "o+o")),
            (
                "PUT",
                "/b/o?partNumber=3&uploadId=u",
                object(ObjectCall::PutPart { upload: u(), number: 3 }, "o"),
            ),
            ("PUT", "/b/o?upload_id=u", object(ObjectCall::ContinueSession(u()), "o")),
            ("POST", "/b/o?uploads", object(ObjectCall::BeginUpload, "o")),
            ("POST", "/b/o?uploads=", object(ObjectCall::BeginUpload, "o")),
            ("POST", "/b/o?uploadId=u", object(ObjectCall::CompleteUpload(u()), "o")),
            ("GET", "/b/o?uploadId=u", object(ObjectCall::ListParts(u()), "o")),
            ("DELETE", "/b/o?uploadId=u", object(ObjectCall::AbortUpload(u()), "o")),
            ("DELETE", "/b/o?upload_id=u", object(ObjectCall::CancelSession(u()), "o")),
            ("DELETE", "/b/o/", object(ObjectCall::Delete, "o/")),
        ] {
            assert_eq!(read(method, target, &[]), expected, "{method} {target}");
        }
        let source = CopySource { bucket: "b-x".to_owned(), name: "a/b".to_owned() };
        for text in ["b%2Dx/a%2Fb", "/b-x/a/b"] {
            let copy = [("x-goog-copy-source", text)];
            assert_eq!(read("PUT", "/b/o", &copy), object(ObjectCall::Copy(source.clone()), "o"));
        }
        let resumable = [("x-goog-resumable", "start")];
        assert_eq!(read("POST", "/b/o", &resumable), object(ObjectCall::BeginSession, "o"));
    }

    #[test]
    fn requests_about_buckets_are_read() {
        for (method, target, call) in [
            ("GET", "/b", BucketCall::List),
            ("GET", "/b/?list-type=2", BucketCall::List),
            ("GET", "/b?uploads", BucketCall::ListUploads),
            ("POST", "/b/", BucketCall::PostForm),
        ] {
            assert_eq!(
                read(method, target, &[]),
                Ok(XmlRequest::Bucket(call, "b".to_owned())),
                "{method} {target}"
            );
        }
        let query = Query::default();
        let by_host = XmlRequest::read("GET", "/b/o", Some("h"), &query, |_| None);
        assert_eq!(by_host, Ok(XmlRequest::Object(ObjectCall::Get, "h".to_owned(), "b/o".to_owned())));
        let by_host = XmlRequest::read("GET", "/", Some("h"), &query, |_| None);
        assert_eq!(by_host, Ok(XmlRequest::Bucket(BucketCall::List, "h".to_owned())));
    }

    #[test]
    fn what_is_not_served_is_named() {
        for (method, target, named) in [
            ("GET", "/", "GET of the service"),
            ("PUT", "/b", "PUT of a bucket"),
            ("GET", "/b?cors", "GET with 'cors'"),
            ("PUT", "/b/o?acl", "PUT with 'acl'"),
            ("POST", "/b?delete", "POST of a bucket"),
        ] {
            let refused = read(method, target, &[]).expect_err(target);
            assert_eq!(refused.kind, ErrorKind::NotImplemented, "{method} {target}");
            assert!(refused.message.contains(named), "{}", refused.message);
        }
        assert_eq!(read("PATCH", "/b/o", &[]).expect_err("PATCH").kind, ErrorKind::MethodNotAllowed);
        assert_eq!(read("PUT", "/b/o?partNumber=0&uploadId=u", &[]).expect_err("0").kind, ErrorKind::Invalid);
        assert_eq!(read("GET", "/b/%FF", &[]).expect_err("not UTF-8").kind, ErrorKind::Invalid);
        assert!(CopySource::parse("bucket").is_err());
    }

    proptest! {
        #[test]
        fn names_of_objects_are_read_as_they_were_encoded(name in "[^\0]{1,12}", every: bool) {
            let encode = |byte: u8| match byte {
                b'/' if !every => "/".to_owned(),
                byte => format!("%{byte:02X}"),
            };
            let path: String = name.bytes().map(encode).collect();
            prop_assert_eq!(read("GET", &format!("/b/{path}"), &[]), object(ObjectCall::Get, &name));
        }
    }
}

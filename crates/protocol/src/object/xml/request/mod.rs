//! From the method, the path, the query and two headers to the operation.
//!
//! | request | of the service | of a bucket | of an object |
//! |---|---|---|---|
//! | `GET` | the list of buckets | a listing; `?uploads`: its uploads; `?cors` and others: a [setting](Setting) | a download; `?uploadId=U`: the parts of an upload; `?acl`: its list |
//! | `HEAD` | | whether it is there | its headers |
//! | `PUT` | | a new bucket; `?cors` and others: a setting | a new object; with `x-goog-copy-source` a copy; `?compose`: one of other objects; `?partNumber=N&uploadId=U`: a part; `?upload_id=U`: the bytes of a resumable upload; `?acl`: its list |
//! | `POST` | | a form with a policy; `?delete`: deletes many objects | `?uploads`: a multipart upload begins; `?uploadId=U`: it ends; with `x-goog-resumable: start`, a resumable upload begins |
//! | `DELETE` | | the bucket | the object; `?uploadId=U`, `?upload_id=U`: an upload |
//!
//! What else the API has, or that of Amazon S3, is answered with 501 and its name.

mod bucket;
mod object;
#[cfg(test)]
mod tests;

use percent_encoding::percent_decode_str;

pub use self::bucket::BucketCall;
pub use self::object::{CopySource, ObjectCall};
pub use super::settings::Setting;
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::request::{Operation, Query};

/// A request of the XML API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XmlRequest {
    /// The buckets of a project are listed.
    ListBuckets,
    /// It is about a bucket.
    Bucket(BucketCall, String),
    /// It is about an object: the bucket and the name.
    Object(ObjectCall, String, String),
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
        match (method, bucket.is_empty(), name.is_empty()) {
            ("POST", true, _) => Ok(Self::Bucket(BucketCall::PostForm, bucket)),
            ("GET", true, true) => Ok(Self::ListBuckets),
            (_, true, _) => Err(not_allowed(method, "the service")),
            (_, false, true) => BucketCall::read(method, query).map(|call| Self::Bucket(call, bucket)),
            (_, false, false) => {
                ObjectCall::read(method, query, header).map(|call| Self::Object(call, bucket, name))
            }
        }
    }

    /// The operation of the JSON API that does the same, if there is one. Retry tests call operations by its name.
    pub fn operation(&self) -> Option<Operation> {
        match self {
            Self::ListBuckets => Some(Operation::BucketsList),
            Self::Bucket(call, _) => call.operation(),
            Self::Object(call, ..) => call.operation(),
        }
    }

    /// The name of the operation, for metrics and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ListBuckets => "xml.buckets.list",
            Self::Bucket(call, _) => call.name(),
            Self::Object(call, ..) => call.name(),
        }
    }
}

/// Fails if a parameter chooses a part of a resource that is not served.
fn refuse(method: &str, query: &Query, names: &[&str]) -> Result<(), ObjectError> {
    match names.iter().find(|name| query.get(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(ObjectError::not_implemented(&format!("{method} with '{name}' in the XML API"))),
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

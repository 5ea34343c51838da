//! What is done with a bucket.

use strum::IntoEnumIterator as _;

use super::{Setting, not_allowed, refuse};
use crate::object::error::ObjectError;
use crate::object::request::{Operation, Query};

/// Parameters that choose another resource than the bucket or its listing, and are not served. Most of them are of Amazon S3.
const NOT_SERVED: [&str; 14] = [
    "accelerate",
    "compose",
    "encryption",
    "notification",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "retention",
    "torrent",
    "versions",
    "website",
];

/// What is done with a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketCall {
    /// Its objects are listed.
    List,
    /// Its multipart uploads are listed.
    ListUploads,
    /// A form uploads an object. The bucket is empty if a field of the form names it.
    PostForm,
    /// It is made.
    Create,
    /// Whether it is there is asked for.
    Head,
    /// It is deleted.
    Delete,
    /// Many of its objects are deleted.
    DeleteObjects,
    /// A setting is asked for.
    Get(Setting),
    /// A setting is changed.
    Set(Setting),
}

impl BucketCall {
    pub(super) fn read(method: &str, query: &Query) -> Result<Self, ObjectError> {
        refuse(method, query, &NOT_SERVED)?;
        let has = |name: &str| query.get(name).is_some();
        let setting = Setting::iter().find(|setting| has(setting.parameter()));
        match (method, setting) {
            ("GET", Some(setting)) => Ok(Self::Get(setting)),
            ("PUT", Some(setting)) if setting.can_be_set() => Ok(Self::Set(setting)),
            (_, Some(setting)) => {
                let what = format!("{method} with '{}' in the XML API", setting.parameter());
                Err(ObjectError::not_implemented(&what))
            }
            ("GET", None) if has("uploads") => Ok(Self::ListUploads),
            ("GET", None) => Ok(Self::List),
            ("POST", None) if has("delete") => Ok(Self::DeleteObjects),
            ("POST", None) => Ok(Self::PostForm),
            ("PUT", None) => Ok(Self::Create),
            ("HEAD", None) => Ok(Self::Head),
            ("DELETE", None) => Ok(Self::Delete),
            (other, None) => Err(not_allowed(other, "a bucket")),
        }
    }

    pub(super) fn operation(&self) -> Option<Operation> {
        match self {
            Self::List => Some(Operation::ObjectsList),
            Self::PostForm => Some(Operation::ObjectsInsert),
            Self::Create => Some(Operation::BucketsInsert),
            Self::Head => Some(Operation::BucketsGet),
            Self::Delete => Some(Operation::BucketsDelete),
            Self::ListUploads | Self::DeleteObjects | Self::Get(_) | Self::Set(_) => None,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List => "xml.objects.list",
            Self::ListUploads => "xml.uploads.list",
            Self::PostForm => "xml.objects.form",
            Self::Create => "xml.buckets.create",
            Self::Head => "xml.buckets.head",
            Self::Delete => "xml.buckets.delete",
            Self::DeleteObjects => "xml.objects.deleteMany",
            Self::Get(_) => "xml.buckets.getSetting",
            Self::Set(_) => "xml.buckets.setSetting",
        }
    }
}

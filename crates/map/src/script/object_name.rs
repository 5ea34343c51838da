//! Objects and buckets, as people write them: `gs://photos/2024/a.jpg`.

use std::fmt;

use super::words::{Malformed, malformed, put_text, take_text};
use crate::key::BucketId;

/// What stands before a bucket.
const SCHEME: &str = "gs://";

/// A key of objects, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectName {
    /// Where the objects of all buckets begin.
    All,
    /// Where the objects of a bucket begin.
    Bucket(BucketRef),
    /// Where the rows of an object name begin.
    Object {
        /// The bucket.
        bucket: BucketRef,
        /// The object name.
        name: String,
    },
}

/// A bucket, by name or by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketRef {
    /// By name: the bucket that has the name now.
    Name(String),
    /// By id.
    Id(BucketId),
}

impl fmt::Display for BucketRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{SCHEME}{name}"),
            Self::Id(id) => write!(f, "{SCHEME}#{}", id.0),
        }
    }
}

/// Whether the name of a bucket can be written.
pub(super) fn is_bucket_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Whether the name of an object can be written without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "{SCHEME}*"),
            Self::Bucket(bucket) => write!(f, "{bucket}/*"),
            Self::Object { bucket, name } if is_plain(name) => write!(f, "{bucket}/{name}"),
            Self::Object { bucket, name } => {
                let mut text = String::new();
                put_text(&mut text, name);
                write!(f, "{bucket}/{text}")
            }
        }
    }
}

/// Reads a key of objects; `None` if the word does not begin as one.
pub(super) fn parse(word: &str) -> Option<Result<ObjectName, Malformed>> {
    word.strip_prefix(SCHEME).map(|rest| after_scheme(word, rest))
}

fn after_scheme(word: &str, rest: &str) -> Result<ObjectName, Malformed> {
    if rest == "*" {
        return Ok(ObjectName::All);
    }
    let Some((bucket, name)) = rest.split_once('/') else {
        return malformed(word, "a key of objects: write one as gs://bucket/name, or gs://bucket/*");
    };
    let bucket = match bucket.strip_prefix('#') {
        Some(id) => id.parse().ok().map(|id| BucketRef::Id(BucketId(id))),
        None => is_bucket_name(bucket).then(|| BucketRef::Name(bucket.to_owned())),
    };
    let Some(bucket) = bucket else {
        return malformed(word, "a bucket: write it as gs://photos, or as gs://#17 by its id");
    };
    if name == "*" {
        return Ok(ObjectName::Bucket(bucket));
    }
    if is_plain(name) {
        return Ok(ObjectName::Object { bucket, name: name.to_owned() });
    }
    match take_text(name)? {
        (name, "") => Ok(ObjectName::Object { bucket, name }),
        (_, rest) => malformed(rest, "the end of a key: put the name of the object in quotes"),
    }
}

//! An upload by a session, as its writer knows it.

use super::BUCKET;
use crate::http::{Answer, Request};

/// An upload by a session that is under way.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) upload: String,
    pub(super) name: String,
    pub(super) bytes: String,
    /// Bytes that the service has told to be stored.
    pub(super) told: usize,
}

impl Session {
    /// A request of this upload; `range` is its `Content-Range`.
    pub(super) fn request(&self, range: &str, bytes: &str) -> Request {
        let (bucket, upload) = (place(&self.name).0, &self.upload);
        let target = format!("/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={upload}");
        Request::new("PUT", &target, &[("Content-Range", range)], bytes.as_bytes())
    }

    /// How many bytes an answer tells to be stored.
    pub(super) fn told_by(&self, answer: &Answer) -> Option<usize> {
        match answer.header("range") {
            None => Some(0),
            Some(range) => range.strip_prefix("bytes=0-")?.parse::<usize>().ok().map(|last| last + 1),
        }
    }
}

/// The bucket and the object that a name stands for; only the names in buckets of a writer's own say which bucket.
pub(super) fn place(name: &str) -> (&str, &str) {
    name.split_once('/').filter(|(bucket, _)| bucket.starts_with(BUCKET)).unwrap_or((BUCKET, name))
}

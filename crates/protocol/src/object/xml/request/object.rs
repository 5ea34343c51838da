//! What is done with an object.

use super::{decode, not_allowed, refuse};
use crate::object::error::ObjectError;
use crate::object::request::{Operation, Query};
use crate::object::xml::parts::part_number;

/// Parameters that choose another resource than the object, and are not served.
const NOT_SERVED: [&str; 8] =
    ["attributes", "encryption", "legal-hold", "restore", "retention", "select", "tagging", "torrent"];

/// What is done with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectCall {
    /// Its bytes are downloaded.
    Get,
    /// Its headers are asked for.
    Head,
    /// Its access control list is asked for.
    GetAcl,
    /// Its access control list is replaced.
    SetAcl,
    /// It is written.
    Put,
    /// It is written with the bytes of another object, or of one of its generations.
    Copy(CopySource),
    /// It is written with the bytes of other objects of its bucket, one behind another.
    Compose,
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
    /// The generation, if the source names one as clients of Amazon S3 do.
    pub generation: Option<u64>,
}

impl ObjectCall {
    pub(super) fn read<'a>(
        method: &str,
        query: &Query,
        header: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, ObjectError> {
        refuse(method, query, &NOT_SERVED)?;
        if query.get("acl").is_some() {
            return match method {
                "GET" => Ok(Self::GetAcl),
                "PUT" => Ok(Self::SetAcl),
                other => Err(not_allowed(other, "an access control list")),
            };
        }
        if query.get("compose").is_some() {
            return match method {
                "PUT" => Ok(Self::Compose),
                other => Err(not_allowed(other, "a composition")),
            };
        }
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

    pub(super) fn operation(&self) -> Option<Operation> {
        match self {
            Self::Get | Self::Head => Some(Operation::ObjectsGet),
            Self::Put | Self::BeginSession | Self::ContinueSession(_) | Self::CancelSession(_) => {
                Some(Operation::ObjectsInsert)
            }
            Self::Copy(_) => Some(Operation::ObjectsCopy),
            Self::Compose => Some(Operation::ObjectsCompose),
            Self::Delete => Some(Operation::ObjectsDelete),
            Self::GetAcl
            | Self::SetAcl
            | Self::BeginUpload
            | Self::PutPart { .. }
            | Self::CompleteUpload(_)
            | Self::AbortUpload(_)
            | Self::ListParts(_) => None,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Get => "xml.objects.get",
            Self::Head => "xml.objects.head",
            Self::GetAcl => "xml.objects.getAcl",
            Self::SetAcl => "xml.objects.setAcl",
            Self::Put => "xml.objects.put",
            Self::Copy(_) => "xml.objects.copy",
            Self::Compose => "xml.objects.compose",
            Self::Delete => "xml.objects.delete",
            Self::BeginSession => "xml.sessions.begin",
            Self::ContinueSession(_) => "xml.sessions.continue",
            Self::CancelSession(_) => "xml.sessions.cancel",
            Self::BeginUpload => "xml.uploads.begin",
            Self::PutPart { .. } => "xml.parts.put",
            Self::CompleteUpload(_) => "xml.uploads.complete",
            Self::AbortUpload(_) => "xml.uploads.abort",
            Self::ListParts(_) => "xml.parts.list",
        }
    }
}

impl CopySource {
    /// Reads `x-goog-copy-source`: `bucket/name`, percent-encoded, with or without a slash in front; clients of Amazon S3 add
    /// `?versionId=G`.
    ///
    /// # Errors
    /// `Invalid` if there is no bucket or no name, or a version that is not a generation.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let invalid = |hint| ObjectError::invalid("x-goog-copy-source", text, hint);
        let (path, version) = match text.rsplit_once("?versionId=") {
            Some((path, version)) => (path, Some(version)),
            None => (text, None),
        };
        let path = path.strip_prefix('/').unwrap_or(path);
        let parts = path.split_once('/').filter(|(bucket, name)| !bucket.is_empty() && !name.is_empty());
        let (bucket, name) = parts.ok_or_else(|| invalid("Give the source as bucket/name."))?;
        let generation = version.map(|version| version.parse().map_err(|_| invalid("Give a generation.")));
        Ok(Self { bucket: decode(bucket)?, name: decode(name)?, generation: generation.transpose()? })
    }
}

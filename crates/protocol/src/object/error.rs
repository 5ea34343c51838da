//! Why a request about buckets and objects is refused.
//!
//! The JSON API and the XML API answer the same refusals in two forms. [`ErrorKind`] lists the refusals, each
//! with its status, its `reason` in JSON and its `Code` in XML; [`ObjectError`] adds the message and, for
//! JSON, the parameter that was wrong. Bodies of downloads are answered with the message alone, as plain text.
//!
//! ```json
//! {"error":{"code":404,"message":"No such object: b/o",
//!           "errors":[{"message":"No such object: b/o","domain":"global","reason":"notFound"}]}}
//! ```
//!
//! Texts that are in quotes in the documentation of a constructor were recorded from the real service or are
//! asserted by its clients' tests.

use serde::Serialize;

/// What is refused. It decides the status and the words for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// 304: the caller already has what it asks for. It has no body.
    NotModified,
    /// 400: a parameter or field is missing.
    Required,
    /// 400: a parameter or field has a value that is not allowed.
    Invalid,
    /// 400: the body is not JSON, or a part of a body is malformed.
    ParseError,
    /// 400: the bytes that arrived do not have the checksum that the client announced.
    WrongChecksum,
    /// 400: a list of parts names one that was not sent.
    InvalidPart,
    /// 400: a list of parts is not in ascending order.
    InvalidPartOrder,
    /// 400: a part that is not the last has too few bytes.
    PartTooSmall,
    /// 400: the request's signature was valid until a time that has passed.
    ExpiredSignature,
    /// 400: the request's signature names a header that did not come.
    MalformedHeader,
    /// 400: a form does not meet the conditions of its policy.
    InvalidPolicy,
    /// 400: the object needs the key with which it was encrypted, and none came.
    CustomerKey,
    /// 400: the algorithm of a key is missing, or not the one that is known.
    CustomerKeyAlgorithm,
    /// 400: a key is missing beside its hash or algorithm, or is not a key.
    CustomerKeyFormat,
    /// 400: the hash of a key is missing, or is that of another key.
    CustomerKeyHash,
    /// 400: the object was encrypted with another key.
    WrongCustomerKey,
    /// 400: a key came for an object that was encrypted without one.
    NoCustomerKey,
    /// 401: the request names nobody, or a token that is not known.
    Unauthenticated,
    /// 403: the caller may not do this.
    Forbidden,
    /// 403: the request's signature does not fit the request.
    WrongSignature,
    /// 403: a retention policy protects the object or cannot be weakened.
    Retention,
    /// 403: a hold protects the object.
    Hold,
    /// 404: there is no such bucket.
    NoSuchBucket,
    /// 404: there is no such object or generation.
    NoSuchObject,
    /// 404: there is no such upload, or it has ended.
    NoSuchUpload,
    /// 404: anything else that does not exist.
    NotFound,
    /// 405: the path exists, and not with this method.
    MethodNotAllowed,
    /// 408: the body came too slowly.
    Timeout,
    /// 409: the bucket's name is taken.
    BucketExists,
    /// 409: the bucket still has objects.
    BucketNotEmpty,
    /// 409: anything else that stands in the way.
    Conflict,
    /// 410: an upload that cannot go on.
    Gone,
    /// 411: the request says no length where one is needed.
    LengthRequired,
    /// 412: a condition of the request does not hold.
    ConditionNotMet,
    /// 412: a rule of the bucket forbids it, for example public access prevention.
    BucketRule,
    /// 413: more bytes than are allowed.
    TooLarge,
    /// 416: the object has none of the bytes that were asked for.
    RangeNotSatisfiable,
    /// 429: too many requests for one object, bucket or server.
    RateLimited,
    /// 499: the upload was cancelled by the client.
    Cancelled,
    /// 500: a mistake of this server, or damage.
    Internal,
    /// 501: this server does not have what is asked for.
    NotImplemented,
    /// 503: not now; try again.
    Unavailable,
    /// 503: the write may or may not have been made.
    OutcomeUnknown,
}

impl ErrorKind {
    /// The HTTP status, the `reason` of JSON and the `Code` of XML.
    const fn row(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::NotModified => (304, "notModified", "NotModified"),
            Self::Required => (400, "required", "InvalidArgument"),
            Self::Invalid => (400, "invalid", "InvalidArgument"),
            Self::ParseError => (400, "parseError", "MalformedXML"),
            Self::WrongChecksum => (400, "invalid", "BadDigest"),
            Self::InvalidPart => (400, "invalid", "InvalidPart"),
            Self::InvalidPartOrder => (400, "invalid", "InvalidPartOrder"),
            Self::PartTooSmall => (400, "invalid", "EntityTooSmall"),
            Self::ExpiredSignature => (400, "invalid", "ExpiredToken"),
            Self::MalformedHeader => (400, "invalid", "MalformedSecurityHeader"),
            Self::InvalidPolicy => (400, "invalid", "InvalidPolicyDocument"),
            Self::CustomerKey => (
                400,
                "resourceIsEncryptedWithCustomerEncryptionKey",
                "ResourceIsEncryptedWithCustomerEncryptionKey",
            ),
            Self::CustomerKeyAlgorithm => {
                (400, "customerEncryptionAlgorithmIsInvalid", "CustomerEncryptionAlgorithmIsInvalid")
            }
            Self::CustomerKeyFormat => {
                (400, "customerEncryptionKeyFormatIsInvalid", "CustomerEncryptionKeyFormatIsInvalid")
            }
            Self::CustomerKeyHash => {
                (400, "customerEncryptionKeySha256IsInvalid", "CustomerEncryptionKeySha256IsInvalid")
            }
            Self::WrongCustomerKey => {
                (400, "customerEncryptionKeyIsIncorrect", "CustomerEncryptionKeyIsIncorrect")
            }
            Self::NoCustomerKey => (
                400,
                "resourceNotEncryptedWithCustomerEncryptionKey",
                "ResourceNotEncryptedWithCustomerEncryptionKey",
            ),
            Self::Unauthenticated => (401, "authError", "AuthenticationRequired"),
            Self::Forbidden => (403, "forbidden", "AccessDenied"),
            Self::WrongSignature => (403, "forbidden", "SignatureDoesNotMatch"),
            Self::Retention => (403, "retentionPolicyNotMet", "RetentionPolicyNotMet"),
            Self::Hold => (403, "objectUnderActiveHold", "ObjectUnderActiveHold"),
            Self::NoSuchBucket => (404, "notFound", "NoSuchBucket"),
            Self::NoSuchObject => (404, "notFound", "NoSuchKey"),
            Self::NoSuchUpload => (404, "notFound", "NoSuchUpload"),
            Self::NotFound => (404, "notFound", "NoSuchResource"),
            Self::MethodNotAllowed => (405, "methodNotAllowed", "MethodNotAllowed"),
            Self::Timeout => (408, "requestTimeout", "RequestTimeout"),
            Self::BucketExists => (409, "conflict", "BucketAlreadyExists"),
            Self::BucketNotEmpty => (409, "conflict", "BucketNotEmpty"),
            Self::Conflict => (409, "conflict", "OperationAborted"),
            Self::Gone => (410, "gone", "NoSuchUpload"),
            Self::LengthRequired => (411, "lengthRequired", "MissingContentLength"),
            Self::ConditionNotMet | Self::BucketRule => (412, "conditionNotMet", "PreconditionFailed"),
            Self::TooLarge => (413, "uploadTooLarge", "EntityTooLarge"),
            Self::RangeNotSatisfiable => (416, "requestedRangeNotSatisfiable", "InvalidRange"),
            Self::RateLimited => (429, "rateLimitExceeded", "SlowDown"),
            Self::Cancelled => (499, "clientClosedRequest", "ClientClosedRequest"),
            Self::Internal => (500, "internalError", "InternalError"),
            Self::NotImplemented => (501, "notImplemented", "NotImplemented"),
            Self::Unavailable | Self::OutcomeUnknown => (503, "backendError", "ServiceUnavailable"),
        }
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        self.row().0
    }

    /// The word for programs in an error of the JSON API.
    pub const fn reason(self) -> &'static str {
        self.row().1
    }

    /// The word for programs in an error of the XML API.
    pub const fn xml_code(self) -> &'static str {
        self.row().2
    }
}

/// What a refusal has that others of its kind do not have. Its reply says it to programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Particular {
    /// The object of which a range was asked for has so many bytes.
    Size(u64),
    /// The checksum that differs is a CRC32C.
    Crc32c,
    /// The list that ends a multipart upload names no part.
    NoParts,
    /// The requesters of the bucket pay, and the request does not say who does.
    NoUserProject,
    /// A retry test ordered this status. No refusal of this server may have it.
    Ordered(u16),
}

/// A refusal of a request about buckets or objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ObjectError {
    /// What is refused.
    pub kind: ErrorKind,
    /// Why, for people. It has the value that was wrong.
    pub message: String,
    /// The parameter, header or field that was wrong; empty if none was.
    pub location: String,
    /// What others of its kind do not have.
    pub particular: Option<Particular>,
}

impl ObjectError {
    /// A refusal that names no parameter.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), location: String::new(), particular: None }
    }

    /// The same refusal, which names the parameter, header or field that was wrong.
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = location.into();
        self
    }

    /// The same refusal, with what others of its kind do not have.
    pub fn with(mut self, particular: Particular) -> Self {
        self.particular = Some(particular);
        self
    }

    /// "No such object: bucket/name": there is no live generation, or not the one that was asked for.
    pub fn no_such_object(bucket: &str, name: &str) -> Self {
        Self::new(ErrorKind::NoSuchObject, format!("No such object: {bucket}/{name}"))
    }

    /// "The specified bucket does not exist."
    pub fn no_such_bucket() -> Self {
        Self::new(ErrorKind::NoSuchBucket, "The specified bucket does not exist.")
    }

    /// There is no such upload, or it has ended.
    pub fn no_such_upload(upload: &str) -> Self {
        let message = format!("There is no upload {upload:?}; begin a new one.");
        Self::new(ErrorKind::NoSuchUpload, message).at("upload_id")
    }

    /// A `field` of the request is missing.
    pub fn required(field: &str) -> Self {
        Self::new(ErrorKind::Required, format!("Required parameter: {field}")).at(field)
    }

    /// `field` of the request has a value that is not allowed; `hint` says what is.
    pub fn invalid(field: &str, value: impl std::fmt::Display, hint: &str) -> Self {
        let message = format!("Invalid value for {field}: '{}'. {hint}", Shown(&value.to_string()));
        Self::new(ErrorKind::Invalid, message.trim_end()).at(field)
    }

    /// A condition does not hold, and the request is a write or asks for a match. "At least one of the
    /// pre-conditions you specified did not hold."
    pub fn condition_not_met(location: &str) -> Self {
        let message = "At least one of the pre-conditions you specified did not hold.";
        Self::new(ErrorKind::ConditionNotMet, message).at(location)
    }

    /// A read whose caller already has what is stored.
    pub fn not_modified() -> Self {
        Self::new(ErrorKind::NotModified, "")
    }

    /// "Bucket is a requester pays bucket but no user project provided."
    pub fn no_user_project() -> Self {
        let message = "Bucket is a requester pays bucket but no user project provided.";
        Self::new(ErrorKind::Required, message).with(Particular::NoUserProject)
    }

    /// This server does not have `what`, for example "storage.folders.insert".
    pub fn not_implemented(what: &str) -> Self {
        Self::new(ErrorKind::NotImplemented, format!("{what} is not implemented by this server."))
    }

    /// "Request range not satisfiable": the object of `size` bytes has none of the bytes asked for.
    pub fn range_not_satisfiable(range: &str, size: u64) -> Self {
        let message = format!("Request range not satisfiable: {} of an object of {size} bytes", Shown(range));
        Self::new(ErrorKind::RangeNotSatisfiable, message).at("Range").with(Particular::Size(size))
    }

    /// Too many changes of one object. The text is that of the real service.
    pub fn object_rate(bucket: &str, name: &str) -> Self {
        let message = format!(
            "The object {bucket}/{name} exceeded the rate limit for object mutation operations (create, \
             update, and delete). Please reduce your request rate. See \
             https://cloud.google.com/storage/docs/gcs429."
        );
        Self::new(ErrorKind::RateLimited, message)
    }

    /// A stored row cannot be read. `what` says which row and why.
    pub fn damaged(what: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::Internal, format!("A stored row is damaged: {what}"))
    }

    /// The word for programs in the XML API.
    pub const fn xml_code(&self) -> &'static str {
        match self.particular {
            Some(Particular::NoParts) => "MalformedCompleteMultipartUploadRequest",
            Some(Particular::NoUserProject) => "UserProjectMissing",
            _ => self.kind.xml_code(),
        }
    }

    /// The body of the refusal in the JSON API. It is empty for a 304.
    pub fn json_body(&self) -> Vec<u8> {
        if self.kind == ErrorKind::NotModified {
            return Vec::new();
        }
        let named = !self.location.is_empty();
        let is_header = self.location.starts_with(|c: char| c.is_ascii_uppercase());
        let detail = Detail {
            message: &self.message,
            domain: if self.kind == ErrorKind::RateLimited { "usageLimits" } else { "global" },
            reason: self.kind.reason(),
            location_type: named.then_some(if is_header { "header" } else { "parameter" }),
            location: named.then_some(&self.location),
        };
        let error = Outer { code: self.kind.status(), message: &self.message, errors: [detail] };
        serde_json::to_vec(&Body { error }).expect("texts and numbers can always be written as JSON")
    }
}

/// At most 200 characters of a client's text, for messages.
struct Shown<'a>(&'a str);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.char_indices().nth(200) {
            Some((end, _)) => write!(f, "{}...", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    error: Outer<'a>,
}

#[derive(Serialize)]
struct Outer<'a> {
    code: u16,
    message: &'a str,
    errors: [Detail<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    message: &'a str,
    domain: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_documented_form() {
        let missing = ObjectError::no_such_object("b", "a \"name\"").json_body();
        assert_eq!(
            String::from_utf8(missing).expect("JSON is UTF-8"),
            r#"{"error":{"code":404,"message":"No such object: b/a \"name\"","errors":[{"message":"No such object: b/a \"name\"","domain":"global","reason":"notFound"}]}}"#
        );
        let condition = ObjectError::condition_not_met("If-Match").json_body();
        let text = String::from_utf8(condition).expect("JSON is UTF-8");
        assert!(text.contains(r#""reason":"conditionNotMet","locationType":"header","location":"If-Match""#));
        let parameter = ObjectError::required("project").json_body();
        let text = String::from_utf8(parameter).expect("JSON is UTF-8");
        assert!(text.contains(r#""locationType":"parameter","location":"project""#));
        assert!(ObjectError::not_modified().json_body().is_empty());
    }

    #[test]
    fn a_long_value_is_cut_in_messages() {
        let error = ObjectError::invalid("name", "é".repeat(5_000), "Use at most 1024 bytes.");
        assert!(error.message.len() < 600, "{}", error.message);
        assert!(error.message.ends_with("... Use at most 1024 bytes.") || error.message.contains("...'"));
    }
}

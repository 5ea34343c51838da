//! The bodies of refusals.
//!
//! ```xml
//! <Error><Code>NoSuchKey</Code><Message>...</Message><Details>...</Details></Error>
//! ```
//!
//! `Code` is for programs, `Message` is one fixed sentence for each code, and `Details` says what was wrong this time.
//! Python's client of multipart uploads insists on all three.

use super::writer::Writer;
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::policy::PolicyError;
use crate::object::signed::SignedError;

/// A refusal as the XML API tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlError {
    /// The HTTP status.
    pub status: u16,
    /// The word for programs.
    pub code: &'static str,
    /// What went wrong this time.
    pub details: String,
    /// More elements, which the service adds to some refusals: names and texts.
    pub more: Vec<(&'static str, String)>,
}

impl XmlError {
    /// A refusal without more elements.
    pub fn new(status: u16, code: &'static str, details: impl Into<String>) -> Self {
        Self { status, code, details: details.into(), more: Vec::new() }
    }

    /// The body. It is empty for a 304.
    pub fn body(&self) -> Vec<u8> {
        if self.status == 304 {
            return Vec::new();
        }
        let mut writer = Writer::new("Error", "");
        writer.text("Code", self.code);
        writer.text("Message", message(self.code));
        writer.text("Details", &self.details);
        for (name, text) in &self.more {
            writer.text(name, text);
        }
        writer.finish().into_bytes()
    }
}

/// The sentence that belongs to a code.
fn message(code: &str) -> &'static str {
    match code {
        "AccessDenied" | "SignatureDoesNotMatch" => "Access denied.",
        "AuthenticationRequired" => "Authentication required.",
        "BadDigest" => "The Content-MD5 or checksum value that you specified did not match what we received.",
        "BucketAlreadyExists" => "The requested bucket name is not available.",
        "BucketNotEmpty" => "The bucket you tried to delete is not empty.",
        "EntityTooLarge" => "Your proposed upload is larger than the maximum object size.",
        "EntityTooSmall" => "Your proposed upload is smaller than the minimum part size.",
        "ExpiredToken" => "The provided token has expired.",
        "InternalError" => "We encountered an internal error. Please try again.",
        "InvalidArgument" => "Invalid argument.",
        "InvalidPart" => "One or more of the specified parts could not be found.",
        "InvalidPartOrder" => "The list of parts was not in ascending order.",
        "InvalidPolicyDocument" => {
            "The content of the form does not meet the conditions specified in the policy document."
        }
        "InvalidRange" => "The requested range cannot be satisfied.",
        "MalformedPOSTRequest" => "The body of your POST request is not well-formed multipart/form-data.",
        "MalformedXML" => "The XML you provided was not well-formed or did not validate against our schema.",
        "MethodNotAllowed" => "The specified method is not allowed against this resource.",
        "MissingContentLength" => "You must provide the Content-Length HTTP header.",
        "NoSuchBucket" => "The specified bucket does not exist.",
        "NoSuchKey" => "The specified key does not exist.",
        "NoSuchUpload" => "The requested upload was not found.",
        "NotImplemented" => "The request you tried to make is not implemented by this server.",
        "PreconditionFailed" => "At least one of the pre-conditions you specified did not hold.",
        "ServiceUnavailable" => "Please try again.",
        "SlowDown" => "Please reduce your request rate.",
        _ => "The request was refused.",
    }
}

impl From<&ObjectError> for XmlError {
    fn from(error: &ObjectError) -> Self {
        // The real service names a wrong CRC32C and a wrong MD5 differently.
        let code = match error.kind {
            ErrorKind::WrongChecksum if error.message.contains("CRC32C") => "BadDigest",
            kind => kind.xml_code(),
        };
        Self::new(error.kind.status(), code, error.message.clone())
    }
}

impl From<&SignedError> for XmlError {
    fn from(error: &SignedError) -> Self {
        let details = error.to_string();
        match error {
            SignedError::Malformed(_) => Self::new(400, "InvalidArgument", details),
            SignedError::Expired(_) => Self::new(400, "ExpiredToken", details),
            SignedError::NotYetValid(_) => Self::new(403, "AccessDenied", details),
            SignedError::Mismatch { string_to_sign, canonical_request } => {
                let mut more = vec![("StringToSign", string_to_sign.clone())];
                more.extend(canonical_request.clone().map(|request| ("CanonicalRequest", request)));
                Self { more, ..Self::new(403, "SignatureDoesNotMatch", details) }
            }
        }
    }
}

impl From<&PolicyError> for XmlError {
    fn from(error: &PolicyError) -> Self {
        Self::new(400, "InvalidPolicyDocument", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(error: &XmlError) -> String {
        String::from_utf8(error.body()).expect("XML is UTF-8")
    }

    #[test]
    fn bodies_have_the_documented_form() {
        assert_eq!(
            body(&XmlError::from(&ObjectError::no_such_object("b", "a<b>"))),
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchKey</Code><Message>The specified key does not \
             exist.</Message><Details>No such object: b/a&lt;b&gt;</Details></Error>"
        );
        let wrong = SignedError::Mismatch { string_to_sign: "text".to_owned(), canonical_request: None };
        let refused = XmlError::from(&wrong);
        assert_eq!(refused.status, 403);
        assert!(body(&refused).ends_with("</Details><StringToSign>text</StringToSign></Error>"));
        assert!(body(&XmlError::from(&ObjectError::not_modified())).is_empty());
    }
}

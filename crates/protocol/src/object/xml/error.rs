//! The bodies of refusals.
//!
//! ```xml
//! <Error><Code>NoSuchKey</Code><Message>...</Message><Details>...</Details></Error>
//! ```
//!
//! `Code` is for programs, `Message` is one fixed sentence for each code, and `Details` says what was wrong this time.
//! Python's client of multipart uploads insists on all three. `BadDigest` has a sentence of its own for CRC32C, which Java's
//! client looks for.

use super::writer::Writer;
use crate::object::error::{ErrorKind, ObjectError, Particular};
use crate::object::policy::PolicyError;
use crate::object::signed::SignedError;

/// The body of a refusal. It is empty for a 304.
pub fn body(error: &ObjectError) -> Vec<u8> {
    if error.kind == ErrorKind::NotModified {
        return Vec::new();
    }
    let code = error.xml_code();
    let sentence = match error.particular {
        Some(Particular::Crc32c) => "The CRC32C you specified did not match what we computed.",
        _ => message(code),
    };
    written(code, sentence, &error.message)
}

/// A refusal with this code and these details.
pub fn document(code: &str, details: &str) -> Vec<u8> {
    written(code, message(code), details)
}

fn written(code: &str, sentence: &str, details: &str) -> Vec<u8> {
    let mut writer = Writer::new("Error", "");
    writer.text("Code", code);
    writer.text("Message", sentence);
    writer.text("Details", details);
    writer.finish().into_bytes()
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
        "InvalidPart" => "The requested upload part was not found.",
        "InvalidPartOrder" => "The list of parts was not in ascending order.",
        "InvalidPolicyDocument" => {
            "The content of the form does not meet the conditions specified in the policy document."
        }
        "InvalidRange" => "The requested range cannot be satisfied.",
        "MalformedCompleteMultipartUploadRequest" => {
            "The list of parts that completes a multipart upload must name at least one part."
        }
        "MalformedPOSTRequest" => "The body of your POST request is not well-formed multipart/form-data.",
        "MalformedSecurityHeader" => "Your request has a malformed header.",
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
        "UserProjectMissing" => "Bucket is a requester pays bucket but no user project provided.",
        _ => "The request was refused.",
    }
}

impl From<SignedError> for ObjectError {
    fn from(error: SignedError) -> Self {
        let kind = match &error {
            SignedError::Malformed(_) => ErrorKind::Invalid,
            SignedError::Missing(_) => ErrorKind::MalformedHeader,
            SignedError::Expired(_) => ErrorKind::ExpiredSignature,
            SignedError::NotYetValid(_) | SignedError::Unsigned(_) => ErrorKind::Forbidden,
            SignedError::Mismatch { .. } => ErrorKind::WrongSignature,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<PolicyError> for ObjectError {
    fn from(error: PolicyError) -> Self {
        Self::new(ErrorKind::InvalidPolicy, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::checksum::{AmazonChecksum, Checksum, mismatch};

    #[test]
    fn bodies_have_the_documented_form() {
        let text = |error: &ObjectError| String::from_utf8(body(error)).expect("XML is UTF-8");
        assert_eq!(
            text(&ObjectError::no_such_object("b", "a<b>")),
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchKey</Code><Message>The specified key does not \
             exist.</Message><Details>No such object: b/a&lt;b&gt;</Details></Error>"
        );
        let wrong =
            SignedError::Mismatch { string_to_sign: "first\nsecond".to_owned(), canonical_request: None };
        let refused = ObjectError::from(wrong);
        assert_eq!(refused.kind.status(), 403);
        assert!(text(&refused).contains("<Code>SignatureDoesNotMatch</Code>"));
        assert!(text(&refused).contains("first\nsecond"), "the signer sees what it should have signed");
        assert!(text(&ObjectError::not_modified()).is_empty());
    }

    #[test]
    fn a_request_for_which_nobody_pays_is_told_what_is_missing() {
        let refused = ObjectError::no_user_project();
        let text = String::from_utf8(body(&refused)).expect("XML is UTF-8");
        let sentence = "Bucket is a requester pays bucket but no user project provided.";
        let beginning = format!("<Error><Code>UserProjectMissing</Code><Message>{sentence}</Message>");
        assert!(text.contains(&beginning), "{text}");
        let json = String::from_utf8(refused.json_body()).expect("JSON is UTF-8");
        assert!(json.contains(r#""code":400"#) && json.contains(r#""reason":"required"}"#), "{json}");
    }

    #[test]
    fn a_wrong_crc32c_has_a_sentence_of_its_own() {
        let text = |sum| String::from_utf8(body(&mismatch(sum, "a", "b"))).expect("XML is UTF-8");
        let sentence = "<Message>The CRC32C you specified did not match what we computed.</Message>";
        for sum in [Checksum::Crc32c, Checksum::Amazon(AmazonChecksum::Crc32c)] {
            assert!(text(sum).contains("<Code>BadDigest</Code>") && text(sum).contains(sentence), "{sum:?}");
        }
        let md5 = text(Checksum::Md5);
        assert!(md5.contains("<Code>BadDigest</Code>") && !md5.contains(sentence));
    }
}

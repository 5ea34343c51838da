//! The status with which a call ends.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::limits::STATUS_MESSAGE_CHARS_MAX;
use crate::object::error::{ErrorKind, ObjectError};

/// The codes of gRPC that this server answers, with their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The call succeeded.
    Ok = 0,
    /// The client gave it up.
    Cancelled = 1,
    /// A value is not allowed, whatever is stored.
    InvalidArgument = 3,
    /// The body came too slowly.
    DeadlineExceeded = 4,
    /// There is no such thing.
    NotFound = 5,
    /// There is such a thing already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// Too many requests.
    ResourceExhausted = 8,
    /// What is stored does not allow it.
    FailedPrecondition = 9,
    /// The caller already has what it asks for.
    Aborted = 10,
    /// The object has none of the bytes that were asked for.
    OutOfRange = 11,
    /// This server does not have it.
    Unimplemented = 12,
    /// A mistake of this server, or damage.
    Internal = 13,
    /// Not now; try again.
    Unavailable = 14,
    /// The request names nobody, or a token that is not known.
    Unauthenticated = 16,
}

/// The code of a refusal.
pub const fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Required
        | ErrorKind::Invalid
        | ErrorKind::ParseError
        | ErrorKind::WrongChecksum
        | ErrorKind::InvalidPart
        | ErrorKind::InvalidPartOrder
        | ErrorKind::PartTooSmall
        | ErrorKind::ExpiredSignature
        | ErrorKind::MalformedHeader
        | ErrorKind::InvalidPolicy
        | ErrorKind::CustomerKey
        | ErrorKind::CustomerKeyAlgorithm
        | ErrorKind::CustomerKeyFormat
        | ErrorKind::CustomerKeyHash
        | ErrorKind::WrongCustomerKey
        | ErrorKind::NoCustomerKey
        | ErrorKind::LengthRequired
        | ErrorKind::TooLarge => Code::InvalidArgument,
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::Forbidden | ErrorKind::WrongSignature | ErrorKind::Retention | ErrorKind::Hold => {
            Code::PermissionDenied
        }
        ErrorKind::NoSuchBucket
        | ErrorKind::NoSuchObject
        | ErrorKind::NoSuchUpload
        | ErrorKind::NotFound
        | ErrorKind::Gone => Code::NotFound,
        ErrorKind::BucketExists | ErrorKind::Conflict => Code::AlreadyExists,
        ErrorKind::BucketNotEmpty | ErrorKind::ConditionNotMet | ErrorKind::BucketRule => {
            Code::FailedPrecondition
        }
        ErrorKind::NotModified => Code::Aborted,
        ErrorKind::RangeNotSatisfiable => Code::OutOfRange,
        ErrorKind::RateLimited => Code::ResourceExhausted,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::MethodNotAllowed | ErrorKind::NotImplemented => Code::Unimplemented,
        ErrorKind::Internal => Code::Internal,
        ErrorKind::Unavailable | ErrorKind::OutcomeUnknown => Code::Unavailable,
    }
}

/// What an error with an HTTP status is, for errors that a retry test orders.
pub const fn kind_of_status(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::Forbidden,
        404 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        409 => ErrorKind::Conflict,
        410 => ErrorKind::Gone,
        412 => ErrorKind::ConditionNotMet,
        416 => ErrorKind::RangeNotSatisfiable,
        429 => ErrorKind::RateLimited,
        499 => ErrorKind::Cancelled,
        501 => ErrorKind::NotImplemented,
        502 | 503 => ErrorKind::Unavailable,
        400..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

/// What is percent-encoded in `grpc-message`: everything but printable ASCII, and the percent sign.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// The value of `grpc-message` for an error.
pub fn message_of(error: &ObjectError) -> String {
    let text: String = match error.kind {
        ErrorKind::NotModified => "The object or bucket is the one that you have.".to_owned(),
        _ => error.message.chars().take(STATUS_MESSAGE_CHARS_MAX).collect(),
    };
    utf8_percent_encode(&text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_headers_whatever_is_in_them() {
        let error = ObjectError::no_such_object("b", "50% é\n");
        assert_eq!(message_of(&error), "No such object: b/50%25 %C3%A9%0A");
        assert!(!message_of(&ObjectError::not_modified()).is_empty());
    }

    #[test]
    fn an_ordered_status_is_an_error_with_that_status() {
        for status in [400, 401, 403, 404, 408, 409, 410, 412, 416, 429, 499, 500, 501, 503] {
            assert_eq!(kind_of_status(status).status(), status);
        }
    }
}

//! Errors in the words of the real service, with its misspellings.
//!
//! An [`ErrorCode`] gives a reply its status and its usual text. A [`TableError`] may replace the text: by
//! another text that the service was recorded sending, or by one of ours that helps more. Sources: the
//! recordings that the service's SDKs keep, and the list of table error codes in its documentation.

use std::borrow::Cow;

use strum::IntoStaticStr;
use thiserror::Error;

/// An error code of the service, with its HTTP status and its usual text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
pub enum ErrorCode {
    /// 403: the signature is missing or wrong, or the token is expired or malformed.
    AuthenticationFailed,
    /// 403: the signature is right, but it does not allow this operation.
    AuthorizationFailure,
    /// 403: the SAS lacks the permission for this operation.
    AuthorizationPermissionMismatch,
    /// 403: the SAS is for https only.
    AuthorizationProtocolMismatch,
    /// 403: the account SAS is not for resources of this type.
    AuthorizationResourceTypeMismatch,
    /// 403: the account SAS is not for the table service.
    AuthorizationServiceMismatch,
    /// 403: the SAS is not for the client's address.
    AuthorizationSourceIPMismatch,
    /// 403: the account's CORS rules do not allow the preflight request.
    CorsPreflightFailure,
    /// 403: a write to the secondary endpoint.
    InsufficientAccountPermissions,
    /// 401: the request has no credentials.
    NoAuthenticationInformation,
    /// 401: the bearer token is not accepted.
    InvalidAuthenticationInfo,
    /// 415: `application/atom+xml`.
    AtomFormatNotSupported,
    /// 415: another media type than JSON, or than multipart for a batch.
    MediaTypeNotSupported,
    /// 400: the operations of a batch name several PartitionKeys.
    CommandsInBatchActOnDifferentPartitions,
    /// 400: a batch names one row twice.
    InvalidDuplicateRow,
    /// 400: an entity has one property twice.
    DuplicatePropertiesSpecified,
    /// 409: the entity to insert exists.
    EntityAlreadyExists,
    /// 400: the entity is above 1 MiB.
    EntityTooLarge,
    /// 400: no Host header.
    HostInformationNotPresent,
    /// 504: as [`ErrorCode::OperationTimedOut`], but sent by a gateway on the way; only rehearsals use it.
    #[strum(serialize = "OperationTimedOut")]
    GatewayTimeout,
    /// 500: the server failed, and the request is not to blame.
    InternalError,
    /// 400: a header's value is not valid.
    InvalidHeaderValue,
    /// 400: the service's answer to most malformed input.
    InvalidInput,
    /// 400: the header `Content-MD5` is not the Base64 of 16 bytes.
    InvalidMd5,
    /// 400: a query parameter's value is not valid.
    InvalidQueryParameterValue,
    /// 400: a table name with a wrong character.
    InvalidResourceName,
    /// 400: the URI names nothing that exists.
    InvalidUri,
    /// 400: the XML is not well-formed, or does not follow the schema.
    InvalidXmlDocument,
    /// 400: the body is not the one that the header `Content-MD5` describes.
    Md5Mismatch,
    /// 405: the URI exists, but not for this method.
    MethodNotAllowed,
    /// 400: a header that this request needs is missing.
    MissingRequiredHeader,
    /// 501: the service does not offer this.
    NotImplemented,
    /// 500: the time for the operation ended; a write may or may not have been applied.
    OperationTimedOut,
    /// 400: a name has a wrong length, or a key has a forbidden character.
    OutOfRangeInput,
    /// 400: PartitionKey or RowKey is missing.
    PropertiesNeedValue,
    /// 400: a property's name is not an identifier.
    PropertyNameInvalid,
    /// 400: a property's name has more than 255 characters.
    PropertyNameTooLong,
    /// 400: a string or binary value is above 64 KiB.
    PropertyValueTooLarge,
    /// 413: the body is above its limit.
    RequestBodyTooLarge,
    /// 408: the body came too slowly. The real service closes the connection without an answer.
    RequestTimedOut,
    /// 404: the entity does not exist (or the table, where the table is the resource).
    ResourceNotFound,
    /// 503: the server is too busy, or its disk is full; the client should try again.
    ServerBusy,
    /// 409: the table to create exists.
    TableAlreadyExists,
    /// 404: the table of the request does not exist.
    TableNotFound,
    /// 400: the entity has more than 252 properties.
    TooManyProperties,
    /// 412: the entity's ETag is not the one that the request gives.
    UpdateConditionNotSatisfied,
    /// 400: the request has several `X-HTTP-Method` headers.
    XMethodIncorrectCount,
    /// 400: `X-HTTP-Method` does not name a method.
    XMethodIncorrectValue,
    /// 400: a request other than a POST has `X-HTTP-Method`.
    XMethodNotUsingPost,
}

impl ErrorCode {
    /// The code on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::CommandsInBatchActOnDifferentPartitions
            | Self::InvalidDuplicateRow
            | Self::DuplicatePropertiesSpecified
            | Self::EntityTooLarge
            | Self::HostInformationNotPresent
            | Self::InvalidHeaderValue
            | Self::InvalidInput
            | Self::InvalidMd5
            | Self::Md5Mismatch
            | Self::InvalidQueryParameterValue
            | Self::InvalidResourceName
            | Self::InvalidUri
            | Self::InvalidXmlDocument
            | Self::MissingRequiredHeader
            | Self::OutOfRangeInput
            | Self::PropertiesNeedValue
            | Self::PropertyNameInvalid
            | Self::PropertyNameTooLong
            | Self::PropertyValueTooLarge
            | Self::TooManyProperties
            | Self::XMethodIncorrectCount
            | Self::XMethodIncorrectValue
            | Self::XMethodNotUsingPost => 400,
            Self::NoAuthenticationInformation | Self::InvalidAuthenticationInfo => 401,
            Self::AuthenticationFailed
            | Self::AuthorizationFailure
            | Self::AuthorizationPermissionMismatch
            | Self::AuthorizationProtocolMismatch
            | Self::AuthorizationResourceTypeMismatch
            | Self::AuthorizationServiceMismatch
            | Self::AuthorizationSourceIPMismatch
            | Self::CorsPreflightFailure
            | Self::InsufficientAccountPermissions => 403,
            Self::ResourceNotFound | Self::TableNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimedOut => 408,
            Self::EntityAlreadyExists | Self::TableAlreadyExists => 409,
            Self::UpdateConditionNotSatisfied => 412,
            Self::RequestBodyTooLarge => 413,
            Self::AtomFormatNotSupported | Self::MediaTypeNotSupported => 415,
            Self::InternalError | Self::OperationTimedOut => 500,
            Self::NotImplemented => 501,
            Self::ServerBusy => 503,
            Self::GatewayTimeout => 504,
        }
    }

    /// The service's text for this error; a [`TableError`] may replace it by another.
    pub const fn text(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => {
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
            }
            Self::AuthorizationFailure => "This request is not authorized to perform this operation.",
            Self::AuthorizationPermissionMismatch => {
                "This request is not authorized to perform this operation using this permission."
            }
            Self::AuthorizationProtocolMismatch => {
                "This request is not authorized to perform this operation using this protocol."
            }
            Self::AuthorizationResourceTypeMismatch => {
                "This request is not authorized to perform this operation using this resource type."
            }
            Self::AuthorizationServiceMismatch => {
                "This request is not authorized to perform this operation using this service."
            }
            Self::AuthorizationSourceIPMismatch => {
                "This request is not authorized to perform this operation using this source IP."
            }
            Self::CorsPreflightFailure => "CORS not enabled or no matching rule found for this request.",
            Self::InsufficientAccountPermissions => "Write operations are not allowed.",
            Self::NoAuthenticationInformation | Self::InvalidAuthenticationInfo => {
                "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
            }
            Self::AtomFormatNotSupported => "Atom format is not supported.",
            Self::MediaTypeNotSupported => "None of the provided media types are supported",
            Self::CommandsInBatchActOnDifferentPartitions => {
                "All commands in a batch must operate on same entity group."
            }
            Self::InvalidDuplicateRow => {
                "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
            }
            Self::DuplicatePropertiesSpecified => "A property is specified more than one time.",
            Self::EntityAlreadyExists => "The specified entity already exists.",
            Self::EntityTooLarge => "The entity is larger than the maximum allowed size (1MB).",
            Self::HostInformationNotPresent => {
                "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
            }
            Self::GatewayTimeout | Self::OperationTimedOut => {
                "Operation could not be completed within the specified time."
            }
            Self::InternalError => "Server encountered an internal error. Please try again after some time.",
            Self::InvalidHeaderValue => "The value for one of the HTTP headers is not in the correct format.",
            Self::InvalidInput => "One of the request inputs is not valid.",
            Self::InvalidMd5 => {
                "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and base64-encoded."
            }
            Self::Md5Mismatch => {
                "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
            }
            Self::InvalidQueryParameterValue => {
                "Value for one of the query parameters specified in the request URI is invalid."
            }
            // The real service misspells it in this way.
            Self::InvalidResourceName => "The specifed resource name contains invalid characters.",
            Self::InvalidUri => "The requested URI is invalid.",
            Self::InvalidXmlDocument => "XML specified is not syntactically valid.",
            Self::MethodNotAllowed => "The requested method is not allowed on the specified resource.",
            Self::MissingRequiredHeader => {
                "An HTTP header that's mandatory for this request is not specified."
            }
            Self::NotImplemented => "The requested operation is not implemented on the specified resource.",
            Self::OutOfRangeInput => {
                "The specified resource name length is not within the permissible limits."
            }
            Self::PropertiesNeedValue => "The values are not specified for all properties in the entity.",
            Self::PropertyNameInvalid => "The property name is invalid.",
            Self::PropertyNameTooLong => "The property name exceeds the maximum allowed length (255).",
            Self::PropertyValueTooLarge => {
                "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
            }
            Self::RequestBodyTooLarge => {
                "The request body is too large and exceeds the maximum permissible limit."
            }
            Self::RequestTimedOut => "The request body came too slowly.",
            Self::ResourceNotFound => "The specified resource does not exist.",
            Self::ServerBusy => "The server is busy.",
            Self::TableAlreadyExists => "The table specified already exists.",
            Self::TableNotFound => "The table specified does not exist.",
            Self::TooManyProperties => {
                "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
            }
            Self::UpdateConditionNotSatisfied => {
                "The update condition specified in the request was not satisfied."
            }
            Self::XMethodIncorrectCount => "More than one X-HTTP-Method is specified.",
            Self::XMethodIncorrectValue => "The specified X-HTTP-Method is invalid.",
            Self::XMethodNotUsingPost => "The request uses X-HTTP-Method with an HTTP verb other than POST.",
        }
    }

    /// Whether the service finds this error when it looks at stored rows, rather than when it reads the
    /// request. The two differ on the wire (recorded): an error from the store comes with `Cache-Control`,
    /// and a transaction of one operation reports it without the operation's index.
    pub const fn is_found_by_store(self) -> bool {
        matches!(
            self,
            Self::EntityAlreadyExists
                | Self::EntityTooLarge
                | Self::PropertyValueTooLarge
                | Self::ResourceNotFound
                | Self::TableAlreadyExists
                | Self::UpdateConditionNotSatisfied
        )
    }
}

/// The answer to a request that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {text}", code.name())]
pub struct TableError {
    /// The error's code, which decides the status.
    pub code: ErrorCode,
    /// What was wrong, in words. The reply adds the request's id and the time.
    pub text: Cow<'static, str>,
}

impl TableError {
    /// An error with another text than the usual one of its code.
    pub fn new(code: ErrorCode, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into() }
    }

    /// `InvalidInput` with another text than its usual one.
    pub fn invalid_input(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidInput, text)
    }
}

impl From<ErrorCode> for TableError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code, code.text())
    }
}

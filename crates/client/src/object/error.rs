//! What can go wrong with objects, by what the program can do about it.

use bytes::Bytes;
use http::Response;
use rangehold_protocol::object::checksum::Crc32c;
use serde::Deserialize;

use super::resource::Object;
use crate::limits::ERROR_TEXT_BYTES_MAX;
use crate::request::Invalid;
use crate::transport::{Cause, Lost};
use crate::wire::{Attempt, Verdict};

/// Why an operation on objects failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service answered, and refused. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A request that changes nothing has no answer, or a change certainly did not reach the service.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A change may have been carried out or not.
    #[error(transparent)]
    OutcomeUnknown(#[from] Box<OutcomeUnknown>),
    /// The request breaks a rule, so it was not sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The answer is not one of an object service.
    #[error("the answer is not one of an object service: {what}")]
    Unreadable {
        /// What was read.
        what: String,
        /// Why it could not be read.
        #[source]
        cause: Option<Cause>,
    },
    /// The bytes that arrived are not those that were sent.
    #[error("{name}: the bytes have the CRC32C {found}, and should have {expected}", found = found.text(), expected = expected.text())]
    Damaged {
        /// The object.
        name: String,
        /// The checksum that the service or the sender names.
        expected: Crc32c,
        /// The checksum of the bytes that arrived.
        found: Crc32c,
    },
    /// The session of an upload has ended without an object: it was cancelled, or is older than a week.
    #[error("the upload session of {0} has ended; begin the upload again")]
    SessionGone(String),
    /// The service still works on a rename of a folder, and this client has waited long enough.
    #[error("the service still works on the operation {operation}; ask for it later")]
    Unfinished {
        /// Its name.
        operation: String,
    },
    /// The program's [`Tokens`](crate::Tokens) gave no token.
    #[error("no bearer token for the request")]
    NoToken(#[source] Cause),
    /// This system has no certificate authorities to trust.
    #[error("the certificate authorities of this system cannot be read; install its package ca-certificates")]
    NoAuthorities(#[source] std::io::Error),
}

impl Error {
    /// Whether the service refused with this status.
    pub fn has_status(&self, status: u16) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == status)
    }

    pub(super) fn unreadable(what: &str, cause: impl Into<Cause>) -> Self {
        Self::Unreadable { what: what.to_owned(), cause: Some(cause.into()) }
    }
}

impl Attempt for Error {
    /// 429 says that nothing was done. Every other transient answer may come after the work was done.
    fn verdict(&self) -> Verdict {
        match self {
            Self::Refused(refusal) => {
                let transient = is_transient(refusal.status);
                Verdict { transient, in_doubt: transient && refusal.status != 429 }
            }
            Self::Lost(Lost::Unsent(_)) => Verdict { transient: true, in_doubt: false },
            Self::Lost(Lost::Unanswered(_)) => Verdict { transient: true, in_doubt: true },
            Self::Unreadable { .. } => Verdict { transient: false, in_doubt: true },
            _ => Verdict { transient: false, in_doubt: false },
        }
    }
}

/// Whether an answer with this status says that the same request may succeed later: 408, 429 and every 5xx but 501, which says
/// that the service does not have the operation.
pub(super) const fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502..=599)
}

/// A refusal in the words of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// The reason, such as `conditionNotMet`; empty if the answer has none.
    pub reason: String,
    /// The text.
    pub text: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, reason, text } = self;
        let space = if reason.is_empty() { "" } else { " " };
        write!(f, "the service refused with {status}{space}{reason}: {text}")
    }
}

impl std::error::Error for Refusal {}

#[derive(Deserialize)]
struct Body {
    error: Inner,
}

#[derive(Deserialize)]
struct Inner {
    message: String,
    #[serde(default)]
    errors: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    reason: String,
}

impl Refusal {
    /// Reads an answer whose status is an error: JSON, or plain text for downloads.
    pub(super) fn of(answer: &Response<Bytes>) -> Self {
        let status = answer.status().as_u16();
        match serde_json::from_slice::<Body>(answer.body()) {
            Ok(Body { error }) => {
                let reason = error.errors.into_iter().next().map_or_else(String::new, |first| first.reason);
                Self { status, reason, text: error.message }
            }
            Err(_) => {
                let text = String::from_utf8_lossy(answer.body());
                let text = text.trim().chars().take(ERROR_TEXT_BYTES_MAX).collect();
                Self { status, reason: String::new(), text }
            }
        }
    }
}

/// A change of an object that may have been carried out or not.
#[derive(Debug)]
pub struct OutcomeUnknown {
    /// What was to be changed: `bucket/object`, `bucket/folder/`, or a bucket.
    pub target: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// What is there now.
    pub found: Found,
    /// How the last attempt ended.
    pub last: Error,
}

/// What a look after a change in doubt found.
#[derive(Debug)]
pub enum Found {
    /// There is no such object.
    Nothing,
    /// This object.
    Object(Box<Object>),
    /// Nobody looked, or the look failed too.
    Unread(String),
}

impl std::fmt::Display for OutcomeUnknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, attempts, found, .. } = self;
        write!(
            f,
            "it is not known whether the change of {target} was carried out, after {attempts} attempts; "
        )?;
        match found {
            Found::Nothing => write!(f, "there is no such object now"),
            Found::Object(object) => write!(f, "its generation is {} now", object.generation),
            Found::Unread(why) => write!(f, "what is there now is not known: {why}"),
        }
    }
}

impl std::error::Error for OutcomeUnknown {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.last)
    }
}

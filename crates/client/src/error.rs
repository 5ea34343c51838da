//! What can go wrong, by what the program can do about it.

use bytes::Bytes;
use http::Response;
use serde::Deserialize;

use crate::account::NotAConnectionString;
use crate::entity::{Entity, Keys, NotAnEntity};
use crate::limits::ERROR_TEXT_BYTES_MAX;
use crate::request::Invalid;
use crate::transport::{Cause, Lost};

/// Why an operation failed.
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
    /// The request breaks a rule of the service, so it was not sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The answer is not one of a table service.
    #[error(transparent)]
    Unreadable(#[from] NotAnEntity),
    /// The connection string, or the endpoint or key in it, cannot be used.
    #[error(transparent)]
    Account(#[from] NotAConnectionString),
    /// The program's [`Tokens`](crate::Tokens) gave no token.
    #[error("no bearer token for the request")]
    NoToken(#[source] Cause),
    /// This system has no certificate authorities to trust.
    #[error("the certificate authorities of this system cannot be read; install its package ca-certificates")]
    NoAuthorities(#[source] std::io::Error),
}

impl Error {
    /// The refusal of the service, if that is the reason.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the service refused with this status.
    pub fn has_status(&self, status: u16) -> bool {
        self.refusal().is_some_and(|refusal| refusal.status == status)
    }
}

/// A change that may have been carried out or not: an attempt had no answer, or one that says nothing
/// (408, 500, 502, 503, 504), and nothing that was found afterwards decides it.
///
/// [`Table::with_token`](crate::Table::with_token) gives the client the means to decide it for inserts and updates.
#[derive(Debug)]
pub struct OutcomeUnknown {
    /// The entity that was looked at; `None` for a change of a table.
    pub keys: Option<Keys>,
    /// How many attempts were made.
    pub attempts: u32,
    /// What is there now.
    pub found: Found,
    /// How the last attempt ended.
    pub last: Error,
}

impl std::fmt::Display for OutcomeUnknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it is not known whether the change was carried out, after {} attempts; ", self.attempts)?;
        let place = self.keys.as_ref().map_or_else(String::new, |keys| format!(" at {keys}"));
        match &self.found {
            Found::Nothing => write!(f, "there is nothing{place} now"),
            Found::Table => write!(f, "the table exists now"),
            Found::Entity(entity) => {
                let version = entity.etag.as_ref().map_or("unknown", |etag| etag.as_str());
                write!(f, "the entity{place} has the version {version} now")
            }
            Found::Unread(why) => write!(f, "what is there{place} could not be read: {why}"),
        }
    }
}

impl std::error::Error for OutcomeUnknown {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.last)
    }
}

/// What a look after a change in doubt found.
#[derive(Debug)]
pub enum Found {
    /// There is no such entity or table.
    Nothing,
    /// The table exists.
    Table,
    /// This entity.
    Entity(Box<Entity>),
    /// The look failed too.
    Unread(String),
}

/// A refusal in the words of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// The error code, such as `EntityAlreadyExists`; empty if the answer has none.
    pub code: String,
    /// The text.
    pub text: String,
    /// Which change of a batch failed, counted from 0; `None` outside of batches.
    pub change: Option<usize>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, code, text, change } = self;
        if let Some(change) = change {
            write!(f, "change {change} of the batch: ")?;
        }
        write!(f, "the service refused with {status} {code}: {text}")
    }
}

impl std::error::Error for Refusal {}

/// The body of an error in JSON.
#[derive(Deserialize)]
struct Body {
    #[serde(rename = "odata.error")]
    error: Inner,
}

#[derive(Deserialize)]
struct Inner {
    code: String,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    value: String,
}

impl Refusal {
    /// Reads an answer whose status is an error.
    pub(crate) fn of(answer: &Response<Bytes>) -> Self {
        let status = answer.status().as_u16();
        let header = answer.headers().get("x-ms-error-code").and_then(|code| code.to_str().ok());
        match serde_json::from_slice::<Body>(answer.body()) {
            Ok(Body { error }) => Self { status, code: error.code, text: error.message.value, change: None },
            Err(_) => {
                let text = String::from_utf8_lossy(answer.body());
                let text = text.trim().chars().take(ERROR_TEXT_BYTES_MAX).collect();
                Self { status, code: header.unwrap_or_default().to_owned(), text, change: None }
            }
        }
    }

    /// The same refusal inside of a batch. The service writes the number of the change before its text, and a colon.
    pub(crate) fn in_batch(mut self) -> Self {
        if let Some((number, rest)) = self.text.split_once(':')
            && let Ok(number) = number.parse()
        {
            (self.change, self.text) = (Some(number), rest.to_owned());
        } else {
            self.change = Some(0);
        }
        self
    }
}

//! Sends calls, and repeats those that may be repeated.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde::de::DeserializeOwned;

use super::access::Access;
use super::call::Call;
use super::error::{Error, Refusal};
use crate::account::Endpoint;
use crate::wire::{Attempt, Failed, Sender, Verdict};

/// The answer to a chunk after which more are expected.
pub(super) const MORE: u16 = 308;

/// A call that failed.
pub(super) type Failure = Failed<Error>;

/// What all handles share.
pub(super) struct Line {
    pub(super) endpoint: Endpoint,
    pub(super) access: Access,
    pub(super) sender: Sender,
}

pub(super) type Shared = Arc<Line>;

/// The end of an attempt of a call that must not be executed twice: it is transient only if nothing was done.
struct Once(Error);

impl std::fmt::Display for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Attempt for Once {
    fn verdict(&self) -> Verdict {
        let Verdict { transient, in_doubt } = self.0.verdict();
        Verdict { transient: transient && !in_doubt, in_doubt }
    }
}

impl Line {
    /// Carries out a call, with retries as far as they are harmless.
    pub(super) async fn send(&self, call: &Call) -> Result<Response<Bytes>, Failure> {
        if call.is_idempotent {
            return self.sender.repeat(&call.method, call.path(), || self.attempt(call)).await;
        }
        let once = || async { self.attempt(call).await.map_err(Once) };
        let sent = self.sender.repeat(&call.method, call.path(), once).await;
        sent.map_err(|Failed { error: Once(error), attempts, in_doubt }| Failed { error, attempts, in_doubt })
    }

    /// One attempt. 308 is a success too.
    pub(super) async fn attempt(&self, call: &Call) -> Result<Response<Bytes>, Error> {
        let token = match &self.access {
            Access::Tokens(tokens) if call.needs_proof() => {
                Some(tokens.token().await.map_err(Error::NoToken)?)
            }
            _ => None,
        };
        let request = call.request(&self.endpoint, token.as_deref())?;
        let answer = self.sender.send(request).await?;
        match answer.status().is_success() || answer.status().as_u16() == MORE {
            true => Ok(answer),
            false => Err(Refusal::of(&answer).into()),
        }
    }

    /// Carries out a call that changes nothing, and reads its answer.
    pub(super) async fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let answer = self.send(call).await.map_err(|failure| failure.error)?;
        parsed(&answer)
    }
}

/// The resource in an answer.
pub(super) fn parsed<T: DeserializeOwned>(answer: &Response<Bytes>) -> Result<T, Error> {
    serde_json::from_slice(answer.body()).map_err(|error| Error::unreadable("JSON was expected", error))
}

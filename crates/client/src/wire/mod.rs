//! What all handles of an account share: the account, the transport, the clock, the chance, and the retries.
//!
//! [`Wire::send`] repeats a call as the policy says. If the call fails in the end, it says not only why, but also
//! whether one of the attempts may have been carried out: then the failure is *in doubt*, and the caller has to look
//! at what is there. `docs/design/0011-client.md` has the reasons.
//!
//! [`Sender`] is the part of it that does not know tables, so that the client of objects repeats its calls by the same loop.

mod attempt;
mod sender;

use bytes::Bytes;
use http::Response;

use crate::account::{Account, Credential};
use crate::entity::Guid;
use crate::error::{Error, Refusal};
use crate::request::{Call, Proof, batch, signed};

pub(crate) use sender::{Attempt, Failure as Failed, Sender, Verdict};
pub use sender::{Ended, Options, Watch};

/// A call to the table service that failed.
pub(crate) type Failure = Failed<Error>;

impl From<Failure> for Error {
    /// For calls that change nothing, where a doubt does not matter.
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The shared part of all handles.
pub(crate) struct Wire {
    pub(crate) account: Account,
    sender: Sender,
}

impl Wire {
    pub(crate) fn new(account: Account, options: Options) -> Result<Self, Error> {
        let sender = Sender::new(account.endpoint.https, options).map_err(Error::NoAuthorities)?;
        Ok(Self { account, sender })
    }

    /// A GUID that no other operation has.
    pub(crate) fn fresh(&self) -> Guid {
        Guid(self.sender.fresh())
    }

    /// A number of at least 0 and below 1.
    pub(crate) fn chance(&self) -> f64 {
        self.sender.chance()
    }

    /// Carries out a call, with retries. A batch has one answer for each change, any other call has one.
    pub(crate) async fn send(&self, call: &Call) -> Result<Vec<Response<Bytes>>, Failure> {
        self.sender.repeat(&call.method, &call.path, || self.attempt(call)).await
    }

    /// As [`Self::send`], for a call with one answer.
    pub(crate) async fn send_one(&self, call: &Call) -> Result<Response<Bytes>, Failure> {
        Ok(self.send(call).await?.swap_remove(0))
    }

    async fn attempt(&self, call: &Call) -> Result<Vec<Response<Bytes>>, Error> {
        let proof = match &self.account.credential {
            Credential::SharedKey(name, key) => Proof::SharedKey(name, key),
            Credential::Sas(parameters) => Proof::Sas(parameters),
            Credential::Bearer(tokens) => Proof::Bearer(tokens.token().await.map_err(Error::NoToken)?),
        };
        let id = self.fresh().to_string();
        let request = signed(&self.account.endpoint, &proof, call, self.sender.now(), &id)?;
        let (answer, ended) = self.sender.exchange(request).await;
        let read = answer.map_err(Error::from).and_then(|answer| answers(call, answer));
        // A busy service may say so inside of a batch's 202, and that is what counts for a watch.
        let refused = read.as_ref().err().and_then(Error::refusal).map(|refusal| refusal.status);
        self.sender.tell(Ended { status: refused.or(ended.status), ..ended });
        read
    }
}

/// One answer for each change of a batch, and for any other call the answer itself.
fn answers(call: &Call, answer: Response<Bytes>) -> Result<Vec<Response<Bytes>>, Error> {
    if !answer.status().is_success() {
        return Err(Refusal::of(&answer).into());
    }
    if !call.is_batch {
        return Ok(vec![answer]);
    }
    let answers = batch::outcomes(&answer)?;
    match answers.iter().find(|answer| !answer.status().is_success()) {
        None => Ok(answers),
        Some(failed) => Err(Refusal::of(failed).in_batch().into()),
    }
}

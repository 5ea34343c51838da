//! What all handles of an account share: the account, the transport, the clock, the chance, and the retries.
//!
//! [`Wire::send`] repeats a call as the policy says. If the call fails in the end, it says not only why, but also
//! whether one of the attempts may have been carried out: then the failure is *in doubt*, and the caller has to look
//! at what is there. `docs/design/0011-client.md` has the reasons.

mod attempt;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use parking_lot::Mutex;
use rand::rngs::{StdRng, SysRng};
use rand::{Rng, RngExt, SeedableRng};
use tokio::time::Instant;

use crate::account::{Account, Credential};
use crate::clock::Clock;
use crate::entity::Guid;
use crate::error::{Error, Refusal};
use crate::request::{Call, Proof, batch, signed};
use crate::retry::Policy;
use crate::transport::{Http, Transport};
use attempt::Verdict;

/// How a client works. [`Options::default`] is right for production.
#[derive(Clone)]
pub struct Options {
    /// How requests travel; `None` is a pool of connections to the account's endpoint.
    pub transport: Option<Arc<dyn Transport>>,
    /// The time with which requests are dated.
    pub clock: Clock,
    /// The seed of all chance; `None` takes one from the system.
    pub seed: Option<u64>,
    /// When an operation that failed is tried again.
    pub retry: Policy,
}

impl Default for Options {
    fn default() -> Self {
        Self { transport: None, clock: Clock::system(), seed: None, retry: Policy::default() }
    }
}

/// A call that failed.
pub(crate) struct Failure {
    /// How the last attempt ended.
    pub(crate) error: Error,
    /// How many attempts there were.
    pub(crate) attempts: u32,
    /// Whether one of them may have been carried out.
    pub(crate) in_doubt: bool,
}

impl From<Failure> for Error {
    /// For calls that change nothing, where a doubt does not matter.
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The shared part of all handles.
pub(crate) struct Wire {
    pub(crate) account: Account,
    transport: Arc<dyn Transport>,
    clock: Clock,
    policy: Policy,
    /// Names operations.
    ids: Mutex<StdRng>,
    /// Chooses waits.
    waits: Mutex<StdRng>,
}

impl Wire {
    pub(crate) fn new(account: Account, options: Options) -> Result<Self, Error> {
        let transport: Arc<dyn Transport> = match options.transport {
            Some(transport) => transport,
            None if account.endpoint.https => Arc::new(Http::tls().map_err(Error::NoAuthorities)?),
            None => Arc::new(Http::plain()),
        };
        let mut chance = match options.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::try_from_rng(&mut SysRng).expect("the system gives random numbers"),
        };
        Ok(Self {
            account,
            transport,
            clock: options.clock,
            policy: options.retry,
            ids: Mutex::new(StdRng::from_rng(&mut chance)),
            waits: Mutex::new(StdRng::from_rng(&mut chance)),
        })
    }

    /// A GUID that no other operation has.
    pub(crate) fn fresh(&self) -> Guid {
        let mut bytes = [0; 16];
        self.ids.lock().fill_bytes(&mut bytes);
        Guid(bytes)
    }

    /// A number of at least 0 and below 1.
    pub(crate) fn chance(&self) -> f64 {
        self.waits.lock().random()
    }

    /// Carries out a call, with retries. A batch has one answer for each change, any other call has one.
    pub(crate) async fn send(&self, call: &Call) -> Result<Vec<Response<Bytes>>, Failure> {
        let begin = Instant::now();
        let (mut attempts, mut in_doubt) = (0, false);
        loop {
            let error = match self.attempt(call).await {
                Ok(answers) => return Ok(answers),
                Err(error) => error,
            };
            attempts += 1;
            let verdict = Verdict::of(&error);
            in_doubt |= verdict.in_doubt;
            let wait = self.policy.next(attempts, begin.elapsed(), self.chance());
            let Some(wait) = wait.filter(|_| verdict.transient) else {
                return Err(Failure { error, attempts, in_doubt });
            };
            log(call, attempts, wait, &error);
            tokio::time::sleep(wait).await;
        }
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
        let request = signed(&self.account.endpoint, &proof, call, self.clock.now(), &id)?;
        let answer = self.transport.send(request).await?;
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
}

fn log(call: &Call, attempts: u32, wait: Duration, error: &Error) {
    let wait_ms = wait.as_millis() as u64;
    tracing::debug!(method = %call.method, path = %call.path, attempts, wait_ms, %error, "an attempt failed, and is repeated");
}

//! What all handles of an account share: the account, the transport, the clock and the chance.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use parking_lot::Mutex;
use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng};

use crate::account::{Account, Credential};
use crate::clock::Clock;
use crate::entity::Guid;
use crate::error::{Error, Refusal};
use crate::request::{Call, Proof, batch, signed};
use crate::transport::{Http, Transport};

/// How a client works. [`Options::default`] is right for production.
#[derive(Clone)]
pub struct Options {
    /// How requests travel; `None` is a pool of connections to the account's endpoint.
    pub transport: Option<Arc<dyn Transport>>,
    /// The time.
    pub clock: Clock,
    /// The seed of all chance; `None` takes one from the system.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { transport: None, clock: Clock::system(), seed: None }
    }
}

/// The shared part of all handles.
pub(crate) struct Wire {
    pub(crate) account: Account,
    transport: Arc<dyn Transport>,
    clock: Clock,
    chance: Mutex<StdRng>,
}

impl Wire {
    pub(crate) fn new(account: Account, options: Options) -> Result<Self, Error> {
        let transport: Arc<dyn Transport> = match options.transport {
            Some(transport) => transport,
            None if account.endpoint.https => Arc::new(Http::tls().map_err(Error::NoAuthorities)?),
            None => Arc::new(Http::plain()),
        };
        let chance = match options.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::try_from_rng(&mut SysRng).expect("the system gives random numbers"),
        };
        Ok(Self { account, transport, clock: options.clock, chance: Mutex::new(chance) })
    }

    /// A GUID that no other operation has.
    pub(crate) fn fresh(&self) -> Guid {
        let mut bytes = [0; 16];
        self.chance.lock().fill_bytes(&mut bytes);
        Guid(bytes)
    }

    /// Carries out a call. Every answer whose status is an error is a refusal.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Bytes>, Error> {
        let answer = self.attempt(call).await?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(Refusal::of(&answer).into()),
        }
    }

    /// Carries out a batch: one answer for each change, or the refusal of one of them.
    pub(crate) async fn send_batch(&self, call: &Call) -> Result<Vec<Response<Bytes>>, Error> {
        let answers = batch::outcomes(&self.send(call).await?)?;
        match answers.iter().find(|answer| !answer.status().is_success()) {
            None => Ok(answers),
            Some(failed) => Err(Refusal::of(failed).in_batch().into()),
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Response<Bytes>, Error> {
        let proof = match &self.account.credential {
            Credential::SharedKey(name, key) => Proof::SharedKey(name, key),
            Credential::Sas(parameters) => Proof::Sas(parameters),
            Credential::Bearer(tokens) => Proof::Bearer(tokens.token().await.map_err(Error::NoToken)?),
        };
        let id = self.fresh().to_string();
        let request = signed(&self.account.endpoint, &proof, call, self.clock.now(), &id)?;
        Ok(self.transport.send(request).await?)
    }
}

//! The loop of retries, for every service.
//!
//! [`Sender::repeat`] knows when an attempt is repeated, and nothing of what is sent: the caller gives it a function that makes
//! one attempt, and the kind of error says by [`Attempt`] what a failed attempt means.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use rand::rngs::{StdRng, SysRng};
use rand::{Rng, RngExt, SeedableRng};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::entity::Timestamp;
use crate::retry::Policy;
use crate::transport::{Http, Lost, Transport};

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
    /// Is told of each attempt, also of those that are repeated: so a program sees that a service is busy before it fails.
    pub watch: Option<Watch>,
}

/// A function that is told of each attempt. It is called between other work, so it should be quick.
pub type Watch = Arc<dyn Fn(Ended) + Send + Sync>;

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The status of HTTP, and of a batch that was refused the status inside; `None` if there was no answer.
    pub status: Option<u16>,
    /// From the moment at which the request was sent to the last byte of the answer.
    pub took: Duration,
    /// Bytes of the bodies of request and answer.
    pub bytes: usize,
    /// Whether the request was one that changes nothing.
    pub is_read: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { transport: None, clock: Clock::system(), seed: None, retry: Policy::default(), watch: None }
    }
}

/// What a failed attempt means for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether the same call may succeed later.
    pub(crate) transient: bool,
    /// Whether the service may have carried the call out.
    pub(crate) in_doubt: bool,
}

/// An error that ends an attempt.
pub(crate) trait Attempt: Display {
    /// What it means for the next attempt.
    fn verdict(&self) -> Verdict;
}

/// A call that failed.
pub(crate) struct Failure<E> {
    /// How the last attempt ended.
    pub(crate) error: E,
    /// How many attempts there were.
    pub(crate) attempts: u32,
    /// Whether one of them may have been carried out.
    pub(crate) in_doubt: bool,
}

/// What sends requests and repeats them.
pub(crate) struct Sender {
    transport: Arc<dyn Transport>,
    clock: Clock,
    policy: Policy,
    watch: Option<Watch>,
    /// Names operations.
    ids: Mutex<StdRng>,
    /// Chooses waits.
    waits: Mutex<StdRng>,
}

impl Sender {
    /// Fails if TLS is needed and this system has no certificate authorities.
    pub(crate) fn new(https: bool, options: Options) -> std::io::Result<Self> {
        let transport: Arc<dyn Transport> = match options.transport {
            Some(transport) => transport,
            None if https => Arc::new(Http::tls()?),
            None => Arc::new(Http::plain()),
        };
        let mut chance = match options.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::try_from_rng(&mut SysRng).expect("the system gives random numbers"),
        };
        Ok(Self {
            transport,
            clock: options.clock,
            policy: options.retry,
            watch: options.watch,
            ids: Mutex::new(StdRng::from_rng(&mut chance)),
            waits: Mutex::new(StdRng::from_rng(&mut chance)),
        })
    }

    /// Bytes that no other operation has.
    pub(crate) fn fresh(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.ids.lock().fill_bytes(&mut bytes);
        bytes
    }

    /// A number of at least 0 and below 1.
    pub(crate) fn chance(&self) -> f64 {
        self.waits.lock().random()
    }

    /// The time with which a request is dated.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sends once, and tells the watch how that ended.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Lost> {
        let (answer, ended) = self.exchange(request).await;
        self.tell(ended);
        answer
    }

    /// Sends once. The caller tells the watch, once it has read what the answer means.
    pub(crate) async fn exchange(&self, request: Request<Bytes>) -> (Result<Response<Bytes>, Lost>, Ended) {
        let begin = Instant::now();
        let (sent, is_read) = (request.body().len(), request.method().is_safe());
        let answer = self.transport.send(request).await;
        let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        let bytes = sent + answer.as_ref().map_or(0, |answer| answer.body().len());
        (answer, Ended { status, took: begin.elapsed(), bytes, is_read })
    }

    /// Tells the watch how an attempt ended.
    pub(crate) fn tell(&self, ended: Ended) {
        if let Some(watch) = &self.watch {
            watch(ended);
        }
    }

    /// Makes attempts until one succeeds, or its failure is not transient, or the policy ends. `method` and `path` are for the
    /// log.
    pub(crate) async fn repeat<T, E: Attempt, F: Future<Output = Result<T, E>>>(
        &self,
        method: impl Display,
        path: &str,
        attempt: impl Fn() -> F,
    ) -> Result<T, Failure<E>> {
        let begin = Instant::now();
        let (mut attempts, mut in_doubt) = (0, false);
        loop {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            attempts += 1;
            let verdict = error.verdict();
            in_doubt |= verdict.in_doubt;
            let wait = self.policy.next(attempts, begin.elapsed(), self.chance());
            let Some(wait) = wait.filter(|_| verdict.transient) else {
                return Err(Failure { error, attempts, in_doubt });
            };
            let wait_ms = wait.as_millis() as u64;
            tracing::debug!(%method, path, attempts, wait_ms, %error, "an attempt failed, and is repeated");
            tokio::time::sleep(wait).await;
        }
    }
}

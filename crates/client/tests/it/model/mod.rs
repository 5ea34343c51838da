//! A table service in memory, with faults between it and its clients.
//!
//! [`Store`] carries requests out one at a time, with the code of the protocol that the real server uses to read and to
//! judge them. [`Network`] is the transport that leads to it. It may lose a request, lose an answer, deliver a request
//! twice, deliver it long after the client has given up, or answer with a status of a busy service before or after
//! the work is done. All of this comes from one seed, and time is tokio's, so a test pauses it and runs without waiting.

mod store;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_client::{Account, Clock, Lost, Options, Policy, Service, Timestamp, Transport, Watch};

pub(crate) use store::Store;

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out and answered.
    Fine,
    /// There was no connection.
    Unsent,
    /// It was sent and never arrived.
    RequestLost,
    /// It was carried out, and its answer never arrived.
    AnswerLost,
    /// It was carried out twice; the client gets the second answer.
    Twice,
    /// The client gives up, and later the request is carried out.
    Late,
    /// It is carried out after [`SLOW`], and answered then.
    Slow,
    /// The client is killed before the request leaves it.
    KilledBefore,
    /// The client is killed after the request was carried out.
    KilledAfter,
    /// It is refused with this status, and not carried out.
    Refused(u16),
    /// It is carried out, and answered with this status.
    DoneAndRefused(u16),
}

/// How long a slow request is on its way: longer than a late one, and longer than a program needs for its work.
pub(crate) const SLOW: Duration = Duration::from_secs(5);

/// Decides the fate of each request: first by a list, then by chance.
pub(crate) struct Network {
    pub(crate) store: Arc<Mutex<Store>>,
    state: Mutex<State>,
}

struct State {
    planned: Vec<Fate>,
    chance: StdRng,
    /// Of a hundred requests, how many have a fault.
    faults_percent: u32,
    sent: Vec<String>,
}

impl Network {
    /// A network on which the next requests have these fates, and all others are fine.
    pub(crate) fn planned(fates: &[Fate]) -> Arc<Self> {
        let mut planned = fates.to_vec();
        planned.reverse();
        Self::new(Store::default(), planned, 0, 0)
    }

    /// A network with faults from a seed.
    pub(crate) fn faulty(seed: u64, faults_percent: u32) -> Arc<Self> {
        Self::new(Store::default(), Vec::new(), seed, faults_percent)
    }

    fn new(store: Store, planned: Vec<Fate>, seed: u64, faults_percent: u32) -> Arc<Self> {
        let chance = StdRng::seed_from_u64(seed);
        let state = Mutex::new(State { planned, chance, faults_percent, sent: Vec::new() });
        Arc::new(Self { store: Arc::new(Mutex::new(store)), state })
    }

    /// Has the next requests meet these fates.
    pub(crate) fn plan(&self, fates: &[Fate]) {
        self.state.lock().planned = fates.iter().rev().copied().collect();
    }

    /// From now on so many of a hundred requests have a fault.
    pub(crate) fn harm(&self, faults_percent: u32) {
        self.state.lock().faults_percent = faults_percent;
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.harm(0);
    }

    /// A client of the model; clients with different seeds choose different ids and waits.
    pub(crate) fn service(self: &Arc<Self>, seed: u64, retry: Policy) -> Service {
        self.watched(seed, retry, None)
    }

    /// The same, with somebody who is told of each attempt.
    pub(crate) fn watched(self: &Arc<Self>, seed: u64, retry: Policy, watch: Option<Watch>) -> Service {
        let options = Options {
            transport: Some(self.clone()),
            clock: Clock::new(|| Timestamp::from_unix_seconds(1_700_000_000)),
            seed: Some(seed),
            retry,
            watch,
        };
        Service::new(Account::development(), options).expect("a model needs no certificates")
    }

    /// The requests so far: method and path.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.state.lock().sent.clone()
    }

    /// The fate of a request, and how long it is on its way.
    fn fate(&self) -> (Fate, Duration) {
        let mut state = self.state.lock();
        let wait = Duration::from_millis(state.chance.random_range(1..20));
        if let Some(fate) = state.planned.pop() {
            return (fate, wait);
        }
        if state.chance.random_range(0..100) >= state.faults_percent {
            return (Fate::Fine, wait);
        }
        let fates = [
            Fate::Unsent,
            Fate::RequestLost,
            Fate::AnswerLost,
            Fate::Twice,
            Fate::Late,
            Fate::Refused(503),
            Fate::DoneAndRefused(500),
        ];
        (fates[state.chance.random_range(0..fates.len())], wait)
    }

    async fn carry(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Lost> {
        self.state.lock().sent.push(format!("{} {}", request.method(), request.uri().path()));
        let (fate, wait) = self.fate();
        tokio::time::sleep(wait).await;
        let lost = || Err(Lost::Unanswered("the connection was reset".into()));
        match fate {
            Fate::Unsent => Err(Lost::Unsent("connection refused".into())),
            Fate::RequestLost => lost(),
            Fate::Slow => {
                tokio::time::sleep(SLOW).await;
                Ok(self.store.lock().carry_out(&request))
            }
            Fate::KilledBefore => std::future::pending().await,
            Fate::KilledAfter => {
                self.store.lock().carry_out(&request);
                std::future::pending().await
            }
            Fate::Refused(status) => Ok(store::refusal(status, &request)),
            Fate::Late => {
                let store = self.store.clone();
                let later = wait * 40;
                tokio::spawn(async move {
                    tokio::time::sleep(later).await;
                    store.lock().carry_out(&request);
                });
                lost()
            }
            Fate::Fine => Ok(self.store.lock().carry_out(&request)),
            Fate::AnswerLost => {
                self.store.lock().carry_out(&request);
                lost()
            }
            Fate::Twice => {
                self.store.lock().carry_out(&request);
                tokio::time::sleep(wait).await;
                Ok(self.store.lock().carry_out(&request))
            }
            Fate::DoneAndRefused(status) => {
                self.store.lock().carry_out(&request);
                Ok(store::refusal(status, &request))
            }
        }
    }
}

impl Transport for Network {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Lost>> {
        self.carry(request).boxed()
    }
}

//! Admission: which requests are let in. It decides before anything else is done for a request.
//!
//! ```text
//!   request of an account -- account's budget --- known: table, partition, entities
//!        (a batch is one)                               |
//!                                                  table's budget
//!                                                       |
//!                                                  process overloaded? -- shed the hot first
//!                                                       |
//!                                                  partition's budget --> the handler acts
//!                                                   (a batch is its entities; a page is
//!                                                    charged as it grows)
//! ```
//!
//! A request that is not let in gets 503 `ServerBusy`. The [`Profile`] has the budgets. `fast` has none, and then
//! this module costs a request two loads of an atomic.
//!
//! | module | pure? | what it decides |
//! |---|---|---|
//! | `bucket` | yes | how much of a budget is left |
//! | `recent` | yes | which buckets are kept in memory |
//! | `vending` | yes | how a budget of the whole service is spent by several front ends |
//! | `overload`, `tenants` | yes | whether to shed, and which tenants |
//! | `object_rates` | yes | the rates of buckets and names of objects |
//! | `probe` | no | measures the delay that `overload` judges |
//!
//! Pure modules take the time as a [`Duration`] since the process began, and chance as a number.

mod bucket;
mod object_rates;
mod overload;
mod probe;
mod recent;
mod tenants;
mod vending;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;
use tracing::info;

use self::bucket::Bucket;
pub(crate) use self::object_rates::{About, ObjectAsk, ObjectRates, RatesView, SpanRates, ToStore, TooFast};
use self::overload::{Flow, Overload, Pressure};
use self::recent::Recent;
use self::tenants::Tenants;
use self::vending::{Authority, Purses};
use crate::metrics::Metrics;
use crate::profile::{Budget, Profile};
pub(crate) use crate::throttled::Cause;

/// Partitions whose buckets are kept in memory.
const PARTITIONS_MAX: usize = 65_536;
/// How far a page may put its partition into debt before it must end, in seconds of the budget. With this debt a lone
/// reader gets whole pages. Its limit keeps many readers at once from reading without end.
const PAGE_LENDS_SECONDS: f64 = 0.5;

/// Decides for one front end which requests are let in. All requests of the front end share it.
pub(crate) struct Admission {
    begun: Instant,
    seed: u64,
    accounts: Option<Mutex<Vended>>,
    tables: Option<Mutex<Vended>>,
    partitions: Option<Mutex<Partitions>>,
    objects: Option<ObjectRates>,
    shedder: Mutex<Shedder>,
    metrics: Arc<Metrics>,
    /// Whether arrivals must be counted or shed.
    pressed: AtomicBool,
    /// Whether credit may be used.
    room: AtomicBool,
    /// Whether a request came since the last measurement.
    asked: AtomicBool,
}

/// A budget of the whole service: the authority that gives tokens, and the purses that get them.
#[derive(Debug)]
struct Vended {
    authority: Authority,
    purses: Purses,
}

#[derive(Debug)]
struct Partitions {
    budget: Budget,
    buckets: Recent<Bucket>,
}

#[derive(Debug)]
struct Shedder {
    overload: Overload,
    tenants: Tenants,
    flow: Flow,
    chance: StdRng,
}

/// A partition, as admission knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenant {
    account: u64,
    partition: u64,
}

impl Admission {
    /// Starts admission with the numbers of `profile`, and begins to measure how busy the process is. `seed` decides
    /// everything that is random.
    pub(crate) fn start(profile: &Profile, seed: u64, metrics: Arc<Metrics>) -> Arc<Self> {
        let admission = Arc::new(Self::new(profile, seed, metrics));
        tokio::spawn(probe::run(admission.clone()));
        admission
    }

    fn new(profile: &Profile, seed: u64, metrics: Arc<Metrics>) -> Self {
        let vended =
            |budget: Budget| Mutex::new(Vended { authority: Authority::new(budget), purses: Purses::new() });
        let partitions = |budget| Mutex::new(Partitions { budget, buckets: Recent::new(PARTITIONS_MAX) });
        Self {
            begun: Instant::now(),
            seed,
            accounts: profile.account.map(vended),
            tables: profile.table.map(vended),
            partitions: profile.partition.map(partitions),
            objects: profile.objects.clone().map(|rules| ObjectRates::new(rules, seed)),
            shedder: Mutex::new(Shedder {
                overload: Overload::new(profile.overload),
                tenants: Tenants::new(),
                flow: Flow::default(),
                chance: StdRng::seed_from_u64(seed),
            }),
            metrics,
            pressed: AtomicBool::new(false),
            room: AtomicBool::new(true),
            asked: AtomicBool::new(false),
        }
    }

    /// Whether tables and partitions matter now. While they do not, the caller need not find them.
    pub(crate) fn looks_at_partitions(&self) -> bool {
        self.tables.is_some() || self.partitions.is_some() || self.pressed.load(Ordering::Relaxed)
    }

    /// Lets in a transaction of `account`, of any kind, or refuses it.
    pub(crate) fn admit_account(&self, account: &str) -> Result<(), Cause> {
        // All threads write here, so it is written only when it changes.
        if !self.asked.load(Ordering::Relaxed) {
            self.asked.store(true, Ordering::Relaxed);
        }
        match &self.accounts {
            Some(accounts) => self.pay(accounts, self.hash(account), Cause::Account),
            None => Ok(()),
        }
    }

    /// Lets in a transaction of the table whose keys begin with `prefix`, or refuses it.
    pub(crate) fn admit_table(&self, prefix: &[u8]) -> Result<(), Cause> {
        match &self.tables {
            Some(tables) => self.pay(tables, self.hash(prefix), Cause::Table),
            None => Ok(()),
        }
    }

    /// The partition of `account` whose keys begin with `prefix`.
    pub(crate) fn tenant(&self, account: &str, prefix: &[u8]) -> Tenant {
        Tenant { account: self.hash(account), partition: self.hash(prefix) }
    }

    /// Lets in a request that touches `entities` entities of a partition, or refuses it. A read counts as one entity
    /// here. The entities that it returns are charged later ([`Admission::charge`]).
    pub(crate) fn admit_partition(&self, tenant: Tenant, entities: usize) -> Result<(), Cause> {
        if self.pressed.load(Ordering::Relaxed) && !self.bears(tenant, entities) {
            return Err(Cause::Overload);
        }
        let Some(partitions) = &self.partitions else { return Ok(()) };
        let (now, room) = (self.now(), self.room.load(Ordering::Relaxed));
        let mut partitions = partitions.lock();
        let (budget, bucket) = partitions.of(tenant, now);
        if bucket.take(&budget, now, entities as f64, room) { Ok(()) } else { Err(Cause::Partition) }
    }

    /// The rates of requests for objects; `None` if there is no limit.
    pub(crate) fn object_rates(&self) -> Option<&ObjectRates> {
        self.objects.as_ref()
    }

    /// Whether partitions have budgets at all.
    pub(crate) fn charges_partitions(&self) -> bool {
        self.partitions.is_some()
    }

    /// Charges a partition for entities that a page returns, and tells whether the page may go on.
    pub(crate) fn charge(&self, tenant: Tenant, entities: usize) -> bool {
        let Some(partitions) = &self.partitions else { return true };
        let (now, room) = (self.now(), self.room.load(Ordering::Relaxed));
        let mut partitions = partitions.lock();
        let (budget, bucket) = partitions.of(tenant, now);
        bucket.charge(&budget, now, entities as f64, budget.per_second * PAGE_LENDS_SECONDS, room)
    }

    fn pay(&self, vended: &Mutex<Vended>, scope: u64, refused: Cause) -> Result<(), Cause> {
        let now = self.now();
        let Vended { authority, purses } = &mut *vended.lock();
        if purses.pay(now, scope, 1.0, |ask| authority.ask(now, ask)) { Ok(()) } else { Err(refused) }
    }

    /// Counts a request. If its tenant is shed, chance decides whether this request is let in.
    fn bears(&self, tenant: Tenant, weight: usize) -> bool {
        let Shedder { tenants, flow, chance, .. } = &mut *self.shedder.lock();
        let weight = weight as f64;
        tenants.arrived(tenant.account, tenant.partition, weight);
        let keep = tenants.probability(tenant.account, tenant.partition);
        let let_in = keep >= 1.0 || chance.random::<f64>() < keep;
        flow.arrived += weight;
        flow.let_in += if let_in { weight } else { 0.0 };
        let_in
    }

    /// Notes how long a task that was ready to run had to wait.
    fn measured(&self, delay: Duration) {
        let Shedder { overload, tenants, flow, .. } = &mut *self.shedder.lock();
        let Some(pressure) = overload.measured(self.now(), delay, *flow) else { return };
        *flow = Flow::default();
        match pressure {
            Pressure::Calm => *tenants = Tenants::new(),
            Pressure::Watching => tenants.decide(1.0),
            Pressure::Shedding { keep } => tenants.decide(keep),
        }
        self.metrics.ready_delay(overload.least());
        self.room.store(overload.has_room(), Ordering::Relaxed);
        let pressed = pressure != Pressure::Calm;
        if self.pressed.swap(pressed, Ordering::Relaxed) != pressed {
            let delay_ms = overload.least().as_millis() as u64;
            info!(delay_ms, ?pressure, "the process's load has changed");
        }
    }

    /// Whether a request came since the last call.
    fn take_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A hash for this process alone. The seed is part of each one, so a client cannot choose keys that share a bucket with another client's keys.
    pub(crate) fn hash(&self, of: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, of).hash(&mut hasher);
        hasher.finish()
    }
}

impl Partitions {
    fn of(&mut self, tenant: Tenant, now: Duration) -> (Budget, &mut Bucket) {
        let budget = self.budget;
        (budget, self.buckets.get(tenant.partition, now, || Bucket::full(&budget, now)))
    }
}

#[cfg(test)]
mod tests;

//! Locks by partition, striped.
//!
//! Conditions of a write are judged on the newest rows of its partition, so two writes of one
//! partition must not judge at the same time. Nothing else has to wait: a stripe is held while
//! rows are read and the batch enters the log, not while it becomes durable.
//!
//! Under its lock a stripe remembers the newest row that it let into the log. A refusal was judged
//! on rows no newer than that, so it may be told once that row is durable.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rangehold_map::PartitionPrefix;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::limits::STRIPES;

/// The newest row that went through a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    /// In which opening of the database. Sequence numbers of different openings do not compare.
    pub(crate) opening: u64,
    /// Its sequence number there.
    pub(crate) sequence: u64,
}

/// What a stripe's lock protects.
pub(crate) type StripeGuard = OwnedMutexGuard<Option<Newest>>;

type Stripe = Arc<Mutex<Option<Newest>>>;

/// All locks of a range, each made when it is taken first: a range that is hardly written to needs
/// few of them, and there may be a thousand such ranges.
#[derive(Debug)]
pub(crate) struct Stripes(Box<[OnceLock<Stripe>]>);

impl Stripes {
    pub(crate) fn new() -> Self {
        Self((0..STRIPES).map(|_| OnceLock::new()).collect())
    }

    /// The stripe of a partition. The same in every run: it is part of a simulation's log, and the
    /// reservation rows of stripes are stored (where a change would do no harm).
    pub(crate) fn of(partition: &PartitionPrefix) -> u16 {
        // `DefaultHasher::new` has fixed keys, unlike `RandomState`.
        let mut hasher = DefaultHasher::new();
        partition.hash(&mut hasher);
        u16::try_from(hasher.finish() % u64::from(STRIPES)).expect("a remainder of a u16 fits one")
    }

    /// Locks a stripe, first come first served.
    pub(crate) async fn lock(&self, stripe: u16) -> StripeGuard {
        Arc::clone(self.0[usize::from(stripe)].get_or_init(Stripe::default)).lock_owned().await
    }

    /// Waits until every write that holds a stripe now has let go of it.
    pub(crate) async fn wait_for_holders(&self) {
        // A write that takes a stripe that is not made yet comes later.
        for stripe in self.0.iter().filter_map(OnceLock::get) {
            drop(stripe.lock().await);
        }
    }
}

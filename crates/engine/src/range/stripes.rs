//! Locks by partition, striped.
//!
//! The conditions of a write are judged on the newest rows of its partition, so two writes of one
//! partition must not be judged at the same time. Nothing else has to wait: a write holds its stripe while
//! rows are read and the batch enters the log, but not while the batch becomes durable.
//!
//! Under its lock a stripe remembers the newest row that went through it into the log. A refusal was judged
//! on rows that are not newer than that, so it may be answered once that row is durable.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rangehold_map::PartitionPrefix;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::limits::STRIPES;

/// The newest row that went through a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    /// The opening of the database in which it was written. Sequence numbers of different openings cannot be compared.
    pub(crate) opening: u64,
    /// Its sequence number there.
    pub(crate) sequence: u64,
}

/// What a stripe's lock protects.
pub(crate) type StripeGuard = OwnedMutexGuard<Option<Newest>>;

type Stripe = Arc<Mutex<Option<Newest>>>;

/// All locks of a range. Each is made when it is first taken: a range with few writes needs
/// few of them, and there may be a thousand such ranges.
#[derive(Debug)]
pub(crate) struct Stripes(Box<[OnceLock<Stripe>]>);

impl Stripes {
    pub(crate) fn new() -> Self {
        Self((0..STRIPES).map(|_| OnceLock::new()).collect())
    }

    /// The stripe of a partition. It is the same in every run, because it is part of a simulation's log. The
    /// reservation rows of stripes are stored too, but there a different number would do no harm.
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

    /// Waits until every write that holds a stripe now has released it.
    pub(crate) async fn wait_for_holders(&self) {
        // A stripe that is not made yet has no holder now. A write that makes and takes it comes later.
        for stripe in self.0.iter().filter_map(OnceLock::get) {
            drop(stripe.lock().await);
        }
    }
}

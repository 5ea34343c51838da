//! Mistakes that can be switched on, so that the simulation can show that it would find them.
//!
//! Each is one that somebody could make, at the place where he would make it. Without the feature
//! `mutants`, which no program that is delivered has, [`active`] is `false` at compile time and
//! nothing is left of them.

use std::fmt;

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A server answers reads without a lease.
    LeaseCheckSkipped,
    /// The source of a move keeps the range, and answers whoever comes to it with an old map.
    GenerationCheckSkipped,
    /// The heirs of a split acknowledge writes before the change record is created.
    HeirBeforeRecord,
    /// A range that holds its retirement row is served.
    RetiredServed,
    /// After a change was undone, the next attempt clones to the path of the first.
    PathReused,
    /// The checkpoint to clone from is taken before writes are held.
    EarlyCheckpoint,
    /// Writes are not held while a range changes hands.
    FreezeForgotten,
    /// A held request is forgotten.
    HeldDropped,
    /// A held request is sent on twice.
    HeldTwice,
    /// A refusal is told before what it was judged on is durable.
    EarlyRefusal,
    /// Timestamps are given without a reservation, as the wall clock says. (With [`crate::Clock`],
    /// which goes beyond all that a database has seen when that is opened, nobody would notice.)
    ReservationForgotten,
    /// A batch is acknowledged before it is durable.
    EarlyBatch,
    /// A batch that changes rows is acknowledged and never made, each eighth time.
    BatchForgotten,
    /// A batch goes into the log as two writes.
    BatchTorn,
    /// A page that ends because its bytes or its time ran out has no token.
    TokenForgotten,
    /// An unused database is deleted without a look at whether another one reads its files.
    BurialUnasked,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::LeaseCheckSkipped,
        Self::GenerationCheckSkipped,
        Self::HeirBeforeRecord,
        Self::RetiredServed,
        Self::PathReused,
        Self::EarlyCheckpoint,
        Self::FreezeForgotten,
        Self::HeldDropped,
        Self::HeldTwice,
        Self::EarlyRefusal,
        Self::ReservationForgotten,
        Self::EarlyBatch,
        Self::BatchForgotten,
        Self::BatchTorn,
        Self::TokenForgotten,
        Self::BurialUnasked,
    ];
}

impl fmt::Display for Mutant {
    /// What it does wrong, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaseCheckSkipped => "lease check skipped",
            Self::GenerationCheckSkipped => "generation check skipped",
            Self::HeirBeforeRecord => "child acknowledges before the change record",
            Self::RetiredServed => "a parent that holds Retired served",
            Self::PathReused => "an attempt's path reused",
            Self::EarlyCheckpoint => "clone from a checkpoint taken before the freeze",
            Self::FreezeForgotten => "forgotten freeze",
            Self::HeldDropped => "held request dropped",
            Self::HeldTwice => "held request applied twice",
            Self::EarlyRefusal => "refusal answered before it is durable",
            Self::ReservationForgotten => "ETag reservation forgotten",
            Self::EarlyBatch => "batch acknowledged before it is durable",
            Self::BatchForgotten => "batch acknowledged and never made",
            Self::BatchTorn => "batch logged as two writes",
            Self::TokenForgotten => "page ended without its token",
            Self::BurialUnasked => "burial that asks nobody",
        })
    }
}

/// Whether this mistake is made.
#[cfg(not(feature = "mutants"))]
pub const fn active(_mutant: Mutant) -> bool {
    false
}

#[cfg(feature = "mutants")]
pub use switched::{activate, active};

#[cfg(feature = "mutants")]
mod switched {
    use std::sync::Mutex;
    use std::sync::PoisonError;

    use super::Mutant;

    static ACTIVE: Mutex<Option<Mutant>> = Mutex::new(None);

    /// From now on this mistake is made in the whole process, or none.
    pub fn activate(mutant: Option<Mutant>) {
        *ACTIVE.lock().unwrap_or_else(PoisonError::into_inner) = mutant;
    }

    /// Whether this mistake is made.
    pub fn active(mutant: Mutant) -> bool {
        *ACTIVE.lock().unwrap_or_else(PoisonError::into_inner) == Some(mutant)
    }
}

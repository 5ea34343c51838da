//! Locks on mappings: whoever works at a tenant keeps others from changing its mapping meanwhile.
//!
//! A lock is a token that only its holder knows, a text that says who he is, and an end. After the end it
//! is as if it were not there: nobody has to free what a crashed program has locked.

use uuid::Uuid;

/// What a holder shows to work on a mapping that he has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(pub Uuid);

impl LockToken {
    /// Shown for a mapping that is not locked.
    pub const NONE: Self = Self(Uuid::nil());
    /// Frees whoever's lock; locks nothing.
    pub const FORCE: Self = Self(Uuid::max());
}

/// A lock on a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The holder's token.
    pub token: LockToken,
    /// Who he says he is, and what for.
    pub owner: String,
    /// When the lock ends, in microseconds since 1970 of the global map's clock.
    pub until: i64,
}

impl Lock {
    /// The lock, if it has not ended.
    pub fn alive(lock: Option<&Self>, now: i64) -> Option<&Self> {
        lock.filter(|lock| lock.until > now)
    }
}

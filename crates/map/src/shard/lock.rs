//! Locks on mappings. A program that works on a tenant locks its mapping, so that other programs do not
//! change it.
//!
//! A lock has a token that only its holder knows, a text that names the holder, and an end. After its end it
//! has no effect, so the locks of a crashed program need not be freed.

use uuid::Uuid;

/// The token that a lock's holder shows to change the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(pub Uuid);

impl LockToken {
    /// Used for a mapping that is not locked.
    pub const NONE: Self = Self(Uuid::nil());
    /// Frees the lock of any holder. It cannot be used to lock.
    pub const FORCE: Self = Self(Uuid::max());
}

/// A lock on a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The holder's token.
    pub token: LockToken,
    /// The holder's text about itself and its purpose.
    pub owner: String,
    /// When the lock ends, in microseconds since 1970 by the clock of the global map.
    pub until: i64,
}

impl Lock {
    /// The lock, if it has not ended.
    pub fn alive(lock: Option<&Self>, now: i64) -> Option<&Self> {
        lock.filter(|lock| lock.until > now)
    }
}

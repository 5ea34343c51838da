//! The rules of locks: what a token allows.

use super::id::MappingId;
use super::lock::{Lock, LockToken};
use super::refused::ShardChangeRefused;

impl Lock {
    /// Whether `token` allows a change of a mapping with this lock or none.
    ///
    /// # Errors
    ///
    /// [`ShardChangeRefused::Locked`] names the lock's holder. [`ShardChangeRefused::NotLocked`] refuses a
    /// token if there is no lock: its owner believes that it still has one.
    pub fn admits(
        lock: Option<&Self>,
        mapping: MappingId,
        token: LockToken,
        now: i64,
    ) -> Result<(), ShardChangeRefused> {
        match Self::alive(lock, now) {
            Some(lock) if lock.token == token => Ok(()),
            Some(lock) => Err(ShardChangeRefused::Locked { mapping, lock: lock.clone() }),
            None if token == LockToken::NONE => Ok(()),
            None => Err(ShardChangeRefused::NotLocked { mapping }),
        }
    }

    /// Whether `next` may lock a mapping with this lock or none.
    ///
    /// # Errors
    ///
    /// [`ShardChangeRefused::AlreadyLocked`], even by the same holder, which has to renew its lock instead
    /// ([`Lock::may_renew`]). [`ShardChangeRefused::NoToken`] for a token that cannot be used to lock.
    pub fn may_lock(
        lock: Option<&Self>,
        mapping: MappingId,
        next: &Self,
        now: i64,
    ) -> Result<(), ShardChangeRefused> {
        if next.token == LockToken::NONE || next.token == LockToken::FORCE {
            return Err(ShardChangeRefused::NoToken);
        }
        match Self::alive(lock, now) {
            Some(lock) => Err(ShardChangeRefused::AlreadyLocked { mapping, lock: lock.clone() }),
            None => Ok(()),
        }
    }

    /// Whether `token` allows another end of this lock. The lock must not have ended.
    ///
    /// # Errors
    ///
    /// As [`Lock::admits`].
    pub fn may_renew(
        lock: Option<&Self>,
        mapping: MappingId,
        token: LockToken,
        now: i64,
    ) -> Result<(), ShardChangeRefused> {
        if token == LockToken::NONE || token == LockToken::FORCE {
            return Err(ShardChangeRefused::NoToken);
        }
        Self::admits(lock, mapping, token, now)
    }

    /// Whether `token` allows freeing a mapping with this lock or none.
    ///
    /// # Errors
    ///
    /// As [`Lock::admits`]; [`LockToken::FORCE`] is never refused.
    pub fn may_unlock(
        lock: Option<&Self>,
        mapping: MappingId,
        token: LockToken,
        now: i64,
    ) -> Result<(), ShardChangeRefused> {
        if token == LockToken::FORCE { Ok(()) } else { Self::admits(lock, mapping, token, now) }
    }
}

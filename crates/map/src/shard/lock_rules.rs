//! What a lock allows, and to whom.

use super::id::MappingId;
use super::lock::{Lock, LockToken};
use super::refused::ShardChangeRefused;

impl Lock {
    /// Whether whoever shows `token` may change a mapping that is locked so.
    ///
    /// # Errors
    ///
    /// [`ShardChangeRefused::Locked`] with the holder; [`ShardChangeRefused::NotLocked`] for a token where
    /// no lock is: its holder thinks he is alone, and no more is.
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

    /// Whether `next` may lock a mapping that has this lock or none.
    ///
    /// # Errors
    ///
    /// [`ShardChangeRefused::AlreadyLocked`], by the same holder too, who renews with
    /// [`Lock::may_renew`]; [`ShardChangeRefused::NoToken`] for a token that locks nothing.
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

    /// Whether the holder of `token` may set another end: only of a lock that has not ended.
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

    /// Whether whoever shows `token` may free a mapping with this lock or none.
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

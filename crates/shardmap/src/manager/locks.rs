//! Locks on mappings. Each call is one transaction in the global map; shards are not involved.

use std::time::Duration;

use rangehold_map::shard::{Lock, LockToken, MappingId, ShardChangeRefused, ShardKeyValue, ShardMapping};

use super::handles::Mapping;
use super::shard_map::{KindOfMap, ShardMap};
use crate::error::{Category, Error};
use crate::limits::{LOCK_OWNER_BYTES_MAX, PENDING_MET_MAX};
use crate::operation::begin::lock_map;
use crate::operation::{Met, Trouble};
use crate::rows::{MAPPING_COLUMNS, MapRow, Marked, read_mapping};
use crate::store::{StoreError, Tx};

/// What happens to a lock.
enum Next {
    /// The mapping is locked, by this owner and for this long.
    Locked { token: LockToken, owner: String, lease: Duration },
    /// The lock ends this long from now.
    Renewed { token: LockToken, lease: Duration },
    /// The mapping is free.
    Free { token: LockToken },
}

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// A new token.
    pub fn new_token(&self) -> LockToken {
        LockToken(self.manager.0.operations.chance.id())
    }

    /// Locks a mapping for this long. Others see the name of the owner.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingAlreadyLocked`]; [`crate::Code::InvalidArgument`] for a token that cannot lock anything,
    /// or a text of more than 256 bytes.
    pub async fn lock(
        &self,
        mapping: &Mapping<K>,
        token: LockToken,
        owner: &str,
        lease: Duration,
    ) -> Result<Mapping<K>, Error> {
        if owner.len() > LOCK_OWNER_BYTES_MAX {
            return Err(Error::argument(format!(
                "{} bytes are too many for the holder of a lock: give at most 256",
                owner.len()
            )));
        }
        self.set_lock(mapping, &Next::Locked { token, owner: owner.to_owned(), lease }).await
    }

    /// Makes a lock end this long from now.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingLockOwnerMismatch`], also if it has ended.
    pub async fn renew_lock(
        &self,
        mapping: &Mapping<K>,
        token: LockToken,
        lease: Duration,
    ) -> Result<Mapping<K>, Error> {
        self.set_lock(mapping, &Next::Renewed { token, lease }).await
    }

    /// Frees a mapping. With [`LockToken::FORCE`] it frees the lock of any holder.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingLockOwnerMismatch`].
    pub async fn unlock(&self, mapping: &Mapping<K>, token: LockToken) -> Result<Mapping<K>, Error> {
        self.set_lock(mapping, &Next::Free { token }).await
    }

    /// Frees all mappings of this map that are locked with a token, or with [`LockToken::FORCE`] all that are locked.
    /// Returns how many there were.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`].
    pub async fn unlock_all(&self, token: LockToken) -> Result<u64, Error> {
        let free = async {
            let mut tx = self.manager.writing().await?;
            lock_map(&mut tx, &self.map, self.category()).await?;
            let sql = "update __shard_management.global_mappings
                set lock_token = null, lock_owner = null, lock_until = null
                where map_id = $1 and lock_token is not null and (lock_token = $2 or $3)";
            let all = token == LockToken::FORCE;
            let freed = tx.execute(sql, &[self.map.id.into(), token.0.into(), all.into()]).await?;
            tx.commit().await?;
            Ok(freed)
        };
        free.await.map_err(|trouble: Trouble| trouble.seen_by(self.category()))
    }

    /// The lock of a mapping, if it has one that has not ended.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingDoesNotExist`].
    pub async fn lock_of(&self, mapping: &Mapping<K>) -> Result<Option<Lock>, Error> {
        self.own(mapping)?;
        let read = async {
            let mut tx = self.manager.reading().await?;
            let now = tx.now().await?;
            let found = read_one(&mut tx, &self.map, mapping.id()).await?;
            tx.commit().await?;
            Ok((found, now))
        };
        let (found, now) = read.await.map_err(|error: StoreError| error.seen_by(self.category()))?;
        let found = found.ok_or_else(|| self.gone(mapping.id()))?;
        Ok(Lock::alive(found.row.lock.as_ref(), now).cloned())
    }

    async fn set_lock(&self, mapping: &Mapping<K>, next: &Next) -> Result<Mapping<K>, Error> {
        self.own(mapping)?;
        for met_count in 1.. {
            let set = self.try_set_lock(mapping.id(), next).await;
            match set.map_err(|trouble| trouble.seen_by(self.category()))? {
                Ok(()) => break,
                Err(met) => {
                    let hurry = met_count >= PENDING_MET_MAX;
                    self.manager.0.operations.settle(&met, self.category(), hurry).await?;
                }
            }
        }
        self.reread(mapping.id()).await?.ok_or_else(|| self.gone(mapping.id()))
    }

    async fn try_set_lock(&self, id: MappingId, next: &Next) -> Result<Result<(), Met>, Trouble> {
        let refused =
            |refused: ShardChangeRefused| Error::refused(self.category(), self.map.key_type(), &refused);
        let mut tx = self.manager.writing().await?;
        lock_map(&mut tx, &self.map, self.category()).await?;
        let found = read_one(&mut tx, &self.map, id).await?.ok_or_else(|| self.gone(id))?;
        if let Some(operation) = found.operation {
            return Ok(Err(Met { operation }));
        }
        let now = tx.now().await?;
        let lock = after(found.row.lock.as_ref(), id, next, now).map_err(refused)?;
        let sql = "update __shard_management.global_mappings
            set lock_token = $1, lock_owner = $2, lock_until = $3 where mapping_id = $4";
        let lock = lock.as_ref();
        let values = [
            lock.map(|lock| lock.token.0).into(),
            lock.map(|lock| lock.owner.as_str()).into(),
            lock.map(|lock| lock.until).into(),
            id.0.into(),
        ];
        tx.execute(sql, &values).await?;
        tx.commit().await?;
        Ok(Ok(()))
    }
}

/// The lock after a change, if the rules allow the change.
fn after(
    lock: Option<&Lock>,
    id: MappingId,
    next: &Next,
    now: i64,
) -> Result<Option<Lock>, ShardChangeRefused> {
    let until = |lease: &Duration| now.saturating_add(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX));
    match next {
        Next::Locked { token, owner, lease } => {
            let next = Lock { token: *token, owner: owner.clone(), until: until(lease) };
            Lock::may_lock(lock, id, &next, now)?;
            Ok(Some(next))
        }
        Next::Renewed { token, lease } => {
            Lock::may_renew(lock, id, *token, now)?;
            Ok(lock.map(|lock| Lock { until: until(lease), ..lock.clone() }))
        }
        Next::Free { token } => {
            Lock::may_unlock(lock, id, *token, now)?;
            Ok(None)
        }
    }
}

async fn read_one(
    tx: &mut Tx,
    map: &MapRow,
    id: MappingId,
) -> Result<Option<Marked<ShardMapping>>, StoreError> {
    let sql = format!(
        "select {MAPPING_COLUMNS}, readable, operation_id from __shard_management.global_mappings
        where mapping_id = $1 and map_id = $2"
    );
    let row = tx.query_one(&sql, &[id.0.into(), map.id.into()]).await?;
    row.map(|mut row| Marked::read(&mut row, read_mapping)).transpose()
}

/// The error for a mapping that is gone.
pub(super) fn gone(category: Category, map: &MapRow, id: MappingId) -> Error {
    let refused = ShardChangeRefused::UnknownMapping { mapping: id };
    Error::refused(category, map.key_type(), &refused)
}

//! What list and range maps have in common: changes of their mappings.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rangehold_map::shard::{
    Effect, LockToken, MapKind, MappingUpdate, NewMapping, ShardChange, ShardId, ShardKeyValue, ShardMapping,
};
use uuid::Uuid;

use super::ShardMapManager;
use super::handles::{MapInfo, Mapping, Shard};
use crate::cache::Cached;
use crate::error::{Category, Error};
use crate::limits::MAPPINGS_PER_OPERATION_MAX;
use crate::operation::ChangeRequest;
use crate::rows::{MapRow, ShardRow};
use crate::store::Drain;

/// The kind of a map, as a type.
pub trait KindOfMap: Send + Sync + 'static {
    /// As a value.
    const KIND: MapKind;
}

/// Single keys.
#[derive(Debug, Clone, Copy)]
pub enum List {}

/// Intervals of keys.
#[derive(Debug, Clone, Copy)]
pub enum Range {}

impl KindOfMap for List {
    const KIND: MapKind = MapKind::List;
}

impl KindOfMap for Range {
    const KIND: MapKind = MapKind::Range;
}

/// A shard map with keys of type `K`. Cheap to clone.
///
/// Calls that change a locked mapping need a handle that shows the lock's token ([`ShardMap::showing`]).
pub struct ShardMap<K, M> {
    pub(crate) manager: ShardMapManager,
    pub(crate) map: Arc<MapRow>,
    token: LockToken,
    drain: Drain,
    kind: PhantomData<fn() -> (K, M)>,
}

/// The fields that an update of a mapping sets. Fields that are `None` stay.
#[derive(Debug, Clone, Copy, Default)]
pub struct MappingChange<'a> {
    /// The new status.
    pub online: Option<bool>,
    /// The new shard. The mapping must be offline before or after.
    pub shard: Option<&'a Shard>,
}

impl<K, M> Clone for ShardMap<K, M> {
    fn clone(&self) -> Self {
        Self {
            manager: self.manager.clone(),
            map: self.map.clone(),
            token: self.token,
            drain: self.drain,
            kind: PhantomData,
        }
    }
}

impl<K, M> std::fmt::Debug for ShardMap<K, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShardMap({:?}, {} of {})", self.map.name, self.map.kind().name(), self.map.key_type())
    }
}

impl<K, M> ShardMap<K, M> {
    pub(crate) fn new(manager: ShardMapManager, map: Arc<MapRow>) -> Self {
        let drain = Drain::End(manager.0.drain_grace);
        Self { manager, map, token: LockToken::NONE, drain, kind: PhantomData }
    }

    /// What is known of the map.
    pub fn info(&self) -> MapInfo {
        MapInfo::from(&*self.map)
    }

    /// The manager of the map.
    pub fn manager(&self) -> &ShardMapManager {
        &self.manager
    }

    /// The same map, with the token of a lock. Use it to change mappings that are locked with this token.
    pub fn showing(&self, token: LockToken) -> Self {
        Self { token, ..self.clone() }
    }

    /// The same map with another policy for transactions on keys that go offline or away.
    pub fn draining(&self, drain: Drain) -> Self {
        Self { drain, ..self.clone() }
    }

    /// The same map with another grace. If keys go offline or away, their transactions get this long to end by
    /// themselves.
    pub fn with_grace(&self, grace: Duration) -> Self {
        self.draining(Drain::End(grace))
    }

    /// The same map without draining. If keys go offline or away, their transactions are not ended. They run on keys
    /// that are no longer served, until they end by themselves.
    pub fn without_drain(&self) -> Self {
        self.draining(Drain::Leave)
    }
}

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// Deletes a mapping that is offline. The rows stay.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingIsNotOffline`], [`crate::Code::MappingDoesNotExist`] for a handle that is older than the
    /// last change, [`crate::Code::MappingLockOwnerMismatch`].
    pub async fn delete(&self, mapping: &Mapping<K>) -> Result<(), Error> {
        self.own(mapping)?;
        let change = ShardChange::Delete { mapping: mapping.id(), token: self.token };
        self.change(&change, &[mapping.shard()]).await.map(|_| ())
    }

    /// Sets the status of a mapping, its shard, or both. If nothing is set, returns the mapping itself.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::delete`]; [`crate::Code::ShardDoesNotExist`].
    pub async fn update(&self, mapping: &Mapping<K>, to: MappingChange<'_>) -> Result<Mapping<K>, Error> {
        self.own(mapping)?;
        if let Some(shard) = to.shard {
            self.own_shard(shard)?;
        }
        let change = ShardChange::Update {
            mapping: mapping.id(),
            to: MappingUpdate { online: to.online, shard: to.shard.map(Shard::id) },
            token: self.token,
        };
        let shards = [mapping.shard(), to.shard.unwrap_or(mapping.shard())];
        Ok(self.change(&change, &shards).await?.pop().unwrap_or_else(|| mapping.clone()))
    }

    /// Takes a mapping offline: its shard refuses new transactions on its keys, and those under way are
    /// ended.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::update`]; [`crate::Code::MappingDrainFailure`].
    pub async fn offline(&self, mapping: &Mapping<K>) -> Result<Mapping<K>, Error> {
        self.update(mapping, MappingChange { online: Some(false), shard: None }).await
    }

    /// Makes the mapping's shard serve its keys again.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::update`].
    pub async fn online(&self, mapping: &Mapping<K>) -> Result<Mapping<K>, Error> {
        self.update(mapping, MappingChange { online: Some(true), shard: None }).await
    }

    /// Adds mappings in one operation: all or none.
    pub(super) async fn add_all(
        &self,
        new: Vec<NewMapping>,
        shards: &[&Shard],
    ) -> Result<Vec<Mapping<K>>, Error> {
        for shard in shards {
            self.own_shard(shard)?;
        }
        if new.len() > MAPPINGS_PER_OPERATION_MAX {
            let (count, most) = (new.len(), MAPPINGS_PER_OPERATION_MAX);
            return Err(Error::argument(format!(
                "{count} mappings are more than {most} at once: add them in parts"
            )));
        }
        if new.is_empty() {
            return Ok(Vec::new());
        }
        self.change(&ShardChange::Add(new), shards).await
    }

    pub(super) fn drain(&self) -> Drain {
        self.drain
    }

    pub(super) fn token(&self) -> LockToken {
        self.token
    }

    pub(super) fn own(&self, mapping: &Mapping<K>) -> Result<(), Error> {
        if mapping.shard().map == self.map.id {
            return Ok(());
        }
        Err(Error::argument(format!("mapping {} is of another map than {:?}", mapping.id(), self.map.name)))
    }

    pub(super) fn category(&self) -> Category {
        crate::operation::begin::category(&self.map)
    }

    /// Carries a change out and updates the cache. Returns the new mappings.
    pub(super) async fn change(
        &self,
        change: &ShardChange,
        shards: &[&Shard],
    ) -> Result<Vec<Mapping<K>>, Error> {
        let request = ChangeRequest { map: &self.map, change, drain: self.drain };
        let operations = &self.manager.0.operations;
        let Effect { goes, mut comes } = operations.change(&request).await?;
        // The new mappings come sorted by shard.
        comes.sort_by(|a, b| a.keys.low().cmp(b.keys.low()));
        let known: HashMap<Uuid, Arc<ShardRow>> =
            shards.iter().map(|shard| (shard.row.id, shard.row.clone())).collect();
        let shard = |id: ShardId| known.get(&id.0).cloned();
        self.manager.0.cache.forget(self.map.id, &goes, &operations.metrics);
        let cached = |mapping: &ShardMapping| {
            shard(mapping.shard).map(|shard| Cached { mapping: mapping.clone(), shard })
        };
        self.manager.0.cache.put(self.map.id, comes.iter().filter_map(cached), &operations.metrics);
        let handle = |mapping: ShardMapping| {
            let shard =
                shard(mapping.shard).ok_or_else(|| Error::damaged("a mapping came to a shard not named"))?;
            Mapping::new(&self.map, mapping, shard)
        };
        comes.into_iter().map(handle).collect()
    }
}

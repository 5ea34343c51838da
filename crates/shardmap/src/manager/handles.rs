//! Handles that the manager gives out: snapshots of maps, shards and mappings. A handle never changes. A change
//! returns a new handle, and calls that depend on the change refuse the old one.

use std::fmt;
use std::sync::Arc;

use rangehold_map::shard::{
    Lock, MapKind, MappingId, ShardId, ShardKey, ShardKeyType, ShardKeyValue, ShardMapping,
};
use uuid::Uuid;

use crate::error::Error;
use crate::location::Location;
use crate::rows::{MapRow, ShardRow};

/// A shard map as the global map knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapInfo {
    /// Its id for its whole life. A map with the same name that is made later has another id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// List or range.
    pub kind: MapKind,
    /// The type of its keys.
    pub key_type: ShardKeyType,
}

impl From<&MapRow> for MapInfo {
    fn from(row: &MapRow) -> Self {
        Self { id: row.id, name: row.name.clone(), kind: row.kind(), key_type: row.key_type() }
    }
}

/// A shard of a map: one database.
#[derive(Clone, PartialEq, Eq)]
pub struct Shard {
    pub(crate) map: Uuid,
    pub(crate) row: Arc<ShardRow>,
}

/// What an update of a shard sets. Fields that are `None` stay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardUpdate {
    /// Another status.
    pub online: Option<bool>,
    /// The place where the same database is now, for example after a failover.
    pub location: Option<Location>,
}

impl Shard {
    /// Its id.
    pub fn id(&self) -> ShardId {
        ShardId(self.row.id)
    }

    /// Its place.
    pub fn location(&self) -> &Location {
        &self.row.location
    }

    /// Its status. It is a note for people and programs; mappings have a status of their own.
    pub fn is_online(&self) -> bool {
        self.row.online
    }

    /// Its version. Each change of the shard gives a new one.
    pub fn version(&self) -> Uuid {
        self.row.version
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shard({})", self.row.location)
    }
}

/// A mapping: keys, and the shard that holds them.
#[derive(Clone)]
pub struct Mapping<K> {
    pub(crate) mapping: Arc<ShardMapping>,
    shard: Shard,
    low: K,
    high: Option<K>,
}

/// The mapping of one key.
pub type PointMapping<K> = Mapping<K>;
/// The mapping of an interval.
pub type RangeMapping<K> = Mapping<K>;

impl<K: ShardKeyValue> Mapping<K> {
    pub(crate) fn new(map: &MapRow, mapping: ShardMapping, shard: Arc<ShardRow>) -> Result<Self, Error> {
        let key = |raw: &[u8]| K::from_key(&ShardKey::from_raw(map.key_type(), raw)?);
        let low = key(mapping.keys.low())?;
        let high = match (map.kind(), mapping.keys.high()) {
            // The high end of a point is the next key, which the user never named.
            (MapKind::List, _) | (_, None) => None,
            (MapKind::Range, Some(high)) => Some(key(high)?),
        };
        let shard = Shard { map: map.id, row: shard };
        Ok(Self { mapping: Arc::new(mapping), shard, low, high })
    }
}

impl<K> Mapping<K> {
    /// Its id. Each change of the mapping makes a new one.
    pub fn id(&self) -> MappingId {
        self.mapping.id
    }

    /// The key, in a list map.
    pub fn value(&self) -> &K {
        &self.low
    }

    /// The least key of the mapping.
    pub fn low(&self) -> &K {
        &self.low
    }

    /// The least key above the mapping, in a range map; `None` if there is no end.
    pub fn high(&self) -> Option<&K> {
        self.high.as_ref()
    }

    /// The shard that has the keys.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Whether the shard serves them.
    pub fn is_online(&self) -> bool {
        self.mapping.online
    }

    /// The number of the advisory lock that transactions on these keys hold.
    pub fn fence(&self) -> i64 {
        self.mapping.fence
    }

    /// The lock that the mapping had when it was read; `None` also for a lock that had ended.
    pub fn lock(&self) -> Option<&Lock> {
        self.mapping.lock.as_ref()
    }
}

impl<K> PartialEq for Mapping<K> {
    /// Whether both are the same mapping of the same shard. An id is never used for another mapping.
    fn eq(&self, other: &Self) -> bool {
        self.mapping.id == other.mapping.id && self.shard == other.shard
    }
}

impl<K> Eq for Mapping<K> {}

impl<K: fmt::Debug> fmt::Debug for Mapping<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = if self.mapping.online { "online" } else { "offline" };
        write!(f, "Mapping({:?}, {:?} -> {}, {status})", self.low, self.high, self.shard.row.location)
    }
}

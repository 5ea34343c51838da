//! Mappings, and the map of them.

use strum::IntoStaticStr;

use super::id::{MappingId, ShardId};
use super::lock::Lock;
use crate::ordered::{Keyed, Ordered};
use crate::range::KeyRange;

/// What the mappings of a map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum MapKind {
    /// Single keys.
    List,
    /// Intervals.
    Range,
}

impl MapKind {
    /// Its name in databases and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An interval of keys and the shard that holds them. It never changes: a change makes a new mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardMapping {
    /// Its id.
    pub id: MappingId,
    /// Its keys.
    pub keys: KeyRange,
    /// The shard that holds them.
    pub shard: ShardId,
    /// Whether the shard serves them.
    pub online: bool,
    /// Names the database lock of transactions on these keys. Each new interval has a new one.
    pub fence: i64,
    /// The lock on it, if there is one.
    pub lock: Option<Lock>,
}

impl Keyed for ShardMapping {
    fn keys(&self) -> &KeyRange {
        &self.keys
    }
}

/// The mappings of a list map or range map, or those of them that lie near a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardMap {
    kind: MapKind,
    mappings: Ordered<ShardMapping>,
}

impl ShardMap {
    /// A map of these mappings, which are not checked.
    pub fn new(kind: MapKind, mappings: Vec<ShardMapping>) -> Self {
        Self { kind, mappings: Ordered::new(mappings) }
    }

    /// List or range.
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// The mappings in the order of their keys.
    pub fn mappings(&self) -> &[ShardMapping] {
        &self.mappings
    }

    /// The mapping that holds `key`; `None` in a gap.
    pub fn lookup(&self, key: &[u8]) -> Option<&ShardMapping> {
        self.mappings.lookup(key)
    }

    /// The mapping `id`, if the map has it. The search is linear.
    pub fn get(&self, id: MappingId) -> Option<&ShardMapping> {
        self.mappings.iter().find(|mapping| mapping.id == id)
    }

    /// The mappings that hold some of `keys`, in the order of their keys.
    pub fn overlapping(&self, keys: &KeyRange) -> &[ShardMapping] {
        self.mappings.overlapping(keys)
    }

    /// Two neighbours that share keys, if there are any; or a mapping without keys, as both.
    pub fn fault(&self) -> Option<(&ShardMapping, &ShardMapping)> {
        let overlap =
            |pair: &&[ShardMapping]| pair[0].keys.high().is_none_or(|high| high > pair[1].keys.low());
        let empty = self.mappings.iter().find(|mapping| mapping.keys.is_empty()).map(|one| (one, one));
        empty.or_else(|| self.mappings.windows(2).find(overlap).map(|pair| (&pair[0], &pair[1])))
    }
}

//! Places between the keys of a table, and the stretch between two of them.
//!
//! A place is kept as bytes that sort among the encoded pairs of keys (see `rangehold_map::codec`), so
//! that comparing two places, and making a range of stored keys of them, is a matter of bytes.

use rangehold_map::codec::put_text;
use rangehold_map::key::table_prefix;
use rangehold_map::{KeyRange, TableId};

/// A place between two keys of a table, in the order of (PartitionKey, RowKey).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyEdge(Vec<u8>);

/// No encoded text begins with it: greater than all.
const ABOVE_TEXTS: u8 = 0xFF;
/// Behind a closed text it is the next greater key, since only `FF` can stand there otherwise.
const JUST_AFTER: u8 = 0x00;

impl KeyEdge {
    /// Before the first key of the table.
    pub const fn start() -> Self {
        Self(Vec::new())
    }

    /// After the last key of the table.
    pub fn end() -> Self {
        Self(vec![ABOVE_TEXTS])
    }

    /// Before the first row of a partition.
    pub fn before_partition(partition_key: &str) -> Self {
        let mut out = Vec::with_capacity(partition_key.len() + 2);
        put_text(&mut out, partition_key);
        Self(out)
    }

    /// After the last row of a partition.
    pub fn after_partition(partition_key: &str) -> Self {
        let mut edge = Self::before_partition(partition_key);
        edge.0.push(ABOVE_TEXTS);
        edge
    }

    /// Directly before one row.
    pub fn before_row(partition_key: &str, row_key: &str) -> Self {
        let mut edge = Self::before_partition(partition_key);
        put_text(&mut edge.0, row_key);
        edge
    }

    /// Directly after one row.
    pub fn after_row(partition_key: &str, row_key: &str) -> Self {
        let mut edge = Self::before_row(partition_key, row_key);
        edge.0.push(JUST_AFTER);
        edge
    }
}

/// The pairs of keys between two places. Nothing lies inside where `high` is not above `low`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBounds {
    /// All keys inside are above.
    pub low: KeyEdge,
    /// All keys inside are below.
    pub high: KeyEdge,
}

impl KeyBounds {
    /// All keys of a table.
    pub fn all() -> Self {
        Self { low: KeyEdge::start(), high: KeyEdge::end() }
    }

    /// One row.
    pub fn row(partition_key: &str, row_key: &str) -> Self {
        Self {
            low: KeyEdge::before_row(partition_key, row_key),
            high: KeyEdge::after_row(partition_key, row_key),
        }
    }

    /// No key.
    pub fn none() -> Self {
        Self { low: KeyEdge::end(), high: KeyEdge::start() }
    }

    /// Whether no key can lie inside.
    pub fn is_empty(&self) -> bool {
        self.high <= self.low
    }

    /// The keys that lie in both.
    pub fn intersect(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// The keys that lie in one of them or between them.
    pub(super) fn hull(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self { low: self.low.min(other.low), high: self.high.max(other.high) },
        }
    }

    /// The stored keys of a table that lie inside.
    pub fn to_range(&self, account: &str, table: TableId) -> KeyRange {
        let prefix = table_prefix(account, table);
        let stored = |edge: &KeyEdge| [prefix.as_slice(), edge.0.as_slice()].concat();
        KeyRange::new(stored(&self.low), Some(stored(&self.high)))
    }
}

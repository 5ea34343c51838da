//! Intervals of a table's keys, and the edges at which they begin and end.
//!
//! An edge lies between two keys. It is kept as bytes that sort among the encoded pairs of keys (see
//! `rangehold_map::codec`). So two edges are compared as bytes, and a prefix makes stored keys of them.

use rangehold_map::codec::{Reader, put_text};
use rangehold_map::key::table_prefix;
use rangehold_map::{KeyRange, TableId};

/// A place between two keys of a table, in the order of (PartitionKey, RowKey).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyEdge(Vec<u8>);

/// No encoded text begins with this byte, so it sorts behind all texts.
const ABOVE_TEXTS: u8 = 0xFF;
/// Behind an encoded text this byte makes the next greater key.
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

    /// The encoded PartitionKey of the partition in which or beside which the edge lies; `None` at the
    /// table's ends.
    fn partition(&self) -> Option<&[u8]> {
        Reader::new(&self.0).raw_text().ok()
    }

    /// Directly after one row.
    pub fn after_row(partition_key: &str, row_key: &str) -> Self {
        let mut edge = Self::before_row(partition_key, row_key);
        edge.0.push(JUST_AFTER);
        edge
    }
}

/// How much of a table a query has to look at. These are the kinds of queries in the service's guides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryKind {
    /// One entity: both of its keys are given.
    Point,
    /// Rows of one partition.
    RowRange,
    /// Several partitions: a lower bound, an upper bound, or both.
    PartitionRange,
    /// All of the table.
    Table,
}

/// The pairs of keys between two edges. The interval is empty where `high` is not above `low`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBounds {
    /// All keys inside are above this edge.
    pub low: KeyEdge,
    /// All keys inside are below this edge.
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

    /// How much of the table lies inside.
    pub fn kind(&self) -> QueryKind {
        let one_row = || self.high.0.strip_suffix(&[JUST_AFTER]) == Some(&self.low.0);
        match (self.low.partition(), self.high.partition()) {
            (None, None) if !self.is_empty() => QueryKind::Table,
            (Some(low), Some(high)) if low == high && one_row() => QueryKind::Point,
            (Some(low), Some(high)) if low == high => QueryKind::RowRange,
            _ => QueryKind::PartitionRange,
        }
    }

    /// The keys that lie in both.
    pub fn intersect(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// Whether an entity with these keys lies inside.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let at = KeyEdge::before_row(partition_key, row_key);
        self.low <= at && at < self.high
    }

    /// The smallest interval that contains both.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::PartitionPrefix;

    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn key() -> impl Strategy<Value = String> {
        "[ab\u{0}\u{FFFF}\u{10000}é]{0,2}"
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Keys compare by UTF-16 code unit, and an edge beside a partition has all of it on one side.
        #[test]
        fn bounds_contain_the_keys_between_their_edges(
            (low_pk, low_rk) in (key(), prop::option::of(key())),
            (high_pk, high_rk) in (key(), prop::option::of(key())),
            pk in key(),
            rk in key(),
        ) {
            let bounds = KeyBounds {
                low: match &low_rk {
                    Some(row_key) => KeyEdge::before_row(&low_pk, row_key),
                    None => KeyEdge::before_partition(&low_pk),
                },
                high: match &high_rk {
                    Some(row_key) => KeyEdge::after_row(&high_pk, row_key),
                    None => KeyEdge::after_partition(&high_pk),
                },
            };
            let at = (utf16(&pk), utf16(&rk));
            let above = match &low_rk {
                Some(row_key) => at >= (utf16(&low_pk), utf16(row_key)),
                None => at.0 >= utf16(&low_pk),
            };
            let below = match &high_rk {
                Some(row_key) => at <= (utf16(&high_pk), utf16(row_key)),
                None => at.0 <= utf16(&high_pk),
            };
            prop_assert_eq!(bounds.contains(&pk, &rk), above && below);
            let stored = PartitionPrefix::entity("acct", TableId(7), &pk).key(&rk);
            prop_assert_eq!(bounds.to_range("acct", TableId(7)).contains(&stored), above && below);
        }
    }

    #[test]
    fn the_kind_of_a_query_follows_from_its_bounds() {
        let kind = |filter: &str| {
            let filter = crate::table::filter::Filter::parse(filter).unwrap();
            filter.map_or_else(KeyBounds::all, |filter| filter.bounds()).kind()
        };
        for (filter, expected) in [
            ("PartitionKey eq 'a' and RowKey eq 'r'", QueryKind::Point),
            ("RowKey eq '' and PartitionKey eq '' and age gt 3", QueryKind::Point),
            ("PartitionKey eq 'a'", QueryKind::RowRange),
            ("PartitionKey eq 'a' and age gt 3", QueryKind::RowRange),
            ("PartitionKey eq 'a' and RowKey ge 'r' and RowKey lt 's'", QueryKind::RowRange),
            ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')", QueryKind::RowRange),
            ("PartitionKey ge 'a' and PartitionKey lt 'b'", QueryKind::PartitionRange),
            ("PartitionKey ge 'a'", QueryKind::PartitionRange),
            ("PartitionKey lt 'b'", QueryKind::PartitionRange),
            ("PartitionKey eq 'a' or PartitionKey eq 'c'", QueryKind::PartitionRange),
            ("", QueryKind::Table),
            ("RowKey eq 'r'", QueryKind::Table),
            ("age gt 3", QueryKind::Table),
        ] {
            assert_eq!(kind(filter), expected, "{filter}");
        }
    }

    #[test]
    fn keys_of_other_tables_are_outside_of_the_range() {
        let range = KeyBounds::all().to_range("acct", TableId(7));
        assert!(range.contains(&PartitionPrefix::entity("acct", TableId(7), "").key("")));
        assert!(!range.contains(&PartitionPrefix::entity("acct", TableId(8), "").key("")));
        assert!(!range.contains(&PartitionPrefix::entity("acct", TableId(6), "z").key("z")));
    }
}

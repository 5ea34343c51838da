//! The part of a table that a SAS reaches, by keys.
//!
//! Both bounds are inclusive. A bound on PartitionKey alone takes whole partitions; with a RowKey
//! it cuts inside of one. Keys compare by UTF-16 code unit, as everywhere.

use rangehold_map::key::table_prefix;
use rangehold_map::{KeyRange, PartitionPrefix, TableId};

/// One end: a PartitionKey and, inside of that partition, perhaps a RowKey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBound {
    /// PartitionKey.
    pub partition_key: String,
    /// RowKey; without one the bound takes the whole partition.
    pub row_key: Option<String>,
}

/// From where to where; an absent bound bounds nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyBounds {
    /// The least entity, inclusive.
    pub low: Option<KeyBound>,
    /// The greatest entity, inclusive.
    pub high: Option<KeyBound>,
}

/// Greater than every byte with which a component of a key begins, see the codec of keys.
const ABOVE_COMPONENTS: u8 = 0xFF;

impl KeyBounds {
    /// Whether an entity with these keys lies between the bounds.
    pub fn contain(&self, partition_key: &str, row_key: &str) -> bool {
        let (account, table) = ("", TableId(0));
        let key = PartitionPrefix::entity(account, table, partition_key).key(row_key);
        self.to_range(account, table).contains(&key)
    }

    /// The stored keys of the entities between the bounds.
    pub fn to_range(&self, account: &str, table: TableId) -> KeyRange {
        let whole = KeyRange::prefix(&table_prefix(account, table));
        let low = match &self.low {
            Some(bound) => bound.first_key(account, table),
            None => whole.low().to_vec(),
        };
        let high = match &self.high {
            Some(bound) => Some(bound.key_after(account, table)),
            None => whole.high().map(<[u8]>::to_vec),
        };
        KeyRange::new(low, high)
    }
}

impl KeyBound {
    fn first_key(&self, account: &str, table: TableId) -> Vec<u8> {
        let partition = PartitionPrefix::entity(account, table, &self.partition_key);
        match &self.row_key {
            Some(row_key) => partition.key(row_key),
            None => partition.as_bytes().to_vec(),
        }
    }

    fn key_after(&self, account: &str, table: TableId) -> Vec<u8> {
        let partition = PartitionPrefix::entity(account, table, &self.partition_key);
        match &self.row_key {
            Some(row_key) => {
                let mut key = partition.key(row_key);
                key.push(0);
                key
            }
            None => {
                let mut key = partition.as_bytes().to_vec();
                key.push(ABOVE_COMPONENTS);
                key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    /// The table of the documentation, word by word.
    fn as_documented(bounds: &KeyBounds, pk: &str, rk: &str) -> bool {
        let (pk, rk) = (utf16(pk), utf16(rk));
        let above = bounds.low.as_ref().is_none_or(|low| match &low.row_key {
            None => pk >= utf16(&low.partition_key),
            Some(row) => {
                pk > utf16(&low.partition_key) || (pk == utf16(&low.partition_key) && rk >= utf16(row))
            }
        });
        let below = bounds.high.as_ref().is_none_or(|high| match &high.row_key {
            None => pk <= utf16(&high.partition_key),
            Some(row) => {
                pk < utf16(&high.partition_key) || (pk == utf16(&high.partition_key) && rk <= utf16(row))
            }
        });
        above && below
    }

    fn key() -> impl Strategy<Value = String> {
        "[ab\u{0}\u{FFFF}\u{10000}é]{0,2}"
    }

    fn bound() -> impl Strategy<Value = Option<KeyBound>> {
        prop::option::of(
            (key(), prop::option::of(key()))
                .prop_map(|(partition_key, row_key)| KeyBound { partition_key, row_key }),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn hold_what_is_documented(low in bound(), high in bound(), pk in key(), rk in key()) {
            let bounds = KeyBounds { low, high };
            prop_assert_eq!(bounds.contain(&pk, &rk), as_documented(&bounds, &pk, &rk));
        }
    }

    #[test]
    fn other_tables_are_out_of_range() {
        let range = KeyBounds::default().to_range("acct", TableId(7));
        assert!(range.contains(&PartitionPrefix::entity("acct", TableId(7), "").key("")));
        assert!(!range.contains(&PartitionPrefix::entity("acct", TableId(8), "").key("")));
        assert!(!range.contains(&PartitionPrefix::entity("acct", TableId(6), "z").key("z")));
    }
}

//! The dropped tables of one database: their rows are not shown, and compaction leaves them out.
//!
//! `range::dropped` describes the life of a dropped table.

mod leave_out;

use std::collections::BTreeMap;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rangehold_map::codec::Reader;
use rangehold_map::key::{KIND_ENTITY, table_prefix};
use rangehold_map::{KeyRange, TableId, Timestamp};

pub(crate) use leave_out::LeaveOut;

/// One dropped table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DroppedTable {
    pub(crate) account: String,
    pub(crate) table: TableId,
    /// When it was dropped, by the clock of the range, as its note says.
    pub(crate) at: Timestamp,
}

impl DroppedTable {
    /// A table that was dropped at `at`.
    pub(crate) fn new(account: &str, table: TableId, at: Timestamp) -> Self {
        Self { account: account.to_owned(), table, at }
    }

    /// All keys of the table's entities.
    pub(crate) fn keys(&self) -> KeyRange {
        KeyRange::prefix(&table_prefix(&self.account, self.table))
    }
}

/// The dropped tables. The map's key is the bytes with which all keys of a table begin.
#[derive(Debug, Default)]
pub(crate) struct DroppedTables(RwLock<BTreeMap<Vec<u8>, DroppedTable>>);

impl DroppedTables {
    /// Adds a table, and returns the entry for it. If there is an entry already, it stays, with the earlier
    /// time.
    pub(crate) fn insert(&self, dropped: DroppedTable) -> DroppedTable {
        let prefix = table_prefix(&dropped.account, dropped.table);
        self.write().entry(prefix).or_insert(dropped).clone()
    }

    /// Forgets a table that has no rows left.
    pub(crate) fn remove(&self, dropped: &DroppedTable) {
        self.write().remove(&table_prefix(&dropped.account, dropped.table));
    }

    /// Whether `key` (or the prefix of a partition) belongs to a dropped table.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        let set = self.read();
        !set.is_empty() && table_part(key).is_some_and(|prefix| set.contains_key(prefix))
    }

    /// Whether all of `keys` belong to one dropped table.
    pub(crate) fn covers_all(&self, keys: &KeyRange) -> bool {
        let set = self.read();
        if set.is_empty() {
            return false;
        }
        table_part(keys.low())
            .and_then(|prefix| set.get(prefix))
            .is_some_and(|dropped| keys.intersect(&dropped.keys()) == *keys)
    }

    /// Whether no table is waiting to be removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// How many tables are waiting to be removed.
    pub(crate) fn len(&self) -> usize {
        self.read().len()
    }

    /// The tables, in the order of their keys.
    pub(crate) fn list(&self) -> Vec<DroppedTable> {
        self.read().values().cloned().collect()
    }

    // The code that holds this lock changes the map by one call, so a panic leaves the map whole.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Vec<u8>, DroppedTable>> {
        self.0.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Vec<u8>, DroppedTable>> {
        self.0.write()
    }
}

/// The bytes that name the table, in the key of an entity or in a longer bound.
fn table_part(key: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(key);
    if reader.u8().ok()? != KIND_ENTITY {
        return None;
    }
    reader.raw_text().ok()?;
    reader.u64().ok()?;
    Some(&key[..reader.position()])
}

#[cfg(test)]
mod tests {
    use rangehold_map::{Key, PartitionPrefix};

    use super::*;

    fn dropped(account: &str, id: u64) -> DroppedTable {
        DroppedTable::new(account, TableId(id), Timestamp::default())
    }

    #[test]
    fn a_dropped_table_covers_its_own_keys_only() {
        let set = DroppedTables::default();
        set.insert(dropped("abc", 7));
        let key = |account: &str, id| PartitionPrefix::entity(account, TableId(id), "p").key("r");
        assert!(set.covers(&key("abc", 7)));
        assert!(!set.covers(&key("abc", 8)));
        assert!(!set.covers(&key("ab", 7)));
        assert!(!set.covers(&Key::Table { account: "abc".into(), lower_name: "t".into() }.encode()));
        assert!(set.covers_all(&dropped("abc", 7).keys()));
        assert!(set.covers_all(&KeyRange::prefix(&key("abc", 7))));
        assert!(!set.covers_all(&KeyRange::new(table_prefix("abc", TableId(7)), None)));
        set.remove(&dropped("abc", 7));
        assert!(!set.covers(&key("abc", 7)));
    }
}

//! Slots: pieces of the table, each of which is one range or two of its own at any time.
//!
//! Every connection works in one slot, so it is clear which waits belong to which change. Each partition has *steady*
//! rows, whose values follow from their keys and which no client changes, and the rows of the slot's writers.

use std::collections::BTreeMap;

use serde_json::Map;

use rangehold_testkit::load::{Key, Row, TABLE};

/// Slots.
pub(crate) const SLOTS: usize = 8;
/// Partitions of a slot: a split comes between two of them.
pub(crate) const PARTITIONS: usize = 8;
/// Steady rows of a partition: one batch.
pub(crate) const STEADY: usize = 60;
/// Bytes of text in a steady row.
const TEXT_BYTES: usize = 200;

/// PartitionKey of a slot's partition.
pub(crate) fn partition(slot: usize, number: usize) -> String {
    format!("s{slot}-{number}")
}

/// All of a slot's PartitionKeys.
pub(crate) fn partitions(slot: usize) -> Vec<String> {
    (0..PARTITIONS).map(|number| partition(slot, number)).collect()
}

/// Where a partition begins, as the admin API writes keys.
pub(crate) fn boundary(slot: usize, number: usize) -> String {
    format!("{TABLE}/{}", partition(slot, number))
}

/// The condition of a query for a slot's entities.
pub(crate) fn filter(slot: usize) -> String {
    format!("PartitionKey ge 's{slot}-' and PartitionKey lt 's{slot}-~'")
}

/// The slot of an entity.
pub(crate) fn slot_of(key: &Key) -> Option<usize> {
    key.partition.strip_prefix('s')?.split_once('-')?.0.parse().ok()
}

/// The steady rows of a partition.
pub(crate) fn steady_of(slot: usize, number: usize) -> BTreeMap<Key, Row> {
    let row = |index: usize| {
        let key = Key {
            table: TABLE.to_owned(),
            partition: partition(slot, number),
            row: format!("steady-{index:04}"),
        };
        let serial = (slot * PARTITIONS + number) * STEADY + index;
        // Text that compresses badly.
        let letter = |at: usize| (b'a' + (serial * 7 + at * at * 13 + at * serial) as u8 % 26) as char;
        let text: String = (0..TEXT_BYTES).map(letter).collect();
        (key, Map::from_iter([("n".to_owned(), serial.into()), ("s".to_owned(), text.into())]))
    };
    (0..STEADY).map(row).collect()
}

/// The steady rows of a slot.
pub(crate) fn steady(slot: usize) -> BTreeMap<Key, Row> {
    (0..PARTITIONS).flat_map(|number| steady_of(slot, number)).collect()
}

//! Stored keys for places of the key space.

use std::sync::LazyLock;

use rangehold_map::{PartitionPrefix, TableId};

use super::demand::Place;

/// The key of the first row of the partition at place 0, and where its place stands in it.
static FIRST: LazyLock<(Vec<u8>, usize)> = LazyLock::new(|| {
    let prefix = partition(0);
    let digits = text(0);
    let at = prefix.as_bytes().windows(digits.len()).position(|window| window == digits.as_bytes());
    (prefix.key("row"), at.expect("a PartitionKey of digits is stored as it is"))
});

fn text(place: Place) -> String {
    format!("{place:016x}")
}

fn partition(place: Place) -> PartitionPrefix {
    PartitionPrefix::entity("simulated", TableId(1), &text(place))
}

/// The first key of the partition at a place.
pub(super) fn boundary(place: Place) -> Vec<u8> {
    partition(place).as_bytes().to_vec()
}

/// The place of a boundary.
pub(super) fn place(boundary: &[u8]) -> Place {
    let from = FIRST.1;
    let digits = boundary.get(from..).unwrap_or_default();
    let digits = &digits[..digits.len().min(16)];
    let value = digits.iter().map_while(|digit| char::from(*digit).to_digit(16));
    let (value, count) =
        value.fold((0, 0), |(value, count), digit| (value * 16 + u64::from(digit), count + 1));
    value << (4 * (16 - count)).min(63)
}

/// Makes the keys of rows, one after the other, without allocating.
pub(super) struct Rows {
    key: Vec<u8>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { key: FIRST.0.clone() }
    }

    /// The key of a row in the partition at a place.
    pub(super) fn key(&mut self, place: Place) -> &[u8] {
        let digits = &mut self.key[FIRST.1..FIRST.1 + 16];
        for (index, digit) in digits.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(place >> (60 - 4 * index)) as usize & 15];
        }
        &self.key
    }
}

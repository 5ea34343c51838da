//! A block: an interval of keys, and all rows that are in it.
//!
//! A key of the interval without a row has no row in the database either. So a block knows of absence too.

use std::sync::atomic::{AtomicU8, Ordering};

use bytes::{Bytes, BytesMut};

use super::heads::Heads;
use crate::limits::{CACHED_BLOCK_BYTES, CACHED_BLOCK_ROWS};

/// A row: key and value.
pub(in crate::range) type Row = (Bytes, Bytes);

/// What a block takes in memory beside its keys and values: the block itself, and its entry in a chunk with a head and a
/// copy of its first key.
const BLOCK_OVERHEAD: usize = 320;
/// What a row takes in memory beside its key and value: where these are, and its head.
const ROW_OVERHEAD: usize = size_of::<Row>() + size_of::<u64>();
/// How often a block that is used outlives the search for a block to evict.
const LIVES_MAX: u8 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Block {
    low: Bytes,
    /// The first key after the interval.
    high: Bytes,
    /// Ascending.
    rows: Vec<Row>,
    /// The heads of the rows' keys.
    heads: Heads,
    /// About how many bytes it takes.
    bytes: usize,
    /// How many more searches for a block to evict it outlives. A block that was never read outlives none.
    lives: AtomicU8,
}

impl Clone for Block {
    fn clone(&self) -> Self {
        Self {
            low: self.low.clone(),
            high: self.high.clone(),
            rows: self.rows.clone(),
            heads: self.heads.clone(),
            bytes: self.bytes,
            lives: AtomicU8::new(self.lives.load(Ordering::Relaxed)),
        }
    }
}

impl Block {
    /// A block that knows `rows` to be all rows between `low` and `high`. It copies them into memory of its own.
    pub(super) fn new(low: Bytes, high: Bytes, rows: Vec<Row>) -> Self {
        debug_assert!(rows.is_sorted_by(|(one, _), (next, _)| one < next), "the rows of a block ascend");
        let mut block = Self { low, high, rows, heads: Heads::default(), bytes: 0, lives: AtomicU8::new(0) };
        block.pack();
        block
    }

    pub(super) fn low(&self) -> &Bytes {
        &self.low
    }

    pub(super) fn high(&self) -> &Bytes {
        &self.high
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its rows with keys from `low` on and below `high`.
    pub(super) fn rows(&self, low: &[u8], high: &[u8]) -> &[Row] {
        let begin = if low <= self.low.as_ref() { 0 } else { self.before(low) };
        let end = if high >= self.high.as_ref() { self.rows.len() } else { self.before(high) };
        &self.rows[begin..end.max(begin)]
    }

    /// The value of a key that lies in the interval.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Bytes> {
        self.search(key).ok().map(|at| &self.rows[at].1)
    }

    /// Notes that it was read.
    pub(super) fn mark_read(&self) {
        if self.lives.load(Ordering::Relaxed) < LIVES_MAX {
            self.lives.store(LIVES_MAX, Ordering::Relaxed);
        }
    }

    /// Takes one life; false if it had none.
    pub(super) fn take_life(&self) -> bool {
        let lives = self.lives.load(Ordering::Relaxed);
        self.lives.store(lives.saturating_sub(1), Ordering::Relaxed);
        lives > 0
    }

    /// Whether a neighbour may be added to it, or it is to be cut in two.
    pub(super) fn has_room(&self) -> bool {
        self.rows.len() < CACHED_BLOCK_ROWS && self.bytes < CACHED_BLOCK_BYTES
    }

    /// Sets or removes the row of a key that lies in the interval.
    pub(super) fn set(&mut self, key: &Bytes, value: Option<&Bytes>) {
        match (value, self.search(key)) {
            (Some(value), Ok(at)) => self.rows[at].1 = value.clone(),
            (Some(value), Err(at)) => {
                self.rows.insert(at, (key.clone(), value.clone()));
                self.heads.insert(at, |index| &self.rows[index].0);
            }
            (None, Ok(at)) => {
                self.rows.remove(at);
                self.heads.remove(at);
            }
            (None, Err(_)) => return,
        }
        // The old value still takes its part of the memory that the block shares.
        self.bytes += value.map_or(0, |value| key.len() + value.len() + ROW_OVERHEAD);
        if self.bytes > 2 * self.least_bytes() {
            self.pack();
        }
    }

    /// Adds the block that begins where this one ends.
    pub(super) fn append(&mut self, next: &Self) {
        debug_assert_eq!(self.high, next.low, "only neighbours are joined");
        self.high = next.high.clone();
        for row in &next.rows {
            self.rows.push(row.clone());
            self.heads.insert(self.rows.len() - 1, |index| &self.rows[index].0);
        }
        self.bytes += next.bytes.saturating_sub(BLOCK_OVERHEAD);
    }

    /// Cuts off the upper half of its rows, and returns it as a block; `None` if it has too few.
    pub(super) fn split_off_half(&mut self) -> Option<Self> {
        let middle = self.rows.len() / 2;
        (middle > 0).then(|| self.split_off(self.rows[middle].0.clone()))
    }

    /// Cuts off what lies at or above `cut`, a key above `low` and below `high`.
    pub(super) fn split_off(&mut self, cut: Bytes) -> Self {
        let upper = self.rows.split_off(self.before(&cut));
        let mut upper = Self::new(cut.clone(), std::mem::replace(&mut self.high, cut), upper);
        *upper.lives.get_mut() = *self.lives.get_mut();
        self.pack();
        upper
    }

    /// Moves everything into one piece of memory: first the keys, so that a search among them finds them close together. Makes
    /// the heads again.
    fn pack(&mut self) {
        let bounds = self.low.len() + self.high.len();
        let mut memory = BytesMut::with_capacity(self.content() + bounds);
        memory.extend_from_slice(&self.low);
        memory.extend_from_slice(&self.high);
        self.rows.iter().for_each(|(key, _)| memory.extend_from_slice(key));
        self.rows.iter().for_each(|(_, value)| memory.extend_from_slice(value));
        let mut memory = memory.freeze();
        self.low = memory.split_to(self.low.len());
        self.high = memory.split_to(self.high.len());
        self.rows.iter_mut().for_each(|(key, _)| *key = memory.split_to(key.len()));
        self.rows.iter_mut().for_each(|(_, value)| *value = memory.split_to(value.len()));
        self.rows.shrink_to_fit();
        self.heads = Heads::of(self.rows.len(), |index| &self.rows[index].0);
        self.bytes = self.least_bytes();
    }

    /// The bytes of its keys and values.
    fn content(&self) -> usize {
        self.rows.iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    fn least_bytes(&self) -> usize {
        BLOCK_OVERHEAD + self.low.len() + self.high.len() + self.content() + self.rows.len() * ROW_OVERHEAD
    }

    /// How many rows come before `key`.
    fn before(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|before| before)
    }

    /// The number of the row of `key`, or else the number that it would get.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.heads.search(key, |index| &self.rows[index].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_joined_take_less_by_the_overhead_of_one() {
        let key = |number: u8| Bytes::from(vec![number]);
        let row = |number| vec![(key(number), Bytes::from_static(b"value"))];
        let mut joined = Block::new(key(1), key(2), row(1));
        joined.append(&Block::new(key(2), key(3), row(2)));
        let bounds_kept = key(2).len() + key(2).len();
        assert_eq!(joined.bytes(), joined.least_bytes() + bounds_kept);
    }
}

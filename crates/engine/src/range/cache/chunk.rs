//! A chunk: some hundred blocks in the order of their keys.
//!
//! The keys of a large cache lie far apart in memory, and a search that looks at one after the other waits for each. So
//! the list of blocks has a *head* of each block's first key: the eight bytes that follow the common beginning of all first
//! keys. A search compares heads, and looks at a key only where the heads are the same.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    pub(super) blocks: Vec<BlockEntry>,
    /// About how many bytes they take.
    pub(super) bytes: usize,
    /// How many of its blocks begin after the end of the one before, so that keys between them are not known.
    pub(super) gaps: usize,
    /// The first keys of all blocks have at least so many bytes in common. Their heads begin after these. It stays as it
    /// is when blocks are removed, so it may be shorter than it could be.
    prefix: usize,
}

/// A block with the first key that it knows.
#[derive(Debug, Clone)]
pub(super) struct BlockEntry {
    /// See the module. [`Chunk::insert`] sets it.
    head: u64,
    pub(super) low: Bytes,
    pub(super) block: Arc<Block>,
}

impl BlockEntry {
    pub(super) fn new(block: Block) -> Self {
        // A key of its own: that of the block shares the memory of its rows.
        Self { head: 0, low: Bytes::copy_from_slice(block.low()), block: Arc::new(block) }
    }
}

impl Chunk {
    /// How many of its blocks begin at `key` or before it.
    pub(super) fn begun_at(&self, key: &[u8]) -> usize {
        let Some(first) = self.blocks.first() else { return 0 };
        let (beginning, rest) = key.split_at(key.len().min(self.prefix));
        match beginning.cmp(&first.low[..self.prefix]) {
            Ordering::Less => return 0,
            Ordering::Greater => return self.blocks.len(),
            Ordering::Equal => {}
        }
        let head = head(rest);
        let below = self.blocks.partition_point(|entry| entry.head < head);
        let same = self.blocks[below..].partition_point(|entry| entry.head == head);
        below + self.blocks[below..below + same].partition_point(|entry| entry.low <= key)
    }

    /// Where the interval of its last block ends.
    pub(super) fn high(&self) -> &Bytes {
        self.blocks[self.blocks.len() - 1].block.high()
    }

    /// From the block of this number on: the first key that none of its blocks knows.
    pub(super) fn known_from(&self, index: usize) -> &Bytes {
        if self.gaps == 0 {
            return self.high();
        }
        let mut pairs = self.blocks[index..].windows(2);
        let gap = pairs.find(|pair| *pair[0].block.high() < pair[1].low);
        gap.map_or_else(|| self.high(), |pair| pair[0].block.high())
    }

    /// 1 if keys before the block of this number, and after the block before it, are not known; else 0. A count of all gaps
    /// at each change would be most of the work of a read whose row is not in the cache.
    pub(super) fn gap_at(&self, index: usize) -> usize {
        let Some(before) = index.checked_sub(1) else { return 0 };
        match (self.blocks.get(before), self.blocks.get(index)) {
            (Some(before), Some(after)) => usize::from(*before.block.high() < after.low),
            _ => 0,
        }
    }

    pub(super) fn insert(&mut self, index: usize, mut entry: BlockEntry) {
        let beginning = self.blocks.first().map(|first| &first.low[..self.prefix]);
        let rest = beginning.and_then(|beginning| entry.low.strip_prefix(beginning)).map(head);
        entry.head = rest.unwrap_or_default();
        self.bytes += entry.block.bytes();
        self.gaps -= self.gap_at(index);
        self.blocks.insert(index, entry);
        self.gaps += self.gap_at(index) + self.gap_at(index + 1);
        if rest.is_none() {
            self.make_heads();
        }
    }

    pub(super) fn remove(&mut self, index: usize) -> Arc<Block> {
        self.gaps -= self.gap_at(index) + self.gap_at(index + 1);
        let removed = self.blocks.remove(index).block;
        self.bytes -= removed.bytes();
        self.gaps += self.gap_at(index);
        removed
    }

    /// Cuts off the blocks from this number on.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        self.gaps -= self.gap_at(index);
        let mut upper = Self { blocks: self.blocks.split_off(index), ..Self::default() };
        upper.bytes = upper.blocks.iter().map(|entry| entry.block.bytes()).sum();
        upper.gaps = (1..upper.blocks.len()).map(|index| upper.gap_at(index)).sum();
        self.bytes -= upper.bytes;
        self.gaps -= upper.gaps;
        self.make_heads();
        upper.make_heads();
        upper
    }

    /// Makes the heads of all blocks, after the bytes that their first keys have in common now.
    fn make_heads(&mut self) {
        let ends = self.blocks.first().zip(self.blocks.last());
        self.prefix = ends.map_or(0, |(first, last)| {
            let pairs = first.low.iter().zip(&last.low);
            pairs.take_while(|(first, last)| first == last).count()
        });
        for entry in &mut self.blocks {
            entry.head = head(&entry.low[self.prefix..]);
        }
    }
}

/// The first eight bytes of what follows the common beginning of keys, as a number that is ordered like them. Missing bytes
/// count as 0, so keys that differ may have the same head.
fn head(rest: &[u8]) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    let length = rest.len().min(bytes.len());
    bytes[..length].copy_from_slice(&rest[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Keys that often have the same beginning, and the same head.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let letter = || prop_oneof![4 => Just(b'a'), 1 => Just(0), 1 => any::<u8>()];
        prop_oneof![vec(letter(), 0..4), vec(letter(), 8..20)]
    }

    proptest! {
        #[test]
        fn a_search_by_heads_finds_what_a_search_by_keys_finds(
            lows in btree_set(key(), 1..40),
            order in any::<[Index; 40]>(),
            cut in any::<Index>(),
            sought in vec(key(), 20),
        ) {
            let mut rest: Vec<Bytes> = lows.iter().cloned().map(Bytes::from).collect();
            let mut chunk = Chunk::default();
            while !rest.is_empty() {
                let low = rest.remove(order[rest.len() % 40].index(rest.len()));
                let high = super::super::just_after(&low);
                let index = chunk.begun_at(&low);
                chunk.insert(index, BlockEntry::new(Block::new(low, high, Vec::new())));
                if rest.len() % 4 == 3 {
                    chunk.remove(0);
                }
            }
            let mut lower = chunk.clone();
            let upper = lower.split_off(cut.index(chunk.blocks.len()));
            for chunk in [chunk, lower, upper] {
                for key in sought.iter().map(Vec::as_slice).chain(lows.iter().map(Vec::as_slice)) {
                    let by_keys = chunk.blocks.partition_point(|entry| entry.low <= key);
                    prop_assert_eq!(chunk.begun_at(key), by_keys);
                }
            }
        }
    }
}

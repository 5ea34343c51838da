//! A chunk: some hundred blocks in the order of their keys.

use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::heads::Heads;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    pub(super) blocks: Vec<BlockEntry>,
    /// About how many bytes they take.
    pub(super) bytes: usize,
    /// How many of its blocks begin after the end of the one before, so that keys between them are not known.
    pub(super) gaps: usize,
    /// The heads of the blocks' first keys.
    heads: Heads,
}

/// A block with the first key that it knows.
#[derive(Debug, Clone)]
pub(super) struct BlockEntry {
    pub(super) low: Bytes,
    pub(super) block: Arc<Block>,
}

impl BlockEntry {
    pub(super) fn new(block: Block) -> Self {
        // A key of its own: that of the block shares the memory of its rows.
        Self { low: Bytes::copy_from_slice(block.low()), block: Arc::new(block) }
    }
}

impl Chunk {
    /// How many of its blocks begin at `key` or before it.
    pub(super) fn begun_at(&self, key: &[u8]) -> usize {
        match self.heads.search(key, |index| &self.blocks[index].low) {
            Ok(same) => same + 1,
            Err(before) => before,
        }
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

    pub(super) fn insert(&mut self, index: usize, entry: BlockEntry) {
        self.bytes += entry.block.bytes();
        self.gaps -= self.gap_at(index);
        self.blocks.insert(index, entry);
        self.gaps += self.gap_at(index) + self.gap_at(index + 1);
        self.heads.insert(index, |index| &self.blocks[index].low);
    }

    pub(super) fn remove(&mut self, index: usize) -> Arc<Block> {
        self.gaps -= self.gap_at(index) + self.gap_at(index + 1);
        self.heads.remove(index);
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
        for chunk in [&mut *self, &mut upper] {
            chunk.heads = Heads::of(chunk.blocks.len(), |index| &chunk.blocks[index].low);
        }
        upper
    }
}

//! Blocks in the order of their keys, which are copied only where they are changed.
//!
//! A scan takes a clone and reads it without a lock. A change then copies what the clone shares with it: the list
//! of chunks, one chunk (a list of some hundred blocks) and one block. Without a clone, all changes are made in place.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, Row};
use crate::limits::CACHED_CHUNK_BLOCKS;

/// See the module. Clones share the blocks.
#[derive(Debug, Clone, Default)]
pub(in crate::range) struct Blocks {
    /// None of them is empty. Keys that lie in no block are not known.
    chunks: Arc<Vec<Entry<Chunk>>>,
    bytes: usize,
}

/// A chunk or a block with the first key that it knows. A search compares only these, and follows no pointer to what
/// they stand for.
#[derive(Debug)]
struct Entry<T> {
    low: Bytes,
    of: Arc<T>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { low: self.low.clone(), of: Arc::clone(&self.of) }
    }
}

#[derive(Debug, Clone, Default)]
struct Chunk {
    blocks: Vec<Entry<Block>>,
    /// About how many bytes they take.
    bytes: usize,
    /// How many of its blocks begin after the end of the one before, so that keys between them are not known.
    gaps: usize,
}

impl Chunk {
    /// 1 if keys before the block of this number, and after the block before it, are not known; else 0. A count of all gaps
    /// at each change would be most of the work of a read whose row is not in the cache.
    fn gap_at(&self, index: usize) -> usize {
        let Some(before) = index.checked_sub(1) else { return 0 };
        match (self.blocks.get(before), self.blocks.get(index)) {
            (Some(before), Some(after)) => usize::from(*before.of.high() < after.low),
            _ => 0,
        }
    }

    fn insert(&mut self, index: usize, block: Entry<Block>) {
        self.bytes += block.of.bytes();
        self.gaps -= self.gap_at(index);
        self.blocks.insert(index, block);
        self.gaps += self.gap_at(index) + self.gap_at(index + 1);
    }

    fn remove(&mut self, index: usize) -> Entry<Block> {
        self.gaps -= self.gap_at(index) + self.gap_at(index + 1);
        let removed = self.blocks.remove(index);
        self.bytes -= removed.of.bytes();
        self.gaps += self.gap_at(index);
        removed
    }

    /// Cuts off the blocks from this number on.
    fn split_off(&mut self, index: usize) -> Self {
        self.gaps -= self.gap_at(index);
        let mut upper = Self { blocks: self.blocks.split_off(index), ..Self::default() };
        upper.bytes = upper.blocks.iter().map(|block| block.of.bytes()).sum();
        upper.gaps = (1..upper.blocks.len()).map(|index| upper.gap_at(index)).sum();
        self.bytes -= upper.bytes;
        self.gaps -= upper.gaps;
        upper
    }
}

/// The place of a block: the number of its chunk, and its number there.
type At = (usize, usize);

impl Blocks {
    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The block in whose interval `key` lies.
    pub(super) fn find(&self, key: &[u8]) -> Option<&Block> {
        self.at(key).map(|at| self.block(at)).filter(|block| block.high() > key)
    }

    /// The first key from `low` on that lies in no block, or `high` if that comes first.
    pub(super) fn known_until<'a>(&'a self, low: &'a [u8], high: &'a [u8]) -> &'a [u8] {
        let mut known = low;
        let mut next = self.at(low);
        while known < high {
            let Some(at) = next else { return known };
            let chunk = &self.chunks[at.0].of;
            let block = self.block(at);
            if block.low() > known {
                return known;
            }
            if at.1 == 0 && chunk.gaps == 0 {
                known = chunk.blocks[chunk.blocks.len() - 1].of.high();
                next = (at.0 + 1 < self.chunks.len()).then_some((at.0 + 1, 0));
            } else if block.high() > known {
                known = block.high();
                next = self.after(at);
            } else {
                return known;
            }
        }
        high
    }

    /// The first interval from `low` on and below `high` that no block covers.
    pub(super) fn first_gap(&self, low: &Bytes, high: &Bytes) -> Option<(Bytes, Bytes)> {
        let mut known = low.clone();
        let mut next = self.at(low).or_else(|| self.first());
        while let Some(at) = next {
            let block = self.block(at);
            if block.low() >= high {
                break;
            }
            if *block.low() > known {
                return Some((known, block.low().clone()));
            }
            known = known.max(block.high().clone());
            next = self.after(at);
        }
        (known < *high).then(|| (known, high.clone()))
    }

    /// The rows from `low` on and below `high` that the first block with such keys has, and where its interval ends.
    /// Notes that the block was read.
    pub(super) fn rows_from(&self, low: &[u8], high: &[u8]) -> Option<(&[Row], &Bytes)> {
        let block = self.find(low)?;
        block.mark_read();
        Some((block.rows(low, high), block.high()))
    }

    /// Adds a block whose interval no other block covers a part of.
    pub(super) fn add(&mut self, block: Block) {
        let before = self.at(block.low());
        if let Some(at) = before
            && self.block(at).high() == block.low()
            && self.block(at).has_room()
            && block.has_room()
        {
            self.edit(at, |last| last.append(&block));
            return self.join_next(at);
        }
        self.bytes += block.bytes();
        let at = self.insert(before, block);
        self.join_next(at);
    }

    /// Joins a block with the one that begins where it ends, if both have room. Rows that are read one by one make small
    /// blocks, and a scan that finds the rows between them makes large ones of these.
    fn join_next(&mut self, at: At) {
        let Some(next) = self.after(at).filter(|next| next.0 == at.0) else { return };
        let (block, following) = (self.block(at), self.block(next));
        if block.high() == following.low() && block.has_room() && following.has_room() {
            let following = following.clone();
            self.remove(next);
            self.edit(at, |block| block.append(&following));
        }
    }

    /// Sets or removes the row of a key, if the key is known; false if it is not.
    pub(super) fn set(&mut self, key: &Bytes, value: Option<&Bytes>) -> bool {
        let Some(at) = self.at(key).filter(|at| self.block(*at).high() > key) else { return false };
        self.edit(at, |block| block.set(key, value));
        true
    }

    /// Goes through at most so many blocks from `hand` on. Takes a life from each, and removes the first that has none.
    /// Returns where to go on, or `None` at the end.
    pub(super) fn evict(&mut self, hand: &[u8], most: usize) -> Option<Bytes> {
        let mut next = self.at(hand).or_else(|| self.first());
        for _ in 0..most {
            let at = next?;
            let block = self.block(at);
            if !block.take_life() {
                let hand = block.high().clone();
                self.remove(at);
                return Some(hand);
            }
            next = self.after(at);
        }
        next.map(|at| self.block(at).low().clone())
    }

    /// Cuts off what lies at or above `cut`.
    pub(in crate::range) fn split_off(&mut self, cut: &[u8]) -> Self {
        self.cut_block(cut);
        let Some((number, index)) = self.at(cut) else { return std::mem::take(self) };
        let index = index + usize::from(self.block((number, index)).low() < cut);
        let chunks = Arc::make_mut(&mut self.chunks);
        let mut above = chunks.split_off(number + 1);
        let upper = Arc::make_mut(&mut chunks[number].of).split_off(index);
        if let Some(first) = upper.blocks.first() {
            above.insert(0, Entry { low: first.low.clone(), of: Arc::new(upper) });
        }
        chunks.retain(|chunk| !chunk.of.blocks.is_empty());
        let bytes = above.iter().map(|chunk| chunk.of.bytes).sum();
        self.bytes -= bytes;
        Self { chunks: Arc::new(above), bytes }
    }

    /// Sees to it that a block begins at `cut`, if that key is known.
    fn cut_block(&mut self, cut: &[u8]) {
        let inside = |at: &At| self.block(*at).low() < cut && self.block(*at).high() > cut;
        let Some(at) = self.at(cut).filter(inside) else { return };
        let mut cut_off = None;
        self.edit(at, |block| cut_off = Some(block.split_off(Bytes::copy_from_slice(cut))));
        if let Some(upper) = cut_off {
            self.bytes += upper.bytes();
            self.insert(self.at(cut), upper);
        }
    }

    /// Adds blocks that all lie above these.
    pub(in crate::range) fn append(&mut self, above: Self) {
        let last = self.chunks.last().and_then(|chunk| chunk.of.blocks.last());
        let is_above = |last: &Entry<Block>| above.chunks.iter().all(|chunk| chunk.low >= *last.of.high());
        debug_assert!(last.is_none_or(is_above), "a range knows keys of the next one");
        Arc::make_mut(&mut self.chunks).extend(Arc::unwrap_or_clone(above.chunks));
        self.bytes += above.bytes;
    }

    /// Removes every block that has keys from `low` on and below `high`.
    pub(super) fn remove_between(&mut self, low: &[u8], high: Option<&[u8]>) {
        let is_below = |key: &Bytes| high.is_none_or(|high| *key < *high);
        loop {
            let at = self.at(low).filter(|at| *self.block(*at).high() > *low);
            let at = at.or_else(|| self.at(low).map_or_else(|| self.first(), |at| self.after(at)));
            match at.filter(|at| is_below(self.block(*at).low())) {
                Some(at) => self.remove(at),
                None => break,
            }
        }
    }

    fn block(&self, (chunk, index): At) -> &Block {
        &self.chunks[chunk].of.blocks[index].of
    }

    fn first(&self) -> Option<At> {
        (!self.chunks.is_empty()).then_some((0, 0))
    }

    /// The last block whose interval does not begin after `key`.
    fn at(&self, key: &[u8]) -> Option<At> {
        let chunk = self.chunks.partition_point(|chunk| chunk.low <= key).checked_sub(1)?;
        let index = self.chunks[chunk].of.blocks.partition_point(|block| block.low <= key) - 1;
        Some((chunk, index))
    }

    fn after(&self, (chunk, index): At) -> Option<At> {
        if index + 1 < self.chunks[chunk].of.blocks.len() {
            return Some((chunk, index + 1));
        }
        (chunk + 1 < self.chunks.len()).then_some((chunk + 1, 0))
    }

    /// Changes a block, and cuts it in two if it has become too large.
    fn edit(&mut self, at: At, change: impl FnOnce(&mut Block)) {
        let chunk = Arc::make_mut(&mut Arc::make_mut(&mut self.chunks)[at.0].of);
        chunk.gaps -= chunk.gap_at(at.1 + 1);
        let block = Arc::make_mut(&mut chunk.blocks[at.1].of);
        let bytes = block.bytes();
        change(block);
        let upper = if block.has_room() { None } else { block.split_off_half() };
        let now = block.bytes();
        chunk.bytes = chunk.bytes + now - bytes;
        self.bytes = self.bytes + now - bytes;
        chunk.gaps += chunk.gap_at(at.1 + 1);
        if let Some(upper) = upper {
            self.bytes += upper.bytes();
            self.insert(Some(at), upper);
        }
    }

    /// Inserts a block after the one at `before`. Returns its place.
    fn insert(&mut self, before: Option<At>, block: Block) -> At {
        // A key of its own: that of the block shares the memory of its rows.
        let entry = Entry { low: Bytes::copy_from_slice(block.low()), of: Arc::new(block) };
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.push(Entry { low: entry.low.clone(), of: Arc::default() });
        }
        let (number, index) = before.map_or((0, 0), |(chunk, index)| (chunk, index + 1));
        if index == 0 {
            chunks[number].low = entry.low.clone();
        }
        let chunk = Arc::make_mut(&mut chunks[number].of);
        chunk.insert(index, entry);
        if chunk.blocks.len() > CACHED_CHUNK_BLOCKS {
            let upper = chunk.split_off(CACHED_CHUNK_BLOCKS / 2);
            chunks.insert(number + 1, Entry { low: upper.blocks[0].low.clone(), of: Arc::new(upper) });
            match index.checked_sub(CACHED_CHUNK_BLOCKS / 2) {
                Some(index) => (number + 1, index),
                None => (number, index),
            }
        } else {
            (number, index)
        }
    }

    fn remove(&mut self, (number, index): At) {
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[number].of);
        self.bytes -= chunk.remove(index).of.bytes();
        match chunk.blocks.first() {
            Some(first) => chunks[number].low = first.low.clone(),
            None => drop(chunks.remove(number)),
        }
    }
}

/// The least key above `key`.
pub(in crate::range) fn just_after(key: &[u8]) -> Bytes {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    Bytes::from(after)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Enough keys for several chunks.
    const KEYS: u16 = 2_000;

    fn key(number: u16) -> Bytes {
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    /// Carries out one change: adds the unknown keys of a block, sets a row, removes blocks, cuts them in two and joins them,
    /// or evicts one.
    fn change(blocks: &mut Blocks, kind: u8, low: u16, length: u16) {
        let high = (low + length).min(KEYS);
        match kind {
            0..=5 => {
                while let Some((low, high)) = blocks.first_gap(&key(low), &key(high)) {
                    blocks.add(Block::new(low.clone(), high, vec![(low, Bytes::from_static(b"value"))]));
                }
            }
            6 => drop(blocks.set(&key(low), Some(&Bytes::from(vec![7; 3_000])))),
            7 => blocks.remove_between(&key(low), Some(&key(high))),
            8 => cut_and_join(blocks, low),
            _ => drop(blocks.evict(&key(low), 3)),
        }
    }

    /// Cuts blocks in two at a key and joins them again. Each part knows what it knew before, and nothing else.
    fn cut_and_join(blocks: &mut Blocks, cut: u16) {
        let known = |blocks: &Blocks, key: &Bytes| blocks.find(key).map(|block| block.get(key).cloned());
        let keys: Vec<Bytes> = (0..KEYS).step_by(97).chain([cut]).map(key).collect();
        let before: Vec<_> = keys.iter().map(|key| known(blocks, key)).collect();
        let upper = blocks.split_off(&key(cut));
        for (at, before) in keys.iter().zip(&before) {
            let (own, other) = if *at < key(cut) { (&*blocks, &upper) } else { (&upper, &*blocks) };
            assert_eq!((&known(own, at), known(other, at)), (before, None));
        }
        blocks.append(upper);
        assert!(keys.iter().map(|key| known(blocks, key)).eq(before));
    }

    proptest! {
        #[test]
        fn each_chunk_knows_its_first_key_its_gaps_and_its_bytes(changes in vec((0..10_u8, 0..KEYS, 1..8_u16), 1..3_000)) {
            let mut blocks = Blocks::default();
            for (kind, low, length) in changes {
                change(&mut blocks, kind, low, length);
            }
            for chunk in blocks.chunks.iter() {
                let pairs = chunk.of.blocks.windows(2);
                let gaps = pairs.filter(|pair| *pair[0].of.high() < pair[1].low).count();
                prop_assert_eq!(chunk.of.gaps, gaps);
                let bytes = chunk.of.blocks.iter().map(|block| block.of.bytes()).sum::<usize>();
                prop_assert_eq!(chunk.of.bytes, bytes);
                prop_assert_eq!(&chunk.low, &chunk.of.blocks[0].low);
            }
            let all = blocks.chunks.iter().flat_map(|chunk| &chunk.of.blocks);
            prop_assert_eq!(blocks.bytes(), all.map(|block| block.of.bytes()).sum::<usize>());
        }
    }
}

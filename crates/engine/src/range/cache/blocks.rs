//! Blocks in the order of their keys, which are copied only where they are changed.
//!
//! A scan takes a clone and reads it without a lock. A change then copies what the clone shares with it: the list
//! of chunks, one chunk (a list of some hundred blocks) and one block. Without a clone, all changes are made in place.

use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::chunk::{BlockEntry, Chunk};
use crate::limits::CACHED_CHUNK_BLOCKS;

/// See the module. Clones share the blocks.
#[derive(Debug, Clone, Default)]
pub(in crate::range) struct Blocks {
    /// None of them is empty. Keys that lie in no block are not known.
    chunks: Arc<Vec<ChunkEntry>>,
    bytes: usize,
}

/// A chunk with the first key that it knows.
#[derive(Debug, Clone)]
struct ChunkEntry {
    low: Bytes,
    /// Whether all keys are known from the end of the chunk before to the end of this one. The first chunk is not whole.
    ///
    /// A page of a table asks for all keys from its beginning to the end of the table. It looks at this flag of each chunk
    /// on the way, and not at their blocks: these lie far apart in memory.
    is_whole: bool,
    chunk: Arc<Chunk>,
}

impl ChunkEntry {
    /// An entry for a chunk that has blocks.
    fn new(chunk: Chunk) -> Self {
        Self { low: chunk.blocks[0].low.clone(), is_whole: false, chunk: Arc::new(chunk) }
    }
}

/// The place of a block: the number of its chunk, and its number there.
pub(super) type At = (usize, usize);

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
        let mut next = self.at(low).filter(|at| self.block(*at).high() > low);
        // Chunks that begin at `high` or above need no look.
        let bound = self.chunks.partition_point(|entry| entry.low < high);
        let mut known = low;
        while let Some((number, index)) = next
            && known < high
        {
            let chunk = &self.chunks[number].chunk;
            known = chunk.known_from(index);
            if known < chunk.high() {
                break;
            }
            let whole = self.chunks[number + 1..bound].iter().take_while(|entry| entry.is_whole).count();
            known = self.chunks[number + whole].chunk.high();
            let following = number + whole + 1;
            next = self.chunks.get(following).filter(|entry| entry.low == known).map(|_| (following, 0));
        }
        known.min(high)
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

    /// Adds a block whose interval no other block covers a part of.
    pub(super) fn add(&mut self, block: Block) {
        let before = self.at(block.low());
        if let Some(at) = before
            && self.block(at).high() == block.low()
            && self.block(at).has_room()
            && block.has_room()
        {
            self.append_to(at, &block);
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
            self.append_to(at, &following);
        }
    }

    /// Adds to a block the one that begins where it ends, and which is in no chunk.
    fn append_to(&mut self, at: At, following: &Block) {
        self.edit(at, |block| block.append(following));
        self.look_for_gaps(at.0);
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
        let upper = Arc::make_mut(&mut chunks[number].chunk).split_off(index);
        if !upper.blocks.is_empty() {
            above.insert(0, ChunkEntry::new(upper));
        }
        chunks.retain(|entry| !entry.chunk.blocks.is_empty());
        let bytes = above.iter().map(|entry| entry.chunk.bytes).sum();
        self.bytes -= bytes;
        self.look_for_gaps(number);
        let mut above = Self { chunks: Arc::new(above), bytes };
        above.look_for_gaps(0);
        above
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
        let is_above = |last: &ChunkEntry| above.chunks.iter().all(|next| next.low >= *last.chunk.high());
        debug_assert!(self.chunks.last().is_none_or(is_above), "a range knows keys of the next one");
        let joint = self.chunks.len();
        Arc::make_mut(&mut self.chunks).extend(Arc::unwrap_or_clone(above.chunks));
        self.bytes += above.bytes;
        self.look_for_gaps(joint);
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

    pub(super) fn block(&self, (number, index): At) -> &Block {
        &self.chunks[number].chunk.blocks[index].block
    }

    fn first(&self) -> Option<At> {
        (!self.chunks.is_empty()).then_some((0, 0))
    }

    /// The last block whose interval does not begin after `key`.
    pub(super) fn at(&self, key: &[u8]) -> Option<At> {
        let number = self.chunks.partition_point(|entry| entry.low <= key).checked_sub(1)?;
        let index = self.chunks[number].chunk.begun_at(key) - 1;
        Some((number, index))
    }

    /// The block that follows, whether keys between the two are known or not.
    pub(super) fn after(&self, (number, index): At) -> Option<At> {
        if index + 1 < self.chunks[number].chunk.blocks.len() {
            return Some((number, index + 1));
        }
        (number + 1 < self.chunks.len()).then_some((number + 1, 0))
    }

    /// Finds out whether the chunk of this number is whole, and whether the next one is.
    fn look_for_gaps(&mut self, number: usize) {
        let chunks = Arc::make_mut(&mut self.chunks);
        for number in number..chunks.len().min(number + 2) {
            let before = number.checked_sub(1).map(|before| chunks[before].chunk.high());
            let entry = &chunks[number];
            chunks[number].is_whole = before == Some(&entry.low) && entry.chunk.gaps == 0;
        }
    }

    /// Changes a block, and cuts it in two if it has become too large.
    fn edit(&mut self, at: At, change: impl FnOnce(&mut Block)) {
        let chunk = Arc::make_mut(&mut Arc::make_mut(&mut self.chunks)[at.0].chunk);
        chunk.gaps -= chunk.gap_at(at.1 + 1);
        let block = Arc::make_mut(&mut chunk.blocks[at.1].block);
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
        let entry = BlockEntry::new(block);
        let chunks = Arc::make_mut(&mut self.chunks);
        let (number, index) = before.map_or((0, 0), |(number, index)| (number, index + 1));
        if chunks.is_empty() {
            chunks.push(ChunkEntry { low: entry.low.clone(), is_whole: false, chunk: Arc::default() });
        } else if index == 0 {
            chunks[number].low = entry.low.clone();
        }
        let chunk = Arc::make_mut(&mut chunks[number].chunk);
        chunk.insert(index, entry);
        let middle = CACHED_CHUNK_BLOCKS / 2;
        let mut at = (number, index);
        if chunk.blocks.len() > CACHED_CHUNK_BLOCKS {
            let upper = chunk.split_off(middle);
            chunks.insert(number + 1, ChunkEntry::new(upper));
            self.look_for_gaps(number + 1);
            at = index.checked_sub(middle).map_or(at, |index| (number + 1, index));
        }
        self.look_for_gaps(number);
        at
    }

    fn remove(&mut self, (number, index): At) {
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[number].chunk);
        self.bytes -= chunk.remove(index).bytes();
        match chunk.blocks.first() {
            Some(first) => chunks[number].low = first.low.clone(),
            None => drop(chunks.remove(number)),
        }
        self.look_for_gaps(number);
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
mod tests;

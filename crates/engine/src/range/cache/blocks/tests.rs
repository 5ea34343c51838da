//! Tests of blocks with chunks of few blocks, so that chunks are cut.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::view::View;
use super::*;
use crate::limits::{CACHED_BLOCK_BYTES, CACHED_BLOCK_ROWS};

/// Enough keys for many chunks, which are small in tests.
const KEYS: u16 = 400;

/// Ten in a row differ in their last byte only. In a list that has others too, they have the same head.
fn key(number: u16) -> Bytes {
    let (group, place) = ((number / 10) as u8, (number % 10) as u8);
    Bytes::from(vec![group, 0, 0, 0, 0, 0, 0, 0, 0, place])
}

/// Blocks, and the row that they should show for each key. Rows of keys that no block knows do not count.
#[derive(Clone, Default)]
struct Expected {
    blocks: Blocks,
    rows: BTreeMap<u16, Bytes>,
}

impl Expected {
    /// Carries out one change: adds unknown keys, sets or removes rows, removes blocks, cuts them in two and joins them, or
    /// evicts one.
    fn change(&mut self, kind: u8, low: u16, length: u16) {
        let high = (low + length).min(KEYS);
        match kind {
            0..=6 => self.add_unknown(low..high, 5),
            // Such a row fills a block, which is not joined with others.
            7..=11 => self.add_unknown(low..high, CACHED_BLOCK_BYTES),
            12 => self.set(low, Some(Bytes::from(vec![7; 3_000]))),
            13 => (low..high).for_each(|number| self.set(number, Some(Bytes::from(vec![number as u8])))),
            14 => (low..high).for_each(|number| self.set(number, None)),
            15 => self.blocks.remove_between(&key(low), Some(&key(high))),
            16..=18 => drop(self.blocks.evict(&key(low), 3)),
            _ => cut_and_join(&mut self.blocks, low),
        }
    }

    fn add_unknown(&mut self, numbers: Range<u16>, bytes: usize) {
        for number in numbers {
            while let Some((low, high)) = self.blocks.first_gap(&key(number), &key(number + 1)) {
                assert_eq!(low, key(number));
                let value = Bytes::from(vec![1; bytes]);
                self.rows.insert(number, value.clone());
                self.blocks.add(Block::new(low.clone(), high, vec![(low, value)]));
            }
        }
    }

    fn set(&mut self, number: u16, value: Option<Bytes>) {
        if self.blocks.set(&key(number), value.as_ref()) {
            match value {
                Some(value) => drop(self.rows.insert(number, value)),
                None => drop(self.rows.remove(&number)),
            }
        }
    }

    /// The blocks show the row of each key that they know.
    fn check_rows(&self) {
        for number in 0..KEYS {
            if let Some(block) = self.blocks.find(&key(number)) {
                assert_eq!(block.get(&key(number)), self.rows.get(&number), "{number}");
            }
        }
    }
}

/// Cuts blocks in two at a key and joins them again. Each part knows what it knew before, and nothing else.
fn cut_and_join(blocks: &mut Blocks, cut: u16) {
    let known = |blocks: &Blocks, key: &Bytes| blocks.find(key).map(|block| block.get(key).cloned());
    let keys: Vec<Bytes> = (0..KEYS).step_by(19).chain([cut]).map(key).collect();
    let before: Vec<_> = keys.iter().map(|key| known(blocks, key)).collect();
    let upper = blocks.split_off(&key(cut));
    for (at, before) in keys.iter().zip(&before) {
        let (own, other) = if *at < key(cut) { (&*blocks, &upper) } else { (&upper, &*blocks) };
        assert_eq!((&known(own, at), known(other, at)), (before, None));
    }
    blocks.append(upper);
    assert!(keys.iter().map(|key| known(blocks, key)).eq(before));
}

/// What [`Blocks::known_until`] says, found by a look at each block.
fn known_one_by_one(blocks: &Blocks, low: &Bytes, high: &Bytes) -> Bytes {
    let mut known = low.clone();
    while let Some(block) = blocks.find(&known).filter(|_| known < *high) {
        known = block.high().clone();
    }
    if low < high { known.min(high.clone()) } else { high.clone() }
}

/// The keys from `low` on and below `high` that have rows, found by a look at each key.
fn keys_one_by_one(blocks: &Blocks, low: &Bytes, high: &Bytes) -> Vec<Bytes> {
    let has_row = |key: &Bytes| blocks.find(key).and_then(|block| block.get(key)).is_some();
    (0..KEYS).map(key).filter(|key| key >= low && key < high && has_row(key)).collect()
}

/// A view of known keys shows all rows once. If it passes over keys, it shows none of theirs.
fn look_at_view(blocks: &Blocks, low: &Bytes, high: &Bytes, sought: &Bytes) {
    let mut view = View::new(blocks.clone(), low, high);
    let (mut shown, mut expected) = (Vec::new(), None);
    while let Some(rows) = view.next_rows() {
        shown.extend(rows.iter().map(|(key, _)| key.clone()));
        if expected.is_none() {
            let rest = view.reached().max(sought).clone();
            let first = keys_one_by_one(blocks, low, view.reached());
            expected = Some([first, keys_one_by_one(blocks, &rest, high)].concat());
            view.seek(sought.clone());
        }
    }
    assert_eq!(Some(shown), expected, "from {low:?} to {high:?} by way of {sought:?}");
}

proptest! {
    #[test]
    fn chunks_know_their_gaps_and_bytes_and_blocks_and_views_show_each_row(
        changes in vec((0..20_u8, 0..KEYS, 1..8_u16), 1..600),
        sought in 0..KEYS,
    ) {
        let (mut now, mut earlier) = (Expected::default(), Expected::default());
        for (number, (kind, low, length)) in changes.iter().enumerate() {
            if number == changes.len() / 2 {
                earlier = now.clone();
            }
            now.change(*kind, *low, *length);
        }
        now.check_rows();
        earlier.check_rows();
        let blocks = now.blocks;
        let mut before: Option<&Bytes> = None;
        for ChunkEntry { low, is_whole, chunk } in blocks.chunks.iter() {
            let pairs = chunk.blocks.windows(2);
            let gaps = pairs.filter(|pair| *pair[0].block.high() < pair[1].low).count();
            prop_assert_eq!(chunk.gaps, gaps);
            let bytes = chunk.blocks.iter().map(|entry| entry.block.bytes()).sum::<usize>();
            prop_assert_eq!(chunk.bytes, bytes);
            prop_assert_eq!(low, &chunk.blocks[0].low);
            for entry in &chunk.blocks {
                let rows = entry.block.rows(&[], &key(KEYS)).len();
                prop_assert!(rows <= CACHED_BLOCK_ROWS, "a block of {} rows", rows);
            }
            prop_assert_eq!(*is_whole, before == Some(low) && gaps == 0);
            before = Some(chunk.high());
        }
        let all = || blocks.chunks.iter().flat_map(|entry| &entry.chunk.blocks);
        prop_assert_eq!(blocks.bytes(), all().map(|entry| entry.block.bytes()).sum::<usize>());
        let ends = (0..=KEYS).step_by(19).map(key);
        for (low, high) in ends.clone().flat_map(|low| ends.clone().map(move |high| (low.clone(), high))) {
            let known = known_one_by_one(&blocks, &low, &high);
            prop_assert_eq!(blocks.known_until(&low, &high), &known);
            if low < known {
                look_at_view(&blocks, &low, &known, &key(sought));
            }
        }
    }
}

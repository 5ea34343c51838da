//! What a cache of rows knows, and how that changes. Pure: no lock, no clock, no budget.
//!
//! The blocks show the rows as the writes left them of which it is known that they are durable. A write passes
//! through three steps:
//!
//! ```text
//!   announced   before it enters the log: its keys may change at any moment
//!   entered     in the log, with a sequence number; the next judge of its keys sees it
//!   durable     its rows replace those in the blocks, all of them at once
//! ```
//!
//! A *fill* copies an interval that was read from the database. It began before the database was asked, and keeps
//! a note of each key that a write touches meanwhile. The rows of these keys are not taken from the database: the
//! read may have come before the write or after it.
//!
//! A fill does a second thing: it finds out that the database shows a write as durable of which that is not known here.
//! Then all rows are forgotten, because the next reader must not see an older row than this one. So a fill whose rows are not
//! wanted any more is only *void*: it adds nothing, and goes on looking for such writes until its reader has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;
use rangehold_map::KeyRange;

use super::block::{Block, Row};
use super::blocks::{Blocks, just_after};
use super::unsorted::{Generation, UnsortedKeys};
use super::view::View;
use crate::limits::{CACHED_BLOCK_BYTES, CACHED_BLOCK_ROWS, FILL_TOUCHED_MAX};

/// A row as a write leaves it: its key, and its value or `None` if the row is deleted.
pub(in crate::range) type Change = (Bytes, Option<Bytes>);

/// A write, from when it is announced until it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::range) struct WriteNumber(u64);

/// A fill, from before the database is asked until the rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FillNumber(u64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Core {
    blocks: Blocks,
    /// Where the next search for a block to evict begins.
    hand: Bytes,
    /// The outcome of a write is not known. Nothing is known any more, and nothing will be.
    is_shut: bool,
    next_number: u64,
    /// The rows show the writes up to this sequence number, and no later ones.
    settled: u64,
    pending: BTreeMap<WriteNumber, Pending>,
    /// The pending writes of each key, in their order.
    changing: BTreeMap<Bytes, Vec<WriteNumber>>,
    /// Keys that a fill has left out because a write of them was pending. They become known with that write.
    wanted: BTreeSet<Bytes>,
    fills: BTreeMap<FillNumber, Fill>,
    unsorted: UnsortedKeys,
}

#[derive(Debug)]
struct Pending {
    /// Its sequence number, from when it has entered the log.
    sequence: Option<u64>,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Fill {
    /// From where on nothing was published yet.
    low: Bytes,
    high: Bytes,
    touched: BTreeMap<Bytes, Touched>,
    /// Its rows may be older than what was forgotten since it began. It adds none of them.
    is_void: bool,
}

/// What became of the last write of a key.
#[derive(Debug, Clone)]
enum Touched {
    Pending,
    Durable(Option<Bytes>),
}

impl Core {
    /// About how many bytes the blocks take.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// The durable row of a key: `None` if it is not known, and `Some(None)` if there is no such row.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let block = self.blocks.find(key)?;
        block.mark_read();
        Some(block.get(key).cloned())
    }

    /// The newest row of a key, durable or not, in the same form. The caller holds the lock of the key's partition,
    /// so that no write of the key is on its way into the log.
    pub(super) fn newest(&self, key: &[u8]) -> Option<Option<Bytes>> {
        if let Some(number) = self.changing.get(key).and_then(|numbers| numbers.last()) {
            return self.pending[number].value_of(key).cloned();
        }
        let block = self.blocks.find(key)?;
        let row = block.get(key);
        // A judge that finds no row mostly makes one. Blocks that only grow are the first to be evicted.
        if row.is_some() {
            block.mark_read();
        }
        Some(row.cloned())
    }

    /// The database has this durable row, and no write of the key can be on its way.
    pub(super) fn learn(&mut self, key: &[u8], value: &Bytes) {
        if !self.is_shut && !self.is_changing(key) && self.blocks.find(key).is_none() {
            let (low, high) = (Bytes::copy_from_slice(key), just_after(key));
            self.blocks.add(Block::new(low.clone(), high, vec![(low, value.clone())]));
        }
    }

    /// Whether a write of the key is pending.
    pub(super) fn is_changing(&self, key: &[u8]) -> bool {
        self.changing.contains_key(key)
    }

    /// All rows from `low` on and below `high` as of now, if all of these keys are known.
    pub(super) fn view(&self, low: &[u8], high: &[u8]) -> Option<View> {
        (self.blocks.known_until(low, high) >= high).then(|| View::new(self.blocks.clone(), low, high))
    }

    /// The rows from `low` on, up to the first key that is not known or that a pending write changes. They are as the
    /// writes up to `newest` left them, so every state of the database has them that begins with these writes. `None` if
    /// there is no such key, or if the rows may show a later write.
    pub(super) fn view_of_first(&self, low: &[u8], high: &[u8], newest: u64) -> Option<View> {
        if self.settled > newest {
            return None;
        }
        let known = self.blocks.known_until(low, high);
        let changing = self.changing.range::<[u8], _>((Bound::Included(low), Bound::Unbounded)).next();
        let end = changing.map_or(known, |(key, _)| known.min(key.as_ref()));
        (low < end).then(|| View::new(self.blocks.clone(), low, end))
    }

    /// A write of these rows is about to enter the log.
    pub(super) fn announce(&mut self, changes: Vec<Change>) -> WriteNumber {
        let number = WriteNumber(self.next());
        if self.is_shut {
            return number;
        }
        for (key, _) in &changes {
            self.changing.entry(key.clone()).or_default().push(number);
            self.fills.values_mut().for_each(|fill| fill.touch(key, &Touched::Pending));
        }
        self.pending.insert(number, Pending { sequence: None, changes });
        number
    }

    /// A write has entered the log.
    pub(super) fn entered(&mut self, number: WriteNumber, sequence: u64) {
        if let Some(write) = self.pending.get_mut(&number) {
            write.sequence = Some(sequence);
        }
    }

    /// All writes up to this sequence number are durable.
    pub(super) fn durable(&mut self, sequence: u64) {
        self.settled = self.settled.max(sequence);
        let is_durable = |write: &mut Pending| write.sequence.is_some_and(|own| own <= sequence);
        // Two writes of a key are in the order in which they were announced.
        let durable: Vec<_> = self.pending.extract_if(.., |_, write| is_durable(write)).collect();
        for (number, write) in durable {
            for (key, value) in write.changes {
                self.settle(number, &key, value.as_ref());
                self.unsorted.add(key, write.sequence.unwrap_or(sequence));
            }
        }
    }

    /// A row is durable as this write has left it.
    fn settle(&mut self, number: WriteNumber, key: &Bytes, value: Option<&Bytes>) {
        let is_known = self.blocks.set(key, value);
        if !is_known && self.wanted.contains(key) {
            let rows = value.map(|value| (key.clone(), value.clone())).into_iter().collect();
            self.blocks.add(Block::new(key.clone(), just_after(key), rows));
        }
        let Some(others) = self.changing.get_mut(key) else { return };
        others.retain(|other| *other != number);
        if others.is_empty() {
            self.changing.remove(key);
            self.wanted.remove(key);
            let touched = Touched::Durable(value.cloned());
            self.fills.values_mut().for_each(|fill| fill.touch(key, &touched));
        }
    }

    /// All rows up to this sequence number are in sorted files. Returns what has to be dropped, after the lock.
    #[must_use]
    pub(super) fn sorted(&mut self, sequence: u64) -> Vec<Generation> {
        self.unsorted.sorted(sequence)
    }

    /// The first part of `keys` of which all rows are in sorted files, as far as a reader sees them whose snapshot was made
    /// before this. The rows up to the sequence number `sorted` are in sorted files. `None` if there is no such part.
    pub(super) fn sorted_part(&self, keys: &KeyRange, sorted: u64) -> Option<KeyRange> {
        if self.is_shut || !self.unsorted.are_known(sorted) {
            return None;
        }
        let from = (Bound::Included(keys.low()), Bound::Unbounded);
        let changing = self.changing.range::<[u8], _>(from).next().map(|(key, _)| key);
        let unsorted = self.unsorted.first_from(keys.low(), sorted);
        let ends = [changing.map(AsRef::as_ref), unsorted.map(AsRef::as_ref), keys.high()];
        let end: Option<&[u8]> = ends.into_iter().flatten().min();
        let part = KeyRange::new(keys.low().to_vec(), end.map(<[u8]>::to_vec));
        (!part.is_empty()).then_some(part)
    }

    /// The database has no rows from `low` on and below `high`.
    pub(super) fn begin_empty(&mut self, low: Bytes, high: Bytes) {
        self.blocks.add(Block::new(low, high, Vec::new()));
    }

    /// Gives away what it knows, and knows nothing from then on. It gives nothing away if a write is pending, or if one
    /// failed.
    pub(super) fn hand_over(&mut self) -> Blocks {
        let blocks = std::mem::take(&mut self.blocks);
        let is_exact = self.pending.is_empty();
        self.shut();
        if is_exact { blocks } else { Blocks::default() }
    }

    /// Takes over what other caches knew. No row of these keys was read or written here yet.
    pub(super) fn take_over(&mut self, blocks: Blocks) {
        if !self.is_shut && self.blocks.bytes() == 0 && self.pending.is_empty() {
            self.blocks = blocks;
        }
    }

    /// Forgets everything for good: a write failed, and nobody knows whether its rows are in the log.
    pub(super) fn shut(&mut self) {
        let next_number = self.next_number;
        *self = Self { is_shut: true, next_number, ..Self::default() };
    }

    /// Begins a fill of the keys from `low` on and below `high`, before the database is asked. `None` if it could
    /// not be used.
    pub(super) fn begin_fill(&mut self, low: Bytes, high: Bytes) -> Option<FillNumber> {
        if self.is_shut || low >= high {
            return None;
        }
        let number = FillNumber(self.next());
        let changing = self.changing.range(low.clone()..high.clone());
        let touched = changing.map(|(key, _)| (key.clone(), Touched::Pending)).collect();
        self.fills.insert(number, Fill { low, high, touched, is_void: false });
        Some(number)
    }

    /// Takes what a fill has read: `rows` are all rows that the database has from where the fill had come to, and
    /// below `end`. If they are not `admitted`, they are passed over. Returns whether the fill goes on; it does not after a
    /// failed write.
    pub(super) fn publish(
        &mut self,
        number: FillNumber,
        rows: Vec<Row>,
        end: &Bytes,
        admitted: bool,
    ) -> bool {
        let Some(fill) = self.fills.get_mut(&number) else { return false };
        let is_wanted = admitted && !fill.is_void;
        let (mut from, touched) = fill.take(end);
        if touched.len() > FILL_TOUCHED_MAX {
            self.forget();
            return true;
        }
        let (rows, holes) = without_touched(rows, touched);
        if holes.iter().any(|(key, value)| self.is_pending(key, value.as_ref())) {
            // The database shows a write as durable of which that is not known here. A reader must not see the row
            // first as it is in the database and then as it is here.
            self.forget();
            return true;
        }
        if !is_wanted {
            return true;
        }
        for hole in holes.into_keys() {
            self.add_unknown(&rows, from, &hole);
            from = just_after(&hole);
            self.wanted.insert(hole);
        }
        self.add_unknown(&rows, from, end);
        true
    }

    /// A fill goes on at `next`: what it has not published below that is not read.
    pub(super) fn pass_over(&mut self, number: FillNumber, next: &Bytes) {
        if let Some(fill) = self.fills.get_mut(&number).filter(|fill| fill.low < *next) {
            fill.take(next);
        }
    }

    /// Whether one of the pending writes of a key leaves the row with this value.
    fn is_pending(&self, key: &Bytes, value: Option<&Bytes>) -> bool {
        let numbers = self.changing.get(key).into_iter().flatten();
        let mut values = numbers.filter_map(|number| self.pending[number].value_of(key));
        values.any(|pending| pending.as_ref() == value)
    }

    /// Adds the rows from `from` on and below `end`, where keys are not known.
    fn add_unknown(&mut self, rows: &[Row], mut from: Bytes, end: &Bytes) {
        while let Some((low, high)) = self.blocks.first_gap(&from, end) {
            let place = |key: &Bytes| rows.partition_point(|(row, _)| row < key);
            let (mut low, mut rest) = (low.clone(), &rows[place(&low)..place(&high)]);
            loop {
                let (these, others) = rest.split_at(first_block(rest));
                let cut = others.first().map_or_else(|| high.clone(), |(key, _)| key.clone());
                self.blocks.add(Block::new(low, cut.clone(), these.to_vec()));
                (low, rest) = (cut, others);
                if rest.is_empty() {
                    break;
                }
            }
            from = high;
        }
    }

    /// Forgets the rows from `low` on and below `high`, and what is being filled.
    pub(super) fn forget_between(&mut self, low: &[u8], high: Option<&[u8]>) {
        self.void_fills();
        self.blocks.remove_between(low, high);
    }

    /// Forgets all rows, and what is being filled. Writes that are pending stay so.
    fn forget(&mut self) {
        self.blocks = Blocks::default();
        self.void_fills();
        self.wanted.clear();
    }

    fn void_fills(&mut self) {
        self.fills.values_mut().for_each(Fill::make_void);
    }

    /// Ends a fill.
    pub(super) fn end_fill(&mut self, number: FillNumber) {
        self.fills.remove(&number);
    }

    /// Looks at the next blocks, at most so many, and evicts the first that was not read of late. Returns whether it
    /// has come to the end; then it begins again.
    pub(super) fn evict(&mut self, most: usize) -> bool {
        let hand = self.blocks.evict(&self.hand, most);
        let is_at_end = hand.is_none();
        self.hand = hand.unwrap_or_default();
        is_at_end
    }

    fn next(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

impl Pending {
    /// The value that it leaves a key with, if it changes that key.
    fn value_of(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.changes.iter().rev().find(|(changed, _)| changed == key).map(|(_, value)| value)
    }
}

impl Fill {
    fn touch(&mut self, key: &Bytes, how: &Touched) {
        if *key < self.low || *key >= self.high {
            return;
        }
        match how {
            Touched::Durable(_) if self.is_void => drop(self.touched.remove(key)),
            _ => drop(self.touched.insert(key.clone(), how.clone())),
        }
    }

    /// From now on only writes matter that are pending.
    fn make_void(&mut self) {
        self.is_void = true;
        self.touched.retain(|_, how| matches!(how, Touched::Pending));
    }

    /// From where on nothing was published, and the keys below `end` that were touched. The fill goes on at `end`.
    fn take(&mut self, end: &Bytes) -> (Bytes, BTreeMap<Bytes, Touched>) {
        let later = self.touched.split_off(end);
        let touched = std::mem::replace(&mut self.touched, later);
        (std::mem::replace(&mut self.low, end.clone()), touched)
    }
}

/// The rows with what is durable of the keys that were touched. The keys with pending writes are left out, and
/// returned with the values that the database shows.
fn without_touched(
    rows: Vec<Row>,
    touched: BTreeMap<Bytes, Touched>,
) -> (Vec<Row>, BTreeMap<Bytes, Option<Bytes>>) {
    if touched.is_empty() {
        return (rows, BTreeMap::new());
    }
    let mut rows: BTreeMap<Bytes, Bytes> = rows.into_iter().collect();
    let mut holes = BTreeMap::new();
    for (key, how) in touched {
        let read = rows.remove(&key);
        match how {
            Touched::Pending => drop(holes.insert(key, read)),
            Touched::Durable(Some(value)) => drop(rows.insert(key, value)),
            Touched::Durable(None) => {}
        }
    }
    (rows.into_iter().collect(), holes)
}

/// How many of these rows make one block.
fn first_block(rows: &[Row]) -> usize {
    let mut bytes = 0;
    let full = |(key, value): &Row| {
        bytes += key.len() + value.len();
        bytes >= CACHED_BLOCK_BYTES
    };
    let whole = rows.iter().take(CACHED_BLOCK_ROWS).position(full).map_or(CACHED_BLOCK_ROWS, |last| last + 1);
    whole.min(rows.len())
}

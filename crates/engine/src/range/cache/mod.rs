//! The cache of a range's rows, which its one owner can keep exact.
//!
//! It holds intervals of keys with all their durable rows ([`blocks`]), the writes that are pending beside them, and
//! the fills under way ([`core`], which is pure). It belongs to one opening of the range's database and ends with it.
//! It may begin with rows ([`super::warm`]); a range that is opened again, or by another process, begins with none.
//!
//! All caches of the process share one [`RowBudget`]. A block that is read outlives three rounds of the search for blocks to
//! evict. Rows that are read one by one get the room of any block that the search finds, and rows of a scan only that of
//! blocks that were not read. So a large scan does not drive out what is read often.

mod block;
mod blocks;
mod budget;
mod chunk;
mod core;
mod heads;
#[cfg(test)]
mod model;
mod unsorted;
mod view;

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rangehold_map::KeyRange;

use self::block::Row;
pub(super) use self::blocks::{Blocks, just_after};
pub(crate) use self::budget::RowBudget;
pub(super) use self::core::{Change, WriteNumber};
use self::core::{Core, FillNumber};
pub(super) use self::view::View;
use crate::limits::FILL_PIECE_ROWS;

/// No key begins with this byte. A block needs an end.
const ABOVE_ALL_KEYS: &[u8] = &[0xFF];

/// See the module.
pub(super) struct RowCache {
    core: Arc<Mutex<Core>>,
    budget: Arc<RowBudget>,
}

impl RowCache {
    pub(super) fn new(budget: &Arc<RowBudget>) -> Self {
        let core = Arc::default();
        budget.enter(&core);
        Self { core, budget: Arc::clone(budget) }
    }

    /// The durable row of a key: `None` if it is not known, and `Some(None)` if there is no such row.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.core.lock().get(key)
    }

    /// The database has this row. The caller holds the lock of the key's partition since before it asked, and had found
    /// nothing in the cache: so the row is durable, and no write can have touched it.
    pub(super) fn learn(&self, key: &[u8], value: &Bytes) {
        if !self.budget.is_nothing() {
            self.change(|core| core.learn(key, value));
        }
    }

    /// Whether a write of the key is pending.
    pub(super) fn is_changing(&self, key: &[u8]) -> bool {
        self.core.lock().is_changing(key)
    }

    /// All durable rows of an interval as of now, if all of its keys are known.
    pub(super) fn view(&self, keys: &KeyRange) -> Option<View> {
        self.core.lock().view(keys.low(), keys.high()?)
    }

    /// The first of these rows, as far as they are known, for a caller that reads the others from a snapshot of the
    /// database. The snapshot was made before this, and shows the writes up to `newest`.
    pub(super) fn view_of_first(&self, keys: &KeyRange, newest: u64) -> Option<View> {
        self.core.lock().view_of_first(keys.low(), keys.high()?, newest)
    }

    /// The newest rows of some keys, durable or not, in the form of [`Self::get`]. The caller holds the lock of their
    /// partition.
    pub(super) fn newest_of(&self, keys: &[Vec<u8>]) -> Vec<Option<Option<Bytes>>> {
        let core = self.core.lock();
        keys.iter().map(|key| core.newest(key)).collect()
    }

    /// A write of these rows is about to enter the log.
    pub(super) fn announce(&self, changes: Vec<Change>) -> WriteNumber {
        self.core.lock().announce(changes)
    }

    /// A write has entered the log with this sequence number.
    pub(super) fn entered(&self, number: WriteNumber, sequence: u64) {
        self.core.lock().entered(number, sequence);
    }

    /// All writes up to this sequence number are durable.
    pub(super) fn durable(&self, sequence: u64) {
        self.change(|core| core.durable(sequence));
    }

    /// All rows up to this sequence number are in sorted files.
    pub(super) fn sorted(&self, sequence: u64) {
        let not_needed = self.core.lock().sorted(sequence);
        drop(not_needed);
    }

    /// The first part of `keys` that a reader may take from sorted files, which have all rows up to the sequence number
    /// `sorted`. The reader has made its snapshot before this, and takes the files as they are after this.
    pub(super) fn sorted_part(&self, keys: &KeyRange, sorted: u64) -> Option<KeyRange> {
        self.core.lock().sorted_part(keys, sorted)
    }

    /// The database has no row of these keys.
    pub(super) fn begin_empty(&self, keys: &KeyRange) {
        if self.budget.is_nothing() {
            return;
        }
        let high = keys.high().unwrap_or(ABOVE_ALL_KEYS);
        self.change(|core| core.begin_empty(keys.low().to_vec().into(), high.to_vec().into()));
    }

    /// Gives away what it knows, and knows nothing from then on. All writes up to `durable` are durable, and no write will come
    /// any more.
    pub(super) fn hand_over(&self, durable: u64) -> Blocks {
        self.change(|core| {
            core.durable(durable);
            core.hand_over()
        })
    }

    /// Takes over what other caches knew. To be called before the range is served.
    pub(super) fn take_over(&self, blocks: Blocks) {
        self.change(|core| core.take_over(blocks));
    }

    /// Forgets the rows of an interval, and all that is being copied: rows were removed that no write has announced.
    pub(super) fn forget(&self, keys: &KeyRange) {
        self.change(|core| core.forget_between(keys.low(), keys.high()));
    }

    /// Forgets everything for good, because nobody knows whether a write is in the log.
    pub(super) fn shut(&self) {
        self.change(Core::shut);
    }

    /// Begins to copy what is going to be read of the database. The caller asks the database after this.
    pub(super) fn fill(&self, keys: &KeyRange) -> Filling<'_> {
        let high = keys.high().map(Bytes::copy_from_slice);
        let begin = |high| self.core.lock().begin_fill(Bytes::copy_from_slice(keys.low()), high);
        let number = if self.budget.is_nothing() { None } else { high.clone().and_then(begin) };
        Filling { cache: self, number, high, rows: Vec::new(), bytes: 0 }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core.lock();
        let before = core.bytes();
        let result = change(&mut core);
        self.budget.changed(before, core.bytes());
        drop(core);
        self.budget.keep();
        result
    }
}

impl Drop for RowCache {
    fn drop(&mut self) {
        let mut core = self.core.lock();
        self.budget.changed(core.bytes(), 0);
        // Another cache that looks for room may still hold this one.
        core.shut();
    }
}

/// Copies rows while they are read from the database. What was not published when it is dropped is not kept.
pub(super) struct Filling<'a> {
    cache: &'a RowCache,
    /// `None` if nothing is copied, or no more.
    number: Option<FillNumber>,
    /// The first key after the interval that is read.
    high: Option<Bytes>,
    rows: Vec<Row>,
    bytes: usize,
}

impl Filling<'_> {
    /// Whether the rows that are read will be kept, as far as can be told before.
    pub(super) fn keeps_rows(&self) -> bool {
        self.number.is_some() && !self.cache.budget.is_full()
    }

    /// Whether rows are copied at all.
    pub(super) fn is_under_way(&self) -> bool {
        self.number.is_some()
    }

    /// Nothing is read below `low`.
    pub(super) fn begin_at(&mut self, low: &Bytes) {
        if let Some(number) = self.number {
            self.cache.core.lock().pass_over(number, low);
        }
    }

    /// The next row of the interval. `durable` tells up to which sequence number writes are durable.
    pub(super) fn row(&mut self, key: &Bytes, value: &Bytes, durable: impl Fn() -> u64) {
        if self.number.is_none() {
            return;
        }
        if self.rows.len() >= FILL_PIECE_ROWS || self.bytes >= self.cache.budget.piece_bytes() {
            self.publish(key.clone(), &durable, false);
        }
        self.bytes += key.len() + value.len();
        self.rows.push((key.clone(), value.clone()));
    }

    /// The rows between `last` and `next` are not read.
    pub(super) fn pass_over(&mut self, last: &[u8], next: &[u8], durable: impl Fn() -> u64) {
        self.publish(just_after(last), &durable, false);
        self.begin_at(&Bytes::copy_from_slice(next));
    }

    /// All rows of the interval were read, or those up to and including `last`.
    pub(super) fn end(mut self, last: Option<&[u8]>, durable: impl Fn() -> u64) {
        let end = last.map(just_after).or_else(|| self.high.clone());
        if let Some(end) = end {
            self.publish(end, &durable, false);
        }
    }

    /// The one row of the interval was read. It takes the room of what was read less.
    pub(super) fn end_of_get(mut self, key: &[u8], value: Option<&Bytes>, durable: impl Fn() -> u64) {
        self.rows.extend(value.map(|value| (Bytes::copy_from_slice(key), value.clone())));
        self.publish(just_after(key), &durable, true);
    }

    fn publish(&mut self, end: Bytes, durable: &impl Fn() -> u64, is_wanted: bool) {
        let Some(number) = self.number else { return };
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let admitted = is_wanted || self.cache.budget.has_room_for_scans();
        // The database may have shown rows of writes that became durable just now. This is asked before the cache is
        // locked: a caller that is told the status of the database may wait for the cache.
        let sequence = durable();
        let goes_on = self.cache.change(|core| {
            core.durable(sequence);
            core.publish(number, rows, &end, admitted)
        });
        if !goes_on {
            self.number = None;
        }
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.cache.core.lock().end_fill(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Bytes {
        Bytes::from(format!("{number:08}"))
    }

    fn value(number: u32) -> Bytes {
        Bytes::from(vec![number as u8; 300])
    }

    fn keys(from: u32, to: u32) -> KeyRange {
        KeyRange::new(key(from).to_vec(), Some(key(to).to_vec()))
    }

    fn scan(cache: &RowCache, from: u32, to: u32) {
        let mut filling = cache.fill(&keys(from, to));
        (from..to).for_each(|number| filling.row(&key(number), &value(number), || 0));
        filling.end(None, || 0);
    }

    fn read(cache: &RowCache, number: u32) {
        if cache.get(&key(number)).is_none() {
            let filling = cache.fill(&keys(number, number + 1));
            filling.end_of_get(&key(number), Some(&value(number)), || 0);
        }
    }

    #[test]
    fn a_scan_that_fits_is_known_as_a_whole() {
        let cache = RowCache::new(&RowBudget::new(1 << 20));
        scan(&cache, 0, 1_000);
        let mut view = cache.view(&keys(10, 990)).expect("all of it is known");
        let mut shown = 0;
        while let Some(rows) = view.next_rows() {
            shown += rows.len();
        }
        assert_eq!(shown, 980);
        assert_eq!(cache.get(&key(5)), Some(Some(value(5))));
        assert_eq!(cache.get(b"00000005x"), Some(None));
        assert!(cache.view(&keys(10, 1_001)).is_none());
    }

    #[test]
    fn a_large_scan_does_not_drive_out_what_is_read() {
        let budget = RowBudget::new(1 << 20);
        let (quiet, scanned) = (RowCache::new(&budget), RowCache::new(&budget));
        for _ in 0..2 {
            (0..500).for_each(|number| read(&quiet, number));
        }
        scan(&scanned, 0, 50_000);
        let left = (0..500).filter(|number| quiet.get(&key(*number)).is_some()).count();
        assert_eq!(left, 500);
    }

    #[test]
    fn caches_stay_within_their_budget_and_give_it_back() {
        let budget = RowBudget::new(100 << 10);
        let caches = [RowCache::new(&budget), RowCache::new(&budget)];
        for number in 0..5_000 {
            read(&caches[(number % 2) as usize], number);
            let used = caches.iter().map(|cache| cache.core.lock().bytes()).sum::<usize>();
            assert!(used <= 100 << 10, "{used} bytes are used");
        }
        assert!(caches.iter().all(|cache| cache.core.lock().bytes() > 20 << 10));
        drop(caches);
        assert!(!budget.is_full());
        let cache = RowCache::new(&budget);
        scan(&cache, 0, 100);
        assert!(cache.view(&keys(0, 100)).is_some());
    }

    #[test]
    fn after_a_failed_write_nothing_is_known_for_good() {
        let cache = RowCache::new(&RowBudget::new(1 << 20));
        scan(&cache, 0, 10);
        cache.announce(vec![(key(3), None)]);
        cache.shut();
        scan(&cache, 0, 10);
        assert_eq!(cache.get(&key(5)), None);
        assert_eq!(cache.newest_of(&[key(3).to_vec()]), [None]);
    }
}

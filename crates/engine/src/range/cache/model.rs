//! The cache against a model: a database that is a list of writes, read at any of the moments that are allowed.
//!
//! The model's database makes writes durable in their order, and the cache is told late that a write is in the log
//! and that it is durable, as in the product. In every order of the steps each answer must be one that the database
//! could give, and no reader may see an older state after a newer one, wherever either comes from.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rangehold_map::KeyRange;

use super::blocks::just_after;
use super::core::{Core, FillNumber, WriteNumber};

/// Keys are single letters, so that writes, fills and blocks meet often.
const KEYS: u8 = 12;

#[derive(Debug, Clone)]
enum Step {
    /// Announces a write of these keys; `true` deletes.
    Announce(Vec<(u8, bool)>),
    /// An announced write enters the log.
    Log(usize),
    /// The cache is told of a write in the log.
    Enter(usize),
    /// So many of the writes in the log become durable. The cache is told if the flag says so.
    Durable(usize, bool),
    /// Begins a fill and reads the database.
    Fill(u8, u8),
    /// Hands over the rows of a fill up to this key, or to its end. The flag says whether the cache is told first what
    /// is durable.
    Publish(usize, Option<u8>, bool),
    Evict,
    Forget(u8, Option<u8>),
    Get(u8),
    Newest(u8),
    Scan(u8, u8),
    /// Makes a snapshot of the database.
    Snapshot,
    /// Reads the first rows of an interval, which go with the last snapshot.
    ScanFirst(u8, u8),
    /// So many of the durable writes come into sorted files. The cache is told if the flag says so.
    Sort(usize, bool),
    /// Asks which first part of an interval a reader of the last snapshot may take from sorted files.
    ScanSorted(u8, Option<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    prop_oneof![
        4 => vec((key(), any::<bool>()), 1..4).prop_map(Step::Announce),
        4 => (0..3usize).prop_map(Step::Log),
        4 => (0..3usize).prop_map(Step::Enter),
        3 => (0..4usize, any::<bool>()).prop_map(|(count, told)| Step::Durable(count, told)),
        3 => (key(), key()).prop_map(|(low, high)| Step::Fill(low, high)),
        3 => (0..3usize, proptest::option::of(key()), any::<bool>())
            .prop_map(|(fill, cut, told)| Step::Publish(fill, cut, told)),
        1 => Just(Step::Evict),
        1 => (key(), proptest::option::of(key())).prop_map(|(low, high)| Step::Forget(low, high)),
        3 => key().prop_map(Step::Get),
        3 => key().prop_map(Step::Newest),
        3 => (key(), key()).prop_map(|(low, high)| Step::Scan(low, high)),
        2 => Just(Step::Snapshot),
        3 => (key(), key()).prop_map(|(low, high)| Step::ScanFirst(low, high)),
        2 => (0..4usize, any::<bool>()).prop_map(|(count, told)| Step::Sort(count, told)),
        3 => (key(), proptest::option::of(key())).prop_map(|(low, high)| Step::ScanSorted(low, high)),
    ]
}

type State = BTreeMap<Bytes, Bytes>;

/// A write of the model.
struct Write {
    number: WriteNumber,
    changes: Vec<(Bytes, Option<Bytes>)>,
    /// Whether the cache knows that it is in the log.
    is_entered: bool,
    /// Whether the cache knows that it is durable. It is answered after that.
    is_settled: bool,
    /// Whether a reader has certainly seen it, or what follows from it.
    is_seen: bool,
}

impl Write {
    fn changes_key(&self, key: &Bytes) -> bool {
        self.changes.iter().any(|(changed, _)| changed == key)
    }
}

/// A fill under way: what the database showed when it was read.
struct Reading {
    number: FillNumber,
    /// From where on nothing is handed over.
    from: Bytes,
    low: Bytes,
    high: Bytes,
    rows: State,
}

#[derive(Default)]
struct Model {
    core: Core,
    announced: Vec<Write>,
    /// In the log, with the sequence numbers 1 and on.
    log: Vec<Write>,
    durable: usize,
    /// Up to where the cache was told that writes are durable.
    told: usize,
    /// The place in the log of the last write that a reader has certainly seen.
    seen: usize,
    fills: Vec<Reading>,
    /// How many writes of the log the last snapshot can show.
    snapshot: usize,
    /// The first writes of the log, which are in sorted files.
    sorted: usize,
    next_value: u32,
}

fn key(letter: u8) -> Bytes {
    Bytes::from(vec![b'a' + letter])
}

impl Model {
    /// The rows from `low` on and below `high` after the first writes of the log, without those that are left out.
    fn part(
        &self,
        through: usize,
        bounds: (&Bytes, &Bytes),
        left_out: impl Fn(usize, &Write) -> bool,
    ) -> State {
        let mut state = State::new();
        for (index, write) in self.log[..through].iter().enumerate() {
            if left_out(index + 1, write) {
                continue;
            }
            for (key, value) in &write.changes {
                match value {
                    Some(value) => drop(state.insert(key.clone(), value.clone())),
                    None => drop(state.remove(key)),
                }
            }
        }
        state.retain(|key, _| key >= bounds.0 && key < bounds.1);
        state
    }

    /// All states that the cache may show now. A write may be missing if the cache does not know that it is durable, and
    /// no reader has seen it.
    fn allowed(&self, low: &Bytes, high: &Bytes) -> Vec<State> {
        let least = self.told.max(self.seen);
        let known = (least..=self.durable).map(|through| self.part(through, (low, high), |_, _| false));
        let unknown = |_, write: &Write| !write.is_settled && !write.is_seen;
        let without = (least..=self.durable).map(|through| self.part(through, (low, high), unknown));
        known.chain(without).collect()
    }

    /// Whether a judge of the key would have to wait: the lock of its partition is held.
    fn is_locked(&self, key: &Bytes) -> bool {
        let on_the_way = self.log.iter().filter(|write| !write.is_entered).chain(&self.announced);
        on_the_way.into_iter().any(|write| write.changes_key(key))
    }

    fn tell(&mut self) {
        self.core.durable(self.durable as u64);
        self.told = self.durable;
        let told = self.log[..self.told].iter_mut();
        told.for_each(|write| write.is_settled = write.is_entered);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Announce(keys) => self.announce(keys),
            Step::Log(which) if which < self.announced.len() => {
                let write = self.announced.remove(which);
                self.log.push(write);
            }
            Step::Enter(which) => {
                let mut unknown = self.log.iter_mut().enumerate().filter(|(_, write)| !write.is_entered);
                if let Some((index, write)) = unknown.nth(which) {
                    write.is_entered = true;
                    self.core.entered(write.number, index as u64 + 1);
                }
            }
            Step::Durable(count, told) => {
                self.durable = self.log.len().min(self.durable + count);
                if told {
                    self.tell();
                }
            }
            Step::Fill(low, high) => {
                let (low, high) = (key(low), key(high));
                if let Some(number) = self.core.begin_fill(low.clone(), high.clone()) {
                    let rows = self.part(self.durable, (&low, &high), |_, _| false);
                    self.fills.push(Reading { number, from: low.clone(), low, high, rows });
                }
            }
            Step::Publish(fill, cut, told) if fill < self.fills.len() => {
                self.publish(fill, cut.map(key), told)
            }
            Step::Evict => {
                self.core.evict(4);
            }
            Step::Forget(low, high) => {
                let high = high.map(key);
                self.core.forget_between(&key(low), high.as_deref());
                if let Some(high) = high.as_ref().filter(|high| **high > key(low)) {
                    assert!(self.core.view(&key(low), high).is_none(), "it is forgotten");
                }
            }
            Step::Get(letter) => {
                let key = key(letter);
                if let Some(row) = self.core.get(&key) {
                    let allowed = self.allowed(&key, &just_after(&key));
                    assert!(
                        allowed.iter().any(|state| state.get(&key) == row.as_ref()),
                        "{key:?} is {row:?}"
                    );
                }
            }
            Step::Newest(letter) => {
                let key = key(letter);
                if self.is_locked(&key) {
                    return;
                }
                let newest = self.part(self.log.len(), (&key, &just_after(&key)), |_, _| false);
                match (self.core.newest(&key), newest.get(&key)) {
                    (Some(row), newest) => assert_eq!(row.as_ref(), newest, "the newest {key:?}"),
                    (None, Some(value)) => self.core.learn(&key, value),
                    (None, None) => {}
                }
            }
            Step::Log(_) | Step::Publish(..) => {}
            Step::Scan(low, high) => self.scan(&key(low), &key(high)),
            Step::Snapshot => self.snapshot = self.log.len(),
            Step::ScanFirst(low, high) => self.scan_first(&key(low), &key(high)),
            Step::Sort(count, told) => {
                self.sorted = self.durable.min(self.sorted + count);
                if told {
                    drop(self.core.sorted(self.sorted as u64));
                }
            }
            Step::ScanSorted(low, high) => self.scan_sorted(&key(low), high.map(key).as_ref()),
        }
    }

    fn announce(&mut self, keys: Vec<(u8, bool)>) {
        let mut changes: Vec<(Bytes, Option<Bytes>)> = Vec::new();
        for (letter, deletes) in keys {
            let key = key(letter);
            // A batch names a key once.
            if self.is_locked(&key) || changes.iter().any(|(changed, _)| *changed == key) {
                continue;
            }
            self.next_value += 1;
            let value = (!deletes).then(|| Bytes::from(self.next_value.to_string()));
            changes.push((key, value));
        }
        let number = self.core.announce(changes.clone());
        self.announced.push(Write { number, changes, is_entered: false, is_settled: false, is_seen: false });
    }

    fn publish(&mut self, fill: usize, cut: Option<Bytes>, told: bool) {
        let mut reading = self.fills.remove(fill);
        let end = cut.filter(|cut| *cut > reading.from && *cut < reading.high);
        let end = end.unwrap_or_else(|| reading.high.clone());
        if told {
            self.tell();
        }
        let rows = reading.rows.range(reading.from.clone()..end.clone());
        let rows = rows.map(|(key, value)| (key.clone(), value.clone())).collect();
        let goes_on = self.core.publish(reading.number, rows, &end, true);
        if goes_on && end < reading.high {
            reading.from = end;
            self.fills.push(reading);
            return;
        }
        self.core.end_fill(reading.number);
        self.answer(&reading);
    }

    /// A reader is answered with what it read from the database. It saw at least the writes without which its answer
    /// would be another one, and what went before them.
    ///
    /// One kind of write may come after the reader, although its place in the log is an earlier one: a write whose keys
    /// the reader did not ask for, and of which the cache does not know yet that it is in the log. It is not answered,
    /// and its locks are still held. So nothing that the reader saw can follow from it.
    fn answer(&mut self, reading: &Reading) {
        let bounds = (&reading.low, &reading.high);
        let fits = |through: &usize| self.part(*through, bounds, |_, _| false) == reading.rows;
        let seen = (0..=self.durable).find(fits).expect("the database was in that state");
        let is_seen = |sequence: usize| {
            let without = || self.part(seen, bounds, |other, _| other == sequence);
            self.log[sequence - 1].is_entered || without() != reading.rows
        };
        let sequences: Vec<_> = (1..=seen).filter(|sequence| is_seen(*sequence)).collect();
        sequences.into_iter().for_each(|sequence| self.log[sequence - 1].is_seen = true);
        self.seen = self.seen.max(seen);
    }

    fn scan(&mut self, low: &Bytes, high: &Bytes) {
        let Some(mut view) = self.core.view(low, high) else { return };
        let mut shown = State::new();
        while let Some(rows) = view.next_rows() {
            shown.extend(rows.iter().cloned());
        }
        assert!(self.allowed(low, high).contains(&shown), "{low:?} to {high:?} are {shown:?}");
    }

    /// Writes that become durable before the rest is read from the snapshot leave the first rows as they are.
    fn scan_first(&self, low: &Bytes, high: &Bytes) {
        let Some(mut view) = self.core.view_of_first(low, high, self.snapshot as u64) else { return };
        let mut shown = State::new();
        while let Some(rows) = view.next_rows() {
            shown.extend(rows.iter().cloned());
        }
        let end = view.reached();
        assert!(*low < *end && *end <= *high, "{low:?} to {high:?} ends at {end:?}");
        for through in self.durable.min(self.snapshot)..=self.snapshot {
            assert_eq!(shown, self.part(through, (low, end), |_, _| false), "{low:?} to {end:?}");
        }
    }

    /// Whichever writes come into sorted files until they are read, the files have what the snapshot shows.
    fn scan_sorted(&mut self, low: &Bytes, high: Option<&Bytes>) {
        let keys = KeyRange::new(low.to_vec(), high.map(|high| high.to_vec()));
        let Some(part) = self.core.sorted_part(&keys, self.sorted as u64) else { return };
        let end = part.high().map_or_else(|| key(KEYS), Bytes::copy_from_slice);
        assert!(part.low() == low.as_ref() && *low < end, "{keys:?} has {part:?}");
        let shown = self.part(self.snapshot, (low, &end), |_, _| false);
        for sorted in self.sorted..=self.log.len() {
            let in_files = self.part(sorted.min(self.snapshot), (low, &end), |_, _| false);
            assert_eq!(in_files, shown, "{part:?} with {sorted} of the log in files");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_answer_is_one_that_the_database_could_give(steps in vec(step(), 1..120)) {
        let mut model = Model::default();
        for step in steps {
            model.take(step);
        }
    }
}

/// The writes of `b` and `i` are in the log in this order. The cache is told of the second one first, and a reader sees
/// `i`. The next reader may still see no `b`.
#[test]
fn a_write_that_no_reader_asked_for_may_come_after_one_that_was_seen() {
    let (b, i, end) = (1, 8, 9);
    let mut model = Model::default();
    let before = [Step::Fill(0, 5), Step::Publish(0, None, false)];
    let writes = [Step::Announce(vec![(b, false)]), Step::Announce(vec![(i, false)])];
    let logged = [Step::Log(0), Step::Log(0), Step::Enter(1), Step::Durable(2, true)];
    let reads = [Step::Fill(2, end), Step::Publish(0, None, false), Step::Get(i), Step::Scan(0, 2)];
    before.into_iter().chain(writes).chain(logged).chain(reads).for_each(|step| model.take(step));
    assert_eq!(model.core.get(&key(b)), Some(None));
    assert_eq!(model.core.get(&key(i)), Some(Some(Bytes::from_static(b"2"))));
}

/// A reader asks the database after the rows that it would have copied are not wanted any more. It sees a write of which
/// the cache knows nothing yet. The next reader must not be shown the row as it was before.
#[test]
fn a_reader_whose_copy_is_void_still_finds_a_write_that_the_cache_does_not_know() {
    let h = 7;
    let mut model = Model::default();
    let known = [Step::Fill(0, 8), Step::Publish(0, None, false)];
    let write = [Step::Announce(vec![(h, false)]), Step::Log(0), Step::Durable(1, false)];
    let reader = [Step::Fill(0, 8), Step::Forget(8, None), Step::Publish(0, None, false)];
    known.into_iter().chain(write).chain(reader).for_each(|step| model.take(step));
    assert_eq!(model.core.get(&key(h)), None);
    model.take(Step::Get(h));
}

#[test]
fn rows_are_taken_from_sorted_files_up_to_the_first_that_may_not_be_there() {
    let (c, h) = (2, 7);
    let mut model = Model::default();
    let writes = [Step::Announce(vec![(c, false)]), Step::Announce(vec![(h, false)])];
    let logged = || [Step::Log(0), Step::Enter(0), Step::Durable(1, true)];
    writes.into_iter().chain(logged()).for_each(|step| model.take(step));
    let whole = KeyRange::new(key(0).to_vec(), None);
    let end = |model: &Model, sorted| {
        let part = model.core.sorted_part(&whole, sorted);
        part.map(|part| part.high().map(Bytes::copy_from_slice))
    };
    assert_eq!(end(&model, 0), Some(Some(key(c))), "it is durable and not sorted");
    assert_eq!(end(&model, 1), Some(Some(key(h))), "it may enter the log at any moment");
    logged().into_iter().for_each(|step| model.take(step));
    assert_eq!(end(&model, 1), Some(Some(key(c))), "the other key of its generation is not sorted");
    assert_eq!(end(&model, 2), Some(None));
    model.core.shut();
    assert_eq!(end(&model, 2), None);
}

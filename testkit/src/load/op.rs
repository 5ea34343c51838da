//! Operations, the state they lead to, and the draw of the next one.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value};

use super::TABLE;
use crate::client::Step;

/// The properties of an entity, without its keys.
pub type Row = Map<String, Value>;

/// Partitions of the shared table, unless a writer has others.
const PARTITIONS: u32 = 4;
/// Rows that a writer keeps at most, so that reading everything stays quick, unless it is told otherwise.
const ROWS_MAX: usize = 300;
/// Keys of deleted rows that a writer remembers.
const DELETED_MAX: usize = 2_000;
/// Rows put into a scratch table before it is deleted.
const SCRATCH_ROWS_MAX: usize = 3;

/// Names one entity.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// Its table.
    pub table: String,
    /// Its PartitionKey.
    pub partition: String,
    /// Its RowKey.
    pub row: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({}, {})", self.table, self.partition, self.row)
    }
}

/// A change of one entity.
#[derive(Clone, Debug)]
pub struct Change {
    pub step: Step,
    pub key: Key,
    pub properties: Row,
}

/// What a writer does, and where.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its partitions of the shared table; other writers may share them.
    pub partitions: Vec<String>,
    /// Rows that it keeps at most.
    pub rows_max: usize,
    /// Whether it makes and deletes a table of its own, and counts the tally up.
    pub tables: bool,
    /// Of a hundred operations, how many read a row that it wrote or deleted.
    pub reads: u32,
}

impl Default for Shape {
    fn default() -> Self {
        let partitions = (0..PARTITIONS).map(|number| format!("p{number}")).collect();
        Self { partitions, rows_max: ROWS_MAX, tables: true, reads: 0 }
    }
}

/// One operation of a writer.
#[derive(Clone, Debug)]
pub enum Op {
    /// Reads a row that the writer wrote, or deleted.
    Read(Key),
    Change(Change),
    /// Changes of one partition, applied whole or not at all.
    Batch(Vec<Change>),
    CreateTable(String),
    DeleteTable(String),
    /// Counts the shared tally up by one; not part of a writer's own state.
    Tally,
}

/// What a writer's part of the service holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// The tables that are there.
    pub tables: BTreeSet<String>,
    /// The entities that are there.
    pub rows: BTreeMap<Key, Row>,
}

impl State {
    /// The state after an operation that succeeded.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Change(change) => self.change(change),
            Op::Batch(changes) => changes.iter().for_each(|change| self.change(change)),
            Op::CreateTable(name) => {
                self.tables.insert(name.clone());
            }
            Op::DeleteTable(name) => {
                self.tables.remove(name);
                self.rows.retain(|key, _| key.table != *name);
            }
            Op::Read(_) | Op::Tally => {}
        }
    }

    fn change(&mut self, change: &Change) {
        match change.step {
            Step::Insert | Step::Replace | Step::Upsert => {
                self.rows.insert(change.key.clone(), change.properties.clone());
            }
            Step::Merge | Step::UpsertMerge => {
                self.rows.entry(change.key.clone()).or_default().extend(change.properties.clone());
            }
            Step::Delete => {
                self.rows.remove(&change.key);
            }
        }
    }
}

/// Draws a writer's operations. All of them succeed in the state they are drawn for.
pub(crate) struct Generator {
    rng: StdRng,
    writer: usize,
    shape: Shape,
    /// Number of the next operation; written into what it changes.
    serial: u32,
    /// Keys whose entities were deleted, some of which are inserted again.
    deleted: Vec<Key>,
}

impl Generator {
    /// The generator of one writer of a run.
    pub(crate) fn new(writer: usize, seed: u64, shape: Shape) -> Self {
        let rng = StdRng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(writer as u64));
        Self { rng, writer, shape, serial: 0, deleted: Vec::new() }
    }

    /// The next operation, for a writer whose part holds `state`.
    pub(crate) fn next(&mut self, state: &State) -> Op {
        self.serial += 1;
        if self.shape.reads > 0
            && self.rng.random_range(0..100) < self.shape.reads
            && let Some(key) = self.known(state)
        {
            return Op::Read(key);
        }
        match self.rng.random_range(0..100) {
            0..4 if self.shape.tables => self.scratch(state),
            4..10 if self.shape.tables => Op::Tally,
            10..26 => self.batch(state),
            _ => {
                let partition = self.partition();
                Op::Change(self.one(state, &partition, &BTreeSet::new()))
            }
        }
    }

    /// A key of a row that is there, or was.
    fn known(&mut self, state: &State) -> Option<Key> {
        if !self.deleted.is_empty() && self.rng.random_bool(0.2) {
            return Some(self.deleted[self.rng.random_range(0..self.deleted.len())].clone());
        }
        let index = self.rng.random_range(0..state.rows.len().max(1));
        state.rows.keys().nth(index).cloned()
    }

    /// The scratch table is made, filled a little, deleted, and made again under the same name.
    fn scratch(&mut self, state: &State) -> Op {
        let table = format!("scratch{}", self.writer);
        let Some(row) =
            state.tables.contains(&table).then(|| state.rows.keys().filter(|key| key.table == table).count())
        else {
            return Op::CreateTable(table);
        };
        if row == SCRATCH_ROWS_MAX {
            return Op::DeleteTable(table);
        }
        let key = Key { table, partition: "s".into(), row: row.to_string() };
        Op::Change(Change { step: Step::Insert, key, properties: self.properties() })
    }

    fn batch(&mut self, state: &State) -> Op {
        let partition = self.partition();
        let length = if self.rng.random_bool(0.05) { 100 } else { self.rng.random_range(2..12) };
        let mut used = BTreeSet::new();
        let mut changes = Vec::new();
        for part in 0..length {
            if part > 0 {
                self.serial += 1;
            }
            let change = self.one(state, &partition, &used);
            used.insert(change.key.clone());
            changes.push(change);
        }
        Op::Batch(changes)
    }

    /// A change of one entity of the partition that no other part of the same batch touches.
    fn one(&mut self, state: &State, partition: &str, used: &BTreeSet<Key>) -> Change {
        let mine: Vec<&Key> = state
            .rows
            .keys()
            .filter(|key| key.table == TABLE && key.partition == partition && !used.contains(key))
            .collect();
        let full = state.rows.len() >= self.shape.rows_max;
        let fresh = mine.is_empty() || (!full && self.rng.random_bool(0.45));
        if fresh {
            let key = self.fresh_key(state, partition, used);
            let step =
                [Step::Insert, Step::Insert, Step::Upsert, Step::UpsertMerge][self.rng.random_range(0..4)];
            return Change { step, key, properties: self.properties() };
        }
        let key = mine[self.rng.random_range(0..mine.len())].clone();
        let steps = [Step::Replace, Step::Merge, Step::Upsert, Step::UpsertMerge, Step::Delete, Step::Delete];
        let step = if full { Step::Delete } else { steps[self.rng.random_range(0..steps.len())] };
        let properties = match step {
            Step::Delete => {
                if self.deleted.len() >= DELETED_MAX {
                    self.deleted.drain(..DELETED_MAX / 2);
                }
                self.deleted.push(key.clone());
                Map::new()
            }
            Step::Merge | Step::UpsertMerge => {
                Map::from_iter([(format!("m{}", self.rng.random_range(0..4)), self.serial.into())])
            }
            _ => self.properties(),
        };
        Change { step, key, properties }
    }

    /// A new key, or that of an entity deleted before.
    fn fresh_key(&mut self, state: &State, partition: &str, used: &BTreeSet<Key>) -> Key {
        if self.rng.random_bool(0.4) {
            let free = |key: &Key| {
                key.partition == partition && !state.rows.contains_key(key) && !used.contains(key)
            };
            if let Some(key) = self.deleted.iter().rev().find(|key| free(key)) {
                return key.clone();
            }
        }
        let row = format!("w{}-{:06}", self.writer, self.serial);
        Key { table: TABLE.into(), partition: partition.into(), row }
    }

    fn partition(&mut self) -> String {
        self.shape.partitions[self.rng.random_range(0..self.shape.partitions.len())].clone()
    }

    fn properties(&mut self) -> Row {
        let length = match self.rng.random_range(0..20) {
            0 => self.rng.random_range(8_000..30_000),
            1..6 => self.rng.random_range(200..2_000),
            _ => self.rng.random_range(0..100),
        };
        // Text that compresses badly, so that files are as large as the data.
        let filler: String = (0..length).map(|_| self.rng.random_range(b'a'..=b'z') as char).collect();
        Map::from_iter([("n".to_owned(), self.serial.into()), ("s".to_owned(), filler.into())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation drawn must be one that the service accepts in that state.
    #[test]
    fn operations_fit_their_state() {
        for seed in 0..20 {
            let mut generator = Generator::new(3, seed, Shape::default());
            let mut state = State::default();
            for _ in 0..500 {
                let op = generator.next(&state);
                if let Op::Batch(changes) = &op {
                    let keys: BTreeSet<&Key> = changes.iter().map(|change| &change.key).collect();
                    assert_eq!(keys.len(), changes.len(), "a key twice in one batch");
                    assert!(keys.iter().all(|key| key.partition == changes[0].key.partition));
                }
                let changes: &[Change] = match &op {
                    Op::Change(change) => std::slice::from_ref(change),
                    Op::Batch(changes) => changes,
                    _ => &[],
                };
                for Change { step, key, .. } in changes {
                    let present = state.rows.contains_key(key);
                    assert!(key.table == TABLE || state.tables.contains(&key.table));
                    match step {
                        Step::Insert => assert!(!present),
                        Step::Replace | Step::Merge | Step::Delete => assert!(present),
                        Step::Upsert | Step::UpsertMerge => {}
                    }
                }
                state.apply(&op);
            }
            assert!(state.rows.len() > 50, "the load keeps some rows: {}", state.rows.len());
        }
    }
}

//! What is certainly there, for clients that read while others write.
//!
//! A listing takes a while, and writers do not wait for it. It must show every entity that was there before it began,
//! if no writer began to delete the entity before the listing ended. So a writer removes an entity from the ledger
//! before it asks for the deletion, and enters an entity after its insertion was acknowledged. Each entry has a
//! number. It tells an entity that was deleted and inserted again in between from one that stayed.
//!
//! It also keeps the number of the operation that wrote an entity whole: whatever reads the entity later must find that
//! operation's number or a higher one. The tally is at least as high as the increments that were acknowledged.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::op::{Change, Key, Op};
use crate::client::Step;

/// The property with the number of the operation that wrote an entity whole.
const SERIAL: &str = "n";

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    number: u64,
    certain: BTreeMap<Key, Certain>,
    tally: u64,
}

#[derive(Clone, Copy, Debug)]
struct Certain {
    number: u64,
    serial: u64,
}

/// What was certainly there at one moment.
pub struct Moment {
    certain: BTreeMap<Key, Certain>,
    /// The tally was at least this high.
    pub tally: u64,
}

/// An entity that has been there ever since a moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stayed {
    /// Which one.
    pub key: Key,
    /// The number of the operation that had written it whole by that moment.
    pub serial: u64,
}

impl Ledger {
    /// An operation is about to be sent.
    pub(crate) fn begin(&self, op: &Op) {
        let mut entries = self.entries();
        if let Op::DeleteTable(name) = op {
            entries.certain.retain(|key, _| key.table != *name);
        }
        for change in changes(op) {
            if change.step == Step::Delete {
                entries.certain.remove(&change.key);
            }
        }
    }

    /// An operation was acknowledged.
    pub(crate) fn done(&self, op: &Op) {
        let mut entries = self.entries();
        entries.tally += u64::from(matches!(op, Op::Tally));
        for change in changes(op).iter().filter(|change| change.step != Step::Delete) {
            let number = entries.number + 1;
            let entry = entries.certain.entry(change.key.clone());
            let certain = entry.or_insert(Certain { number, serial: 0 });
            if let Some(serial) = change.properties.get(SERIAL).and_then(Value::as_u64) {
                certain.serial = serial;
            }
            entries.number = number;
        }
    }

    /// What is there now.
    pub fn moment(&self) -> Moment {
        let entries = self.entries();
        Moment { certain: entries.certain.clone(), tally: entries.tally }
    }

    /// What was there at that moment and has been there ever since.
    pub fn stayed(&self, since: &Moment) -> Vec<Stayed> {
        let entries = self.entries();
        let is_same = |key: &Key, was: &Certain| {
            entries.certain.get(key).is_some_and(|certain| certain.number == was.number)
        };
        let stayed = since.certain.iter().filter(|(key, was)| is_same(key, was));
        stayed.map(|(key, was)| Stayed { key: key.clone(), serial: was.serial }).collect()
    }

    /// What was there at that moment, has been there ever since, and is not among what was found.
    pub fn missing(&self, since: &Moment, found: impl Fn(&Key) -> bool) -> Vec<Key> {
        let stayed = self.stayed(since).into_iter().map(|stayed| stayed.key);
        stayed.filter(|key| !found(key)).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changes(op: &Op) -> &[Change] {
    match op {
        Op::Change(change) => std::slice::from_ref(change),
        Op::Batch(changes) => changes.as_slice(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::Row;
    use super::*;

    #[test]
    fn only_what_stayed_is_missed() {
        let key = |row: &str| Key { table: "t".into(), partition: "p".into(), row: row.into() };
        let op = |step, row| Op::Change(Change { step, key: key(row), properties: Default::default() });
        let ledger = Ledger::default();
        for row in ["stays", "goes", "comes back"] {
            ledger.done(&op(Step::Insert, row));
        }
        let moment = ledger.moment();
        ledger.done(&op(Step::Insert, "late"));
        ledger.done(&op(Step::Replace, "stays"));
        for row in ["goes", "comes back"] {
            ledger.begin(&op(Step::Delete, row));
        }
        ledger.done(&op(Step::Insert, "comes back"));
        assert_eq!(ledger.missing(&moment, |_| false), [key("stays")]);
        assert!(ledger.missing(&moment, |found| *found == key("stays")).is_empty());
    }

    #[test]
    fn a_table_that_is_deleted_takes_its_entities_along() {
        let key = |table: &str| Key { table: table.into(), partition: "p".into(), row: "r".into() };
        let op = |table| Op::Change(Change { step: Step::Insert, key: key(table), properties: row(1) });
        let ledger = Ledger::default();
        ["kept", "dropped"].into_iter().for_each(|table| ledger.done(&op(table)));
        let moment = ledger.moment();
        ledger.begin(&Op::DeleteTable("dropped".into()));
        assert_eq!(ledger.missing(&moment, |_| false), [key("kept")]);
    }

    #[test]
    fn the_number_is_that_of_the_last_whole_write_before_the_moment() {
        let key = Key { table: "t".into(), partition: "p".into(), row: "r".into() };
        let op = |step, properties| Op::Change(Change { step, key: key.clone(), properties });
        let ledger = Ledger::default();
        ledger.done(&op(Step::Insert, row(3)));
        ledger.done(&op(Step::Replace, row(5)));
        ledger.done(&op(Step::Merge, Row::new()));
        ledger.done(&Op::Tally);
        let moment = ledger.moment();
        ledger.done(&op(Step::Replace, row(9)));
        ledger.done(&Op::Tally);
        assert_eq!(ledger.stayed(&moment), [Stayed { key: key.clone(), serial: 5 }]);
        assert_eq!(moment.tally, 1);
    }

    fn row(serial: u64) -> Row {
        crate::client::row([(SERIAL, serial.into())])
    }
}

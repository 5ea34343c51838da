//! What is certainly there, for clients that read while others write.
//!
//! A listing takes a while, and writers do not wait for it. It must show every entity that was there before it began,
//! if no writer began to delete the entity before the listing ended. So a writer removes an entity from the ledger
//! before it asks for the deletion, and enters an entity after its insertion was acknowledged. Each entry has a
//! number. It tells an entity that was deleted and inserted again in between from one that stayed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::op::{Key, Op};
use crate::client::Step;

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    number: u64,
    certain: BTreeMap<Key, u64>,
}

/// What was certainly there at one moment.
pub struct Moment(BTreeMap<Key, u64>);

impl Ledger {
    /// An operation is about to be sent.
    pub(crate) fn begin(&self, op: &Op) {
        let mut entries = self.entries();
        for (key, step) in changes(op) {
            if step == Step::Delete {
                entries.certain.remove(key);
            }
        }
    }

    /// An operation was acknowledged.
    pub(crate) fn done(&self, op: &Op) {
        let mut entries = self.entries();
        for (key, step) in changes(op) {
            if step != Step::Delete && !entries.certain.contains_key(key) {
                entries.number += 1;
                let number = entries.number;
                entries.certain.insert(key.clone(), number);
            }
        }
    }

    /// What is there now.
    pub fn moment(&self) -> Moment {
        Moment(self.entries().certain.clone())
    }

    /// What was there at that moment, has been there ever since, and is not among what was found.
    pub fn missing(&self, since: &Moment, found: impl Fn(&Key) -> bool) -> Vec<Key> {
        let entries = self.entries();
        let stayed = since.0.iter().filter(|(key, number)| entries.certain.get(key) == Some(number));
        stayed.map(|(key, _)| key).filter(|key| !found(key)).cloned().collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changes(op: &Op) -> impl Iterator<Item = (&Key, Step)> {
    let changes = match op {
        Op::Change(change) => std::slice::from_ref(change),
        Op::Batch(changes) => changes.as_slice(),
        _ => &[],
    };
    changes.iter().map(|change| (&change.key, change.step))
}

#[cfg(test)]
mod tests {
    use super::super::op::Change;
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
}

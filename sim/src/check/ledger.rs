//! A ledger: batches that insert rows of their own and often delete those of an earlier batch.
//!
//! No row is ever written twice, so each page of a whole partition can be judged. A batch is there whole or not at
//! all. An acknowledged batch is there until another one replaces it; then exactly one of the two is there at any
//! moment. The replacement can be replaced too. A batch that was refused is not there.

use std::collections::BTreeMap;

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It may be made at any moment, or never.
    Open,
    /// It was acknowledged.
    Written,
    /// It was refused.
    NotWritten,
}

/// A batch: rows that it inserts into one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The partition, by its number.
    pub partition: usize,
    /// How many rows it inserts.
    pub rows: usize,
    /// Its outcome.
    pub fate: Fate,
    /// The batch that was asked to delete its rows.
    pub replaced_by: Option<usize>,
}

/// A row as a page shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Where it was found.
    pub partition: usize,
    /// The batch that inserted it.
    pub batch: usize,
    /// Which of the rows of its batch it is.
    pub number: usize,
}

/// What is wrong with the rows of a whole partition, or of the whole table, in words. `before` is what was known of the
/// batches when the first page was asked for, `now` what is known after the last page.
pub fn check(before: &[Batch], now: &[Batch], partition: Option<usize>, found: &[Row]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    for row in found {
        *rows.entry(row.batch).or_default() += 1;
        let written = now
            .get(row.batch)
            .is_some_and(|batch| batch.partition == row.partition && row.number < batch.rows);
        if !written {
            findings.push(format!("{row:?} of the ledger was never written"));
        }
    }
    let count = |number: usize| rows.get(&number).copied().unwrap_or(0);
    let is_seen = |batch: &Batch| partition.is_none_or(|partition| batch.partition == partition);
    for (number, batch) in now.iter().enumerate().filter(|(_, batch)| is_seen(batch)) {
        let some = count(number);
        if some > 0 && some != batch.rows {
            findings.push(format!("batch {number} of the ledger shows {some} of its {} rows", batch.rows));
        }
        if some > 0 && batch.fate == Fate::NotWritten {
            findings.push(format!("batch {number} of the ledger was refused and is there"));
        }
        // A batch that was not acknowledged when the page was asked for may have come after it.
        if before.get(number).is_some_and(|known| known.fate == Fate::Written) {
            let there: Vec<usize> = replacements(now, number).filter(|number| count(*number) > 0).collect();
            findings.extend(not_one(number, batch, &there));
        }
    }
    findings
}

/// A batch, the one that replaces it, the one that replaces that, and so on. Once the first is written, one of them is
/// there at any moment.
fn replacements(batches: &[Batch], first: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |number| batches[*number].replaced_by)
}

/// What is wrong if not exactly one of an acknowledged batch and its replacements is there.
fn not_one(number: usize, batch: &Batch, there: &[usize]) -> Option<String> {
    match there {
        [_] => None,
        [] if batch.replaced_by.is_none() => {
            Some(format!("batch {number} of the ledger was acknowledged and is not there"))
        }
        [] => Some(format!(
            "batch {number} of the ledger was acknowledged, and neither it nor what replaces it is there"
        )),
        _ => Some(format!("batches {there:?} of the ledger replace each other, and all are there")),
    }
}

//! How many tables and buckets there are, counted by scans that end at a limit.
//!
//! A status must be quick, and must come also if a range does not answer. So both scans end after [`COUNTED_ROWS_MAX`]
//! rows and after [`COUNTED_WITHIN`]; what was counted until the limit is told as "at least".

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rangehold_engine::Router;
use rangehold_map::key::{KIND_BUCKET, KIND_CATALOGUE};
use rangehold_map::{BucketRow, Key, KeyRange};
use tokio::time::timeout;
use tracing::debug;

use crate::limits::{COUNTED_ROWS_MAX, COUNTED_WITHIN};

/// A number of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) number: u64,
    /// Whether there may be more, because the limit ended the count.
    pub(super) at_least: bool,
}

/// The rows that a scan has met, up to a limit.
struct Met<T> {
    rows: usize,
    /// Whether there are more rows than the limit.
    is_cut: bool,
    counted: T,
}

/// The tables of each account that has any.
#[derive(Debug, Default)]
pub(super) struct Tables {
    by_account: BTreeMap<String, u64>,
    is_cut: bool,
}

impl Tables {
    /// The tables of all accounts, also of those that are not configured any more.
    pub(super) fn all(&self) -> Count {
        Count { number: self.by_account.values().sum(), at_least: self.is_cut }
    }

    /// The tables of one account. Catalogues lie in the order of the accounts' names, so those before the last one that was
    /// met were counted to their ends.
    pub(super) fn of(&self, account: &str) -> Count {
        let last = self.by_account.last_key_value();
        let is_whole = !self.is_cut || last.is_some_and(|(last, _)| account < last.as_str());
        Count { number: self.by_account.get(account).copied().unwrap_or(0), at_least: !is_whole }
    }
}

/// Counts the tables; `None` if the catalogues cannot be read in time.
pub(super) async fn tables(router: &Router) -> Option<Tables> {
    let met = scanned(router, KIND_CATALOGUE, "tables", note_table).await?;
    Some(Tables { by_account: met.counted, is_cut: met.is_cut })
}

/// Counts the buckets, without those that were deleted and can be restored; `None` if they cannot be read in time.
pub(super) async fn buckets(router: &Router) -> Option<Count> {
    let met = scanned(router, KIND_BUCKET, "buckets", note_bucket).await?;
    Some(Count { number: met.counted, at_least: met.is_cut })
}

fn note_table(tables: &mut BTreeMap<String, u64>, key: &[u8]) {
    if let Ok(Key::Table { account, .. }) = Key::decode(key) {
        *tables.entry(account).or_default() += 1;
    }
}

fn note_bucket(buckets: &mut u64, key: &[u8]) {
    if let Ok(Key::Bucket { row: BucketRow::Bucket, .. }) = Key::decode(key) {
        *buckets += 1;
    }
}

async fn scanned<T: Default + Send>(
    router: &Router,
    kind: u8,
    what: &str,
    note: fn(&mut T, &[u8]),
) -> Option<Met<T>> {
    let begin = || Met { rows: 0, is_cut: false, counted: T::default() };
    let visit = |met: &mut Met<T>, key: &[u8], _: &bytes::Bytes| met.meet(key, COUNTED_ROWS_MAX, note);
    match timeout(COUNTED_WITHIN, router.scan(&KeyRange::prefix(&[kind]), begin, visit)).await {
        Ok(Ok(met)) => return Some(met),
        Ok(Err(error)) => debug!(%error, what, "a status has no count"),
        Err(_) => debug!(what, "a status has no count: the rows could not be read in time"),
    }
    None
}

impl<T> Met<T> {
    /// Notes one more row, unless it is one more than `most`.
    fn meet(&mut self, key: &[u8], most: usize, note: fn(&mut T, &[u8])) -> ControlFlow<()> {
        if self.rows == most {
            self.is_cut = true;
            return ControlFlow::Break(());
        }
        self.rows += 1;
        note(&mut self.counted, key);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use rangehold_map::TableId;

    use super::*;

    /// What is counted of four tables, and of one that was dropped, with this limit.
    fn counted(most: usize) -> Tables {
        let table = |account: &str, name: &str| Key::Table {
            account: account.to_owned(),
            lower_name: name.to_owned(),
        };
        let dropped = Key::DroppedTable { account: "one".to_owned(), table: TableId(7) };
        let all = [table("one", "a"), table("one", "b"), dropped, table("three", "a"), table("two", "a")];
        let mut keys: Vec<Vec<u8>> = all.iter().map(Key::encode).collect();
        keys.sort();
        let mut met = Met { rows: 0, is_cut: false, counted: BTreeMap::new() };
        for key in keys {
            if met.meet(&key, most, note_table).is_break() {
                break;
            }
        }
        Tables { by_account: met.counted, is_cut: met.is_cut }
    }

    #[test]
    fn tables_are_counted_for_each_account() {
        let tables = counted(5);
        let exactly = |number| Count { number, at_least: false };
        assert_eq!(tables.all(), exactly(4));
        assert_eq!(["one", "three", "two", "zero"].map(|name| tables.of(name)), [2, 1, 1, 0].map(exactly));
    }

    #[test]
    fn a_count_that_reached_the_limit_says_at_least() {
        let tables = counted(4);
        let at_least = |number| Count { number, at_least: true };
        assert_eq!(tables.all(), at_least(3));
        assert_eq!(
            tables.of("one"),
            Count { number: 2, at_least: false },
            "its catalogue was read to the end"
        );
        assert_eq!(["three", "two"].map(|name| tables.of(name)), [1, 0].map(at_least));
    }

    #[test]
    fn only_buckets_that_are_there_count() {
        let rows = [BucketRow::Bucket, BucketRow::Deleted(rangehold_map::BucketId(3)), BucketRow::LastId];
        let mut buckets = 0;
        for row in rows {
            note_bucket(&mut buckets, &Key::Bucket { name: "photos".to_owned(), row }.encode());
        }
        assert_eq!(buckets, 1);
    }
}

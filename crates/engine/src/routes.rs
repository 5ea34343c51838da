//! From keys to ranges: the map, and the ranges that this server holds of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use rangehold_map::key::{KIND_CATALOGUE, after_prefix, dropped_prefix};
use rangehold_map::{Key, KeyRange, PartitionPrefix, RangeMap, TableId, Timestamp};
use tokio::time::Instant;

use crate::error::{Damaged, ReadError, WriteError};
use crate::range::{Admission, Changes, Range, ScanEnd};

/// The map, and its ranges in the order of their keys.
pub(crate) struct Routes {
    pub(crate) map: RangeMap,
    pub(crate) ranges: Vec<Arc<Range>>,
}

impl Routes {
    /// The range that holds `key`.
    fn range_of(&self, key: &[u8]) -> Option<&Range> {
        let after = self.ranges.partition_point(|range| range.keys().low() <= key);
        let range = self.ranges[..after].last()?;
        range.keys().contains(key).then_some(&**range)
    }

    /// The ranges that hold some of `keys`, with the part that each holds.
    fn parts<'a>(&'a self, keys: &'a KeyRange) -> impl Iterator<Item = (&'a Arc<Range>, KeyRange)> {
        self.ranges
            .iter()
            .map(|range| (range, range.keys().intersect(keys)))
            .filter(|(_, part)| !part.is_empty())
    }

    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.range_of(key).ok_or(ReadError::NotOwned)?.get(key).await
    }

    pub(crate) async fn scan(
        &self,
        keys: &KeyRange,
        mut visitor: impl FnMut(&[u8], &Bytes) -> ControlFlow<()> + Send,
    ) -> Result<ScanEnd, ReadError> {
        if keys.is_empty() {
            return Ok(ScanEnd::Exhausted);
        }
        // Parts must follow one another without a gap: a key that belongs to nobody here is not
        // the same as a key without a row.
        let mut next: Option<Vec<u8>> = Some(keys.low().to_vec());
        for (range, part) in self.parts(keys) {
            if next.as_deref() != Some(part.low()) {
                return Err(ReadError::NotOwned);
            }
            if range.scan(&part, &mut visitor).await? == ScanEnd::Stopped {
                return Ok(ScanEnd::Stopped);
            }
            next = part.high().map(<[u8]>::to_vec);
        }
        if next.as_deref() == keys.high() { Ok(ScanEnd::Exhausted) } else { Err(ReadError::NotOwned) }
    }

    pub(crate) async fn write<E>(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
        deadline: Instant,
        admission: Admission,
        judge: impl FnOnce(&[Option<Bytes>], Timestamp) -> Result<Changes, E>,
    ) -> Result<Timestamp, WriteError<E>> {
        let range = self.range_of(partition.as_bytes()).ok_or(WriteError::NotOwned)?;
        range.write(partition, keys, deadline, admission, judge).await
    }

    pub(crate) async fn drop_table(&self, account: &str, table: TableId) -> Result<(), ReadError> {
        let keys = KeyRange::prefix(&rangehold_map::key::table_prefix(account, table));
        for (range, _) in self.parts(&keys) {
            range.drop_table(account, table).await?;
        }
        Ok(())
    }

    /// Tells the ranges which tables the catalogue says are dropped: a crash, or a caller that gave
    /// up, may have come between its row and the ranges' notes. To be called before anything is
    /// served, and now and then.
    pub(crate) async fn inherit_dropped(&self, now: Timestamp) -> Result<(), ReadError> {
        for (account, table) in self.dropped_in_catalogue().await? {
            let keys = KeyRange::prefix(&rangehold_map::key::table_prefix(&account, table));
            for (range, _) in self.parts(&keys) {
                range.inherit_dropped(&account, table, now);
            }
        }
        Ok(())
    }

    /// The dropped tables of all accounts. Steps from account to account, so that it costs the
    /// same with ten tables and with ten thousand.
    async fn dropped_in_catalogue(&self) -> Result<Vec<(String, TableId)>, ReadError> {
        let mut found = Vec::new();
        let end = after_prefix(&[KIND_CATALOGUE]);
        let mut rest = KeyRange::new(vec![KIND_CATALOGUE], end.clone());
        while let Some(key) = self.first_key(&rest).await? {
            let account = account_of(&key)?;
            let mut tables = Vec::new();
            self.scan(&KeyRange::prefix(&dropped_prefix(&account)), |key, _| {
                tables.push(key.to_vec());
                ControlFlow::Continue(())
            })
            .await?;
            for key in tables {
                match Key::decode(&key) {
                    Ok(Key::DroppedTable { account, table }) => found.push((account, table)),
                    _ => return Err(bad_catalogue_key(&key)),
                }
            }
            let Some(next) = after_prefix(PartitionPrefix::catalogue(&account).as_bytes()) else {
                break;
            };
            rest = KeyRange::new(next, end.clone());
        }
        Ok(found)
    }

    async fn first_key(&self, keys: &KeyRange) -> Result<Option<Vec<u8>>, ReadError> {
        let mut first = None;
        self.scan(keys, |key, _| {
            first = Some(key.to_vec());
            ControlFlow::Break(())
        })
        .await?;
        Ok(first)
    }
}

fn account_of(key: &[u8]) -> Result<String, ReadError> {
    match Key::decode(key) {
        Ok(
            Key::ServiceProperties { account }
            | Key::Table { account, .. }
            | Key::DroppedTable { account, .. },
        ) => Ok(account),
        _ => Err(bad_catalogue_key(key)),
    }
}

fn bad_catalogue_key(key: &[u8]) -> ReadError {
    ReadError::Damaged(Damaged(format!("a row of the catalogue has the unknown key {key:02x?}")))
}

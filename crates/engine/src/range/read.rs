//! Reading: rows that are durable, as of one moment.
//!
//! A client sees durable rows only (`DurabilityLevel::Remote`), because a crash must not take back what
//! it saw. The moment is fixed when a read begins: the database takes its set of tables
//! first, and then the sequence number up to which it shows rows. So a read sees all of a batch or none
//! of it, whatever is written while a scan goes on. (A batch goes into one memtable as a whole. If a
//! memtable is begun between the two steps, the set lacks all of it.)
//!
//! Rows that are in the cache are taken from there: also as of one moment, and also durable rows only. A scan whose first
//! rows are in the cache, and whose others are not, begins with a snapshot of the database, which has a sequence number. It
//! takes from the cache the rows up to the first key that a pending write changes, and only if the cache shows no write
//! after that number. A write of one of these keys that the snapshot could show was announced before, so it is
//! either in these rows, or pending. So the rows are as the snapshot has them, and the rest is read from the snapshot if
//! the visitor gets so far.
//!
//! When everything has been read, the range checks whether it may still answer. On an error the
//! caller throws away what it saw.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::future::BoxFuture;
use rangehold_map::KeyRange;
use slatedb::config::DurabilityLevel;

use super::cache::just_after;
use super::walk::{ScanEnd, Visitor, Walk};
use super::{Opening, Range, stored};
use crate::database::DatabaseError;
use crate::error::ReadError;

impl Range {
    /// The value of `key`, if there is a row.
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        let opening = self.open_now()?;
        let value = match opening.rows.get(key) {
            Some(value) => value,
            None => {
                // In a box, as below: the database's futures are large, and each caller's would be as large. To move
                // them was a sixth of the work of a request that finds its row in the cache.
                let value = opening.read_row(key).await;
                value.map_err(|error| self.unless_handed_over(error))?
            }
        };
        self.still_serves(&opening)?;
        if self.dropped.covers(key) {
            return Err(ReadError::TableDropped);
        }
        self.meter.read(key, value.as_ref().map_or(0, Bytes::len));
        Ok(value)
    }

    /// Visits the rows of `keys` in order, as the visitor wants. All of `keys` must lie in this range.
    /// Rows of dropped tables are not shown. If all of `keys` belong to one dropped table, that is an error.
    pub(crate) async fn scan(
        &self,
        keys: &KeyRange,
        visitor: &mut Visitor<'_>,
    ) -> Result<ScanEnd, ReadError> {
        self.counts.scans.fetch_add(1, Ordering::Relaxed);
        let opening = self.open_now()?;
        let mut walk = Walk::new(keys, visitor, &self.dropped);
        let end = match opening.rows.view(keys) {
            Some(mut view) => walk.in_cache(&mut view).await.unwrap_or(ScanEnd::Exhausted),
            None => {
                let end = walk.in_both(&opening).await;
                end.map_err(|error| self.unless_handed_over(error))?
            }
        };
        let scanned = walk.scanned();
        self.still_serves(&opening)?;
        if self.dropped.covers_all(keys) {
            return Err(ReadError::TableDropped);
        }
        self.meter.scanned(keys, &scanned, end == ScanEnd::Stopped);
        Ok(end)
    }

    /// Why a read failed. A read that was under way when the range was handed over finds a closed database
    /// here; its rows are at the new owner.
    fn unless_handed_over(&self, error: ReadError) -> ReadError {
        match self.open_now() {
            Err(ReadError::NotOwned) => ReadError::NotOwned,
            _ => error,
        }
    }

    /// Whether it has no row at all, not even a meta row.
    pub(crate) async fn is_empty(&self) -> Result<bool, DatabaseError> {
        let everything = KeyRange::new(Vec::new(), None);
        let found = self.first_keys(&everything, 1, DurabilityLevel::Remote).await;
        found.map(|keys| keys.is_empty()).map_err(DatabaseError::reading(&self.place.path))
    }

    /// The first `limit` keys that have rows in `keys` at the given level, also those of dropped tables. A
    /// client must not see these.
    pub(super) async fn first_keys(
        &self,
        keys: &KeyRange,
        limit: usize,
        level: DurabilityLevel,
    ) -> Result<Vec<Bytes>, ReadError> {
        let opening = self.open_now()?;
        let mut rows = stored::scan(&opening.db, keys, level, true).await?;
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(row) = stored::next(&mut rows).await? else {
                break;
            };
            found.push(row.key);
        }
        self.still_serves(&opening)?;
        Ok(found)
    }
}

impl Opening {
    /// One durable row of the database, which is then in the cache.
    fn read_row<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, ReadError>> {
        Box::pin(async move {
            let key_alone = KeyRange::new(key.to_vec(), Some(just_after(key).to_vec()));
            let filling = self.rows.fill(&key_alone);
            let value = stored::get(&self.db, key, DurabilityLevel::Remote).await?;
            filling.end_of_get(key, value.as_ref(), || self.durable_sequence());
            Ok(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rangehold_map::PartitionPrefix;
    use slatedb::config::FlushType;
    use tokio::task::yield_now;
    use tokio::time::Instant;

    use super::super::request::WriteRequest;
    use super::super::walk::Visit;
    use super::*;
    use crate::database::flush;
    use crate::error::Reason;

    #[tokio::test]
    async fn a_read_whose_database_is_closed_behind_it_is_sent_on() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        range.let_go();
        range.end().await;
        let failed = stored::get(&opening.db, b"key", DurabilityLevel::Remote).await.unwrap_err();
        assert!(matches!(failed, ReadError::Unavailable(_)), "{failed:?}");
        assert!(matches!(range.unless_handed_over(failed), ReadError::NotOwned));
    }

    fn numbered(number: u32) -> Vec<u8> {
        [PartitionPrefix::catalogue("account").as_bytes(), format!("{number:03}").as_bytes()].concat()
    }

    /// Rows with these numbers, of which the cache is not told.
    async fn put_behind_the_cache(opening: &Opening, numbers: std::ops::Range<u32>, value: &[u8]) {
        for number in numbers {
            opening.db.put(numbered(number), value).await.unwrap();
        }
        flush(&opening.db, FlushType::Wal).await.unwrap();
    }

    async fn values(range: &Range, from: u32, to: u32, most: usize) -> Vec<Bytes> {
        let mut found = Vec::new();
        let mut take = |_: &[u8], value: &Bytes| {
            found.push(value.clone());
            if found.len() < most { Visit::Next } else { Visit::Stop }
        };
        range.scan(&KeyRange::new(numbered(from), Some(numbered(to))), &mut take).await.unwrap();
        found
    }

    #[tokio::test]
    async fn a_scan_goes_on_in_the_database_where_the_cache_ends() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        put_behind_the_cache(&opening, 0..20, b"old").await;
        assert_eq!(values(&range, 0, 10, usize::MAX).await, ["old"; 10]);
        put_behind_the_cache(&opening, 0..20, b"new").await;
        assert_eq!(
            values(&range, 0, 20, 10).await,
            ["old"; 10],
            "a scan that stops there asks the cache alone"
        );
        let both = [["old"; 10], ["new"; 10]].concat();
        assert_eq!(values(&range, 0, 20, usize::MAX).await, both);
        put_behind_the_cache(&opening, 0..20, b"newer").await;
        assert_eq!(values(&range, 0, 20, usize::MAX).await, both, "what was read is known then");
    }

    #[tokio::test]
    async fn a_batch_makes_known_where_it_goes_on() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        put_behind_the_cache(&opening, 0..3, b"value").await;
        let partition = PartitionPrefix::catalogue("account");
        let keys: Vec<_> = (0..20).rev().map(numbered).collect();
        let rows = opening.newest_rows(&partition, &keys).await.unwrap();
        assert_eq!(rows.iter().flatten().count(), 3);
        assert!(rows[17..].iter().all(Option::is_some), "the last three keys have rows");
        assert_eq!(opening.rows.get(&numbered(500)), Some(None));
        put_behind_the_cache(&opening, 100..200, b"value").await;
        let unknown: Vec<_> = (0..20).map(|number| [numbered(number), vec![0]].concat()).collect();
        opening.rows.forget(&KeyRange::prefix(partition.as_bytes()));
        let spread: Vec<_> = unknown.iter().cloned().chain([numbered(199), numbered(300)]).collect();
        let rows = opening.newest_rows(&partition, &spread).await.unwrap();
        assert_eq!(rows[20..], [Some(Bytes::from_static(b"value")), None]);
    }

    #[tokio::test]
    async fn what_is_in_the_cache_changes_when_a_write_is_durable_and_not_before() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        let partition = PartitionPrefix::catalogue("account");
        let key = [partition.as_bytes(), b"row"].concat();
        let keys = KeyRange::prefix(partition.as_bytes());
        let shown = async || {
            let mut rows = 0;
            let mut count = |_: &[u8], _: &Bytes| {
                rows += 1;
                Visit::Next
            };
            range.scan(&keys, &mut count).await.unwrap();
            (range.get(&key).await.unwrap(), rows)
        };
        assert_eq!(shown().await, (None, 0));
        assert!(opening.rows.view(&keys).is_some(), "an empty interval is known too");
        let asked = [key.clone()];
        let request = WriteRequest::new(&partition, &asked, Instant::now() + Duration::from_secs(60));
        let mut judge = |_: &[Option<Bytes>], _| Ok(vec![(key.clone(), Some(b"value".to_vec()))]);
        let reads = async {
            while !opening.rows.is_changing(&key) {
                yield_now().await;
            }
            assert_eq!(shown().await, (None, 0));
            assert!(opening.rows.view(&keys).is_some());
            // The range has no supervisor, which would do this.
            while shown().await == (None, 0) {
                flush(&opening.db, FlushType::Wal).await.unwrap();
                opening.rows.durable(opening.durable_sequence());
                yield_now().await;
            }
            assert_eq!(shown().await, (Some(Bytes::from_static(b"value")), 1));
            assert!(opening.rows.view(&keys).is_some());
            opening.flusher.end(&Reason::Found("the test ends"));
        };
        let (_unknown, ()) = tokio::join!(range.write(&request, &mut judge), reads);
    }
}

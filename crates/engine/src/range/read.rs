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

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use rangehold_map::key::{KIND_RANGE_META, after_prefix};
use rangehold_map::{BucketId, KeyRange, PartitionPrefix, Timestamp};
use slatedb::config::{DurabilityLevel, ReadOptions, ScanOptions};
use slatedb::{Db, DbIterator, DbReadOps, DbSnapshot};
use tokio::task::yield_now;
use tokio::time::Instant;

use super::cache::{Filling, View, just_after};
use super::load::Scanned;
use super::{Opening, Range, meta};
use crate::database::{DatabaseError, DroppedTable, DroppedTables, NEWEST_FILE_KEY};
use crate::error::{Damaged, ReadError, read_error};
use crate::limits::{
    SCAN_INSTEAD_OF_GETS, SCAN_READ_AHEAD_BYTES, SCAN_ROWS_BY_CLOCK, SCAN_ROWS_FOR_A_GET, SCAN_TURN,
    STEPS_BEFORE_SEEK,
};
use crate::record_name::RecordName;

/// What the visitor of a scan wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visit {
    /// The next row.
    Next,
    /// Nothing more.
    Stop,
    /// The first row at or after this key. A key that is not above the last row means the next row. The key may lie
    /// past the range: then the scan goes on in the range that holds it.
    Seek(Vec<u8>),
}

impl From<ControlFlow<()>> for Visit {
    fn from(flow: ControlFlow<()>) -> Self {
        if flow.is_break() { Self::Stop } else { Self::Next }
    }
}

/// How a scan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanEnd {
    /// The visitor wanted all rows, and got them.
    Exhausted,
    /// The visitor stopped it; there may be more rows.
    Stopped,
    /// The visitor wanted to go on at this key, which lies past the keys of the scan.
    SoughtPast(Vec<u8>),
}

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
                let value = Box::pin(opening.read_row(key)).await;
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
    pub(crate) async fn scan<V: Into<Visit>>(
        &self,
        keys: &KeyRange,
        visitor: &mut (impl FnMut(&[u8], &Bytes) -> V + Send),
    ) -> Result<ScanEnd, ReadError> {
        self.counts.scans.fetch_add(1, Ordering::Relaxed);
        let opening = self.open_now()?;
        let mut walk = Walk {
            keys,
            visitor,
            dropped: (!self.dropped.is_empty()).then_some(&self.dropped),
            scanned: Scanned::default(),
            turn: Turn::begin(),
            answer: PhantomData,
        };
        let end = match opening.rows.view(keys) {
            Some(mut view) => walk.in_cache(&mut view).await.unwrap_or(ScanEnd::Exhausted),
            None => {
                let end = Box::pin(walk.in_both(&opening)).await;
                end.map_err(|error| self.unless_handed_over(error))?
            }
        };
        let scanned = walk.scanned;
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
        let mut rows = scan(&opening.db, keys, level, true).await?;
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(row) = next(&mut rows).await? else {
                break;
            };
            found.push(row.key);
        }
        self.still_serves(&opening)?;
        Ok(found)
    }
}

/// A scan under way.
struct Walk<'a, F, V> {
    keys: &'a KeyRange,
    visitor: &'a mut F,
    /// The dropped tables, if there are any. Their rows are not shown.
    dropped: Option<&'a DroppedTables>,
    scanned: Scanned,
    turn: Turn,
    answer: PhantomData<fn() -> V>,
}

impl<F: FnMut(&[u8], &Bytes) -> V + Send, V: Into<Visit>> Walk<'_, F, V> {
    /// Shows rows that are in the cache. Returns how the scan ends, if the visitor ends it.
    async fn in_cache(&mut self, view: &mut View) -> Option<ScanEnd> {
        while let Some(rows) = view.next_rows() {
            let count = rows.len();
            let mut sought = None;
            for (key, value) in rows {
                if sought.as_ref().is_some_and(|sought| key < sought) {
                    continue;
                }
                match self.show(key, value) {
                    Ok(Some(key)) => sought = Some(Bytes::from(key)),
                    Ok(None) => {}
                    Err(end) => return Some(end),
                }
            }
            if let Some(sought) = sought {
                view.seek(sought);
            }
            self.turn.after(count).await;
        }
        None
    }

    /// Shows the first rows from the cache, as far as it knows them, and the others from a snapshot of the database. Both
    /// are as of one moment; see [the module](self).
    async fn in_both(&mut self, opening: &Opening) -> Result<ScanEnd, ReadError> {
        // The order matters: what a write touches after the fill has begun is noted, and the cache is asked after the
        // snapshot was made.
        let mut filling = opening.rows.fill(self.keys);
        let snapshot = opening.db.snapshot().map_err(read_error)?;
        let Some(mut view) = opening.rows.view_of_first(self.keys, snapshot.seq()) else {
            return self.in_database(opening, &snapshot, self.keys, filling).await;
        };
        if let Some(end) = self.in_cache(&mut view).await {
            return Ok(end);
        }
        filling.begin_at(view.reached());
        let rest = KeyRange::new(view.reached().to_vec(), self.keys.high().map(<[u8]>::to_vec));
        self.in_database(opening, &snapshot, &rest, filling).await
    }

    /// Shows rows of the database, and puts them into the cache.
    async fn in_database(
        &mut self,
        opening: &Opening,
        snapshot: &DbSnapshot,
        keys: &KeyRange,
        mut filling: Filling<'_>,
    ) -> Result<ScanEnd, ReadError> {
        let durable = || opening.durable_sequence();
        let caches_blocks = !filling.keeps_rows();
        let mut rows = scan(snapshot, keys, DurabilityLevel::Remote, caches_blocks).await?;
        let mut found = next(&mut rows).await?;
        while let Some(row) = found {
            filling.row(&row.key, &row.value, durable);
            found = match self.show(&row.key, &row.value) {
                Ok(None) => next(&mut rows).await?,
                Ok(Some(key)) => {
                    filling.pass_over(&row.key, &key, durable);
                    seek(&mut rows, &key).await?
                }
                Err(end) => {
                    filling.end(Some(&row.key), durable);
                    return Ok(end);
                }
            };
            self.turn.after(1).await;
        }
        filling.end(None, durable);
        Ok(ScanEnd::Exhausted)
    }

    /// Shows a row to the visitor. Returns the key at which the visitor wants to go on, if that is not the next, or
    /// how the scan ends.
    fn show(&mut self, key: &[u8], value: &Bytes) -> Result<Option<Vec<u8>>, ScanEnd> {
        if self.dropped.is_some_and(|dropped| dropped.covers(key)) {
            return Ok(None);
        }
        self.scanned.row(key, value);
        match (self.visitor)(key, value).into() {
            Visit::Next => Ok(None),
            Visit::Stop => {
                self.scanned.stopped_at(key);
                Err(ScanEnd::Stopped)
            }
            Visit::Seek(sought) if self.keys.high().is_some_and(|high| *sought >= *high) => {
                Err(ScanEnd::SoughtPast(sought))
            }
            Visit::Seek(sought) => Ok((*sought > *key).then_some(sought)),
        }
    }
}

/// When a scan lets other tasks use the thread.
struct Turn {
    begun: Instant,
    /// Rows that were visited since the clock was read. It is not read for each row: that costs as much as to look
    /// at a row in the cache.
    rows: usize,
}

impl Turn {
    fn begin() -> Self {
        Self { begun: Instant::now(), rows: 0 }
    }

    async fn after(&mut self, rows: usize) {
        self.rows += rows;
        if self.rows < SCAN_ROWS_BY_CLOCK {
            return;
        }
        self.rows = 0;
        if self.begun.elapsed() >= SCAN_TURN {
            yield_now().await;
            self.begun = Instant::now();
        }
    }
}

impl Opening {
    /// One durable row of the database, which is then in the cache.
    async fn read_row(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        let key_alone = KeyRange::new(key.to_vec(), Some(just_after(key).to_vec()));
        let filling = self.rows.fill(&key_alone);
        let value = get(&self.db, key, DurabilityLevel::Remote).await?;
        filling.end_of_get(key, value.as_ref(), || self.durable_sequence());
        Ok(value)
    }

    /// The newest rows, durable or not. The next batch will be applied to them. The caller holds the lock of their
    /// partition.
    pub(super) async fn newest_rows(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Bytes>>, ReadError> {
        let mut known = self.rows.newest_of(keys);
        if known.iter().filter(|row| row.is_none()).count() >= SCAN_INSTEAD_OF_GETS {
            Box::pin(self.read_together(partition, keys, &mut known)).await?;
        }
        let mut rows = Vec::with_capacity(keys.len());
        for (key, known) in keys.iter().zip(known) {
            rows.push(match known {
                Some(row) => row,
                None => self.read_newest(key).await?,
            });
        }
        Ok(rows)
    }

    /// Reads the rows that are not `known` by one scan from the first of their keys to the first row behind the last. The
    /// cache then knows all of this interval. A batch mostly inserts rows behind each other, so its scan finds little,
    /// and the next batch that goes on there asks nobody.
    ///
    /// No write of these keys is pending: the cache would know it. So their durable rows are the newest. Ends early if too
    /// many other rows lie between them; then some are still not known.
    async fn read_together(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
        known: &mut [Option<Option<Bytes>>],
    ) -> Result<(), ReadError> {
        let mut asked: Vec<usize> = (0..keys.len()).filter(|index| known[*index].is_none()).collect();
        asked.sort_unstable_by_key(|index| &keys[*index]);
        let mut steps = asked.len() * SCAN_ROWS_FOR_A_GET;
        let mut asked = asked.into_iter().peekable();
        let Some(first) = asked.peek() else { return Ok(()) };
        let interval = KeyRange::new(keys[*first].clone(), after_prefix(partition.as_bytes()));
        let mut filling = self.rows.fill(&interval);
        if !filling.is_under_way() {
            // The cache is off, and then it does not tell which writes are pending.
            return Ok(());
        }
        let durable = || self.durable_sequence();
        let mut rows = scan(&self.db, &interval, DurabilityLevel::Remote, true).await?;
        while let Some(row) = next(&mut rows).await? {
            filling.row(&row.key, &row.value, durable);
            while let Some(index) = asked.next_if(|index| keys[*index].as_slice() <= &*row.key) {
                known[index] = Some((keys[index].as_slice() == &*row.key).then(|| row.value.clone()));
            }
            steps = steps.saturating_sub(1);
            if asked.peek().is_none() || steps == 0 {
                filling.end(Some(&row.key), durable);
                return Ok(());
            }
        }
        asked.for_each(|index| known[index] = Some(None));
        filling.end(None, durable);
        Ok(())
    }

    /// The newest row of a key that the cache does not know.
    async fn read_newest(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        // In a box, so that judges that find their rows in the cache have small futures.
        let row = Box::pin(get(&self.db, key, DurabilityLevel::Memory)).await?;
        // A judge that finds no row mostly makes one, which may never be read.
        if let Some(value) = &row {
            self.rows.learn(key, value);
        }
        Ok(row)
    }
}

/// One row, at the given level.
async fn get(db: &Db, key: &[u8], level: DurabilityLevel) -> Result<Option<Bytes>, ReadError> {
    let options = ReadOptions::default().with_durability_filter(level);
    db.get_with_options(key, &options).await.map_err(read_error)
}

/// Rows in order, at the given level. With `caches_blocks` the blocks that it reads go to the cache of blocks, which
/// halves the cost of a page of ten rows. It is the task of that cache that a scan of a large table does not push out
/// the blocks that single reads need.
async fn scan(
    db: &impl DbReadOps,
    keys: &KeyRange,
    level: DurabilityLevel,
    caches_blocks: bool,
) -> Result<DbIterator, ReadError> {
    let options = ScanOptions::default()
        .with_durability_filter(level)
        .with_cache_blocks(caches_blocks)
        .with_read_ahead_bytes(SCAN_READ_AHEAD_BYTES);
    let low = Bound::Included(keys.low().to_vec());
    let high = match keys.high() {
        Some(high) => Bound::Excluded(high.to_vec()),
        None => Bound::Unbounded,
    };
    db.scan_with_options((low, high), &options).await.map_err(read_error)
}

async fn next(rows: &mut DbIterator) -> Result<Option<slatedb::KeyValue>, ReadError> {
    rows.next().await.map_err(read_error)
}

/// The first row at or after `key`, or the next row if that is above `key`. Makes a few steps first: a step is cheaper
/// than a seek, which looks into every file again.
async fn seek(rows: &mut DbIterator, key: &[u8]) -> Result<Option<slatedb::KeyValue>, ReadError> {
    for _ in 0..STEPS_BEFORE_SEEK {
        match next(rows).await? {
            Some(row) if *row.key < *key => {}
            found => return Ok(found),
        }
    }
    rows.seek(key).await.map_err(read_error)?;
    next(rows).await
}

/// What the meta rows of a database say, apart from its dropped tables.
pub(super) struct Meta {
    /// No timestamp at or above it was ever given out.
    pub(super) reserved: Timestamp,
    /// The change record that decides about the range, if the range is retired.
    pub(super) retired: Option<RecordName>,
    /// The buckets that are closed.
    pub(super) closed: BTreeSet<BucketId>,
}

/// Reads the meta rows of a database that was just opened, and adds its dropped tables to `dropped`.
pub(super) async fn load_meta(db: &Db, dropped: &DroppedTables) -> Result<Meta, ReadError> {
    let mut meta = Meta { reserved: Timestamp::default(), retired: None, closed: BTreeSet::new() };
    let mut rows = scan(db, &KeyRange::prefix(&[KIND_RANGE_META]), DurabilityLevel::Remote, true).await?;
    while let Some(row) = next(&mut rows).await? {
        if row.key.starts_with(meta::RESERVATIONS) {
            meta.reserved = meta.reserved.max(time_of(&row)?);
        } else if row.key.starts_with(meta::DROPPED_TABLES) {
            let (account, table) = meta::decode_dropped_key(&row.key).map_err(|error| {
                ReadError::Damaged(Damaged::new(format!("a range's note of a dropped table: {error}")))
            })?;
            dropped.insert(DroppedTable::new(&account, table, time_of(&row)?));
        } else if row.key.starts_with(meta::CLOSED_BUCKETS) {
            meta.closed.insert(meta::decode_closed_key(&row.key).map_err(|error| {
                ReadError::Damaged(Damaged::new(format!("a range's note of a closed bucket: {error}")))
            })?);
        } else if row.key == meta::RETIREMENT {
            meta.retired = Some(meta::decode_record(&row.value).ok_or_else(|| unknown_meta(&row))?);
        } else if row.key != NEWEST_FILE_KEY {
            return Err(unknown_meta(&row));
        }
    }
    Ok(meta)
}

/// The error for a meta row that this program does not know. It must not ignore the row, so it must not go on.
fn unknown_meta(row: &slatedb::KeyValue) -> ReadError {
    let key = row.key.as_ref();
    let bytes = row.value.len();
    ReadError::Damaged(Damaged::new(format!(
        "the meta row {key:02x?} of a range ({bytes} bytes) is unknown: it is damaged, or of a later release"
    )))
}

fn time_of(row: &slatedb::KeyValue) -> Result<Timestamp, ReadError> {
    meta::decode_time(&row.value).ok_or_else(|| {
        ReadError::Damaged(Damaged::new(format!(
            "the meta row {:02x?} of a range has a value of {} bytes, not the 8 of a time",
            row.key.as_ref(),
            row.value.len()
        )))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rangehold_map::PartitionPrefix;
    use slatedb::config::FlushType;

    use super::super::request::WriteRequest;
    use super::*;
    use crate::database::flush;
    use crate::error::Reason;

    #[tokio::test]
    async fn a_read_whose_database_is_closed_behind_it_is_sent_on() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        range.let_go();
        range.end().await;
        let failed = get(&opening.db, b"key", DurabilityLevel::Remote).await.unwrap_err();
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
        let mut judge = |_: &[Option<Bytes>], _| Ok::<_, ()>(vec![(key.clone(), Some(b"value".to_vec()))]);
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

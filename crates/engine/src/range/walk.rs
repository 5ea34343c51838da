//! A scan under way: it shows rows to a visitor, from the cache and from the database, and lets other tasks go on.
//!
//! [`super::read`] says why the rows of both are as of one moment.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use rangehold_map::KeyRange;
use slatedb::DbSnapshot;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::Opening;
use super::cache::{Filling, View};
use super::load::Scanned;
use super::snapshot_rows::SnapshotRows;
use crate::database::DroppedTables;
use crate::error::{ReadError, read_error};
use crate::limits::{SCAN_ROWS_AT_FIRST, SCAN_ROWS_BY_CLOCK, SCAN_TURN};

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

/// Sees the rows of a scan, in order. It is a trait object, so that scans are compiled once, and not for each visitor.
pub type Visitor<'a> = dyn FnMut(&[u8], &Bytes) -> Visit + Send + 'a;

/// A scan under way.
pub(super) struct Walk<'a> {
    keys: &'a KeyRange,
    visitor: &'a mut Visitor<'a>,
    /// The dropped tables, if there are any. Their rows are not shown.
    dropped: Option<&'a DroppedTables>,
    scanned: Scanned,
    turn: Turn,
}

impl<'a> Walk<'a> {
    /// Begins a scan of `keys`, of whose rows the visitor sees those that are not of dropped tables.
    pub(super) fn new(keys: &'a KeyRange, visitor: &'a mut Visitor<'a>, dropped: &'a DroppedTables) -> Self {
        let dropped = (!dropped.is_empty()).then_some(dropped);
        let (scanned, turn) = (Scanned::default(), Turn::begin());
        Self { keys, visitor, dropped, scanned, turn }
    }

    /// What was read so far.
    pub(super) fn scanned(self) -> Scanned {
        self.scanned
    }

    /// Shows rows that are in the cache. Returns how the scan ends, if the visitor ends it.
    pub(super) async fn in_cache(&mut self, view: &mut View) -> Option<ScanEnd> {
        while let Some(rows) = view.next_rows() {
            let mut sought = None;
            for (key, value) in rows {
                self.turn.after_row().await;
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
        }
        None
    }

    /// Shows the first rows from the cache, as far as it knows them, and the others from a snapshot of the database. Both
    /// are as of one moment; see [`super::read`].
    pub(super) fn in_both<'s>(
        &'s mut self,
        opening: &'s Opening,
    ) -> BoxFuture<'s, Result<ScanEnd, ReadError>> {
        Box::pin(async move {
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
            // Another scan may have filled the cache since this one asked it for all of its rows.
            if self.keys.high().is_some_and(|high| high <= &**view.reached()) {
                return Ok(ScanEnd::Exhausted);
            }
            filling.begin_at(view.reached());
            let rest = KeyRange::new(view.reached().to_vec(), self.keys.high().map(<[u8]>::to_vec));
            self.in_database(opening, &snapshot, &rest, filling).await
        })
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
        let mut rows = SnapshotRows::new(opening, snapshot, keys, caches_blocks);
        let mut found = rows.next().await?;
        while let Some((key, value)) = found {
            filling.row(&key, &value, durable);
            found = match self.show(&key, &value) {
                Ok(None) => rows.next().await?,
                Ok(Some(sought)) => {
                    filling.pass_over(&key, &sought, durable);
                    rows.seek(&sought).await?
                }
                Err(end) => {
                    filling.end(Some(&key), durable);
                    return Ok(end);
                }
            };
            self.turn.after_row().await;
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
        match (self.visitor)(key, value) {
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
    /// When the clock was read last, and the rows that were visited since then. It is not read for each row: that costs
    /// as much as to look at a row in the cache.
    read: Instant,
    rows: usize,
    /// After so many rows the clock is read again. Rows that take long, as those of a filter with a thousand comparisons,
    /// make it fewer.
    rows_by_clock: usize,
}

impl Turn {
    fn begin() -> Self {
        let now = Instant::now();
        Self { begun: now, read: now, rows: 0, rows_by_clock: SCAN_ROWS_AT_FIRST }
    }

    async fn after_row(&mut self) {
        self.rows += 1;
        if self.rows < self.rows_by_clock {
            return;
        }
        let mut now = Instant::now();
        self.rows_by_clock = rows_by_clock(self.rows, now - self.read);
        if now - self.begun >= SCAN_TURN {
            yield_now().await;
            now = Instant::now();
            self.begun = now;
        }
        (self.read, self.rows) = (now, 0);
    }
}

/// How many rows take an eighth of a turn, if so many `rows` took this time.
fn rows_by_clock(rows: usize, took: Duration) -> usize {
    let eighth = SCAN_TURN.as_nanos() / 8;
    let fitting = (rows as u128 * eighth).checked_div(took.as_nanos());
    fitting.map_or(SCAN_ROWS_BY_CLOCK, |rows| rows.clamp(1, SCAN_ROWS_BY_CLOCK as u128) as usize)
}

#[cfg(test)]
mod tests {
    use super::super::Range;
    use super::*;

    #[test]
    fn the_clock_is_read_more_often_when_rows_take_long() {
        assert_eq!(rows_by_clock(8, Duration::ZERO), SCAN_ROWS_BY_CLOCK);
        assert_eq!(rows_by_clock(64, Duration::from_micros(64)), 62);
        assert_eq!(rows_by_clock(8, Duration::from_micros(160)), 3);
        assert_eq!(rows_by_clock(8, Duration::from_secs(1)), 1);
    }

    #[tokio::test]
    async fn a_scan_whose_rows_another_scan_has_just_cached_shows_them_once() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        opening.db.put(b"key", b"value").await.unwrap();
        crate::database::flush(&opening.db, slatedb::config::FlushType::Wal).await.unwrap();
        let keys = KeyRange::new(b"a".to_vec(), Some(b"z".to_vec()));
        let dropped = DroppedTables::default();
        for from in ["the database", "the cache"] {
            let mut shown = Vec::new();
            let mut take = |key: &[u8], _: &Bytes| {
                shown.push(key.to_vec());
                Visit::Next
            };
            // In the second round the cache knows all of the rows, as if it had just learned them.
            let end = Walk::new(&keys, &mut take, &dropped).in_both(&opening).await.unwrap();
            assert_eq!((end, shown), (ScanEnd::Exhausted, vec![b"key".to_vec()]), "from {from}");
        }
        assert!(opening.rows.view(&keys).is_some());
    }
}

//! The durable rows of a snapshot, in order: from sorted files as far as these have them all, and then from the database.
//!
//! To read sorted files past the database costs a third of its own scan. But they do not have what lies in the memtable. The
//! cache of rows hears of every write before it enters the log, so it knows the first key whose row may lie
//! there. The rows before that key are taken from the files.
//!
//! Why both parts show one moment: the snapshot is made first, then the cache is asked, then the list of files is taken.
//!
//! * A row that the snapshot shows and that was not in the files when the cache was asked has a key that the cache names: its
//!   write was announced before the snapshot was made. If it came into the files later, they have it.
//! * A row that is newer than the snapshot has a greater sequence number, and is passed over. The older version is still in
//!   the files, because flushes and compactions keep what a snapshot shows.
//! * All rows of the files are durable, so the database shows them too: a batch is not shown by half.
//!
//! When a file cannot be read, the rest is asked from the database, which tries again, or tells what is wrong.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use rangehold_map::KeyRange;
use slatedb::config::DurabilityLevel;
use slatedb::{DbIterator, DbSnapshot};

use super::{Opening, stored};
use crate::database::{FileScan, SortedFiles};
use crate::error::ReadError;

/// See the module.
pub(super) struct SnapshotRows<'a> {
    snapshot: &'a DbSnapshot,
    /// The keys of which no row was returned yet.
    keys: KeyRange,
    caches_blocks: bool,
    source: Source,
}

enum Source {
    /// These rows, and then those from this key on; `None` if there are no more.
    Files(FileScan, Option<Vec<u8>>),
    Database(DbIterator),
    /// Nothing was asked yet, or not from the key on that is wanted now.
    Nothing,
}

impl<'a> SnapshotRows<'a> {
    /// The rows of `keys`. With `caches_blocks` the blocks that are read go to the cache of blocks.
    pub(super) fn new(
        opening: &Opening,
        snapshot: &'a DbSnapshot,
        keys: &KeyRange,
        caches_blocks: bool,
    ) -> Self {
        let source = match opening.sorted_part(keys) {
            Some((part, files)) => {
                let rest = (part != *keys).then(|| part.high().map(<[u8]>::to_vec)).flatten();
                Source::Files(files.scan(&part, snapshot.seq(), caches_blocks), rest)
            }
            None => Source::Nothing,
        };
        Self { snapshot, keys: keys.clone(), caches_blocks, source }
    }

    /// The next row.
    pub(super) async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        loop {
            match &mut self.source {
                Source::Files(scan, rest) => match scan.next().await {
                    Ok(Some(row)) => return Ok(Some(row)),
                    Ok(None) => {
                        let Some(rest) = rest.take() else { return Ok(None) };
                        self.go_on_at(rest);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a sorted file could not be read; asking the database");
                        let reached = scan.reached();
                        self.go_on_at(reached);
                    }
                },
                Source::Database(rows) => {
                    return Ok(stored::next(rows).await?.map(|row| (row.key, row.value)));
                }
                Source::Nothing if self.keys.is_empty() => return Ok(None),
                Source::Nothing => self.ask_database().await?,
            }
        }
    }

    /// The first row at or after `key`, which lies above the last row.
    pub(super) async fn seek(&mut self, key: &[u8]) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        match &mut self.source {
            Source::Files(scan, rest) if rest.as_deref().is_none_or(|rest| key < rest) => scan.seek(key),
            Source::Database(rows) => {
                return Ok(stored::seek(rows, key).await?.map(|row| (row.key, row.value)));
            }
            Source::Files(..) | Source::Nothing => self.go_on_at(key.to_vec()),
        }
        self.next().await
    }

    /// Asks the database for the rows from `key` on.
    fn go_on_at(&mut self, key: Vec<u8>) {
        self.keys = KeyRange::new(key, self.keys.high().map(<[u8]>::to_vec));
        self.source = Source::Nothing;
    }

    /// In a box: to open a scan of the database takes a large future.
    fn ask_database(&mut self) -> BoxFuture<'_, Result<(), ReadError>> {
        Box::pin(async move {
            let level = DurabilityLevel::Remote;
            let rows = stored::scan(self.snapshot, &self.keys, level, self.caches_blocks).await?;
            self.source = Source::Database(rows);
            Ok(())
        })
    }
}

impl Opening {
    /// The first part of `keys` whose rows can be taken from sorted files, and these files. The snapshot of the reader was made
    /// before this.
    fn sorted_part(&self, keys: &KeyRange) -> Option<(KeyRange, Arc<SortedFiles>)> {
        let asked = self.sorted_sequence();
        let part = self.rows.sorted_part(keys, asked)?;
        let files = self.sorted_files()?;
        let has_all = files.sequence() >= asked.max(self.replayed) && !files.is_empty();
        has_all.then_some((part, files))
    }

    /// The sorted files of now. `None` if it is not known yet that their rows are durable.
    fn sorted_files(&self) -> Option<Arc<SortedFiles>> {
        let manifest = {
            let status = self.status.borrow();
            let manifest = &status.current_manifest;
            if status.durable_seq < manifest.last_l0_seq() {
                return None;
            }
            let known = self.files.lock();
            if let Some(known) = known.as_ref().filter(|known| known.are_of(manifest)) {
                return Some(Arc::clone(known));
            }
            manifest.clone()
        };
        // While the status is borrowed, the database cannot change it, so this is done without.
        let files = Arc::new(self.file_reader.files(&manifest));
        *self.files.lock() = Some(Arc::clone(&files));
        Some(files)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rangehold_map::PartitionPrefix;
    use tokio::time::Instant;

    use super::super::Range;
    use super::super::request::WriteRequest;
    use super::super::walk::Visit;
    use super::*;

    fn numbered(number: usize) -> Vec<u8> {
        [PartitionPrefix::catalogue("account").as_bytes(), format!("{number:03}").as_bytes()].concat()
    }

    /// A range with a supervisor, which flushes.
    async fn served() -> Arc<Range> {
        let range = Range::in_memory().await;
        tokio::spawn(Arc::clone(&range).supervise());
        range
    }

    async fn write(range: &Range, number: usize, value: Option<&str>) {
        let partition = PartitionPrefix::catalogue("account");
        let keys = [numbered(number)];
        let request = WriteRequest::new(&partition, &keys, Instant::now() + Duration::from_secs(60));
        let value = value.map(|value| value.as_bytes().to_vec());
        range.write(&request, &mut |_, _| Ok(vec![(keys[0].clone(), value.clone())])).await.unwrap();
    }

    /// The values of the rows from a number on, with nothing in the cache.
    async fn values(range: &Range, from: usize) -> Vec<Bytes> {
        let keys = KeyRange::new(numbered(from), Some(numbered(999)));
        range.open_now().unwrap().rows.forget(&keys);
        let mut found = Vec::new();
        let mut take = |_: &[u8], value: &Bytes| {
            found.push(value.clone());
            Visit::Next
        };
        range.scan(&keys, &mut take).await.unwrap();
        found
    }

    fn ends_at(range: &Range, from: usize) -> Option<Vec<u8>> {
        let keys = KeyRange::new(numbered(from), Some(numbered(999)));
        let part = range.open_now().unwrap().sorted_part(&keys);
        part.map(|(part, _)| part.high().expect("it has an end").to_vec())
    }

    #[tokio::test]
    async fn a_scan_shows_rows_of_files_and_of_the_memtable() {
        let range = served().await;
        for number in 0..10 {
            write(&range, number, Some("old")).await;
        }
        assert_eq!(ends_at(&range, 0), None, "there is no file yet");
        assert_eq!(values(&range, 0).await, ["old"; 10]);
        range.save().await.unwrap();
        assert_eq!(ends_at(&range, 0), Some(numbered(999)));
        assert_eq!(values(&range, 3).await, ["old"; 7]);
        write(&range, 5, None).await;
        write(&range, 7, Some("new")).await;
        assert_eq!(ends_at(&range, 0), Some(numbered(5)));
        assert_eq!(ends_at(&range, 5), None);
        assert_eq!(ends_at(&range, 6), Some(numbered(7)));
        assert_eq!(values(&range, 4).await, ["old", "old", "new", "old", "old"]);
        range.save().await.unwrap();
        assert_eq!(ends_at(&range, 0), Some(numbered(999)));
        assert_eq!(values(&range, 4).await, ["old", "old", "new", "old", "old"]);
    }

    #[tokio::test]
    async fn rows_that_were_replayed_from_the_log_are_asked_from_the_database() {
        let range = served().await;
        write(&range, 1, Some("sorted")).await;
        range.save().await.unwrap();
        write(&range, 2, Some("in the log")).await;
        range.open_again().await.unwrap();
        assert_eq!(ends_at(&range, 0), None);
        assert_eq!(values(&range, 0).await, ["sorted", "in the log"]);
        range.save().await.unwrap();
        assert_eq!(ends_at(&range, 0), Some(numbered(999)));
        assert_eq!(values(&range, 0).await, ["sorted", "in the log"]);
    }

    #[tokio::test]
    async fn when_files_cannot_be_read_the_database_is_asked() {
        let range = served().await;
        for number in 0..10 {
            write(&range, number, Some("value")).await;
        }
        range.save().await.unwrap();
        let opening = range.open_now().unwrap();
        let elsewhere = range.databases.file_reader("ranges/none").files(&opening.db.manifest());
        *opening.files.lock() = Some(Arc::new(elsewhere));
        let snapshot = opening.db.snapshot().unwrap();
        let keys = KeyRange::new(numbered(0), Some(numbered(999)));
        let mut rows = SnapshotRows::new(&opening, &snapshot, &keys, false);
        assert!(matches!(rows.source, Source::Files(..)), "the files are tried first");
        assert_eq!(rows.seek(&numbered(4)).await.unwrap().unwrap().0, numbered(4));
        assert_eq!(rows.next().await.unwrap().unwrap().0, numbered(5));
    }

    #[tokio::test]
    async fn rows_of_a_dropped_table_do_not_come_back_from_files() {
        let range = served().await;
        let key = numbered(3);
        write(&range, 3, Some("value")).await;
        range.save().await.unwrap();
        range.delete_own(&[Bytes::from(key.clone())]).await.unwrap();
        assert_eq!(values(&range, 0).await, [""; 0]);
    }
}

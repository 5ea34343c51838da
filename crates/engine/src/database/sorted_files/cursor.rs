//! A cursor through one run of files: it reads block after block, and knows the next row.

use std::vec;

use bytes::Bytes;
use futures::future::BoxFuture;
use slatedb::{RowEntry, SstFile, SstIndex};
use tokio::task::coop::consume_budget;

use super::Run;

/// A place in a run of files. It holds the decoded rows of one block.
#[derive(Default)]
pub(super) struct Cursor {
    /// The rest of the block that was read last, from `from` on.
    rows: vec::IntoIter<RowEntry>,
    /// The file that is read, and its place in the run.
    file: Option<Opened>,
    /// The next file of the run.
    next_file: usize,
}

struct Opened {
    place: usize,
    file: SstFile,
    index: SstIndex,
    next_block: usize,
}

/// The keys that a scan still wants.
pub(super) struct Wanted<'a> {
    pub(super) from: &'a [u8],
    /// The first key after them, if they have an end.
    pub(super) high: Option<&'a [u8]>,
    pub(super) caches_blocks: bool,
}

impl Cursor {
    /// The next row; `None` if a block must be read first, or if there is none.
    pub(super) fn head(&self) -> Option<&RowEntry> {
        self.rows.as_slice().first()
    }

    pub(super) fn take(&mut self) -> Option<RowEntry> {
        self.rows.next()
    }

    /// Leaves out the rows below `key`, as far as they were read.
    pub(super) fn skip_to(&mut self, key: &[u8]) {
        let below = self.rows.as_slice().partition_point(|row| row.key.as_ref() < key);
        if below > 0 {
            self.rows.nth(below - 1);
        }
    }

    /// Reads blocks until there is a row that is wanted, or the run has no more.
    pub(super) fn fill<'a>(
        &'a mut self,
        run: &'a Run,
        wanted: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<(), slatedb::Error>> {
        Box::pin(async move {
            while self.rows.len() == 0 {
                if self.file.is_none() && !self.open_next(run, wanted).await? {
                    return Ok(());
                }
                let Some(opened) = &mut self.file else { return Ok(()) };
                // A block that is cached is read without waiting, and its rows may all be deleted ones.
                consume_budget().await;
                match opened.read_block(run, wanted).await? {
                    Some(rows) => self.rows = rows.into_iter(),
                    None => self.file = None,
                }
            }
            Ok(())
        })
    }

    /// Opens the next file that may hold rows that are wanted; false if there is none.
    async fn open_next(&mut self, run: &Run, wanted: &Wanted<'_>) -> Result<bool, slatedb::Error> {
        let skipped = run.get(self.next_file..).unwrap_or_default();
        self.next_file += skipped.iter().take_while(|file| !file.reaches(wanted.from)).count();
        let Some(file) = run.get(self.next_file) else { return Ok(false) };
        if wanted.high.is_some_and(|high| file.low.as_ref() >= high) {
            self.next_file = run.len();
            return Ok(false);
        }
        let reader = match wanted.caches_blocks {
            true => &file.readers.keeping_blocks,
            false => &file.readers.keeping_no_blocks,
        };
        let opened = reader.open_with_handle(file.view.sst.clone())?;
        let index = opened.index().await?;
        self.file = Some(Opened { place: self.next_file, file: opened, index, next_block: 0 });
        self.next_file += 1;
        Ok(true)
    }
}

impl Opened {
    /// The wanted rows of the next block that may hold some; `None` after the last.
    async fn read_block(
        &mut self,
        run: &Run,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Vec<RowEntry>>, slatedb::Error> {
        let shown = &run[self.place];
        if !shown.reaches(wanted.from) {
            return Ok(None);
        }
        let from = shown.low.as_ref().max(wanted.from);
        // The last block whose first key is below: its end may hold the first version of the key, or the key itself.
        let first = self.index.partition_point(|key| key < from).saturating_sub(1);
        self.next_block = self.next_block.max(first);
        let Some((_, first_key)) = self.index.get(self.next_block) else { return Ok(None) };
        if !shown.reaches(first_key) || wanted.high.is_some_and(|high| first_key >= high) {
            return Ok(None);
        }
        let mut rows = self.file.read_block(self.next_block).await?;
        self.next_block += 1;
        let is_inside =
            |key: &Bytes| shown.reaches(key) && wanted.high.is_none_or(|high| key.as_ref() < high);
        rows.truncate(rows.partition_point(|row| is_inside(&row.key)));
        rows.drain(..rows.partition_point(|row| row.key.as_ref() < from));
        Ok(Some(rows))
    }
}

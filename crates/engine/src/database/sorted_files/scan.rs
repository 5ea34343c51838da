//! The rows of several runs of files, merged: of each key the newest version that the reader may see.
//!
//! The cursor with the least key *leads*. As long as its rows come before the next row of all other cursors, only one comparison
//! is made for each row. Mostly that is long: a run that was written later often has other keys.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use rangehold_map::KeyRange;
use slatedb::{RowEntry, ValueDeletable};

use super::SortedFiles;
use super::cursor::{Cursor, Wanted};

/// A scan of sorted files under way.
pub(crate) struct FileScan {
    files: Arc<SortedFiles>,
    /// One for each run.
    cursors: Vec<Cursor>,
    lead: Option<Lead>,
    /// No row below is wanted any more.
    from: Bytes,
    high: Option<Bytes>,
    /// The reader sees the versions up to this sequence number.
    newest: u64,
    caches_blocks: bool,
    /// The key whose newest version was found last. Its older versions follow.
    decided: Option<Bytes>,
}

/// The cursor that has the next row.
struct Lead {
    cursor: usize,
    /// The place of the next row of all others, if they have one.
    until: Option<Place>,
}

/// Rows are in the order of their keys, and the versions of a key from the newest to the oldest.
type Place = (Bytes, Reverse<u64>);

fn place(row: &RowEntry) -> (&Bytes, Reverse<u64>) {
    (&row.key, Reverse(row.seq))
}

impl FileScan {
    pub(super) fn new(files: Arc<SortedFiles>, keys: &KeyRange, newest: u64, caches_blocks: bool) -> Self {
        Self {
            cursors: files.runs.iter().map(|_| Cursor::default()).collect(),
            files,
            lead: None,
            from: Bytes::copy_from_slice(keys.low()),
            high: keys.high().map(Bytes::copy_from_slice),
            newest,
            caches_blocks,
            decided: None,
        }
    }

    /// The next row.
    pub(crate) async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, slatedb::Error> {
        while let Some(row) = self.next_version().await? {
            if row.seq > self.newest || self.decided.as_ref() == Some(&row.key) {
                continue;
            }
            let value = match row.value {
                ValueDeletable::Value(value) => Some(value),
                ValueDeletable::Tombstone => None,
                ValueDeletable::Merge(_) => {
                    let what = "a row is an operand of a merge, and none was ever written";
                    return Err(slatedb::Error::data(what.to_owned()));
                }
            };
            self.decided = Some(row.key.clone());
            if let Some(value) = value {
                return Ok(Some((row.key, value)));
            }
        }
        Ok(None)
    }

    /// Goes on at `key`, which lies above the last row.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.from = Bytes::copy_from_slice(key);
        if let Some(Lead { cursor, until }) = &self.lead {
            let leading = &mut self.cursors[*cursor];
            leading.skip_to(key);
            // Mostly the key is near: then no other cursor has to move.
            if leading.head().is_some() && until.as_ref().is_none_or(|(next, _)| next.as_ref() >= key) {
                return;
            }
        }
        self.lead = None;
        self.cursors.iter_mut().for_each(|cursor| cursor.skip_to(key));
    }

    /// The first key of which nothing was returned.
    pub(crate) fn reached(&self) -> Vec<u8> {
        match &self.decided {
            Some(last) if *last >= self.from => [last, &b"\0"[..]].concat(),
            _ => self.from.to_vec(),
        }
    }

    /// The next version of a row, in the order of [`Place`].
    async fn next_version(&mut self) -> Result<Option<RowEntry>, slatedb::Error> {
        loop {
            let Some(Lead { cursor, until }) = &self.lead else {
                if !self.choose().await? {
                    return Ok(None);
                }
                continue;
            };
            let leading = &mut self.cursors[*cursor];
            match leading.head() {
                Some(row) if until.as_ref().is_none_or(|(key, seq)| place(row) <= (key, *seq)) => {
                    return Ok(leading.take());
                }
                // Another one leads now, or a block has to be read first.
                _ => self.lead = None,
            }
        }
    }

    /// Chooses the cursor that leads; false if no cursor has a row.
    async fn choose(&mut self) -> Result<bool, slatedb::Error> {
        let wanted =
            Wanted { from: &self.from, high: self.high.as_deref(), caches_blocks: self.caches_blocks };
        for (cursor, run) in self.cursors.iter_mut().zip(&self.files.runs) {
            if cursor.head().is_none() {
                cursor.fill(run, &wanted).await?;
            }
        }
        let (mut first, mut second): (Option<(usize, &RowEntry)>, Option<&RowEntry>) = (None, None);
        for (number, cursor) in self.cursors.iter().enumerate() {
            let Some(row) = cursor.head() else { continue };
            if first.is_none_or(|(_, before)| place(row) < place(before)) {
                second = first.map(|(_, before)| before);
                first = Some((number, row));
            } else if second.is_none_or(|before| place(row) < place(before)) {
                second = Some(row);
            }
        }
        let until = second.map(|row| (row.key.clone(), Reverse(row.seq)));
        self.lead = first.map(|(cursor, _)| Lead { cursor, until });
        Ok(self.lead.is_some())
    }
}
